// Package peers holds the built binary against programs of others: the
// reference MCP servers from npm, aimock as a real HTTP model that speaks both
// wire formats, and the official Go SDK as a server in both protocol eras.
//
//	tenon (built here) ──stdio, Streamable HTTP──► server-everything, -filesystem, -memory, go-sdk
//	                   ──recording proxy──► aimock
//
// Nothing of ours is a stand-in here, and nothing is imported from the module:
// what counts is what a person at the terminal gets. The peers are installed by
// `make peers`, which sets TENON_PEERS=1; then a peer that is missing fails.
// Without it the tests skip, since `go test ./...` needs nothing but Go.
package peers

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// patience is how long one command may take; node takes its time on a busy
// machine.
const patience = 90 * time.Second

// peers is what the tests share.
type peers struct {
	tenon   string // the built binary
	node    string
	modules string // node_modules
}

func TestPeers(t *testing.T) {
	if os.Getenv("TENON_PEERS") != "1" {
		t.Skip("needs Node and packages from npm: make peers installs them and runs this")
	}
	p := &peers{tenon: filepath.Join(t.TempDir(), "tenon"), modules: filepath.Join(os.Getenv("TENON_PEERS_DIR"), "node_modules")}
	var err error
	if p.node, err = exec.LookPath("node"); err != nil {
		t.Fatalf("the peers need Node: %v", err)
	}
	if _, err := os.Stat(p.modules); err != nil {
		t.Fatalf("the peers are not installed, make peers does so: %v", err)
	}
	build(t, p.tenon, filepath.Join("..", ".."), "./cmd/tenon")
	t.Run("Stdio", p.testStdio)
	t.Run("HTTP", p.testHTTP)
	t.Run("Config", p.testConfig)
	t.Run("Models", p.testModels)
	t.Run("GoSDK", p.testGoSDK)
}

// build builds a program of the module that lies in dir.
func build(t *testing.T, out, dir, pkg string) {
	t.Helper()
	cmd := exec.Command("go", "build", "-o", out, pkg)
	cmd.Dir = dir
	if b, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", cmd, err, b)
	}
}

// server is the command of a reference server, without npx: that would be one
// more process between us and it.
func (p *peers) server(t *testing.T, name string, args ...string) []string {
	t.Helper()
	return append([]string{p.node, p.bin(t, "@modelcontextprotocol", name, "dist", "index.js")}, args...)
}

func (p *peers) bin(t *testing.T, parts ...string) string {
	t.Helper()
	file := filepath.Join(append([]string{p.modules}, parts...)...)
	if _, err := os.Stat(file); err != nil {
		t.Fatalf("a peer is missing, make peers installs it: %v", err)
	}
	return file
}

// shell is a person's terminal: a folder to stand in, and a home of its own.
// Servers of stdio inherit that home, so it tells which processes are ours.
type shell struct {
	peers *peers
	dir   string
	home  string
	env   []string
}

func (p *peers) shell(t *testing.T, env ...string) *shell {
	t.Helper()
	s := &shell{peers: p, dir: t.TempDir(), home: t.TempDir()}
	s.env = append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + s.home, "NO_COLOR=1"}, env...)
	t.Cleanup(func() { noProcess(t, s.home) })
	return s
}

// output is what a command printed and how it ended.
type output struct {
	args        []string
	out, errOut string
	status      int
}

// run runs tenon to its end.
func (s *shell) run(t *testing.T, args ...string) output {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, s.peers.tenon, args...)
	var out, errOut bytes.Buffer
	cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = s.dir, s.env, &out, &errOut
	cmd.WaitDelay = 5 * time.Second
	err := cmd.Run()
	o := output{args: args, out: out.String(), errOut: errOut.String(), status: cmd.ProcessState.ExitCode()}
	var exit *exec.ExitError
	if ctx.Err() != nil || err != nil && !errors.As(err, &exit) {
		t.Fatalf("tenon %s did not come to its end: %v\n%s", strings.Join(args, " "), err, o)
	}
	return o
}

// ok is run for a command that must succeed.
func (s *shell) ok(t *testing.T, args ...string) output {
	t.Helper()
	o := s.run(t, args...)
	if o.status != 0 {
		t.Fatalf("it failed\n%s", o)
	}
	return o
}

func (o output) String() string {
	return "tenon " + strings.Join(o.args, " ") + "\nstatus: " + strconv.Itoa(o.status) + "\nstdout: " + o.out + "\nstderr: " + o.errOut
}

// decode reads what was printed as one JSON value.
func decode[T any](t *testing.T, o output) T {
	t.Helper()
	var v T
	if err := json.Unmarshal([]byte(o.out), &v); err != nil {
		t.Fatalf("stdout is not the JSON that was expected: %v\n%s", err, o)
	}
	return v
}

// lines reads what was printed as one JSON value a line.
func lines[T any](t *testing.T, o output) []T {
	t.Helper()
	var list []T
	for _, l := range strings.Split(strings.TrimSpace(o.out), "\n") {
		var v T
		if err := json.Unmarshal([]byte(l), &v); err != nil {
			t.Fatalf("the line %q is not JSON: %v\n%s", l, err, o)
		}
		list = append(list, v)
	}
	return list
}

// noProcess fails where a process with that home is still there: closing a host
// ends its servers and whatever they started. It reads /proc and checks nothing
// where there is none.
func noProcess(t *testing.T, home string) {
	t.Helper()
	var left []string
	for range 50 {
		left = nil
		files, _ := filepath.Glob("/proc/[0-9]*/environ") // an old process may be gone by now: no error to tell
		for _, f := range files {
			env, err := os.ReadFile(f)
			if err != nil || !bytes.Contains(append([]byte{0}, env...), []byte("\x00HOME="+home+"\x00")) {
				continue
			}
			cmdline, _ := os.ReadFile(filepath.Join(filepath.Dir(f), "cmdline"))
			left = append(left, f+" "+string(bytes.ReplaceAll(cmdline, []byte{0}, []byte{' '})))
		}
		if len(left) == 0 {
			return
		}
		time.Sleep(100 * time.Millisecond)
	}
	t.Errorf("processes are left behind:\n%s", strings.Join(left, "\n"))
}

// background starts a program that runs until the test ends, and returns its
// output so far as a function.
func background(t *testing.T, env []string, command ...string) func() string {
	t.Helper()
	log, err := os.Create(filepath.Join(t.TempDir(), "log"))
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(command[0], command[1:]...)
	cmd.Env, cmd.Stdout, cmd.Stderr = append(os.Environ(), env...), log, log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	read := func() string {
		b, err := os.ReadFile(log.Name())
		if err != nil {
			t.Error(err)
		}
		return string(b)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill() // it may have ended by itself, which the test has seen then
		_ = cmd.Wait()
		_ = log.Close()
		if t.Failed() {
			t.Logf("%s said:\n%s", filepath.Base(command[len(command)-1]), read())
		}
	})
	return read
}

// freePort is a port of the loopback that is free now.
func freePort(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	_, port, err := net.SplitHostPort(l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	return port
}

// answers waits until something answers HTTP there.
func answers(t *testing.T, url string) {
	t.Helper()
	for range 200 {
		r, err := http.Get(url)
		if err == nil {
			r.Body.Close()
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
	t.Fatalf("nothing answers at %s", url)
}
