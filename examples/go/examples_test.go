package examples_test

import (
	"bufio"
	"bytes"
	"context"
	"flag"
	"go/parser"
	"go/token"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tenonhq/tenon/internal/longtest"
)

var update = flag.Bool("update", false, "write output.txt of the examples")

const (
	module = "github.com/tenonhq/tenon"
	// The length of an example in lines.
	minLines, maxLines = 30, 90
)

// examples returns the names of the examples.
func examples(t *testing.T) []string {
	t.Helper()
	mains, err := filepath.Glob("*/main.go")
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, m := range mains {
		names = append(names, filepath.Dir(m))
	}
	return names
}

// TestExamples runs the programs, each in an empty folder with its own files and an empty HOME, and compares what they
// print with output.txt.
func TestExamples(t *testing.T) {
	longtest.Skip(t)
	programs := t.TempDir()
	build := exec.Command("go", "build", "-ldflags=-s -w", "-o", programs+string(filepath.Separator), "./cmd/tenon",
		"./examples/go/...")
	build.Dir = filepath.Join("..", "..")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, name := range examples(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			if err := os.CopyFS(dir, os.DirFS(name)); err != nil {
				t.Fatal(err)
			}
			cmd := exec.Command(filepath.Join(programs, name))
			cmd.Dir = dir
			cmd.Env = []string{"HOME=" + t.TempDir(), "PATH=" + programs}
			var stderr bytes.Buffer
			cmd.Stderr = &stderr
			var got string
			var err error
			if name == "http" {
				got, err = askServer(t, cmd)
			} else {
				var out []byte
				out, err = cmd.Output()
				got = string(out)
			}
			if err != nil || stderr.Len() > 0 {
				t.Fatalf("%v\n%s", err, stderr.Bytes())
			}
			golden := filepath.Join(name, "output.txt")
			if *update {
				if err := os.WriteFile(golden, []byte(got), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(string(want), got); d != "" {
				t.Errorf("output (-want +got):\n%s", d)
			}
		})
	}
}

// askServer starts the example of an HTTP server, asks it, and ends it with an interrupt.
func askServer(t *testing.T, cmd *exec.Cmd) (string, error) {
	t.Helper()
	cmd.Args = append(cmd.Args, "-addr", "127.0.0.1:0")
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(stdout).ReadString('\n')
	url, ok := strings.CutPrefix(strings.TrimSpace(line), "listening on ")
	if err != nil || !ok {
		return line, cmd.Wait()
	}
	var out strings.Builder
	for _, path := range []string{"/ask?q=What+is+the+weather+in+London%3F", "/api/v1/me"} {
		for _, user := range []string{"", "ann"} {
			req, err := http.NewRequestWithContext(context.Background(), http.MethodGet, url+path, nil)
			if err != nil {
				t.Fatal(err)
			}
			if user != "" {
				req.SetBasicAuth(user, "secret")
			}
			res, err := http.DefaultClient.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			body, err := io.ReadAll(res.Body)
			_ = res.Body.Close()
			if err != nil {
				t.Fatal(err)
			}
			out.WriteString(strings.TrimSpace("GET "+path+" "+user) + "\n" + res.Status + "\n" +
				strings.TrimSpace(string(body)) + "\n\n")
		}
	}
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	return out.String(), cmd.Wait()
}

// TestExamplesAreSmall checks that a useful program needs package host and at most one more package of the module, and
// fits on a page or two.
func TestExamplesAreSmall(t *testing.T) {
	names := examples(t)
	if len(names) < 10 {
		t.Errorf("only %d examples: %v", len(names), names)
	}
	for _, name := range names {
		text, err := os.ReadFile(filepath.Join(name, "main.go"))
		if err != nil {
			t.Fatal(err)
		}
		if n := bytes.Count(text, []byte("\n")); n < minLines || n > maxLines {
			t.Errorf("%s has %d lines, want %d to %d", name, n, minLines, maxLines)
		}
		f, err := parser.ParseFile(token.NewFileSet(), name, text, parser.ImportsOnly|parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		if f.Doc == nil {
			t.Errorf("%s has no comment that says what it shows", name)
		}
		var ours []string
		for _, i := range f.Imports {
			if p := strings.Trim(i.Path.Value, `"`); strings.HasPrefix(p, module) && p != module+"/host" {
				ours = append(ours, p)
			}
		}
		if len(ours) > 1 {
			t.Errorf("%s imports %v beside host", name, ours)
		}
	}
}
