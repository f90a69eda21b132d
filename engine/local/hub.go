package local

import (
	"encoding/json"
	"strings"
	"sync"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/engine"
)

const (
	// maxQueue bounds the queue of a follower. Beyond it, live events are dropped and stored ones are read from the
	// store.
	maxQueue = 1024
	// maxPartial bounds the text of a step in flight that is kept for new followers, in bytes.
	maxPartial = 1 << 20
	// foldAt is the number of deltas after which they are combined into one.
	foldAt = 256
	// maxEarly is the number of events kept of a run that began in this process. They serve followers from the
	// beginning, such as the caller of Start.
	maxEarly = 16
)

// hub passes events from drivers to followers in this process.
type hub struct {
	mu     sync.Mutex
	topics map[string]*topic
}

// topic is the hub's entry for a run. It exists while the run is driven or followed.
type topic struct {
	run  string
	refs int // guarded by the hub

	mu        sync.Mutex
	followers map[*follower]struct{}
	partial   map[string]*partial // by step
	seq       uint64              // number of the last published stored event
	early     []tenon.Event       // all events of a run that began here, while they are few
}

// partial is the text of a step in flight so far.
type partial struct {
	deltas []tenon.Event
	size   int
}

// follower is the queue of one reader.
type follower struct {
	wake   chan struct{} // capacity 1
	mu     sync.Mutex
	queue  []tenon.Event
	lagged bool // the store must be checked: events were dropped, or the owner changed
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

// follow adds a follower that already has the events up to after. The follower first gets the kept events after that
// number, and the text of the steps in flight. base is the number of the last event that the hub does not deliver.
// whole reports that base equals after, so that the follower need not read the store.
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

// publish passes stored events, or the live event of a run at rest, to the followers.
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

// keep keeps a stored event if the topic has all events of the run and there are not too many.
func (t *topic) keep(e tenon.Event) {
	if e.Seq == uint64(len(t.early))+1 && e.Seq <= maxEarly {
		t.early = append(t.early, e)
	} else {
		t.early = nil
	}
}

// live passes a live event to the followers and keeps its text.
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

// wake makes the followers check the state of the run.
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

// fold combines all deltas of one kind into one.
func (p *partial) fold() {
	if len(p.deltas) < 2 {
		return
	}
	kinds := []string{"thinking", "text"}
	texts := make([]strings.Builder, len(kinds))
	for _, e := range p.deltas {
		var d engine.Delta
		if json.Unmarshal(e.Data, &d) != nil {
			continue // not a delta
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
			continue // unreachable: two strings always encode
		}
		last.Data = data
		p.deltas = append(p.deltas, last)
	}
}

// push queues events that belong together and wakes the reader once.
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

// look makes the follower check the store and the owner of the run.
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

// maxSpare is the capacity up to which a follower reuses the slice of a batch.
const maxSpare = 8

// take returns the queued events, and whether the store must be checked. before is the previous batch; take reuses its
// slice if it is small.
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
