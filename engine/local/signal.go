package local

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/engine"
	"github.com/tenonhq/tenon/store"
)

// letter is a signal whose sender waits in this process.
type letter struct {
	id    string
	reply chan outcome // capacity 1
}

type outcome struct {
	event tenon.Event
	err   error
	gone  bool // the driver has ended; try again
}

// ownerPause is how often a sender checks whether an owner in another process has died.
const ownerPause = 250 * time.Millisecond

// ownerSlow is how long a sender waits for an owner in another process before it names that process.
const ownerSlow = 5 * time.Second

// Signal implements [engine.Engine].
func (e *Engine) Signal(ctx context.Context, run string, s engine.Signal) (tenon.Event, error) {
	ctx = store.OwnOnly(ctx)
	if s.ID == "" || s.Kind == "" {
		return tenon.Event{}, tenon.Errorf(tenon.CodeInvalid, "run %s: a signal needs an id and a kind", run)
	}
	if event, decided, err := e.again(ctx, run, s); decided || err != nil {
		return event, err
	}
	if event, decided, err := e.admit(ctx, run, s); decided || err != nil {
		if err != nil { // the same signal, sent at the same time, may have been decided and have ended the run
			if event, decided, again := e.again(ctx, run, s); decided {
				return event, again
			}
		}
		return event, err
	}
	return e.send(ctx, store.Signal{ID: s.ID, Run: run, Kind: s.Kind, Step: s.Step, By: s.By, Data: s.Data,
		Time: e.c.Clock.Now().UTC()}, e.settleAlone)
}

// again looks for a signal that was sent before with the same id. If an event has decided it, it returns that event.
func (e *Engine) again(ctx context.Context, run string, s engine.Signal) (event tenon.Event, decided bool, err error) {
	old, err := e.c.Store.Signal(ctx, s.ID)
	if err != nil {
		return tenon.Event{}, false, nil // a store that cannot be read fails in the next step, too
	}
	if old.Run != run || old.Kind != s.Kind || old.Step != s.Step {
		return tenon.Event{}, false, tenon.Errorf(tenon.CodeConflict,
			"signal %s was sent before with another kind or step", s.ID)
	}
	if old.Seq == 0 {
		return tenon.Event{}, false, nil
	}
	event, err = e.won(ctx, old, old.Seq)
	return event, true, err
}

// admit refuses a signal for which the run does not wait. If an earlier event has decided the signal, it returns that
// event.
func (e *Engine) admit(ctx context.Context, run string, s engine.Signal) (event tenon.Event, decided bool, err error) {
	row, err := e.c.Store.Run(ctx, run)
	if err != nil {
		return tenon.Event{}, false, err
	}
	if s.Step != "" && !slices.ContainsFunc(row.Waiting, func(w tenon.Waiting) bool { return w.Step == s.Step }) {
		won, err := e.c.Store.Settled(ctx, run, s.Step, s.Kind)
		if err == nil {
			event, err = e.event(ctx, run, won.Seq)
			return event, true, err
		}
		if tenon.ErrorCode(err) != tenon.CodeNotFound {
			return tenon.Event{}, false, err
		}
		return tenon.Event{}, false, tenon.Errorf(tenon.CodeConflict, "run %s (%s) does not wait for step %s", run,
			row.State, s.Step)
	}
	if row.State.Ended() && (s.Kind != tenon.EventRetry || row.State != tenon.RunFailed) {
		return tenon.Event{}, false, tenon.Errorf(tenon.CodeConflict, "run %s has ended (%s)", run, row.State)
	}
	if row.Imported != nil {
		return tenon.Event{}, false, tenon.Errorf(tenon.CodeConflict,
			"run %s was imported and cannot be continued; ask in its session: tenon run -s %s", run, row.Session)
	}
	if s.Kind == tenon.EventRetry && row.State != tenon.RunFailed {
		return tenon.Event{}, false, tenon.Errorf(tenon.CodeConflict,
			"run %s (%s) has not failed, so there is nothing to retry", run, row.State)
	}
	return tenon.Event{}, false, nil
}

