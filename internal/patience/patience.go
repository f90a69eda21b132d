// Package patience limits the duration of an operation, not counting pauses. During a tool call a person may
// be asked a question and may take any time to answer, while the server's own time remains limited.
//
//	ctx, limit := patience.WithTimeout(ctx, time.Minute)
//	defer limit.Stop()
//	…
//	resume := limit.Pause() // a question is open
//	defer resume()
//
// Package executor limits the calls of tools with it, by their rules, and package mcp limits requests that no rule
// limits; see [IsLimited]. The same question pauses both, and the same report of progress extends both. Tests run it
// with a fake clock (testing/synctest).
package patience

import (
	"context"
	"sync"
	"time"
)

// Limit holds the remaining time. It is safe for concurrent use.
type Limit struct {
	cancel context.CancelCauseFunc

	mu      sync.Mutex
	timer   *time.Timer // nil if there is no limit
	full    time.Duration
	most    time.Duration // limit of the time that was not paused, if progress is reported
	spent   time.Duration // time that was not paused, up to since
	left    time.Duration
	since   time.Time // time at which the timer was last set
	paused  int       // number of open pauses
	expired bool
	inner   *Limit // limit of a part of the operation
}

// WithTimeout returns a context that ends after d of time that was not paused, with the cause
// [context.DeadlineExceeded]. If d is 0 or less, it has no limit. If parent has a Limit, its pauses do not count for
// the new one, but its progress does. Stop must be called.
func WithTimeout(parent context.Context, d time.Duration) (context.Context, *Limit) {
	outer, _ := parent.Value(limitKey{}).(*Limit)
	most := time.Duration(0)
	if outer != nil {
		most = outer.most
	}
	ctx, l := WithProgress(parent, d, most)
	if outer != nil {
		outer.mu.Lock()
		outer.inner = l
		outer.mu.Unlock()
	}
	return ctx, l
}

// WithProgress is WithTimeout for an operation that may report progress. Each call of [Limit.Progress] restarts the
// time d. The context ends after the total time most. If most is not longer than d, progress changes nothing.
func WithProgress(parent context.Context, d, most time.Duration) (context.Context, *Limit) {
	ctx, cancel := context.WithCancelCause(parent)
	l := &Limit{cancel: cancel, full: d, most: most, left: d, since: time.Now()}
	ctx = context.WithValue(ctx, limitKey{}, l)
	if d > 0 {
		ctx = context.WithValue(ctx, limited{}, true)
		l.mu.Lock()
		l.timer = time.AfterFunc(d, l.expire)
		l.mu.Unlock()
	}
	return ctx, l
}

type (
	limited  struct{} // context key: the context has a limit
	limitKey struct{} // context key of the innermost Limit
)

// IsLimited reports whether a Limit ends the context after some time.
func IsLimited(ctx context.Context) bool { return ctx.Value(limited{}) != nil }

// Progress restarts the time, and also the time of a Limit of a part of the operation; see [WithProgress].
func (l *Limit) Progress() {
	l.mu.Lock()
	inner := l.inner
	if l.timer != nil && l.most > l.full {
		if l.paused == 0 {
			l.spend()
		}
		l.left = max(min(l.full, l.most-l.spent), time.Millisecond)
		if l.paused == 0 && !l.expired {
			l.timer.Reset(l.left)
		}
	}
	l.mu.Unlock()
	if inner != nil {
		inner.Progress()
	}
}

// Length returns the time limit of the operation. This is the time without progress, or the total time if that ends the
// operation first.
func (l *Limit) Length() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.most > l.full && l.most-l.spent < l.full {
		return l.most
	}
	return l.full
}

// spend adds the time since the timer was last set to the spent time.
func (l *Limit) spend() {
	now := time.Now()
	l.spent += now.Sub(l.since)
	l.since = now
}

func (l *Limit) expire() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.paused > 0 {
		return // Pause was called before the timer fired
	}
	l.expired = true
	l.cancel(context.DeadlineExceeded)
}

// Pause stops the clock until resume is called. Resume must be called once. Pauses may overlap.
func (l *Limit) Pause() (resume func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.paused++; l.paused == 1 && l.timer != nil {
		l.timer.Stop()
		l.left = max(l.left-time.Since(l.since), time.Millisecond)
		l.spend()
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

// IsPaused reports whether a pause is open.
func (l *Limit) IsPaused() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.paused > 0
}

// IsExpired reports whether the time ran out before Stop.
func (l *Limit) IsExpired() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.expired
}

// Stop ends the context and releases its resources.
func (l *Limit) Stop() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.timer != nil {
		l.timer.Stop()
	}
	l.paused++ // prevents resume from starting the timer again
	l.cancel(context.Canceled)
}
