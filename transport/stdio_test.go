package transport

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/jsonrpc"
	"go.uber.org/goleak"
)

// role is the environment variable that turns the test binary into a faulty server.
const role = "TENON_TRANSPORT_ROLE"

func TestMain(m *testing.M) {
	if r := os.Getenv(role); r != "" {
		play(r)
		return
	}
	goleak.VerifyTestMain(m)
}

func play(r string) {
	if f := roles[r]; f != nil {
		f()
		return
	}
	in := bufio.NewReader(os.Stdin)
	switch r {
	case "echo":
		_, _ = io.Copy(os.Stdout, in)
	case "env":
		fmt.Printf("%q\n", os.Environ())
	case "exit":
		fmt.Fprintln(os.Stderr, "no licence")
		os.Exit(3)
	case "stderr":
		line := strings.Repeat("x", 1000)
		for range 2000 {
			fmt.Fprintln(os.Stderr, line)
		}
		_, _ = io.Copy(os.Stdout, in)
	case "long":
		_, _ = in.ReadString('\n')
		fmt.Printf(`{"id":1,"result":"%s"}`+"\nafter\n", strings.Repeat("x", 1<<20))
		_, _ = io.Copy(io.Discard, in)
	case "deaf": // does not read and ignores SIGTERM
		signal.Ignore(syscall.SIGTERM)
		fmt.Println("ready")
		time.Sleep(time.Minute)
	case "host": // starts a server with a grandchild and waits to be killed
		var r Reaper
		cfg := StdioConfig{Command: os.Args[0], Env: []string{role + "=parent"}, Reaper: &r}
		for range 3 { // the last one keeps running
			s, err := DialStdio(context.Background(), cfg)
			if err != nil {
				os.Exit(1)
			}
			defer s.Close()
			b, err := s.Recv(context.Background())
			if err != nil {
				os.Exit(1)
			}
			fmt.Println(s.PID(), string(b))
		}
		time.Sleep(time.Minute)
	case "parent": // leaves a grandchild that ignores SIGTERM too
		child := exec.Command(os.Args[0])
		child.Env = []string{role + "=deaf"}
		if err := child.Start(); err != nil {
			os.Exit(1)
		}
		fmt.Println(child.Process.Pid)
		_, _ = io.Copy(io.Discard, in)
	}
}

