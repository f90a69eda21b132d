package cli

import (
	"context"
	"log/slog"
	"net"
	"net/http"
	"syscall"
	"testing"
)

// TestServeWithoutFileDescriptors connects to a tenon serve that has no file descriptors left (RP-27). The log names
// the reason, and the connection is accepted when descriptors are available again.
func TestServeWithoutFileDescriptors(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var log spoken
	s := webServer(http.NotFoundHandler(), context.Background(), slog.New(slog.NewTextHandler(&log, nil)))
	served := make(chan error, 1)
	go func() { served <- s.Serve(l) }()
	t.Cleanup(func() { _ = s.Close(); <-served })

	conn, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0) // before there is none left
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = syscall.Close(conn) })
	var before syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &before); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &syscall.Rlimit{Cur: 3, Max: before.Max}); err != nil {
		t.Fatal(err)
	}
	addr := l.Addr().(*net.TCPAddr)
	err = syscall.Connect(conn, &syscall.SockaddrInet4{Port: addr.Port, Addr: [4]byte(addr.IP.To4())})
	if err == nil {
		log.await(t, 0, "level=WARN .*too many open files")
	}
	if lerr := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &before); err != nil || lerr != nil {
		t.Fatal(err, lerr)
	}
	resp, err := http.Get("http://" + l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
}
