package executor

import (
	"context"
	"errors"
	"fmt"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/agent"
	"github.com/tenonhq/tenon/engine"
	"github.com/tenonhq/tenon/store"
)

// Adopt makes an engine begin the run while the call is in progress. It does nothing if an engine has already begun the
// run, or if the run has ended or was cancelled. The engine stores the run, its decision and the start of the call in
// one commit. So the store never contains a run whose call another process would make again.
func (l *Light) Adopt(ctx context.Context) error {
	l.adopting.Lock()
	defer l.adopting.Unlock()
	l.mu.Lock()
	if l.state != lightAlone || l.stop == nil || l.cancel != nil {
		l.mu.Unlock()
		return nil
	}
	l.state = lightAdopted
	l.mu.Unlock()
	l.x.lights.Store(l.cfg.Row.ID, l)
	err := l.cfg.Adopt(context.WithoutCancel(ctx))
	if err == nil {
		return nil
	}
	l.x.lights.Delete(l.cfg.Row.ID)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.state = lightAlone
	if l.left { // the call has ended in the meantime, and the engine records its end
		if c, ok := l.doneCommand(); ok {
			return errors.Join(err, l.end(c))
		}
		l.fail(err)
	}
	return err
}

// lightOf returns the light call of a run that an engine works on, nil if there is none.
func (x *Executor) lightOf(run string) *Light {
	l, _ := x.lights.Load(run)
	light, _ := l.(*Light)
	return light
}

// answer answers a command of the engine with the recorded events of the call. If the call is still in progress, it
// waits for them.
func (l *Light) answer(ctx context.Context, a engine.Attempt, emit func(tenon.Event)) ([]tenon.Event, error) {
	l.mu.Lock()
	if a.Kind == engine.CommandDecide {
		defer l.mu.Unlock()
		c, err := tenon.CommandData[agent.DecideCommand](a.Command)
		if err != nil {
			return nil, err
		}
		events, ok := l.decided[c.Admit != nil] // asked again if the engine's first commit failed
		if !ok {
			return nil, tenon.Errorf(tenon.CodeInternal, "run %s: a call under way has no decision", a.Row.ID)
		}
		written(events)
		return events, nil
	}
	l.attempt = a
	progress := l.cfg.Progress
	l.emit = func(e tenon.Event) { progress(e); emit(e) }
	l.mu.Unlock()
	close(l.attached)
	select {
	case <-l.over:
	case <-ctx.Done():
		l.Stop(context.Cause(ctx))
		<-l.over
	}
	l.x.lights.Delete(a.Row.ID)
	l.mu.Lock()
	defer l.mu.Unlock()
	events := append([]tenon.Event(nil), l.outcome...)
	l.digest(events)
	written(events)
	return events, nil
}

// written encodes the data of events that have it only decoded so far.
func written(events []tenon.Event) {
	for i := range events {
		if e := &events[i]; len(e.Data) == 0 && e.Local != nil {
			e.Data = tenon.EventData(e.Local)
		}
	}
}

// digest replaces the result in an event by its digest, if only the digest is recorded.
func (l *Light) digest(events []tenon.Event) {
	for i := range events {
		if events[i].Kind == agent.EventResult && l.large != nil {
			o := *l.large
			raw := o.Result.Raw
			o.Result = &tenon.Result{IsError: o.Result.IsError, Content: []tenon.Content{tenon.Text(
				fmt.Sprintf("[%d bytes, %s: the result of a client's call is not kept]", len(raw), store.Digest(raw)))}}
			events[i].Data, events[i].Local = tenon.EventData(o), nil
		}
	}
}

// Journal returns the events of a run that has ended, and its final row. Spec is the data of the first event.
func (l *Light) Journal(spec []byte) (tenon.Run, []tenon.Event) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.settle()
	l.digest(l.events)
	l.large = nil
	written(l.events)
	l.events[0].Data = spec
	row := l.cfg.Row
	row.State, row.Stop, row.Updated = l.done.State, l.done.Stop, l.events[len(l.events)-1].Time
	return row, l.events
}

// Row returns the initial row of the run.
func (l *Light) Row() tenon.Run { return l.cfg.Row }

// lightJournal is the journal of an attempt at a light call. Its first use makes an engine begin the run, which the
// caller then follows.
type lightJournal struct{ l *Light }

// engine returns the journal of the engine's attempt.
func (j lightJournal) engine(ctx context.Context) (engine.Journal, error) {
	if err := j.l.Adopt(ctx); err != nil {
		return nil, err
	}
	select {
	case <-j.l.attached:
	case <-ctx.Done():
		return nil, tenon.Errorf(tenon.CodeCancelled, "step %s: %w", j.l.call.Step, context.Cause(ctx))
	}
	j.l.mu.Lock()
	defer j.l.mu.Unlock()
	return j.l.attempt.Journal, nil
}

// asks returns the journal in which a question is stored.
func (j lightJournal) asks(ctx context.Context) (engine.Journal, error) {
	to, err := j.engine(ctx)
	if err == nil {
		j.l.mu.Lock()
		j.l.move()
		j.l.mu.Unlock()
	}
	return to, err
}

// Record implements [engine.Journal].
func (j lightJournal) Record(ctx context.Context, events ...tenon.Event) error {
	to, err := j.asks(ctx)
	if err != nil {
		return err
	}
	return to.Record(ctx, events...)
}

// Ask implements [engine.Journal].
func (j lightJournal) Ask(ctx context.Context, question tenon.Event) (tenon.Event, error) {
	to, err := j.asks(ctx)
	if err != nil {
		return tenon.Event{}, err
	}
	return to.Ask(ctx, question)
}

// outcomeEvent returns the event of a call that ended with a result. A light call encodes its data later.
func outcomeEvent(a engine.Attempt, o agent.Outcome) tenon.Event {
	e := tenon.Event{Step: a.Step, Kind: agent.EventResult}
	if j, ok := a.Journal.(lightJournal); ok {
		o = j.l.kept(o)
		e.Local = &o
	} else {
		e.Data = tenon.EventData(o)
	}
	return e
}

// kept returns the outcome as it is recorded, and keeps the result for the caller.
func (l *Light) kept(o agent.Outcome) agent.Outcome {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.result = o.Result
	if o.Whole != nil { // the caller can read the result as soon as the journal has it
		l.move()
	}
	select {
	case <-l.moved: // the caller reads the result from the journal
		return o
	default:
	}
	if raw, err := o.Result.MarshalJSON(); err == nil && len(raw) > auditBytes {
		whole := *o.Result
		whole.Raw = raw
		o.Result = &whole
		l.large = &o
		short := o
		short.Result = &tenon.Result{IsError: whole.IsError}
		return short
	}
	return o
}

// stored makes an engine begin the run of a light call, so that the run is in the store.
func stored(ctx context.Context, a engine.Attempt) error {
	if j, ok := a.Journal.(lightJournal); ok {
		_, err := j.engine(ctx)
		return err
	}
	return nil
}

var _ engine.Journal = lightJournal{}