func dial(t *testing.T, r string, cfg StdioConfig) *Stdio {
	t.Helper()
	cfg.Command, cfg.Env = os.Args[0], append(cfg.Env, role+"="+r)
	s, err := DialStdio(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func TestStdio(t *testing.T) {
	ctx := context.Background()
	t.Run("echo", func(t *testing.T) {
		s := dial(t, "echo", StdioConfig{})
		for range 50 {
			go func() { _ = s.Send(ctx, jsonrpc.Outgoing{Body: []byte("{\"a\":\n1}")}) }()
		}
		for range 50 {
			if b, err := s.Recv(ctx); err != nil || string(b) != `{"a": 1}` {
				t.Fatal(string(b), err)
			}
		}
	})
	t.Run("PR5_environment", func(t *testing.T) {
		t.Setenv("TENON_TEST_SECRET", "x")
		b, err := dial(t, "env", StdioConfig{Env: []string{"A=b"}}).Recv(ctx)
		if err != nil || string(b) != `["A=b" "`+role+`=env"]` {
			t.Fatal(string(b), err)
		}
	})
	t.Run("W9_exit", func(t *testing.T) {
		_, err := dial(t, "exit", StdioConfig{}).Recv(ctx)
		if err == nil || !strings.Contains(err.Error(), "exited with code 3") ||
			!strings.Contains(err.Error(), "no licence") {
			t.Fatal(err)
		}
	})
	t.Run("PR4_stderr_flood", func(t *testing.T) {
		s := dial(t, "stderr", StdioConfig{})
		if err := s.Send(ctx, jsonrpc.Outgoing{Body: []byte(`{}`)}); err != nil {
			t.Fatal(err)
		}
		if b, err := s.Recv(ctx); err != nil || string(b) != `{}` || len(s.Stderr()) > ringSize {
			t.Fatal(string(b), err, len(s.Stderr()))
		}
	})
	t.Run("L4_long_line", testLongLine)
	t.Run("not_found", func(t *testing.T) {
		for _, env := range [][]string{nil, {"PATH=/nowhere"}} {
			_, err := DialStdio(ctx, StdioConfig{Command: "nope-tenon", Env: env})
			if tenon.ErrorCode(err) != tenon.CodeUnreachable ||
				err.Error() != "command 'nope-tenon' not found in PATH" {
				t.Fatal(err)
			}
		}
		if _, err := DialStdio(ctx, StdioConfig{Command: "./nope-tenon"}); tenon.ErrorCode(
			err) != tenon.CodeUnreachable {
			t.Fatal(err)
		}
	})
	t.Run("PR2_deaf", testDeafServer)
	t.Run("PR3_grandchild", testGrandchild)
}

func testLongLine(t *testing.T) {
	ctx := t.Context()
	s := dial(t, "long", StdioConfig{MaxMessage: 64 << 10})
	_ = s.Send(ctx, jsonrpc.Outgoing{Body: []byte(`{}`)})
	_, err := s.Recv(ctx)
	var size *jsonrpc.SizeError
	if !errors.As(err, &size) || len(size.Prefix) != prefixSize {
		t.Fatal(err)
	}
	if id, ok := jsonrpc.ScanID(size.Prefix); !ok || id != 1 {
		t.Fatal(id, ok)
	}
	if b, err := s.Recv(ctx); err != nil || string(b) != "after" {
		t.Fatal(string(b), err)
	}
}

func testDeafServer(t *testing.T) {
	ctx := t.Context()
	s := dial(t, "deaf", StdioConfig{Grace: 50 * time.Millisecond, TermGrace: 50 * time.Millisecond})
	if _, err := s.Recv(ctx); err != nil {
		t.Fatal(err)
	}
	// The messages exceed the capacity of the pipe: the writer blocks, but senders do not.
	big := make([]byte, 300<<10)
	for i := range big {
		big[i] = 'x'
	}
	if err := s.Send(ctx, jsonrpc.Outgoing{Body: big}); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if err := s.Send(ctx, jsonrpc.Outgoing{Body: []byte(`{}`)}); err == nil {
		t.Fatal("sent on a closed connection")
	}
}

func testGrandchild(t *testing.T) {
	ctx := t.Context()
	if runtime.GOOS == "windows" {
		t.Skip("no process groups")
	}
	s := dial(t, "parent", StdioConfig{})
	b, err := s.Recv(ctx)
	if err != nil {
		t.Fatal(err)
	}
	pid, _ := strconv.Atoi(string(b))
	if pid <= 1 || !alive(pid) {
		t.Fatalf("no grandchild: %s", b)
	}
	_ = s.Close()
	if !ends(pid) {
		t.Fatal("the grandchild is still running")
	}
}

// TestPR3_Killed kills a host whose servers have grandchildren that ignore SIGTERM.
func TestPR3_Killed(t *testing.T) {
	host := exec.Command(os.Args[0])
	host.Env = []string{role + "=host"}
	out, err := host.StdoutPipe()
	if err == nil {
		err = host.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	in := bufio.NewReader(out)
	var pids []int
	for range 3 {
		var server, grandchild int
		if _, err := fmt.Fscanln(in, &server, &grandchild); err != nil {
			t.Fatal(err)
		}
		pids = append(pids, server, grandchild)
	}
	for _, pid := range pids {
		if !alive(pid) {
			t.Errorf("process %d is not running before the kill", pid)
		}
	}
	_ = host.Process.Kill()
	_ = host.Wait()
	for _, pid := range pids {
		if !ends(pid) {
			t.Errorf("process %d is still running", pid)
		}
	}
}

func TestReaper(t *testing.T) {
	t.Run("nil", func(t *testing.T) {
		var r *Reaper
		r.prepare()
		r.add(1)
		r.remove(1)
		r.Close()
	})
	t.Run("closed while servers live", func(t *testing.T) {
		var r Reaper
		s := dial(t, "echo", StdioConfig{Reaper: &r})
		r.Close()
		r.Close()
		if err := s.Send(t.Context(), jsonrpc.Outgoing{Body: []byte("{}")}); err != nil {
			t.Fatal(err)
		}
		if b, err := s.Recv(t.Context()); err != nil || string(b) != "{}" {
			t.Fatal(string(b), err)
		}
	})
}

// ends waits for the end of a process. A surviving process would run for a minute.
func ends(pid int) bool {
	for range 3000 {
		if !alive(pid) {
			return true
		}
		time.Sleep(10 * time.Millisecond)
	}
	return false
}

func alive(pid int) bool {
	p, err := os.FindProcess(pid)
	if err != nil || p.Signal(syscall.Signal(0)) != nil {
		return false
	}
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	return err != nil || !strings.Contains(string(stat), ") Z ")
}

func TestLinesBounds(t *testing.T) {
	r, w := io.Pipe()
	l := NewLines(strings.NewReader("abcdefghij\r\n\n  \nshort\n"+strings.Repeat("y", 99)+"\nend"), w, 10)
	defer func() { _ = l.Close(); _ = r.Close() }()
	var got []string
	for {
		b, err := l.Recv(context.Background())
		var size *jsonrpc.SizeError
		switch {
		case errors.As(err, &size):
			got = append(got, "too large")
			continue
		case err == io.EOF:
			if s := strings.Join(got, "|"); s != "too large|short|too large|end" {
				t.Fatal(s)
			}
			return
		case err != nil:
			t.Fatal(err)
		}
		got = append(got, string(b))
	}
}
