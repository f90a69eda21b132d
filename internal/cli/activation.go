package cli

import (
	"log/slog"
	"net"
	"os"
	"runtime"
	"strconv"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/config"
)

// firstSocket is the first descriptor that a service manager passes (SD_LISTEN_FDS_START of sd_listen_fds(3)).
const firstSocket = 3

// passedSocket returns the listening socket that the service manager opened for tenon serve, or nil. The protocol is in
// sd_listen_fds(3): LISTEN_FDS counts descriptors from 3 on, and LISTEN_PID is the process that they are for.
//
// It is called before any program is started: the descriptor would be inherited otherwise. The listener that is
// returned is a duplicate that other programs do not inherit.
func passedSocket(lookup func(string) (string, bool)) (net.Listener, error) {
	count, _ := lookup("LISTEN_FDS")
	pid, _ := lookup("LISTEN_PID")
	if count == "" || pid != strconv.Itoa(os.Getpid()) || runtime.GOOS == "windows" {
		return nil, nil // no socket, or one for the program that started this one
	}
	n, err := strconv.Atoi(count)
	if err != nil || n != 1 {
		return nil, tenon.Errorf(tenon.CodeInvalid, "LISTEN_FDS is %q, and tenon serve takes one socket: write one "+
			"ListenStream= into the unit of the socket", count)
	}
	file := os.NewFile(firstSocket, "LISTEN_FDS")
	if file == nil {
		return nil, tenon.Errorf(tenon.CodeInvalid, "LISTEN_FDS is 1, but descriptor %d is not open", firstSocket)
	}
	l, err := net.FileListener(file)
	_ = file.Close() // l is a duplicate
	if err != nil {
		return nil, tenon.Errorf(tenon.CodeInvalid, "the descriptor that the service manager passed is no listening "+
			"socket: %w; set Accept=no and ListenStream=127.0.0.1:8420 in the unit of the socket", err)
	}
	if _, ok := l.(*net.TCPListener); !ok {
		_ = l.Close() // no client has connected yet
		return nil, tenon.Errorf(tenon.CodeInvalid, "the service manager passed a socket of kind %s: ListenStream= of "+
			"its unit must be an address and a port, such as 127.0.0.1:8420", l.Addr().Network())
	}
	return l, nil
}

// useSocket checks the socket of the service manager as listenTCP checks an address. The socket replaces serve.listen,
// except that off stays off.
func useSocket(l net.Listener, f *serveFlags, cfg *config.Config, log *slog.Logger) error {
	addr, isDefault := f.address(cfg)
	switch {
	case f.listen != "":
		return tenon.Errorf(tenon.CodeInvalid, "--listen %s: the service manager passes the socket %s; leave --listen "+
			"out, or disable the unit of the socket", tenon.Visible(f.listen), l.Addr())
	case addr == config.ListenOff:
		return tenon.Errorf(tenon.CodeInvalid, "serve.listen is off, and the service manager passes the socket %s; "+
			"disable the unit of the socket, or remove serve.listen", l.Addr())
	case !isDefault && addr != l.Addr().String():
		log.Info("tenon serve: the socket of the service manager replaces serve.listen", "address", l.Addr().String(),
			"serve.listen", addr)
	}
	return checkOpen(cfg, l.Addr().String())
}
