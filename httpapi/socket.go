package httpapi

import (
	"context"
	"errors"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"syscall"

	"github.com/tenonhq/tenon"
)

// maxSocketPath is how long the path of a unix socket may be everywhere
// (sockaddr_un; 104 bytes on macOS and BSD, with the NUL).
const maxSocketPath = 103

// Listen opens a unix socket that only its owner can use. What is at the path is
// replaced, so whoever calls it must know that no process listens there: see
// [host.Host.Claim]. Closing the listener removes the socket. Errors: store.
func Listen(path string) (net.Listener, error) {
	// The socket is made in a folder of its own, which nobody else can enter, and
	// put into place when its mode is right.
	tmp, err := os.MkdirTemp(filepath.Dir(path), ".serve-")
	if err != nil {
		return nil, socketError(path, err)
	}
	defer os.RemoveAll(tmp)
	made := filepath.Join(tmp, "s")
	addr, done, err := socketAddr(made)
	if err != nil {
		return nil, socketError(path, err)
	}
	defer done()
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: addr, Net: "unix"})
	if err != nil {
		return nil, socketError(path, err)
	}
	l.SetUnlinkOnClose(false)
	if err = os.Chmod(made, 0o600); err == nil {
		err = os.Rename(made, path)
	}
	if err != nil {
		return nil, errors.Join(socketError(path, err), l.Close())
	}
	return &listener{l, path}, nil
}

type listener struct {
	*net.UnixListener
	path string
}

// Close stops listening and removes the socket.
func (l *listener) Close() error {
	err := l.UnixListener.Close()
	if err == nil {
		err = os.Remove(l.path)
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// dial connects to a socket. Nobody there is unreachable.
func dial(ctx context.Context, path string) (net.Conn, error) {
	addr, done, err := socketAddr(path)
	if err != nil {
		return nil, unserved(path, err)
	}
	defer done()
	c, err := new(net.Dialer).DialContext(ctx, "unix", addr)
	if err != nil {
		return nil, unserved(path, err)
	}
	return c, nil
}

func unserved(path string, err error) error {
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ECONNREFUSED) {
		return tenon.Errorf(tenon.CodeUnreachable, "no tenon serve works on this store (%s); start one in another terminal with: tenon serve", path)
	}
	return tenon.Errorf(tenon.CodeUnreachable, "the tenon serve of this store cannot be reached: %w", err)
}

func socketError(path string, err error) error {
	return tenon.Errorf(tenon.CodeStore, "the socket %s cannot be made: %w; choose another place for the store with --home", path, err)
}

// socketAddr is an address by which a path can be bound and dialled. Where the
// path is too long for one, Linux takes a short one by way of its open folder.
func socketAddr(path string) (addr string, done func(), err error) {
	if len(path) <= maxSocketPath {
		return path, func() {}, nil
	}
	if runtime.GOOS != "linux" {
		return "", nil, errors.New("its path has more than " + strconv.Itoa(maxSocketPath) + " bytes")
	}
	dir, err := os.Open(filepath.Dir(path))
	if err != nil {
		return "", nil, err
	}
	return filepath.Join("/proc/self/fd", strconv.Itoa(int(dir.Fd())), filepath.Base(path)), func() { _ = dir.Close() }, nil
}

var _ net.Listener = (*listener)(nil)
