package postgres

import (
	"context"
	"errors"
	"sync"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/store"
)

// maxGathered is the maximum number of calls that share one statement.
const maxGathered = 128

// gather lets calls of many goroutines share statements. A call alone is carried out at once. The calls that arrive
// while statements are under way wait and share the next one. A replica that takes over a thousand runs therefore
// needs some dozens of statements in place of thousands, and no call waits for a timer.
type gather[K, V any] struct {
	// many carries out calls. Its answers are in the order of the keys.
	many func(ctx context.Context, keys []K) ([]answer[V], error)
	most int         // maximum number of statements under way
	size func(K) int // part of maxGathered that a key takes; nil means 1 for each

	mu      sync.Mutex
	waiting []*call[K, V]
	flying  int
	closed  bool
}

// call is a call that waits for its answer.
type call[K, V any] struct {
	ctx  context.Context
	key  K
	done chan answer[V]
	in   *flight // guarded by gather.mu
	gone bool    // the caller has given up; guarded by gather.mu
}

// flight is a statement under way. It ends early when all its callers have given up.
type flight struct {
	callers int // guarded by gather.mu
	stop    context.CancelFunc
}

// answer is the result of a call.
type answer[V any] struct {
	value V
	err   error
}

// get makes a call and returns its answer. If ctx ends before, get returns its cause, and the call may still be carried
// out. Store.owned waits for the statements. A statement that has no answer after patience is an error with code store.
func (g *gather[K, V]) get(ctx context.Context, s *Store, key K) (value V, err error) {
	if err := ctx.Err(); err != nil {
		return value, s.readError(ctx, err)
	}
	c := &call[K, V]{ctx: ctx, key: key, done: make(chan answer[V], 1)}
	g.mu.Lock()
	if g.closed {
		g.mu.Unlock()
		return value, s.closedError()
	}
	g.waiting = append(g.waiting, c)
	if g.flying < g.most {
		g.flying++
		s.owned.Go(func() { g.fly(s) })
	}
	g.mu.Unlock()
	select {
	case a := <-c.done:
		return a.value, a.err
	case <-ctx.Done():
		g.giveUp(c)
		return value, s.readError(ctx, ctx.Err())
	}
}

// giveUp ends the statement of a call if nobody waits for it any more.
func (g *gather[K, V]) giveUp(c *call[K, V]) {
	g.mu.Lock()
	defer g.mu.Unlock()
	c.gone = true
	if f := c.in; f != nil {
		if f.callers--; f.callers == 0 {
			f.stop()
		}
	}
}

// fly carries out waiting calls until none is left.
func (g *gather[K, V]) fly(s *Store) {
	for {
		calls := g.next()
		if calls == nil {
			return
		}
		again, err := g.try(s, calls)
		if err == nil {
			continue
		}
		again = again && len(calls) > 1
		for i, c := range calls {
			if again && c.ctx.Err() == nil {
				again, err = g.try(s, calls[i:i+1]) // one of them must not fail the others
			}
			if err != nil {
				c.done <- answer[V]{err: err}
			}
		}
	}
}

// try carries out calls with one statement. After an error, nobody has an answer. again reports whether other
// statements may succeed.
func (g *gather[K, V]) try(s *Store, calls []*call[K, V]) (again bool, err error) {
	ctx, stop := context.WithTimeout(s.ctx, patience)
	defer stop()
	f := &flight{stop: stop}
	keys := make([]K, len(calls))
	g.mu.Lock()
	for i, c := range calls {
		keys[i] = c.key
		c.in = f
		if !c.gone {
			f.callers++
		}
	}
	g.mu.Unlock()
	answers, err := g.many(ctx, keys)
	switch {
	case err == nil:
		for i, c := range calls {
			c.done <- answers[i]
		}
		return true, nil
	case s.ctx.Err() == nil && errors.Is(ctx.Err(), context.DeadlineExceeded):
		return false, tenon.Errorf(tenon.CodeStore, "store %s: the database has not answered for %s; check the server "+
			"and the network", s.name, patience)
	}
	return s.ctx.Err() == nil && !isNet(err), err // callers who gave up end only their own statement
}

// next takes the calls of the next statement. It leaves out calls whose callers have given up. If no call waits, it
// returns nil, and the caller must end.
func (g *gather[K, V]) next() []*call[K, V] {
	g.mu.Lock()
	defer g.mu.Unlock()
	var calls []*call[K, V]
	for size := 0; len(g.waiting) > 0; {
		c := g.waiting[0]
		if c.ctx.Err() == nil {
			if size += g.sizeOf(c.key); size > maxGathered {
				break
			}
			calls = append(calls, c)
		}
		g.waiting[0] = nil
		g.waiting = g.waiting[1:]
	}
	if len(calls) == 0 {
		g.waiting = nil
		g.flying--
	}
	return calls
}

func (g *gather[K, V]) sizeOf(key K) int {
	if g.size == nil {
		return 1
	}
	return g.size(key)
}

// shut refuses further calls. Those under way get their answers.
func (g *gather[K, V]) shut() {
	g.mu.Lock()
	g.closed = true
	g.mu.Unlock()
}

// gathers are the calls of a store that share statements.
type gathers struct {
	runs     *gather[string, *runRow]
	events   *gather[page, *eventReader]
	signals  *gather[string, []store.Signal]
	leases   *gather[string, int64]
	releases *gather[ownLease, struct{}]
}

func (s *Store) newGathers() gathers {
	return gathers{runs: &gather[string, *runRow]{many: s.runsOf, most: 2},
		events:   &gather[page, *eventReader]{many: s.eventsOf, most: 3, size: page.size},
		signals:  &gather[string, []store.Signal]{many: s.signalsOf, most: 1},
		leases:   &gather[string, int64]{many: s.acquireAll, most: 1},
		releases: &gather[ownLease, struct{}]{many: s.releaseAll, most: 1}}
}

func (g *gathers) shut() {
	g.runs.shut()
	g.events.shut()
	g.signals.shut()
	g.leases.shut()
	g.releases.shut()
}
