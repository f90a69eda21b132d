package local

import (
	"context"
	"encoding/json"
	"time"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/engine"
)

// launch stores that attempts begin, and then begins them.
func (d *driver) launch(starts []tenon.Command) error {
	attempts := d.attempts[:0]
	for _, c := range starts {
		n := 1
		if s := d.steps[c.Step]; s != nil {
			n = s.attempts + 1
		}
		attempts = append(attempts, engine.Attempt{Command: c, Attempt: n, Row: d.row})
		data, err := d.startedData(tenon.StartedData{Kind: c.Kind, Idempotent: c.Idempotent})
		if err != nil {
			return err
		}
		if err := d.record(tenon.Event{Step: c.Step, Kind: tenon.EventStarted, Attempt: n, Data: data}); err != nil {
			return err
		}
	}
	d.row.State = tenon.RunWorking
	if err := d.flush(d.e.ctx); err != nil {
		return err
	}
	if d.do == nil || d.do.Err() != nil {
		d.do, d.stop = context.WithCancel(d.e.ctx)
	}
	for _, a := range attempts {
		f := &flight{step: a.Step, attempt: a.Attempt, over: make(chan struct{})}
		d.flights[a.Step] = f
		a.Journal = journal{d, f}
		d.carryOut(task{d.do, f, a, d.emit(a.Step, a.Attempt)})
	}
	clear(attempts)
	d.attempts = attempts
	return nil
}

// task is an attempt to be carried out.
type task struct {
	ctx     context.Context
	flight  *flight
	attempt engine.Attempt
	emit    func(tenon.Event)
}

// carryOut hands a task to a goroutine that has ended its last one, or to a new one.
// Those of a run last as long as its driver: each has a stack that has grown to what
// a command needs.
func (d *driver) carryOut(t task) {
	if d.idle > 0 {
		d.idle--
		d.tasks <- t
		return
	}
	first := t // a variable of its own: t would be on the heap each time
	d.e.doing.Go(func() {
		for t, more := first, true; more; t, more = <-d.tasks {
			events, err := d.e.c.Do(t.ctx, d.id, t.attempt, t.emit)
			close(t.flight.over)
			d.results <- result{t.flight, events, err}
		}
	})
}

// landed takes a result whose goroutine is free again.
func (d *driver) landed(r result) result {
	d.idle++
	return r
}

// startedData encodes what is recorded of a start. There are few of them.
func (d *driver) startedData(v tenon.StartedData) (json.RawMessage, error) {
	if data := d.starts[v]; data != nil {
		return data, nil
	}
	data, err := json.Marshal(v)
	if err != nil {
		return nil, tenon.Errorf(tenon.CodeInternal, "run %s: %w", d.id, err)
	}
	d.starts[v] = data
	return data, nil
}

// emit publishes live events of a step.
func (d *driver) emit(step string, attempt int) func(tenon.Event) {
	return func(e tenon.Event) {
		e.Run, e.Seq, e.Attempt, e.Time = d.id, 0, attempt, d.e.c.Clock.Now().UTC()
		if e.Step == "" {
			e.Step = step
		}
		d.topic.live(e)
	}
}

// absorb records what a command gave.
func (d *driver) absorb(r result) error {
	delete(d.flights, r.step)
	if err := d.expireQuestions(r.step, "the call that asked has ended"); err != nil {
		return err
	}
	if r.err == nil {
		r.err = d.checkEvents(r.step, r.events)
	}
	if r.err != nil {
		if d.ending {
			return d.doubt(r.step)
		}
		return r.err
	}
	for i := range r.events {
		if r.events[i].Step == r.step {
			r.events[i].Attempt = r.attempt
		}
	}
	return d.record(r.events...)
}

func (d *driver) checkEvents(step string, events []tenon.Event) error {
	for i := range events {
		if events[i].Step == "" {
			events[i].Step = step
		}
		if events[i].Step == step {
			return nil
		}
	}
	return tenon.Errorf(tenon.CodeInternal, "run %s: step %s was carried out and nothing says what happened", d.id, step)
}

// doubt records that it is not known how an attempt ended.
func (d *driver) doubt(name string) error {
	s := d.steps[name]
	if s == nil || !s.open {
		return nil
	}
	var started tenon.StartedData
	_ = json.Unmarshal(s.data, &started) // we wrote it; at worst it must not be repeated
	kind := tenon.EventUnknown
	if started.Idempotent {
		kind = tenon.EventInterrupted
	}
	return d.record(tenon.Event{Step: name, Kind: kind, Attempt: s.attempts})
}

// abandonFlights ends what is in flight although the run has ended.
func (d *driver) abandonFlights() error {
	var err error
	d.ending = true
	d.settleFlights(func(r result) {
		if aerr := d.absorb(r); err == nil {
			err = aerr
		}
	})
	return err
}

// settleFlights ends the context of what is in flight and waits for it as long
// as the grace allows.
func (d *driver) settleFlights(each func(result)) {
	if len(d.flights) == 0 {
		return
	}
	d.stop()
	grace := time.NewTimer(d.e.c.Grace)
	defer grace.Stop()
	for len(d.flights) > 0 {
		select {
		case r := <-d.results:
			delete(d.flights, r.step)
			each(d.landed(r))
		case n := <-d.notes:
			d.jot(n)
			for _, stored := range d.noted { // it is recorded, but nobody should wait for the write now
				stored <- errOver(d.id, n.flight.step)
			}
			d.noted = nil
		case <-grace.C:
			for _, f := range d.flights {
				d.e.c.Logger.Warn("a command does not end", "run", d.id, "step", f.step)
				delete(d.flights, f.step)
				each(result{flight: f, err: context.Canceled})
			}
		}
	}
}
