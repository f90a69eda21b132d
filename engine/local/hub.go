package local

import (
	"encoding/json"
	"strings"
	"sync"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/engine"
)

const (
	// maxQueue is how many events a follower may be behind. Past it live events
	// are dropped, and stored ones read from the store.
	maxQueue = 1024
	// maxPartial bounds, in bytes, the text that is kept of a step in flight for
	// followers that join.
	maxPartial = 1 << 20
	// foldAt is the number of deltas from which on they are folded into one.
	foldAt = 256
	// maxEarly is how many events of a run that began here are kept for those who
	// follow it from its beginning, as whoever started it does at once.
	maxEarly = 16
)

// hub hands events from drivers to followers in this process.
type hub struct {
	mu     sync.Mutex
	topics map[string]*topic
}

// topic is one run's place in the hub, there while somebody drives or follows.
type topic struct {
	run  string
	refs int // guarded by the hub

	mu        sync.Mutex
	followers map[*follower]struct{}
	partial   map[string]*partial // by step
	seq       uint64              // of the last stored event that was published
	early     []tenon.Event       // all that were published of a young run that began here
}

// partial is what a step in flight has said so far.
type partial struct {
	deltas []tenon.Event
	size   int
}

// follower is the queue of one reader.
type follower struct {
	wake   chan struct{} // room for one
	mu     sync.Mutex
	queue  []tenon.Event
	lagged bool // look at the store: events were dropped, or the owner changed
}

func (h *hub) join(run string) *topic {
	h.mu.Lock()
	defer h.mu.Unlock()
	t := h.topics[run]
	if t == nil {
		if h.topics == nil {
			h.topics = map[string]*topic{}
		}
		t = &topic{run: run}
		h.topics[run] = t
	}
	t.refs++
	return t
}

func (h *hub) leave(t *topic) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if t.refs--; t.refs == 0 {
		delete(h.topics, t.run)
	}
}

// follow adds a follower that knows the events up to after. It first gets those
// that are kept here, and what steps in flight have said. Base is the last event
// that the follower will not get from here; whole says that it is after, so that
// the store has nothing more.
func (t *topic) follow(after uint64) (f *follower, base uint64, whole bool) {
	f = &follower{wake: make(chan struct{}, 1)}
	t.mu.Lock()
	defer t.mu.Unlock()
	base = t.seq
	if kept := uint64(len(t.early)); after < kept {
		base, whole = after, true
		f.push(t.early[after:]...)
	}
	if t.followers == nil {
		t.followers = map[*follower]struct{}{}
	}
	t.followers[f] = struct{}{}
	for _, p := range t.partial {
		p.fold()
		f.push(p.deltas...)
	}
	return f, base, whole
}

func (t *topic) unfollow(f *follower) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.followers, f)
}

// publish hands over events that are stored, or the live one that the run came
// to rest.
func (t *topic) publish(events ...tenon.Event) {
	if len(events) == 0 {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, e := range events {
		if e.Seq > 0 {
			t.seq = e.Seq
			t.keep(e)
		}
		if e.Kind != tenon.EventStarted {
			delete(t.partial, e.Step)
		}
	}
	for f := range t.followers {
		f.push(events...)
	}
}

// keep keeps a stored event as long as all of the run's are here and few.
func (t *topic) keep(e tenon.Event) {
	if e.Seq == uint64(len(t.early))+1 && e.Seq <= maxEarly {
		t.early = append(t.early, e)
	} else {
		t.early = nil
	}
}

// live hands over an event of a step in flight and keeps its text.
func (t *topic) live(e tenon.Event) {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch e.Kind {
	case engine.LiveReset:
		delete(t.partial, e.Step)
	case engine.LiveDelta:
		p := t.partial[e.Step]
		if p == nil {
			if t.partial == nil {
				t.partial = map[string]*partial{}
			}
			p = &partial{}
			t.partial[e.Step] = p
		}
		p.add(e)
	}
	for f := range t.followers {
		f.push(e)
	}
}

// wake has the followers look at the state of things.
func (t *topic) wake() {
	t.mu.Lock()
	defer t.mu.Unlock()
	for f := range t.followers {
		f.look()
	}
}

func (p *partial) add(e tenon.Event) {
	if p.size += len(e.Data); p.size > maxPartial {
		return
	}
	p.deltas = append(p.deltas, e)
	if len(p.deltas) >= foldAt {
		p.fold()
	}
}

// fold makes one delta of all of a kind.
func (p *partial) fold() {
	if len(p.deltas) < 2 {
		return
	}
	kinds := []string{"thinking", "text"}
	texts := make([]strings.Builder, len(kinds))
	for _, e := range p.deltas {
		var d engine.Delta
		if json.Unmarshal(e.Data, &d) != nil {
			continue // not a delta: nobody can show it
		}
		for i, kind := range kinds {
			if d.Kind == kind {
				texts[i].WriteString(d.Text)
			}
		}
	}
	last := p.deltas[len(p.deltas)-1]
	p.deltas = nil
	for i, kind := range kinds {
		if texts[i].Len() == 0 {
			continue
		}
		data, err := json.Marshal(engine.Delta{Kind: kind, Text: texts[i].String()})
		if err != nil {
			continue // cannot be: two strings
		}
		last.Data = data
		p.deltas = append(p.deltas, last)
	}
}

// push hands events over that belong together, and wakes the reader once for all.
func (f *follower) push(events ...tenon.Event) {
	if len(events) == 0 {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, e := range events {
		if len(f.queue) >= maxQueue {
			if e.Seq == 0 && e.Kind != engine.EventWaiting {
				continue
			}
			f.queue, f.lagged = nil, true
		}
		f.queue = append(f.queue, e)
	}
	f.ring()
}

// look has the follower look at the store and at who works on the run.
func (f *follower) look() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.lagged = true
	f.ring()
}

func (f *follower) ring() {
	select {
	case f.wake <- struct{}{}:
	default:
	}
}

// maxSpare is how many events there is room for in what a follower holds on to.
const maxSpare = 8

// take returns what has come, and whether to look at the store. What was taken before
// is given back: its room is used for what comes next, if it is small.
func (f *follower) take(before []tenon.Event) (events []tenon.Event, lagged bool) {
	clear(before)
	if cap(before) > maxSpare {
		before = nil
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	events, lagged = f.queue, f.lagged
	f.queue, f.lagged = before[:0], false
	return events, lagged
}
