package cli

import (
	"context"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// socketFolder makes a project whose server writes the descriptors that it inherits into the file fds.
func socketFolder(t *testing.T, serve string) string {
	t.Helper()
	dir := t.TempDir()
	text := "version: 1\n" + serve + "servers:\n  demo:\n    command: sh\n    lifecycle: eager\n" +
		"    args: [-c, 'ls -l /proc/self/fd >" + dir + "/fds; exec tenon testserver --stdio']\n"
	if err := os.WriteFile(filepath.Join(dir, "tenon.yaml"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return dir
}

// passing returns a command that runs tenon serve as systemd does: with files as the descriptors from 3 on, and with
// LISTEN_PID set to its own process id.
func passing(ctx context.Context, dir string, count int, files []*os.File, args ...string) (*exec.Cmd, *strings.Builder) {
	words := append([]string{"-c", `LISTEN_PID=$$ exec tenon serve --trust --log-level info "$@"`, "sh"}, args...)
	cmd := exec.CommandContext(ctx, "sh", words...)
	cmd.Dir, cmd.ExtraFiles = dir, files
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + dir, "LISTEN_FDS=" + strconv.Itoa(count)}
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	var log strings.Builder
	cmd.Stderr = &log
	return cmd, &log
}

// listening returns a listener and its file. The listener stays open, as the one of systemd does.
func listening(t *testing.T, network, addr string) (net.Listener, *os.File) {
	t.Helper()
	l, err := net.Listen(network, addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	f, err := l.(interface{ File() (*os.File, error) }).File()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return l, f
}

// TestREL_socket connects before tenon serve is started. The connection waits in the socket that the process inherits,
// and is then answered. A second process does the same with the same socket. Servers that tenon starts do not inherit
// the socket.
func TestREL_socket(t *testing.T) {
	l, file := listening(t, "tcp", "127.0.0.1:0")
	dir := socketFolder(t, "serve: {listen: '127.0.0.1:1'}\n")
	fds := filepath.Join(dir, "fds")
	if err := syscall.Mkfifo(fds, 0o600); err != nil { // a reader of this pipe waits until the server writes to it
		t.Fatal(err)
	}
	for range 2 { // the second process serves the same socket
		answered := make(chan string, 1)
		go func() {
			client := http.Client{Timeout: time.Minute, Transport: &http.Transport{DisableKeepAlives: true}}
			res, err := client.Get("http://" + l.Addr().String() + "/healthz")
			if err != nil {
				answered <- err.Error()
				return
			}
			_, _ = io.Copy(io.Discard, res.Body)
			res.Body.Close()
			answered <- res.Status
		}()
		ctx, stop := context.WithTimeout(t.Context(), 2*time.Minute)
		cmd, log := passing(ctx, dir, 1, []*os.File{file})
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		got := <-answered
		inherited, err := os.ReadFile(fds)
		if err != nil || len(inherited) == 0 || strings.Contains(string(inherited), "socket:") {
			t.Errorf("a server inherits %q, %v", inherited, err)
		}
		stop()
		if err := cmd.Wait(); got != "200 OK" || cmd.ProcessState.ExitCode() != exitOK {
			t.Fatalf("%s, %v\n%s", got, err, log)
		}
		if !strings.Contains(log.String(), "replaces serve.listen") || !strings.Contains(log.String(), l.Addr().String()) {
			t.Errorf("log: %s", log)
		}
	}
}

func TestREL_socketRefused(t *testing.T) {
	_, tcp := listening(t, "tcp", "127.0.0.1:0")
	_, unix := listening(t, "unix", filepath.Join(t.TempDir(), "s"))
	_, all := listening(t, "tcp", "0.0.0.0:0")
	plain, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer plain.Close()
	for _, tt := range []struct {
		name, serve string
		count       int
		files       []*os.File
		args        []string
		want        string
	}{
		{"two sockets", "", 2, []*os.File{tcp, all}, nil, "takes one socket"},
		{"no descriptor", "", 1, nil, nil, "descriptor"},
		{"a file", "", 1, []*os.File{plain}, nil, "is no listening socket"},
		{"a Unix socket", "", 1, []*os.File{unix}, nil, "a socket of kind unix"},
		{"with --listen", "", 1, []*os.File{tcp}, []string{"--listen", "127.0.0.1:0"}, "leave --listen out"},
		{"off", "serve: {listen: 'off'}\n", 1, []*os.File{tcp}, nil, "serve.listen is off"},
		{"open to other machines", "serve: {auth: {type: none}}\n", 1, []*os.File{all}, nil, "other machines reach"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			ctx, stop := context.WithTimeout(t.Context(), time.Minute)
			defer stop()
			cmd, log := passing(ctx, socketFolder(t, tt.serve), tt.count, tt.files, tt.args...)
			if err := cmd.Run(); err == nil || ctx.Err() != nil || !strings.Contains(log.String(), tt.want) {
				t.Errorf("%v\n%s", err, log)
			}
		})
	}
}

// TestREL_socketOfOthers checks that descriptors for another process, such as a shell that started tenon, are left alone.
func TestREL_socketOfOthers(t *testing.T) {
	for name, env := range map[string]map[string]string{
		"none": {}, "another process": {"LISTEN_FDS": "1", "LISTEN_PID": "1"}, "no process": {"LISTEN_FDS": "1"},
	} {
		l, err := passedSocket(func(key string) (string, bool) { v, ok := env[key]; return v, ok })
		if l != nil || err != nil {
			t.Errorf("%s: %v, %v", name, l, err)
		}
	}
}
