package transport

import (
	"errors"
	"io"
	"os"
	"time"
)

const (
	tailTime  = 200 * time.Millisecond // how long a pipe is read on after its process has ended
	tailBytes = 1 << 20                // most that a pipe can hold (Linux, pipe-max-size)
)

// outlived reads a pipe of a process, whose deadline is set when the process
// ends. A pipe ends by itself once nobody holds its other end; a daemon that the
// process left behind may hold it for ever. So what the pipe holds at the
// deadline is read, and then it has ended.
//
// Most servers say nothing most of the time. Lend reads into a buffer that it
// has only while there is something in it, so that an idle pipe holds none.
type outlived struct {
	f    *os.File
	wait *readiness // nil: this system cannot wait without a buffer
	lent *[readSize]byte
	last bool // the deadline has passed
	read int  // bytes since then
}

func newOutlived(f *os.File) *outlived { return &outlived{f: f, wait: newReadiness(f)} }

// Read implements [io.Reader].
func (o *outlived) Read(b []byte) (int, error) {
	if !o.last {
		n, err := o.f.Read(b)
		if !errors.Is(err, os.ErrDeadlineExceeded) {
			return n, err
		}
		o.last = true
	}
	if o.read >= tailBytes || o.f.SetReadDeadline(time.Now().Add(10*time.Millisecond)) != nil {
		return 0, io.EOF
	}
	n, err := o.f.Read(b)
	o.read += n
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return n, io.EOF
	}
	if n < len(b) { // it is empty now; what comes later is not the process's
		o.read = tailBytes
	}
	return n, err
}

// Lend implements lender.
func (o *outlived) Lend() ([]byte, error) {
	if o.wait == nil || o.last {
		if o.lent == nil {
			o.lent = borrow()
		}
		n, err := o.Read(o.lent[:])
		return o.lent[:n], err
	}
	if o.lent != nil {
		giveBack(o.lent)
		o.lent = nil
	}
	lent, n, err := o.wait.read()
	if o.lent = lent; lent != nil {
		return lent[:n], nil
	}
	if errors.Is(err, os.ErrDeadlineExceeded) {
		o.last = true
		return o.Lend()
	}
	return nil, err
}

var (
	_ io.Reader = (*outlived)(nil)
	_ lender    = (*outlived)(nil)
)
