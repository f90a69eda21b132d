package gateway

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// countedStore counts the requests for changes that it keeps.
type countedStore struct {
	change chan struct{}
	asked  int
	kept   atomic.Int64
}

func (s *countedStore) Changed(ctx context.Context) <-chan struct{} {
	s.asked++
	s.kept.Add(1)
	context.AfterFunc(ctx, func() { s.kept.Add(-1) })
	return s.change
}

func (s *countedStore) changed() {
	close(s.change)
	s.change = make(chan struct{})
}

// TestChangesOfAnIdleStore checks that a loop that looks at a run keeps one request at the store, however often it
// looks, and that it rests after a change.
func TestChangesOfAnIdleStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		one, other := &countedStore{change: make(chan struct{})}, &countedStore{change: make(chan struct{})}
		var c changes
		for range 100 {
			c.next(t.Context(), one)
		}
		if one.asked != 1 {
			t.Errorf("an idle store has %d requests, want 1", one.asked)
		}
		next := c.next(t.Context(), other) // after a reload
		synctest.Wait()
		if one.kept.Load() != 0 || other.kept.Load() != 1 {
			t.Errorf("after another host: %d and %d requests, want 0 and 1", one.kept.Load(), other.kept.Load())
		}
		begin := time.Now()
		for range 10 { // a busy store
			other.changed()
			<-next
			next = c.next(t.Context(), other)
			select {
			case <-next:
				t.Fatal("the change is reported twice")
			default:
			}
		}
		if rested := time.Since(begin); rested < 9*restBetween {
			t.Errorf("10 looks within %s", rested)
		}
		synctest.Wait()
		if other.kept.Load() != 1 {
			t.Errorf("%d requests are kept, want 1", other.kept.Load())
		}
		c.end()
		synctest.Wait()
		if other.kept.Load() != 0 {
			t.Errorf("%d requests are kept after the end", other.kept.Load())
		}
	})
}

// TestChangesAreEndless checks that a request whose context ended does not hold up the loop.
func TestChangesAreEndless(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &countedStore{change: make(chan struct{})}
		var c changes
		ctx, cancel := context.WithCancel(t.Context())
		c.next(ctx, s)
		cancel()
		s.changed()
		begin := time.Now()
		c.next(ctx, s)
		if time.Since(begin) != 0 {
			t.Errorf("it rests for %s after the end of its context", time.Since(begin))
		}
		c.end()
	})
}
