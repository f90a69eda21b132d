//go:build unix

package transport

import (
	"io"
	"os"
	"syscall"
)

// readiness reads a pipe into a buffer that is borrowed for each attempt, and given
// back before it waits. It is for one reader.
type readiness struct {
	conn    syscall.RawConn
	attempt func(fd uintptr) bool // try, made once
	lent    *[readSize]byte
	n       int
	err     error
}

// newReadiness returns nil for a file whose reads hold up a thread.
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

// read waits for what can be read. The buffer is the caller's to give back, nil with
// an error.
func (r *readiness) read() (*[readSize]byte, int, error) {
	if err := r.conn.Read(r.attempt); err != nil { // closed, or the deadline has passed
		return nil, 0, err
	}
	lent := r.lent
	r.lent = nil
	return lent, r.n, r.err
}

// try reports whether the wait is over.
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
