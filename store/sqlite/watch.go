package sqlite

import (
	"context"
	"sync"
)

// watch notifies waiting callers of changes of the store.
type watch struct {
	mu      sync.Mutex
	ch      chan struct{}
	waiters map[*func() bool]struct{} // functions that stop watching the callers' contexts
	wake    chan struct{}             // notifies the writer that a caller waits
}

// Changed implements [store.Leases].
func (s *Store) Changed(ctx context.Context) <-chan struct{} { return s.watch.next(ctx) }

func (w *watch) next(ctx context.Context) <-chan struct{} {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.ch == nil {
		w.ch = make(chan struct{})
		w.waiters = make(map[*func() bool]struct{})
	}
	stop := new(func() bool)
	*stop = context.AfterFunc(ctx, func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		delete(w.waiters, stop)
	})
	w.waiters[stop] = struct{}{}
	if len(w.waiters) == 1 {
		select {
		case w.wake <- struct{}{}:
		default:
		}
	}
	return w.ch
}

func (w *watch) waiting() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.waiters) > 0
}

func (w *watch) notify() {
	w.mu.Lock()
	ch, waiters := w.ch, w.waiters
	w.ch, w.waiters = nil, nil
	w.mu.Unlock()
	for stop := range waiters {
		(*stop)()
	}
	if ch != nil {
		close(ch)
	}
}