// Cancel implements [engine.Engine].
func (e *Engine) Cancel(ctx context.Context, run, reason string) error {
	ctx = store.OwnOnly(ctx)
	row, err := e.c.Store.Run(ctx, run)
	if err != nil || row.State.Ended() {
		return err
	}
	data, err := json.Marshal(tenon.CancelData{Reason: reason})
	if err != nil {
		return tenon.Errorf(tenon.CodeInvalid, "run %s: %w", run, err)
	}
	now := e.c.Clock.Now().UTC()
	_, err = e.send(ctx, store.Signal{ID: tenon.NewID("sig", now), Run: run, Kind: tenon.EventCancel, Data: data,
		Time: now}, e.driveToEnd)
	if tenon.ErrorCode(err) == tenon.CodeConflict {
		err = nil // the run ended in the meantime
	}
	if err == nil && e.c.Dispatcher != nil {
		e.release(ctx, run)
	}
	return err
}

// send stores a signal in the inbox and waits until the run's owner has settled it. If the run has no owner, this
// engine takes its lease and calls alone.
func (e *Engine) send(ctx context.Context, s store.Signal,
	alone func(context.Context, *driver) error) (tenon.Event, error) {
	if _, err := e.c.Store.PutSignal(ctx, s); err != nil {
		return tenon.Event{}, err
	}
	for begun, told := time.Now(), false; ; {
		changed := e.c.Store.Changed(ctx)
		got, err := e.c.Store.Signal(ctx, s.ID)
		if err != nil {
			return tenon.Event{}, err
		}
		if got.Seq > 0 { // its owner may have read the inbox first
			if err := e.refusal(s.ID); err != nil {
				return tenon.Event{}, err
			}
			return e.won(ctx, s, got.Seq)
		}
		d, mine, err := e.claim(s.Run, true)
		if err != nil {
			return tenon.Event{}, err
		}
		if mine {
			ok, err := d.acquire(ctx, 0)
			if ok && err == nil {
				err = alone(ctx, d)
			} else {
				e.drop(d)
			}
			if err != nil {
				return tenon.Event{}, err
			}
			if err := e.refusal(s.ID); err != nil {
				return tenon.Event{}, err
			}
			if ok {
				continue // the signal is settled
			}
		} else if o := e.mail(ctx, d, s.ID); !o.gone {
			return o.event, o.err
		} else {
			continue
		}
		if !told && time.Since(begun) >= ownerSlow {
			told = true
			e.nameOwner(s)
		}
		select {
		case <-changed:
		case <-time.After(ownerPause):
		case <-ctx.Done():
			return tenon.Event{}, cancelled(ctx, s.Run)
		}
	}
}

// nameOwner logs the process for which a sender waits.
func (e *Engine) nameOwner(s store.Signal) {
	owner := "another process"
	if h, ok := e.c.Store.(store.LeaseHolders); ok {
		if pid := h.Holder(s.Run); pid > 0 {
			owner = fmt.Sprintf("process %d", pid)
		}
	}
	e.c.Logger.Warn(owner+" works on run "+s.Run+" and has not answered yet; if it hangs, end it: the request is "+
		"stored, and counts when the run resumes", "run", s.Run, "kind", s.Kind)
}

// won returns the event that settled a signal. If the run had ended, or if the core refused the signal, it returns an
// error. Sending the signal again would have the same result.
func (e *Engine) won(ctx context.Context, s store.Signal, seq uint64) (tenon.Event, error) {
	event, err := e.event(ctx, s.Run, seq)
	if err == nil && event.Kind == tenon.EventDone {
		return tenon.Event{}, tenon.Errorf(tenon.CodeConflict, "run %s has ended; the signal %q came too late",
			s.Run, s.Kind)
	}
	if err == nil && (event.Step != s.Step || s.Step == "" && event.Kind != s.Kind) {
		return tenon.Event{}, tenon.Errorf(tenon.CodeConflict, "run %s refused the signal %q after event %d (%s)",
			s.Run, s.Kind, seq, event.Kind)
	}
	return event, err
}

