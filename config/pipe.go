package config

import (
	"context"
	"io"
	"io/fs"
	"os"
	"syscall"
	"time"

	"github.com/tenonhq/tenon"
)

// readUpTo reads a file of at most most bytes. For a named pipe (FIFO), such as a shell creates for -c <(program), it
// waits only until ctx ends, because possibly nobody ever writes to it.
func readUpTo(ctx context.Context, path string, most int64) ([]byte, error) {
	f, err := openPatiently(ctx, path)
	if err != nil {
		return nil, err
	}
	stop := context.AfterFunc(ctx, func() { _ = f.Close() }) // ends a read that waits
	b, err := io.ReadAll(io.LimitReader(f, most))
	if !stop() {
		return nil, tenon.Errorf(tenon.CodeCancelled, "%s was not read to its end: %w", path, context.Cause(ctx))
	}
	closed := f.Close()
	if err == nil {
		err = closed
	}
	return b, err
}

// openPatiently opens a file. Opening a pipe blocks until somebody opens its other end, and has no deadline. So when
// ctx ends, openPatiently opens the other end itself.
func openPatiently(ctx context.Context, path string) (*os.File, error) {
	if st, err := os.Stat(path); err != nil || st.Mode()&fs.ModeNamedPipe == 0 {
		return os.Open(path)
	}
	type opened struct {
		f   *os.File
		err error
	}
	done := make(chan opened, 1)
	go func() {
		f, err := os.Open(path)
		done <- opened{f, err}
	}()
	select {
	case o := <-done:
		return o.f, o.err
	case <-ctx.Done():
	}
	for {
		if w, err := os.OpenFile(path, os.O_WRONLY|syscall.O_NONBLOCK, 0); err == nil {
			_ = w.Close() // nothing was written
		} else if os.IsPermission(err) || os.IsNotExist(err) {
			break // the goroutine keeps waiting until the process ends
		}
		select {
		case o := <-done:
			if o.err == nil {
				_ = o.f.Close() // nothing was read
			}
		case <-time.After(5 * time.Millisecond): // the goroutine has not opened the pipe yet: try again
			continue
		}
		break
	}
	return nil, tenon.Errorf(tenon.CodeCancelled, "%s was not read: nobody has written to it: %w", path,
		context.Cause(ctx))
}
