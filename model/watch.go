package model

import (
	"context"
	"errors"
	"io"
	"net/http"
	"time"
)

var (
	errTooMuch = errors.New("answer too large")
	errTooLong = errors.New("answer too long")
)

// watch cancels a request if no data arrives for too long.
type watch struct {
	ctx    context.Context
	cancel context.CancelCauseFunc
	timer  *time.Timer
	idle   time.Duration

	request *http.Request // nil before there is one
}

func newWatch(parent context.Context, idle time.Duration) *watch {
	ctx, cancel := context.WithCancelCause(parent)
	w := &watch{ctx: ctx, cancel: cancel, idle: idle}
	w.timer = time.AfterFunc(idle, func() { cancel(errIdle) })
	return w
}

func (w *watch) reset(d time.Duration) { w.timer.Reset(d) }

func (w *watch) expired() bool { return errors.Is(context.Cause(w.ctx), errIdle) }

func (w *watch) stop() {
	w.timer.Stop()
	w.cancel(nil)
}

// watched is a response body that counts bytes and limits the time without data. Only the time inside of Read counts,
// because a slow consumer is not the provider's fault.
type watched struct {
	body  io.Reader
	watch *watch
	left  int64
	spent time.Duration // time in Read
}

func (b *watched) Read(p []byte) (int, error) {
	if b.left <= 0 {
		return 0, errTooMuch
	}
	if b.spent > maxTimeouts*b.watch.idle {
		return 0, errTooLong
	}
	start := time.Now()
	b.watch.reset(b.watch.idle)
	n, err := b.body.Read(p[:min(int64(len(p)), b.left)])
	b.left -= int64(n)
	b.watch.timer.Stop()
	b.spent += time.Since(start)
	return n, err
}
