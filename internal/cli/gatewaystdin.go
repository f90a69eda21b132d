package cli

import (
	"context"
	"io"
)

// readUntil returns a reader that ends with ctx. A read of stdin cannot be interrupted, and a client that stops tenon
// with a signal may keep its end of the pipe open. The goroutine that reads then ends with the process.
func readUntil(ctx context.Context, in io.Reader) io.Reader {
	r, w := io.Pipe()
	go func() {
		_, err := io.Copy(w, in)
		w.CloseWithError(err) // nil is the end of the stream
	}()
	context.AfterFunc(ctx, func() { r.CloseWithError(context.Cause(ctx)) })
	return r
}
