package transport

import (
	"errors"
	"io"
	"os"
	"time"
)

const (
	tailTime  = 200 * time.Millisecond // how long a pipe is read after its process has ended
	tailBytes = 1 << 20                // maximum capacity of a pipe (Linux, pipe-max-size)
)

// outlived reads a pipe of a process. Its deadline is set when the process ends. A pipe reports EOF only when
// every process has closed its other end, and a daemon that the process left behind may keep it open forever.
// So at the deadline, outlived reads the remaining content of the pipe and then reports EOF.
//
// Most servers are silent most of the time. Lend borrows a buffer only while the pipe has data, so that an
// idle pipe uses none.
type outlived struct {
	f    *os.File
	wait *readiness // nil if the system cannot wait without a buffer
	lent *[readSize]byte
	last bool // the deadline has passed
	read int  // bytes read since the deadline
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
	if n < len(b) { // the pipe is empty; later data is not from the process
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
	o.lent = lent
	if lent != nil {
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
