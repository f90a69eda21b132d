package local

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/engine"
)

// note is a request of a running command to record events.
type note struct {
	flight *flight
	events []tenon.Event
	stored chan error       // capacity 1
	ended  chan tenon.Event // capacity 1; receives the end of the question in events; nil for Record
}

// journal implements [engine.Journal] for one attempt. It sends requests to the run's driver.
type journal struct {
	d *driver
	f *flight
}

// Record implements [engine.Journal].
func (j journal) Record(ctx context.Context, events ...tenon.Event) error {
	return j.send(ctx, note{flight: j.f, events: events, stored: make(chan error, 1)})
}

// Ask implements [engine.Journal].
func (j journal) Ask(ctx context.Context, q tenon.Event) (tenon.Event, error) {
	q.Kind = tenon.EventQuestion
	n := note{flight: j.f, events: []tenon.Event{q}, stored: make(chan error, 1), ended: make(chan tenon.Event, 1)}
	if err := j.send(ctx, n); err != nil {
		return tenon.Event{}, err
	}
	select {
	case e := <-n.ended:
		return e, nil
	case <-j.d.gone:
		return tenon.Event{}, errClosed(j.d.id)
	case <-ctx.Done():
	}
	err := context.Cause(ctx)
	reason := err.Error()
	if errors.Is(err, context.Canceled) {
		reason = "the question was withdrawn, or its call was stopped"
	}
	data, merr := json.Marshal(tenon.ExpiredData{Reason: reason})
	if merr != nil {
		data = nil // unreachable: a string always encodes
	}
	// Record the expiry. If an answer arrived in the meantime, jot keeps the answer.
	_ = j.send(context.WithoutCancel(ctx), note{flight: j.f, stored: make(chan error, 1),
		events: []tenon.Event{{Step: q.Step, Kind: tenon.EventExpired, Data: data}}})
	return tenon.Event{}, err
}

func (j journal) send(ctx context.Context, n note) error {
	for i := range n.events {
		if !strings.HasPrefix(n.events[i].Step, j.f.step+"/") {
			return tenon.Errorf(tenon.CodeInternal, "run %s: step %s records an event of step %q", j.d.id, j.f.step,
				n.events[i].Step)
		}
		n.events[i].Attempt = j.f.attempt
	}
	select {
	case j.d.notes <- n:
	case <-j.f.over:
		return errOver(j.d.id, j.f.step)
	case <-j.d.gone:
		return errClosed(j.d.id)
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	select { // the driver has the request and answers soon
	case err := <-n.stored:
		return err
	case <-j.d.gone:
		return errClosed(j.d.id)
	}
}

func errOver(run, step string) error {
	return tenon.Errorf(tenon.CodeConflict, "run %s: step %s has ended", run, step)
}

// jot records the events of a running command. Its sender gets the result after the next write.
func (d *driver) jot(n note) {
	f := d.flights[n.flight.step]
	if f != n.flight {
		n.stored <- errOver(d.id, n.flight.step)
		return
	}
	for _, e := range n.events {
		if s := d.steps[e.Step]; e.Kind == tenon.EventExpired && (s == nil || !s.asked) {
			continue // the answer arrived first
		}
		if err := d.record(e); err != nil {
			n.stored <- err // the run continues without the event
			return
		}
		if e.Kind == tenon.EventQuestion && n.ended != nil {
			d.questions[e.Step] = n.ended
		}
	}
	d.noted = append(d.noted, n.stored)
}

// tell sends stored events to the receivers that wait for the end of a question. It also notifies the senders of
// recorded events.
func (d *driver) tell(events []tenon.Event) {
	for _, stored := range d.noted {
		stored <- nil
	}
	d.noted = nil
	if len(d.questions) == 0 {
		return
	}
	for _, e := range events {
		if ended := d.questions[e.Step]; ended != nil && e.Kind != tenon.EventQuestion {
			delete(d.questions, e.Step)
			ended <- e
		}
	}
}

// dismiss sends an error to the senders that wait for the next write.
func (d *driver) dismiss(err error) {
	for _, stored := range d.noted {
		stored <- err
	}
	d.noted = nil
}

// expireQuestions records the expiry of the open questions of a step. If step is "", it does so for all steps.
func (d *driver) expireQuestions(step, reason string) error {
	if d.asked == 0 {
		return nil
	}
	data, err := json.Marshal(tenon.ExpiredData{Reason: reason})
	if err != nil {
		return tenon.Errorf(tenon.CodeInternal, "run %s: %w", d.id, err)
	}
	names := slices.SortedFunc(maps.Keys(d.steps),
		func(a, b string) int { return int(d.steps[a].seq) - int(d.steps[b].seq) })
	for _, name := range names {
		if s := d.steps[name]; s.asked && (step == "" || strings.HasPrefix(name, step+"/")) {
			if err := d.record(tenon.Event{Step: name, Kind: tenon.EventExpired, Data: data}); err != nil {
				return err
			}
		}
	}
	return nil
}

var _ engine.Journal = journal{}