// mail passes a stored signal to the driver of this process and waits for the reply.
func (e *Engine) mail(ctx context.Context, d *driver, id string) outcome {
	l := letter{id: id, reply: make(chan outcome, 1)}
	e.mu.Lock()
	select {
	case <-d.gone:
		e.mu.Unlock()
		return outcome{gone: true}
	default:
	}
	d.letters = append(d.letters, l)
	d.mailed.Store(true)
	e.mu.Unlock()
	d.look()
	select {
	case o := <-l.reply:
		return o
	case <-ctx.Done():
		return outcome{err: cancelled(ctx, d.id)}
	}
}

// settleAlone settles the signals of a run without an owner, and leaves it at rest.
func (e *Engine) settleAlone(ctx context.Context, d *driver) error {
	defer e.drop(d)
	row, err := e.c.Store.Run(ctx, d.id)
	if err != nil {
		return err
	}
	if err := d.load(ctx, row); err != nil {
		return err
	}
	if err := d.readInbox(ctx); err != nil {
		return err
	}
	return d.storeRest(ctx)
}

// storeRest stores a run that is left without an owner. Its row says what the core now waits for.
func (d *driver) storeRest(ctx context.Context) error {
	if d.row.State.Ended() && !d.retried {
		return d.flush(ctx)
	}
	var waits []tenon.Waiting
	state := tenon.RunInputRequired
	for _, c := range d.core.Next() {
		if c.Kind == tenon.CommandWait {
			waits = append(waits, d.waitingFor(c))
		} else {
			state = tenon.RunWorking
		}
	}
	if len(waits) == 0 {
		state = tenon.RunWorking
	}
	d.row.State, d.row.Stop, d.waits = state, "", waits
	return d.flush(ctx)
}

// driveToEnd drives a run without an owner, with a cancel in its inbox, until it has ended.
func (e *Engine) driveToEnd(ctx context.Context, d *driver) error {
	row, err := e.c.Store.Run(ctx, d.id)
	if err != nil {
		e.drop(d)
		return err
	}
	if row.State.Ended() { // cancelled by another caller; the inbox must still be answered
		return e.settleAlone(ctx, d)
	}
	e.mu.Lock()
	d.alone = false
	e.halted.forget(d.id)
	e.mu.Unlock()
	if err := d.open(ctx, &engine.Spec{}); err != nil || d.row.State.Ended() {
		d.failed = err // for a concurrent Start
		e.drop(d)
		return err
	}
	close(d.ready)
	go d.drive()
	select {
	case <-d.gone:
		return nil
	case <-ctx.Done():
		return cancelled(ctx, d.id)
	}
}

// readInbox settles the stored signals of the run.
func (d *driver) readInbox(ctx context.Context) error {
	signals, err := d.e.c.Store.Signals(ctx, d.id)
	if err != nil {
		return err
	}
	for _, s := range signals {
		if _, done := d.taken[s.ID]; done {
			continue
		}
		if err := d.take(ctx, s); err != nil {
			return err
		}
	}
	if len(signals) == 0 && len(d.pending) == 0 { // a late duplicate; its sender still waits
		for _, l := range d.takeLetters() {
			d.answer(ctx, l)
		}
	}
	return nil
}

