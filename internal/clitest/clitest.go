// Package clitest runs the built binary in tests like a person at a terminal or a script: as a separate
// process with its own folder and home.
//
//	internal/kill, internal/peers ──► clitest ──► the process tenon ──► its servers
//
// Tests of single commands are scripts in internal/cli, which run in the test's process and are faster. This
// package is for tests that need real processes: a process that is killed, several processes on one store,
// processes that must not be left behind.
//
// It imports nothing of the module, so tests observe the same as a user. The HOME of a shell identifies its
// processes, because stdio servers inherit it.
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
	"sync"
	"testing"
	"time"
)

// Patience is the time after which a command counts as hung.
const Patience = 90 * time.Second

// built contains the executables that Build has built, by folder and package.
var built struct {
	sync.Mutex
	paths map[string]string
}

// Build builds package pkg, relative to the folder dir, and returns the path of the executable. The executable is in
// the build cache, because linking tenon takes six seconds of CPU time. The tests of several packages share it, so no
// test may change it.
func Build(t *testing.T, dir, pkg string) string {
	t.Helper()
	built.Lock()
	defer built.Unlock()
	id := dir + " " + pkg
	if path, ok := built.paths[id]; ok {
		return path
	}
	for range 5 {
		// go run caches executables since Go 1.24, and with -exec echo it prints the path of the executable instead of
		// running it. The path of a newly linked executable ends with the command.
		cmd := exec.Command("go", "run", "-exec", "echo", pkg)
		cmd.Dir = dir
		out, err := cmd.Output()
		if err != nil {
			var exit *exec.ExitError
			if errors.As(err, &exit) {
				out = exit.Stderr
			}
			t.Fatalf("%s: %v\n%s", cmd, err, out)
		}
		path := strings.TrimSpace(string(out))
		if _, err := os.Stat(path); err == nil {
			if built.paths == nil {
				built.paths = map[string]string{}
			}
			built.paths[id] = path
			return path
		}
	}
	t.Fatalf("the executable of %s is not in the build cache", pkg)
	return ""
}

// FreePort returns a free port of the loopback interface. It is below the range of ephemeral ports, so it
// stays free until a program uses it, even if other programs run at the same time.
func FreePort(t *testing.T) string {
	t.Helper()
	var err error
	for range 100 {
		port := strconv.Itoa(20_000 + rand.IntN(10_000))
		var l net.Listener
		if l, err = net.Listen("tcp", net.JoinHostPort("127.0.0.1", port)); err == nil {
			_ = l.Close() // only to test whether the port is free
			return port
		}
	}
	t.Fatal(err)
	return ""
}

// Shell is the environment of commands.
type Shell struct {
	Tenon string   // path of the executable
	Dir   string   // working directory of the commands
	Home  string   // HOME of all processes
	Env   []string // complete environment, KEY=VALUE
}

// NewShell returns a shell with an empty folder. If processes of the shell are left at the end of the test, the test
// fails. env is added to PATH and HOME.
func NewShell(t *testing.T, tenon string, env ...string) *Shell {
	t.Helper()
	s := &Shell{Tenon: tenon, Dir: t.TempDir(), Home: t.TempDir()}
	s.Env = append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + s.Home, "NO_COLOR=1"}, env...)
	t.Cleanup(func() { s.NoProcess(t) })
	return s
}

// Command returns a command of tenon without starting it. It has no stdin.
func (s *Shell) Command(ctx context.Context, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, s.Tenon, args...)
	cmd.Dir, cmd.Env, cmd.WaitDelay = s.Dir, s.Env, 5*time.Second
	return cmd
}

// Output is the output and the exit status of a command.
type Output struct {
	Args        []string
	Out, ErrOut string
	Status      int
}

// Run runs tenon and waits for its end. The exit status may be any.
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
		t.Fatalf("the command did not end: %v\n%s", err, o)
	}
	return o
}

// OK runs tenon and fails the test if the status is not 0.
func (s *Shell) OK(t *testing.T, args ...string) Output {
	t.Helper()
	o := s.Run(t, args...)
	if o.Status != 0 {
		t.Fatalf("the command failed\n%s", o)
	}
	return o
}

// String formats a command with its output.
func (o Output) String() string {
	return "tenon " + strings.Join(o.Args, " ") + "\nstatus: " + strconv.Itoa(o.Status) + "\nstdout: " + o.Out +
		"\nstderr: " + o.ErrOut
}

// Decode parses stdout as one JSON value.
func Decode[T any](t *testing.T, o Output) T {
	t.Helper()
	var v T
	if err := json.Unmarshal([]byte(o.Out), &v); err != nil {
		t.Fatalf("stdout is not the expected JSON: %v\n%s", err, o)
	}
	return v
}

// Lines parses each line of stdout as one JSON value.
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

// NoProcess fails the test if a process of the shell is still running half a minute after the last command.
// Closing a host ends its servers and their children, and so does killing it. NoProcess reads /proc; without
// /proc it checks nothing.
func (s *Shell) NoProcess(t *testing.T) {
	t.Helper()
	var left []string
	for range 300 {
		left = nil
		files, _ := filepath.Glob("/proc/[0-9]*/environ") // fails only for an invalid pattern
		for _, f := range files {
			env, err := os.ReadFile(f)
			if err != nil || !bytes.Contains(append([]byte{0}, env...), []byte("\x00HOME="+s.Home+"\x00")) {
				continue // another process, or one that has ended
			}
			line, _ := os.ReadFile(filepath.Join(filepath.Dir(f), "cmdline")) // only for the message
			left = append(left, f+" "+string(bytes.ReplaceAll(line, []byte{0}, []byte{' '})))
		}
		if len(left) == 0 {
			return
		}
		time.Sleep(100 * time.Millisecond)
	}
	t.Errorf("processes are left behind:\n%s", strings.Join(left, "\n"))
}
