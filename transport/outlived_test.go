//go:build unix

package transport

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// roles are the roles of the test binary that exist only on this system.
var roles = map[string]func(){
	"daemon": func() { // runs in its own session and keeps stdout and stderr open
		_, _ = syscall.Setsid()
		fmt.Println(os.Getpid())
		time.Sleep(time.Minute)
	},
	"leaves a daemon": leave,
	"leaves a daemon and exits": func() {
		leave()
		fmt.Fprintln(os.Stderr, "no licence")
		fmt.Println(strings.Repeat("x", 50<<10))
		os.Exit(3)
	},
}

// leave starts a daemon and waits for the end of stdin.
func leave() {
	child := exec.Command(os.Args[0])
	child.Env = []string{role + "=daemon"}
	child.Stdout, child.Stderr = os.Stdout, os.Stderr
	if child.Start() != nil {
		os.Exit(1)
	}
	_, _ = os.Stdin.Read(make([]byte, 1))
}

// in fails the test if f does not return within the limit.
func in(t *testing.T, limit time.Duration, what string, f func()) {
	t.Helper()
	done := make(chan struct{})
	go func() { defer close(done); f() }()
	select {
	case <-done:
	case <-time.After(limit):
		t.Fatalf("%s hangs", what)
	}
}

// TestPR3_Daemon checks that a daemon in its own session delays nothing. No signal reaches it, and it keeps
// stdout and stderr open.
func TestPR3_Daemon(t *testing.T) {
	ctx := context.Background()
	daemon := func(t *testing.T, s *Stdio) {
		b, err := s.Recv(ctx)
		pid, _ := strconv.Atoi(string(b))
		if err != nil || pid <= 1 {
			t.Fatal(string(b), err)
		}
		t.Cleanup(func() { _ = syscall.Kill(pid, syscall.SIGKILL) })
	}
	t.Run("close", func(t *testing.T) {
		s := dial(t, "leaves a daemon", StdioConfig{})
		daemon(t, s)
		in(t, 40*time.Second, "Close", func() { _ = s.Close() })
	})
	t.Run("recv_and_close", func(t *testing.T) {
		s := dial(t, "leaves a daemon", StdioConfig{})
		daemon(t, s)
		got := make(chan error, 1)
		go func() { _, err := s.Recv(ctx); got <- err }()
		in(t, 40*time.Second, "Close", func() { _ = s.Close(); <-got })
	})
	t.Run("exit", func(t *testing.T) {
		s := dial(t, "leaves a daemon and exits", StdioConfig{})
		daemon(t, s)
		_ = s.stdin.Close()
		<-s.Exited()
		time.Sleep(tailTime + 50*time.Millisecond) // a late reader must not miss data
		in(t, 40*time.Second, "Recv", func() {
			if b, err := s.Recv(ctx); err != nil || len(b) != 50<<10 {
				t.Error(len(b), err)
			}
			var exit *ExitError
			if _, err := s.Recv(ctx); !errors.As(err, &exit) || exit.Status != "exited with code 3" ||
				exit.Stderr != "no licence" {
				t.Error(err)
			}
		})
		in(t, 40*time.Second, "Close", func() { _ = s.Close() })
	})
}
