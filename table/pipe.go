package table

import (
	"context"
	"io/fs"
	"os"
	"syscall"
	"time"
)

// A pipe blocks twice: opening it waits for the program at its other end, and so does each read or write. Both end
// with the caller's context.

// openPipe opens a file that may be a named pipe. flag is os.O_RDONLY or os.O_WRONLY. It returns the cause of ctx if
// ctx ends first.
func openPipe(ctx context.Context, path string, flag int) (*os.File, error) {
	st, err := os.Stat(path)
	if err != nil || st.Mode()&fs.ModeNamedPipe == 0 {
		return os.OpenFile(path, flag, 0)
	}
	type opened struct {
		file *os.File
		err  error
	}
	done := make(chan opened, 1)
	go func() {
		f, err := os.OpenFile(path, flag, 0)
		done <- opened{f, err}
	}()
	select {
	case o := <-done:
		return o.file, o.err
	case <-ctx.Done():
	}
	for {
		// The other end, opened without blocking, lets the goroutine go on.
		other, err := os.OpenFile(path, (os.O_RDONLY+os.O_WRONLY-flag)|syscall.O_NONBLOCK, 0)
		select {
		case o := <-done:
			for _, f := range []*os.File{other, o.file} {
				if f != nil {
					_ = f.Close() // nothing was read or written
				}
			}
			return nil, context.Cause(ctx)
		case <-time.After(time.Millisecond):
		}
		if err == nil {
			_ = other.Close()
		}
	}
}

// untilDone ends blocked reads and writes of a pipe when ctx ends. stop must be called before the file is closed.
// Regular files never block, so the deadline has no effect on them.
func untilDone(ctx context.Context, f *os.File) (stop func()) {
	end := context.AfterFunc(ctx, func() { _ = f.SetDeadline(time.Unix(1, 0)) }) // unsupported by regular files
	return func() { end() }
}
