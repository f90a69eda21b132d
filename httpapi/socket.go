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

// maxSocketPath is the longest path of a unix socket that all systems support. In sockaddr_un, macOS and BSD have 104
// bytes for the path with the NUL.
const maxSocketPath = 103

// Listen opens a unix socket that only its owner can use. It replaces an existing file at the path, so the caller must
// first claim the store with [host.Storage.Claim], which fails if another process listens there. Closing the listener
// removes the socket. Errors: store.
func Listen(path string) (net.Listener, error) {
	// Between bind and chmod, other users could connect. So create the socket in a private folder and rename it when
	// its mode is set.
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

// dial connects to the socket of tenon serve. If no process listens, the error's code is unreachable.
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

// CheckServed returns an error with code unreachable if no process listens on the socket of tenon serve.
func CheckServed(ctx context.Context, path string) error {
	c, err := dial(ctx, path)
	if err != nil {
		return err
	}
	return c.Close()
}

func unserved(path string, err error) error {
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ECONNREFUSED) {
		return tenon.Errorf(tenon.CodeUnreachable, "no tenon serve works on this store (%s); start one in another "+
			"terminal with: tenon serve", path)
	}
	return tenon.Errorf(tenon.CodeUnreachable, "the tenon serve of this store cannot be reached: %w", err)
}

func socketError(path string, err error) error {
	return tenon.Errorf(tenon.CodeStore, "the socket %s cannot be made: %w; choose another place for the store "+
		"with --home", path, err)
}

// socketAddr returns an address to bind or dial the socket at path. If the path is too long for sockaddr_un, it opens
// the folder and returns a short address through /proc/self/fd, which only Linux has. done closes the folder.
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
	return filepath.Join("/proc/self/fd", strconv.Itoa(int(dir.Fd())), filepath.Base(path)),
		func() { _ = dir.Close() }, nil
}

var _ net.Listener = (*listener)(nil)
