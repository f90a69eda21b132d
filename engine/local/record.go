package local

import (
	"bytes"
	"context"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/store"
)

// record applies events to the core and queues them for the next write.
func (d *driver) record(events ...tenon.Event) error {
	for _, e := range events {
		e.Run, e.Seq, e.Time = d.id, d.seq+1, d.clock.Now().UTC()
		if err := d.core.Apply(e); err != nil {
			return err
		}
		d.seq++
		d.note(&e)
		d.pending = append(d.pending, e)
	}
	return nil
}

// note updates the state of the event's step.
func (d *driver) note(e *tenon.Event) {
	if e.Step == "" {
		return
	}
	s := d.steps[e.Step]
	if s == nil {
		s = &step{}
		d.steps[e.Step] = s
	}
	s.last, s.seq = e.Time, e.Seq
	if isOpen := e.Kind == tenon.EventQuestion; isOpen != s.asked {
		s.asked = isOpen
		if isOpen {
			d.asked++
		} else {
			d.asked--
		}
	}
	if e.Kind == tenon.EventStarted {
		s.attempts, s.open, s.data = max(s.attempts, e.Attempt), true, e.Data
	} else if s.open && e.Attempt == s.attempts {
		s.open, s.data = false, nil
	}
}

// flush stores the pending events, and then notifies followers and senders.
func (d *driver) flush(ctx context.Context) error {
	events, err := d.store(ctx)
	if err != nil {
		return err
	}
	d.topic.publish(events...)
	d.tell(events)
	for _, l := range d.takeLetters() {
		d.answer(ctx, l)
	}
	if d.pending == nil { // only this goroutine holds this slice
		clear(events)
		d.pending = events[:0]
	}
	return nil
}

// store writes the pending events and the row, if they have changed.
func (d *driver) store(ctx context.Context) ([]tenon.Event, error) {
	a := store.Append{Run: d.id, Events: d.pending, Create: d.create, Exclusive: d.create != nil, Blobs: d.blobs,
		Uses: d.uses, Taken: d.taken}
	if d.create != nil || d.rowChanged() {
		a.State, a.Stop, a.Waiting = d.row.State, d.row.Stop, d.waits
	}
	if len(a.Events) == 0 && a.State == "" && len(a.Taken) == 0 {
		return nil, nil
	}
	if err := d.e.c.Store.Append(ctx, a); err != nil {
		return nil, err
	}
	d.stored = rowState{d.row.State, d.row.Stop, d.waits}
	d.settled()
	events := d.pending
	d.pending = nil
	if len(d.taken) > 0 {
		d.taken = map[string]uint64{}
	}
	if d.e.c.Observe != nil && len(events) > 0 {
		d.e.c.Observe(d.row, events)
	}
	if d.create != nil {
		d.create, d.blobs, d.uses = nil, nil, nil
		close(d.ready)
	}
	return events, nil
}

// rowState is the part of the row that changes during a run.
type rowState struct {
	state   tenon.RunState
	stop    tenon.StopReason
	waiting []tenon.Waiting
}

func (d *driver) rowChanged() bool {
	if d.stored.state != d.row.State || d.stored.stop != d.row.Stop || len(d.stored.waiting) != len(d.waits) {
		return true
	}
	for i, w := range d.waits {
		if o := d.stored.waiting[i]; o.Step != w.Step || !bytes.Equal(o.Data, w.Data) {
			return true
		}
	}
	return false
}
