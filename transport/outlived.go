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
type outlived struct {
	f    *os.File
	last bool // the deadline has passed
	read int  // bytes since then
}

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

var _ io.Reader = (*outlived)(nil)
