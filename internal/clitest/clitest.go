// Package clitest runs the built binary in tests, as a person at a terminal or
// a script would: a process of its own, in a folder and with a home of its own.
//
//	internal/kill, internal/peers ──► clitest ──► the process tenon ──► its servers
//
// Tests of single verbs are scripts in cmd/tenon, which run in the test's own
// process and are faster. This package is for what needs the real thing: a
// process that is killed, several of them at one store, processes that must not
// be left behind. It imports nothing of the module, so a test that uses it sees
// what a user sees. A shell's home is the mark by which its processes are
// found: servers of stdio inherit it.
package clitest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// Patience is how long one command may take before it counts as hung.
const Patience = 90 * time.Second

// Build builds the program of package pkg, as seen from the folder dir, and
// returns the path of its executable.
func Build(t *testing.T, dir, pkg string) string {
	t.Helper()
	out := filepath.Join(t.TempDir(), "tenon")
	cmd := exec.Command("go", "build", "-o", out, pkg)
	cmd.Dir = dir
	if b, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", cmd, err, b)
	}
	return out
}

// FreePort returns a port of the loopback that is free now. It lies below those that
// the system gives to whoever asks for any: it stays free until a program takes it,
// whatever runs beside.
func FreePort(t *testing.T) string {
	t.Helper()
	var err error
	for range 100 {
		port := strconv.Itoa(20_000 + rand.IntN(10_000))
		var l net.Listener
		if l, err = net.Listen("tcp", net.JoinHostPort("127.0.0.1", port)); err == nil {
			_ = l.Close() // only tried
			return port
		}
	}
	t.Fatal(err)
	return ""
}

// Shell is where commands are run.
type Shell struct {
	Tenon string   // the executable
	Dir   string   // the folder that commands stand in
	Home  string   // the HOME of all its processes
	Env   []string // the whole environment, KEY=VALUE
}

// NewShell returns a shell with an empty folder. Processes that are left behind
// when the test ends fail it. Env is added to PATH and HOME.
func NewShell(t *testing.T, tenon string, env ...string) *Shell {
	t.Helper()
	s := &Shell{Tenon: tenon, Dir: t.TempDir(), Home: t.TempDir()}
	s.Env = append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + s.Home, "NO_COLOR=1"}, env...)
	t.Cleanup(func() { s.NoProcess(t) })
	return s
}

// Command returns a command of tenon that is not started yet. It has no stdin.
func (s *Shell) Command(ctx context.Context, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, s.Tenon, args...)
	cmd.Dir, cmd.Env, cmd.WaitDelay = s.Dir, s.Env, 5*time.Second
	return cmd
}

// Output is what a command printed and how it ended.
type Output struct {
	Args        []string
	Out, ErrOut string
	Status      int
}

// Run runs tenon to its end, whatever that is.
func (s *Shell) Run(t *testing.T, args ...string) Output {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), Patience)
	defer cancel()
	cmd := s.Command(ctx, args...)
	var out, errOut bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errOut
	err := cmd.Run()
	o := Output{Args: args, Out: out.String(), ErrOut: errOut.String(), Status: cmd.ProcessState.ExitCode()}
	var exit *exec.ExitError
	if ctx.Err() != nil || err != nil && !errors.As(err, &exit) {
		t.Fatalf("it did not come to its end: %v\n%s", err, o)
	}
	return o
}

// OK is Run for a command that must succeed.
func (s *Shell) OK(t *testing.T, args ...string) Output {
	t.Helper()
	o := s.Run(t, args...)
	if o.Status != 0 {
		t.Fatalf("it failed\n%s", o)
	}
	return o
}

// String shows a command with all that it printed.
func (o Output) String() string {
	return "tenon " + strings.Join(o.Args, " ") + "\nstatus: " + strconv.Itoa(o.Status) + "\nstdout: " + o.Out + "\nstderr: " + o.ErrOut
}

// Decode reads what was printed as one JSON value.
func Decode[T any](t *testing.T, o Output) T {
	t.Helper()
	var v T
	if err := json.Unmarshal([]byte(o.Out), &v); err != nil {
		t.Fatalf("stdout is not the JSON that was expected: %v\n%s", err, o)
	}
	return v
}

// Lines reads what was printed as one JSON value a line.
func Lines[T any](t *testing.T, o Output) []T {
	t.Helper()
	var list []T
	for l := range strings.Lines(o.Out) {
		var v T
		if err := json.Unmarshal([]byte(l), &v); err != nil {
			t.Fatalf("the line %q is not JSON: %v\n%s", l, err, o)
		}
		list = append(list, v)
	}
	return list
}

// WriteFile writes a file into the shell's folder and returns its path.
func (s *Shell) WriteFile(t *testing.T, name, content string) string {
	t.Helper()
	file := filepath.Join(s.Dir, name)
	if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// NoProcess fails where a process of the shell is still there half a minute
// after the last command: closing a host ends its servers and whatever they
// started, and a killed host takes them with it. It reads /proc, and checks
// nothing where there is none.
func (s *Shell) NoProcess(t *testing.T) {
	t.Helper()
	var left []string
	for range 300 {
		left = nil
		files, _ := filepath.Glob("/proc/[0-9]*/environ") // the pattern is a good one, no other error can be
		for _, f := range files {
			env, err := os.ReadFile(f)
			if err != nil || !bytes.Contains(append([]byte{0}, env...), []byte("\x00HOME="+s.Home+"\x00")) {
				continue // not ours, or gone by now
			}
			line, _ := os.ReadFile(filepath.Join(filepath.Dir(f), "cmdline")) // only shown
			left = append(left, f+" "+string(bytes.ReplaceAll(line, []byte{0}, []byte{' '})))
		}
		if len(left) == 0 {
			return
		}
		time.Sleep(100 * time.Millisecond)
	}
	t.Errorf("processes are left behind:\n%s", strings.Join(left, "\n"))
}
