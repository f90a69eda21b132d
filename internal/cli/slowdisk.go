package cli

import (
	"context"
	"sync/atomic"
	"time"
)

// A file system that hangs, such as one of a network that is gone, blocks each system call about its files, and nothing
// can interrupt such a call. The chat therefore looks at files in goroutines that it can leave behind.

const (
	tabWait   = 2 * time.Second        // how long Tab waits for the names in a folder
	pasteWait = 500 * time.Millisecond // how long pasted text waits: the screen is not drawn meanwhile
	maxStuck  = 8                      // calls that hang at the same time
)

// slowDisk counts the calls under way, so that their number is bounded.
type slowDisk struct{ calls atomic.Int32 }

// within calls f, which looks at files, and returns its result. If f does not end within wait, or before ctx ends, ok
// is false, and f ends alone when its system call does. If wait is 0, only ctx limits it. If maxStuck calls hang
// already, f is not called.
func within[T any](ctx context.Context, d *slowDisk, wait time.Duration, f func() T) (v T, ok bool) {
	if d.calls.Add(1) > maxStuck {
		d.calls.Add(-1)
		return v, false
	}
	done := make(chan T, 1)
	go func() {
		defer d.calls.Add(-1)
		done <- f()
	}()
	var late <-chan time.Time
	if wait > 0 {
		timer := time.NewTimer(wait)
		defer timer.Stop()
		late = timer.C
	}
	select {
	case v = <-done:
		return v, true
	case <-ctx.Done():
	case <-late:
	}
	return v, false
}
