//go:build ignore

// Command summary reads what `go test -json` prints, keeps it in a file for
// ../shared/tools/acceptance and prints what a person wants to read: one line
// for each package as go test prints it, the whole output of what failed, why
// something was skipped, and the counts.
//
//	go test -json ./... | go run .ci/summary.go testresults/go.jsonl
//
// It ends with status 1 where something failed or nothing ran.
package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
)

// event is a line of `go test -json` (cmd/test2json).
type event struct {
	Action, Package, Test, Output, ImportPath string
}

type summary struct {
	output                  map[string]*strings.Builder // by package and test
	passed, failed, skipped int
	broken                  bool // something other than a test failed: a build, a package
}

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: go test -json ./... | go run .ci/summary.go FILE")
		os.Exit(2)
	}
	if err := run(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "summary:", err)
		os.Exit(1)
	}
}

func run(file string) error {
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return err
	}
	f, err := os.Create(file)
	if err != nil {
		return err
	}
	s := &summary{output: map[string]*strings.Builder{}}
	r := bufio.NewReader(io.TeeReader(os.Stdin, f))
	for {
		line, err := r.ReadBytes('\n')
		s.line(line)
		if err != nil {
			break
		}
	}
	if err := f.Close(); err != nil {
		return err
	}
	fmt.Printf("%d passed, %d failed, %d skipped\n", s.passed, s.failed, s.skipped)
	switch {
	case s.failed > 0 || s.broken:
		return fmt.Errorf("not everything passed; the whole record is %s", file)
	case s.passed == 0:
		return fmt.Errorf("no test ran")
	}
	return nil
}

func (s *summary) line(line []byte) {
	var e event
	if json.Unmarshal(line, &e) != nil {
		if line = bytes.TrimSpace(line); len(line) > 0 {
			fmt.Printf("%s\n", line) // a line of the go command itself, about the packages
		}
		return
	}
	key := e.Package + "\x00" + e.Test
	switch e.Action {
	case "build-output":
		fmt.Print(e.Output)
	case "build-fail":
		s.broken = true
	case "output":
		s.take(key, e)
	case "pass":
		s.count(&s.passed, e)
		delete(s.output, key)
	case "skip":
		s.count(&s.skipped, e)
		if e.Test != "" {
			fmt.Printf("skip %s %s: %s\n", e.Package, e.Test, s.reason(key))
		}
	case "fail":
		s.count(&s.failed, e)
		s.broken = s.broken || e.Test == ""
		if b := s.output[key]; b != nil {
			fmt.Print(b.String())
		}
		delete(s.output, key)
	}
}

// take keeps what a test prints until it is known whether it failed, and prints
// what go test says about a package at once.
func (s *summary) take(key string, e event) {
	if e.Test == "" {
		for _, p := range []string{"ok  \t", "FAIL\t", "?   \t", "---"} {
			if strings.HasPrefix(e.Output, p) {
				fmt.Print(e.Output)
				return
			}
		}
		if e.Output == "PASS\n" || e.Output == "FAIL\n" || strings.HasPrefix(e.Output, "\t") {
			return
		}
	}
	b := s.output[key]
	if b == nil {
		b = &strings.Builder{}
		s.output[key] = b
	}
	b.WriteString(e.Output)
}

func (s *summary) count(n *int, e event) {
	if e.Test != "" {
		*n++
	}
}

// reason returns why a test was skipped: the last line of its output.
func (s *summary) reason(key string) string {
	b := s.output[key]
	if b == nil {
		return "it does not say why"
	}
	why := ""
	for _, l := range strings.Split(b.String(), "\n") {
		if t := strings.TrimSpace(l); t != "" && !strings.HasPrefix(t, "===") && !strings.HasPrefix(t, "---") {
			why = t
		}
	}
	return why
}
