package cli

import (
	"context"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// listenNotify is the socket of a service manager.
func listenNotify(t *testing.T) (string, *net.UnixConn) {
	t.Helper()
	dir, err := os.MkdirTemp("", "sd") // a short path: sockaddr_un
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	path := filepath.Join(dir, "notify")
	l, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
	if err != nil {
		t.Skipf("needs sockets for datagrams: %v", err)
	}
	t.Cleanup(func() { l.Close() })
	return path, l
}

func receive(t *testing.T, l *net.UnixConn) string {
	t.Helper()
	if err := l.SetReadDeadline(time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	buf := make([]byte, 4096)
	n, err := l.Read(buf)
	if err != nil {
		t.Fatal(err)
	}
	return string(buf[:n])
}

// TestServeNotifies follows tenon serve as systemd does with Type=notify and WatchdogSec. It reports that it is ready
// once it listens, then that it is alive, and finally that it stops.
func TestServeNotifies(t *testing.T) {
	path, l := listenNotify(t)
	dir := t.TempDir()
	t.Setenv("HOME", dir)
	t.Setenv("XDG_STATE_HOME", filepath.Join(dir, "state"))
	file := filepath.Join(dir, "tenon.yaml")
	if err := os.WriteFile(file, []byte("version: 1\nserve: {listen: 'off'}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	env := map[string]string{"NOTIFY_SOCKET": path, "WATCHDOG_PID": strconv.Itoa(os.Getpid()), "WATCHDOG_USEC": "20000"}
	a := newApp(stdio{strings.NewReader(""), io.Discard, io.Discard})
	a.lookupEnv = func(name string) (string, bool) {
		if v, ok := env[name]; ok {
			return v, true
		}
		return os.LookupEnv(name)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ended := make(chan int, 1)
	go func() { ended <- a.main(ctx, []string{"serve", "-c", file, "--home", filepath.Join(dir, "store")}) }()
	if got := receive(t, l); got != "READY=1" {
		t.Errorf("first state %q, want READY=1", got)
	}
	if _, err := os.Stat(filepath.Join(dir, "store", "serve.sock")); err != nil {
		t.Errorf("ready, but nothing listens: %v", err)
	}
	if got := receive(t, l); got != "WATCHDOG=1" {
		t.Errorf("second state %q, want WATCHDOG=1", got)
	}
	cancel()
	got := receive(t, l)
	for got == "WATCHDOG=1" {
		got = receive(t, l)
	}
	if got != "STOPPING=1" {
		t.Errorf("last state %q, want STOPPING=1", got)
	}
	<-ended
}

func TestWatchdogTime(t *testing.T) {
	own := strconv.Itoa(os.Getpid())
	tests := []struct {
		name, pid, usec string
		want            time.Duration
	}{
		{"none", "", "", 0},
		{"any process", "", "60000000", 30 * time.Second},
		{"this process", own, "60000000", 30 * time.Second},
		{"another process", own + "1", "60000000", 0},
		{"no number", own, "soon", 0},
		{"negative", own, "-5", 0},
		{"too large", own, "9223372036854775807", 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := watchdogTime(func(name string) (string, bool) {
				v := map[string]string{"WATCHDOG_PID": tt.pid, "WATCHDOG_USEC": tt.usec}[name]
				return v, v != ""
			})
			if got != tt.want {
				t.Errorf("%v, want %v", got, tt.want)
			}
		})
	}
}

// TestNoSupervisor checks that tenon serve works even if nobody listens on the notification socket.
func TestNoSupervisor(t *testing.T) {
	said := &spoken{}
	none := newSupervisor(func(string) (string, bool) { return "", false }, nil)
	none.say("READY=1")
	none.close()
	s := newSupervisor(func(name string) (string, bool) {
		return filepath.Join(t.TempDir(), "none"), name == "NOTIFY_SOCKET"
	}, slog.New(slog.NewTextHandler(said, nil)))
	s.say("READY=1")
	s.close()
	said.await(t, 0, "NOTIFY_SOCKET")
}
