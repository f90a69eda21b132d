//go:build unix

package transport

import (
	"io"
	"os"
	"syscall"
)

// readiness reads a pipe into a borrowed buffer and returns the buffer to the pool while it waits. It
// supports one reader.
type readiness struct {
	conn    syscall.RawConn
	attempt func(fd uintptr) bool // method value try, allocated once
	lent    *[readSize]byte
	n       int
	err     error
}

// newReadiness returns nil for a file whose reads block a thread.
func newReadiness(f *os.File) *readiness {
	conn, err := f.SyscallConn()
	if err != nil {
		return nil
	}
	nonblocking := false
	if conn.Control(func(fd uintptr) { nonblocking = isNonblock(fd) }) != nil || !nonblocking {
		return nil
	}
	r := &readiness{conn: conn}
	r.attempt = r.try
	return r
}

// read waits for data. The caller returns the buffer to the pool; it is nil after an error.
func (r *readiness) read() (*[readSize]byte, int, error) {
	if err := r.conn.Read(r.attempt); err != nil { // closed, or past the deadline
		return nil, 0, err
	}
	lent := r.lent
	r.lent = nil
	return lent, r.n, r.err
}

// try attempts one read and reports whether the wait is over.
func (r *readiness) try(fd uintptr) bool {
	lent := borrow()
	for {
		r.n, r.err = syscall.Read(int(fd), lent[:])
		if r.err != syscall.EINTR {
			break
		}
	}
	if r.err == nil && r.n > 0 {
		r.lent = lent
		return true
	}
	giveBack(lent)
	if r.err == nil {
		r.err = io.EOF
	}
	return r.err != syscall.EAGAIN
}
