package local

import (
	"context"
	"encoding/json"
	"math"
	"sync"
	"time"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/engine"
	"github.com/tenonhq/tenon/store"
)

// A process may follow a run that another process drives. It reads stored events from the store. Live events are
// relayed if the store supports it (see [store.Live]):
//
//	driver ─► topic ─► relay ─► store.Live ─► feed ─► topic of the other process ─► its followers
//
// The relay is a follower of the topic like any other, so that its first events are the text of the steps in flight.

const (
	// relayEvery is the interval at which live events are passed on. The events of one interval are combined.
	relayEvery = 40 * time.Millisecond
	// relayLook is the interval at which the relay looks for followers if the store does not report them.
	relayLook = 500 * time.Millisecond
	// relayTime bounds one pass, so that a database that does not respond delays the next pass only for a short time.
	relayTime = 2 * time.Second
)

// liveStore returns the store as a [store.Live], or nil if it does not support live events.
func (e *Engine) liveStore() store.Live {
	l, ok := e.c.Store.(store.Live)
	if !ok || l.Wake() == nil {
		return nil
	}
	return l
}

// relayed is the queue of the live events for a follower in another process.
type relayed struct {
	topic *topic
	queue *follower
}

// relay passes live events of the runs of this process to followers in other processes, until the engine is closed.
func (e *Engine) relay(l store.Live) {
	feeds := map[store.LiveFollower]relayed{}
	drop := func(f store.LiveFollower) {
		feeds[f].topic.unfollow(feeds[f].queue)
		e.hub.leave(feeds[f].topic)
		delete(feeds, f)
	}
	defer func() {
		for f := range feeds {
			drop(f)
		}
	}()
	var looked time.Time
	for e.ctx.Err() == nil {
		every := relayLook
		if len(feeds) > 0 {
			every = relayEvery
		}
		timer := time.NewTimer(every)
		look := false
		select {
		case <-l.Wake():
			look = true
		case <-timer.C:
			look = time.Since(looked) >= relayLook
		case <-e.ctx.Done():
		}
		timer.Stop()
		if look && e.ctx.Err() == nil {
			looked = time.Now()
			e.refresh(l, feeds, drop)
		}
		e.pass(l, feeds)
	}
}

// refresh adds feeds for new followers, and removes the feeds of followers that have left.
func (e *Engine) refresh(l store.Live, feeds map[store.LiveFollower]relayed, drop func(store.LiveFollower)) {
	e.mu.Lock()
	idle := len(e.owned) == 0
	e.mu.Unlock()
	var list []store.LiveFollower
	if !idle {
		ctx, stop := context.WithTimeout(e.ctx, relayTime)
		defer stop()
		var err error
		if list, err = l.Followed(ctx); err != nil {
			return // the next refresh tries again
		}
	}
	there := make(map[store.LiveFollower]bool, len(list))
	for _, f := range list {
		there[f] = true
		if _, ok := feeds[f]; ok || e.owner(f.Run) == nil {
			continue
		}
		t := e.hub.join(f.Run)
		queue, _, _ := t.follow(math.MaxUint64)
		feeds[f] = relayed{t, queue}
	}
	for f := range feeds {
		if !there[f] {
			drop(f)
		}
	}
}

// pass publishes the live events since the last pass.
func (e *Engine) pass(l store.Live, feeds map[store.LiveFollower]relayed) {
	var list []store.LiveEvents
	for f, r := range feeds {
		queued, _ := r.queue.take(nil)
		if events := combine(queued); len(events) > 0 {
			list = append(list, store.LiveEvents{LiveFollower: f, Events: events})
		}
	}
	if len(list) == 0 {
		return
	}
	ctx, stop := context.WithTimeout(e.ctx, relayTime)
	defer stop()
	if err := l.PublishLive(ctx, list); err != nil && e.ctx.Err() == nil {
		e.c.Logger.Debug("live events are not passed on", "error", err)
	}
}

// combine returns the live events of a queue. Consecutive deltas of one kind are combined into one.
func combine(queued []tenon.Event) []tenon.Event {
	var out []tenon.Event
	var delta engine.Delta // of the last event of out, if its Kind is set
	for _, e := range queued {
		if e.Seq > 0 || e.Kind == engine.EventWaiting {
			continue
		}
		var d engine.Delta
		if e.Kind != engine.LiveDelta || json.Unmarshal(e.Data, &d) != nil || d.Text == "" {
			out, delta = append(out, e), engine.Delta{}
			continue
		}
		if n := len(out) - 1; delta.Kind != "" && delta.Kind == d.Kind && out[n].Step == e.Step &&
			out[n].Attempt == e.Attempt {
			delta.Text += d.Text
			if data, err := json.Marshal(delta); err == nil {
				out[n].Data = data
			}
			continue
		}
		out, delta = append(out, e), d
	}
	return out
}

// feeds contains the runs of other processes that this process follows.
type feeds struct {
	mu   sync.Mutex
	runs map[string]*feed
}

type feed struct {
	refs int
	stop context.CancelFunc
}

// feed follows a run that another process drives. It passes the live events of the run to the topic of this process
// until leave is called.
func (e *Engine) feed(run string) (leave func()) {
	l := e.liveStore()
	if l == nil {
		return func() {}
	}
	e.feeds.mu.Lock()
	defer e.feeds.mu.Unlock()
	f := e.feeds.runs[run]
	if f == nil {
		e.mu.Lock()
		closed := e.closed
		if !closed {
			f = e.begin(l, run)
		}
		e.mu.Unlock()
		if closed {
			return func() {}
		}
		if e.feeds.runs == nil {
			e.feeds.runs = map[string]*feed{}
		}
		e.feeds.runs[run] = f
	}
	f.refs++
	return func() {
		e.feeds.mu.Lock()
		defer e.feeds.mu.Unlock()
		if f.refs--; f.refs == 0 {
			f.stop()
			delete(e.feeds.runs, run)
		}
	}
}

// begin starts the goroutine of a feed. The caller holds the lock of the engine, which is not closed.
func (e *Engine) begin(l store.Live, run string) *feed {
	ctx, stop := context.WithCancel(e.ctx)
	t := e.hub.join(run)
	e.wg.Go(func() {
		defer e.hub.leave(t)
		defer stop()
		l.FollowLive(ctx, run, func(event tenon.Event) {
			if ctx.Err() == nil && e.owner(run) == nil {
				t.elsewhere(event)
			}
		})
	})
	return &feed{stop: stop}
}

// elsewhere passes on a live event of another process. It drops the text of earlier steps, because nothing reports the
// end of these steps in this process.
func (t *topic) elsewhere(e tenon.Event) {
	if e.Kind == engine.LiveDelta {
		t.mu.Lock()
		for step := range t.partial {
			if step != e.Step {
				delete(t.partial, step)
			}
		}
		t.mu.Unlock()
	}
	t.live(e)
}