// take records a signal as an event, or settles it with the earlier event.
func (d *driver) take(ctx context.Context, s store.Signal) error {
	seq, err := d.decided(ctx, s)
	if err != nil {
		return err
	}
	if seq > 0 {
		d.taken[s.ID] = seq
		return nil
	}
	if err := d.record(tenon.Event{Step: s.Step, Kind: s.Kind, Data: s.Data}); err != nil {
		// A bad signal must not stop the run.
		d.e.c.Logger.Warn("the core refused a signal", "run", d.id, "signal", s.ID, "kind", s.Kind, "error", err)
		d.e.refuse(s.ID, tenon.Errorf(tenon.CodeInvalid, "run %s: the signal %q is refused: %w", d.id, s.Kind, err))
		d.taken[s.ID] = d.seq
		return nil
	}
	d.taken[s.ID] = d.seq
	switch s.Kind {
	case tenon.EventRetry:
		d.retried = true
	case tenon.EventCancel:
		if err := d.flush(ctx); err != nil {
			return err
		}
		return d.abandonFlights()
	}
	return nil
}

// maxRefused bounds the refused signals that an engine remembers.
const maxRefused = 1000

// refuse records why the core refused a signal. Senders in this process need the reason, because the store has only the
// number of the event after which the signal was settled.
func (e *Engine) refuse(id string, err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.refused == nil || len(e.refused) >= maxRefused {
		e.refused = map[string]error{}
	}
	e.refused[id] = err
}

// refusal returns the reason why the core refused a signal, or nil if the core did not refuse it.
func (e *Engine) refusal(id string) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.refused[id]
}

// decided returns the number of the event that makes a signal void, or 0 if there is none. It asks the core whether it
// waits for the step at present, because a step may ask again after an answer.
func (d *driver) decided(ctx context.Context, s store.Signal) (uint64, error) {
	switch {
	case s.Step == "" && d.row.State.Ended() && (s.Kind != tenon.EventRetry || d.retried):
		return d.seq, nil
	case s.Step == "":
		return 0, nil
	}
	for _, c := range d.core.Next() {
		if c.Kind != tenon.CommandWait || c.Step != s.Step {
			continue
		}
		if !d.expired(d.waitingFor(c)) {
			return 0, nil
		}
		err := d.expire(s.Step)
		return d.seq, err
	}
	for _, e := range d.pending {
		if e.Step == s.Step && e.Kind == s.Kind {
			return e.Seq, nil
		}
	}
	won, err := d.e.c.Store.Settled(ctx, d.id, s.Step, s.Kind)
	switch {
	case err == nil:
		return won.Seq, nil
	case tenon.ErrorCode(err) != tenon.CodeNotFound:
		return 0, err
	case d.steps[s.Step] != nil:
		return d.steps[s.Step].seq, nil
	}
	return d.seq, nil
}

// takeLetters removes and returns the waiting senders in this process.
func (d *driver) takeLetters() []letter {
	if !d.mailed.Swap(false) {
		return nil
	}
	d.e.mu.Lock()
	defer d.e.mu.Unlock()
	l := d.letters
	d.letters = nil
	return l
}

// answer sends the winning event to a sender. If the signal is not settled yet, the sender is queued again.
func (d *driver) answer(ctx context.Context, l letter) {
	if err := d.e.refusal(l.id); err != nil {
		l.reply <- outcome{err: err}
		return
	}
	s, err := d.e.c.Store.Signal(ctx, l.id)
	switch {
	case err != nil:
		l.reply <- outcome{err: err}
	case s.Seq > 0:
		event, err := d.e.won(ctx, s, s.Seq)
		l.reply <- outcome{event: event, err: err}
	default:
		d.e.mu.Lock()
		d.letters = append(d.letters, l)
		d.mailed.Store(true)
		d.e.mu.Unlock()
		d.look()
	}
}

// event returns one event of a journal.
func (e *Engine) event(ctx context.Context, run string, seq uint64) (tenon.Event, error) {
	events, err := e.c.Store.Events(ctx, run, seq-1, 1)
	if err != nil {
		return tenon.Event{}, err
	}
	if len(events) == 0 {
		return tenon.Event{}, tenon.Errorf(tenon.CodeStore,
			"run %s: event %d, which settled a signal, is missing; put back a backup", run, seq)
	}
	return events[0], nil
}
