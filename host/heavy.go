package host

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/tenonhq/tenon"
)

// ErrBusy is the cause of the error, of code limit, of a query that found too many others before it: statistics and
// searches read much of the store, and few of them run at a time.
var ErrBusy = errors.New("too many statistics and searches at a time")

const (
	// heavyReads is how many statistics and searches run at a time. The store has connections for twice as many reads.
	heavyReads = 2
	// heavyQueue is how many wait for their turn.
	heavyQueue = 16
	// heavyPatience bounds the wait.
	heavyPatience = 10 * time.Second
)

// turnstile bounds the queries that run and wait.
type turnstile struct {
	slots   chan struct{}
	waiting atomic.Int32
}

func newTurnstile() turnstile { return turnstile{slots: make(chan struct{}, heavyReads)} }

// enter waits for a free slot. The caller must call leave once. Errors: limit ([ErrBusy]), cancelled.
func (t *turnstile) enter(ctx context.Context) (leave func(), err error) {
	leave = func() { <-t.slots }
	select {
	case t.slots <- struct{}{}:
		return leave, nil
	default:
	}
	defer t.waiting.Add(-1)
	if t.waiting.Add(1) > heavyQueue {
		return nil, errBusy()
	}
	timer := time.NewTimer(heavyPatience)
	defer timer.Stop()
	select {
	case t.slots <- struct{}{}:
		return leave, nil
	case <-ctx.Done():
		return nil, tenon.Errorf(tenon.CodeCancelled, "%w", context.Cause(ctx))
	case <-timer.C:
		return nil, errBusy()
	}
}

func errBusy() error {
	return tenon.Errorf(tenon.CodeLimit, "%w: %d run and %d more wait; try again in a few seconds", ErrBusy, heavyReads,
		heavyQueue)
}
