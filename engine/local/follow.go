package local

import (
	"context"
	"iter"
	"math"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/engine"
)

// page is how many events a follower reads from the store at a time.
const page = 256

// Events implements [engine.Engine].
func (e *Engine) Events(ctx context.Context, run string, after uint64) iter.Seq2[tenon.Event, error] {
	after = min(after, math.MaxInt64) // keeps after + 1 within the range of event numbers
	return func(yield func(tenon.Event, error) bool) {
		t := e.hub.join(run)
		defer e.hub.leave(t)
		queue, base, whole := t.follow(after)
		defer t.unfollow(queue)
		r := &reader{e: e, ctx: ctx, run: run, next: after + 1, base: base, whole: whole, over: map[string]uint64{},
			queue: queue, yield: yield}
		if err := r.follow(); err != nil {
			yield(tenon.Event{}, err)
		}
	}
}

// reader is one call of [Engine.Events].
type reader struct {
	e     *Engine
	ctx   context.Context
	run   string
	next  uint64            // number of the next event to yield
	base  uint64            // the hub delivers the events after this number
	whole bool              // the store has no further events
	over  map[string]uint64 // steps that ended in the store ahead of the hub, with the number of the event
	queue *follower
	taken []tenon.Event // the last batch from the queue
	yield func(tenon.Event, error) bool
	ended bool // the caller stopped, or the run has no more events
}

func (r *reader) follow() error {
	leave := func() {}
	defer func() { leave() }()
	fed := false
	for !r.ended {
		here := r.e.owner(r.run) != nil
		var changed <-chan struct{}
		if !here {
			changed = r.e.c.Store.Changed(r.ctx)
		}
		if !here || !r.whole {
			if err := r.catchUp(); err != nil || r.ended {
				return err
			}
		}
		r.whole = false // later rounds read the store
		if !here {
			if err := r.atRest(); err != nil || r.ended {
				return err
			}
			if !fed {
				leave, fed = r.e.feed(r.run), true
			}
		}
		if err := r.listen(changed); err != nil {
			return err
		}
	}
	return nil
}

// catchUp yields the stored events.
func (r *reader) catchUp() error {
	for {
		events, err := r.e.c.Store.Events(r.ctx, r.run, r.next-1, page)
		if err != nil {
			return r.broken(err)
		}
		for _, e := range events {
			if e.Kind == tenon.EventStarted {
				delete(r.over, e.Step)
			} else if e.Seq > r.base {
				r.over[e.Step] = e.Seq
			}
			if !r.emit(e) {
				return nil
			}
		}
		if len(events) < page {
			return nil
		}
	}
}

// broken maps an error of the store. It returns nil if the caller has stopped, and errClosed if the engine is
// closed, because then the store may be closed too.
func (r *reader) broken(err error) error {
	switch {
	case r.ctx.Err() != nil:
		r.ended = true
		return nil
	case r.e.ctx.Err() != nil:
		return errClosed(r.run)
	}
	return err
}

func (r *reader) emit(e tenon.Event) bool {
	if e.Seq > 0 {
		r.next = e.Seq + 1
	}
	if !r.yield(e, nil) {
		r.ended = true
	}
	return !r.ended
}

// atRest ends the reader if this process does not work on the run and the run is at rest.
func (r *reader) atRest() error {
	halted := r.e.haltOf(r.run) // before the row, which then has all events that preceded the halt
	row, err := r.e.c.Store.Run(r.ctx, r.run)
	if err != nil {
		return r.broken(err)
	}
	if row.Seq >= r.next {
		r.queue.look() // more events are stored: read again
		return nil
	}
	switch {
	case row.State.Ended():
		r.ended = true
	case row.State == tenon.RunInputRequired:
		r.emit(waitingEvent(r.run, r.e.c.Clock.Now(), row.Waiting))
		r.ended = true
	default:
		if halted != nil {
			if held, herr := r.e.c.Store.Held(r.run); herr != nil || !held {
				return halted
			} // another process has resumed the run
		}
	}
	return nil
}

// listen yields events from the hub, until the store or the state of the run must be checked.
func (r *reader) listen(changed <-chan struct{}) error {
	for {
		select {
		case <-r.queue.wake:
		case <-changed:
			return nil
		case <-r.ctx.Done():
			r.ended = true
			return nil
		}
		events, look := r.queue.take(r.taken)
		r.taken = events
		done := false
		for _, e := range events {
			switch {
			case e.Kind == engine.EventWaiting && e.Seq == 0:
				look = true
			case e.Seq == 0:
				if r.over[e.Step] == 0 && !r.emit(e) {
					return nil
				}
			default:
				if e.Seq >= r.over[e.Step] {
					delete(r.over, e.Step) // the hub has caught up with the store
				}
				done = e.Kind == tenon.EventDone
				look = look || e.Seq > r.next || done && e.Seq < r.next
				if e.Seq == r.next && !r.emit(e) {
					return nil
				}
			}
		}
		if done && !look {
			r.ended = true
			return nil
		}
		if look {
			return nil
		}
	}
}
