// Package patience bounds how long something may take, not counting the time in
// which somebody else is waited for: a person who is asked a question in the
// middle of a tool call may think as long as it takes, while the server's own
// time goes on being bounded.
//
//	ctx, limit := patience.WithTimeout(ctx, time.Minute)
//	defer limit.Stop()
//	…
//	resume := limit.Pause() // a question is open
//	defer resume()
//
// It stands beside the way through the house: package mcp bounds its requests
// with it and package host the calls of tools, because both have the same
// question open at the same time. The tests run it on a clock of their own
// (testing/synctest).
package patience

import (
	"context"
	"sync"
	"time"
)

// Limit is the time that is left. It is safe for concurrent use.
type Limit struct {
	cancel context.CancelCauseFunc

	mu      sync.Mutex
	timer   *time.Timer // nil: there is no limit
	left    time.Duration
	since   time.Time // when the timer was last set
	paused  int       // pauses that have not ended
	expired bool
}

// WithTimeout returns a context that ends, with the cause
// [context.DeadlineExceeded], after so much time that was not paused; d of 0 or
// less never does. Stop must be called.
func WithTimeout(parent context.Context, d time.Duration) (context.Context, *Limit) {
	ctx, cancel := context.WithCancelCause(parent)
	l := &Limit{cancel: cancel, left: d, since: time.Now()}
	if d > 0 {
		l.mu.Lock()
		l.timer = time.AfterFunc(d, l.expire)
		l.mu.Unlock()
	}
	return ctx, l
}

func (l *Limit) expire() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.paused > 0 {
		return // the pause was faster than the timer
	}
	l.expired = true
	l.cancel(context.DeadlineExceeded)
}

// Pause stops the time until resume is called, once. Pauses may overlap.
func (l *Limit) Pause() (resume func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.paused++; l.paused == 1 && l.timer != nil {
		l.timer.Stop()
		l.left = max(l.left-time.Since(l.since), time.Millisecond)
	}
	return func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		if l.paused--; l.paused == 0 && l.timer != nil {
			l.since = time.Now()
			l.timer.Reset(l.left)
		}
	}
}

// IsPaused reports whether a pause has not ended.
func (l *Limit) IsPaused() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.paused > 0
}

// IsExpired reports whether the time was up before Stop.
func (l *Limit) IsExpired() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.expired
}

// Stop ends the context and frees what it holds.
func (l *Limit) Stop() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.timer != nil {
		l.timer.Stop()
	}
	l.paused++ // nothing starts the timer again
	l.cancel(context.Canceled)
}
