package local

import (
	"cmp"
	"context"
	"encoding/json"
	"time"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/engine"
	"github.com/tenonhq/tenon/internal/deepstack"
)

// launch stores the starts of attempts and then starts them.
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

// task is an attempt to execute.
type task struct {
	ctx     context.Context
	flight  *flight
	attempt engine.Attempt
	emit    func(tenon.Event)
}

// carryOut passes a task to an idle goroutine, or to a new one. The goroutines live as long as the driver,
// because their stacks have already grown to the size that a command needs.
func (d *driver) carryOut(t task) {
	if d.idle > 0 {
		d.idle--
		d.tasks <- t
		return
	}
	first := t // a separate variable: t would escape to the heap on each call
	d.e.doing.Go(func() {
		deepstack.Work()
		for t, more := first, true; more; t, more = <-d.tasks {
			events, err := d.e.c.Do(t.ctx, d.id, t.attempt, t.emit)
			close(t.flight.over)
			d.results <- result{t.flight, events, err}
		}
	})
}

// landed counts the goroutine that returned a result as idle.
func (d *driver) landed(r result) result {
	d.idle++
	return r
}

// startedData encodes the data of a start event. It caches the few distinct values.
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

// emit returns a function that publishes live events of a step.
func (d *driver) emit(step string, attempt int) func(tenon.Event) {
	return func(e tenon.Event) {
		e.Run, e.Seq, e.Attempt, e.Time = d.id, 0, attempt, d.clock.Now().UTC()
		e.Step = cmp.Or(e.Step, step)
		d.topic.live(e)
	}
}

// absorb records the result of a command.
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
	if err := d.record(r.events...); err != nil {
		return err
	}
	d.unstored = append(d.unstored, unstored{r.step, r.attempt, r.events})
	return nil
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
	return tenon.Errorf(tenon.CodeInternal, "run %s: the executor returned no event of step %s", d.id, step)
}

// doubt ends an attempt without a known result. It records the attempt as interrupted if it is safe to repeat,
// otherwise as unknown.
func (d *driver) doubt(name string) error {
	s := d.steps[name]
	if s == nil || !s.open {
		return nil
	}
	var started tenon.StartedData
	_ = json.Unmarshal(s.data, &started) // written by startedData; on an error the step counts as not idempotent
	kind := tenon.EventUnknown
	if started.Idempotent {
		kind = tenon.EventInterrupted
	}
	e := tenon.Event{Step: name, Kind: kind, Attempt: s.attempts}
	if kind == tenon.EventUnknown && !d.ending && tenon.ErrorCode(d.halted) == tenon.CodeStore {
		e.Data = tenon.EventData(tenon.UnknownData{Error: tenon.Errorf(tenon.CodeStore,
			"its result could not be stored, for example because the disk was full")})
	}
	return d.record(e)
}

// abandonFlights ends the commands in flight because the run has ended.
func (d *driver) abandonFlights() error {
	var err error
	d.ending = true
	d.settleFlights(func(r result) {
		aerr := d.absorb(r)
		if err == nil {
			err = aerr
		}
	})
	return err
}

// settleFlights cancels the commands in flight and waits for them within the grace period.
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
			for _, stored := range d.noted { // the senders must not wait for the next write
				stored <- errOver(d.id, n.flight.step)
			}
			d.noted = nil
		case <-grace.C:
			for _, f := range d.flights {
				d.e.c.Logger.Warn("a command has not ended within the grace period", "run", d.id, "step", f.step)
				delete(d.flights, f.step)
				each(result{flight: f, err: context.Canceled})
			}
		}
	}
}
