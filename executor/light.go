package executor

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/agent"
	"github.com/tenonhq/tenon/engine"
	"github.com/tenonhq/tenon/view"
)

// Light is a run of one tool call that is carried out before it is journaled: a call of a client of the gateway that
// the rules allow, that nothing counts and that waits for nobody. It has the same core, decision and executor as a run
// of the engine. Its events are stored afterwards, in one commit. It is never repeated.
//
// If the call lasts, or its server asks something, an engine begins the run while the call is under way
// ([LightConfig.Adopt]). The executor then answers the engine's commands with what was recorded, and the engine's
// attempt ends with the call.
type Light struct {
	x     *Executor
	cfg   LightConfig
	call  tenon.Command // the tool call, after it was decided
	again bool          // the rules allow a repeat

	over     chan struct{} // closed when the call has ended
	moved    chan struct{} // closed when the engine continues the run; the caller then follows that run
	attached chan struct{} // closed when the engine has begun its attempt
	adopting sync.Mutex    // one adoption at a time

	mu      sync.Mutex
	state   lightState
	events  []tenon.Event          // recorded so far
	decided map[bool][]tenon.Event // decisions for the engine; key true: the turn under a rate
	stop    context.CancelCauseFunc
	stopped error             // the reason why the call was stopped before it began
	cancel  *tenon.CancelData // the caller has cancelled the call
	ended   time.Time         // when the call ended with a result that the core has yet to receive; zero otherwise
	left    bool              // the call has ended, and the engine records its end
	attempt engine.Attempt    // of the engine
	emit    func(tenon.Event)
	result  *tenon.Result  // the result for the caller, byte for byte
	large   *agent.Outcome // recorded by its digest
	outcome []tenon.Event  // of the call
	done    tenon.DoneData
}

// LightConfig configures a [Light]. All fields are required.
type LightConfig struct {
	Row  tenon.Run  // the initial row
	Core tenon.Core // of a run without events
	// Adopt makes an engine begin the run and store it. It may be called again after an error.
	Adopt func(ctx context.Context) error
	// Progress receives live events.
	Progress func(tenon.Event)
	// Ended is called once, when the call has ended and no engine records it.
	Ended func(*Light)
	Now   func() time.Time
}

type lightState int

const (
	lightAlone   lightState = iota // nobody else knows the call
	lightAdopted                   // an engine records it
	lightEnded
)

// auditBytes is a size in bytes. Of a larger result, a light call records only the digest.
const auditBytes = 16 << 10

// Light begins a run of one tool call without a journal. It decides about the call and reports whether the call can be
// carried out like this, or was refused. Otherwise nothing has happened, and the call needs a run of the engine.
// Errors: store, cancelled.
func (x *Executor) Light(ctx context.Context, cfg LightConfig) (l *Light, fits bool, err error) {
	l = &Light{x: x, cfg: cfg, emit: cfg.Progress, over: make(chan struct{}), moved: make(chan struct{}),
		attached: make(chan struct{}), decided: map[bool][]tenon.Event{}}
	if err := l.record(tenon.Event{Kind: tenon.EventRun}); err != nil {
		return nil, false, err
	}
	for {
		next := cfg.Core.Next()
		if len(next) != 1 {
			return nil, false, nil
		}
		switch c := next[0]; c.Kind {
		case tenon.CommandDone:
			err := l.end(c)
			close(l.over)
			return l, true, err
		case agent.CommandTool:
			l.call = c
			return l, true, nil
		case engine.CommandDecide:
			events, fits, err := l.decide(ctx, c)
			if err != nil || !fits {
				return nil, false, err
			}
			command, err := tenon.CommandData[agent.DecideCommand](c)
			if err != nil {
				return nil, false, err
			}
			l.decided[command.Admit != nil] = events
			if err := l.record(events...); err != nil {
				return nil, false, err
			}
		default:
			return nil, false, nil // the call begins another run, or waits for something
		}
	}
}

// decide decides about the call, or waits for its turn under a rate.
func (l *Light) decide(ctx context.Context, c tenon.Command) (events []tenon.Event, fits bool, err error) {
	command, err := tenon.CommandData[agent.DecideCommand](c)
	if err != nil {
		return nil, false, err
	}
	a := engine.Attempt{Command: c, Attempt: 1, Row: l.cfg.Row}
	if command.Admit != nil {
		events, err = l.turn(ctx, a, command.Admit)
		return events, true, err
	}
	if len(charges(l.x.accounts(l.cfg.Row, command.Budgets), countedUnits, use{}, false)) > 0 {
		return nil, false, nil
	}
	d, _, err := l.x.judge(ctx, a, command)
	switch {
	case err != nil:
		return nil, false, err
	case d.Verdict == tenon.Ask, d.Verdict == tenon.Allow && (d.By != agent.ByPolicy || d.Kind != "" ||
		d.MaxSession > 0 || d.New != ""):
		return nil, false, nil
	}
	l.again, d.Idempotent = d.Idempotent, false // the call is not repeated
	return []tenon.Event{{Step: c.Step, Kind: agent.EventProposed, Local: &command.Call},
		{Step: c.Step, Kind: agent.EventDecided, Local: &d}}, true, nil
}

// countedUnits are the units of budgets that count a call.
var countedUnits = []string{"tool_calls", "cost", "time"}

// turn waits until the rate limit of the tool permits the call.
func (l *Light) turn(ctx context.Context, a engine.Attempt, c *agent.Admission) ([]tenon.Event, error) {
	events, err := l.x.admit(ctx, a, c)
	if err != nil {
		return nil, err
	}
	for i := range events {
		out, err := view.Try[agent.Admitted](events[i])
		if err != nil {
			return nil, err
		}
		if out.Wait <= 0 || out.Refused != "" {
			continue
		}
		select {
		case <-time.After(out.Wait):
		case <-ctx.Done():
			return nil, tenon.Errorf(tenon.CodeCancelled, "step %s: %w", a.Step, context.Cause(ctx))
		}
		events[i].Data = tenon.EventData(agent.Admitted{})
	}
	return events, nil
}

// record applies events to the core. The caller holds the lock, or nobody else knows l.
func (l *Light) record(events ...tenon.Event) error {
	return l.recordAt(l.cfg.Now(), events...)
}

// recordAt is record for events of a time.
func (l *Light) recordAt(now time.Time, events ...tenon.Event) error {
	for _, e := range events {
		e.Run, e.Seq, e.Time = l.cfg.Row.ID, uint64(len(l.events))+1, now.UTC()
		if err := l.cfg.Core.Apply(e); err != nil {
			return err
		}
		l.events = append(l.events, e)
	}
	return nil
}

// end ends the run. The caller holds the lock, or nobody else knows l.
func (l *Light) end(c tenon.Command) error {
	if err := l.recordEnd(l.cfg.Now(), c); err != nil {
		return err
	}
	l.state = lightEnded
	l.cfg.Ended(l)
	return nil
}

// recordEnd records the end of the run. The caller holds the lock, or nobody else knows l.
func (l *Light) recordEnd(now time.Time, c tenon.Command) error {
	done, err := tenon.CommandData[tenon.DoneData](c)
	if err != nil {
		return err
	}
	l.done = *done
	return l.recordAt(now, tenon.Event{Step: c.Step, Kind: tenon.EventDone, Data: c.Data, Local: done})
}

// IsDecided reports whether the call was refused, so that there is nothing to carry out.
func (l *Light) IsDecided() bool { return l.call.Kind == "" }

// Carry carries out the call, with the values of ctx. It returns when the call has ended. Call it once.
func (l *Light) Carry(ctx context.Context) {
	ctx, stop := context.WithCancelCause(context.WithoutCancel(ctx))
	defer stop(nil)
	started := tenon.Event{Step: l.call.Step, Kind: tenon.EventStarted, Attempt: 1,
		Local: &tenon.StartedData{Kind: l.call.Kind}}
	l.mu.Lock()
	l.stop = stop
	if l.stopped != nil {
		stop(l.stopped)
	}
	err := l.record(started)
	l.mu.Unlock()
	var events []tenon.Event
	if err == nil {
		a := engine.Attempt{Command: l.call, Attempt: 1, Row: l.cfg.Row, Journal: lightJournal{l}}
		events, err = l.x.doTool(ctx, l.cfg.Row.ID, a, l.live)
	}
	if l.finish(ctx, events, err) {
		l.follow()
	}
	close(l.over)
}

// follow tells the caller to follow the run, which needs more steps. First it waits for an adoption in progress,
// because until then the run is not stored and nobody can follow it. If the adoption fails, follow ends the call
// itself.
func (l *Light) follow() {
	l.adopting.Lock()
	defer l.adopting.Unlock()
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.state == lightAdopted {
		l.move()
	}
}

// Stop ends the call. Its outcome may then be unknown.
func (l *Light) Stop(cause error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.stop == nil {
		l.stopped = cause
		return
	}
	l.stop(cause)
}

// Cancel ends the call because its caller no longer wants it, which the run records. It returns false and does nothing
// if an engine records the call: then the run must be cancelled. It waits for an adoption in progress.
func (l *Light) Cancel(reason string) bool {
	l.adopting.Lock()
	defer l.adopting.Unlock()
	l.mu.Lock()
	if l.state == lightAdopted {
		l.mu.Unlock()
		return false
	}
	l.cancel = &tenon.CancelData{Reason: reason}
	l.mu.Unlock()
	l.Stop(errors.New(reason))
	return true
}

func (l *Light) live(e tenon.Event) {
	l.mu.Lock()
	emit := l.emit
	l.mu.Unlock()
	emit(e)
}

// finish ends the run with the outcome of the call, unless an engine records the outcome. It reports whether that
// engine's run needs more steps.
func (l *Light) finish(ctx context.Context, events []tenon.Event, err error) (more bool) {
	if err != nil { // the call may have been made
		events = []tenon.Event{{Kind: tenon.EventUnknown,
			Data: tenon.EventData(agent.Failure{Error: l.x.cfg.Redactor.Error(err)})}}
	}
	again := false
	for i := range events {
		events[i].Step, events[i].Attempt = cmp.Or(events[i].Step, l.call.Step), 1
		if events[i].Kind == agent.EventFailed && l.again {
			f, err := view.Try[agent.Failure](events[i])
			again = err == nil && tenon.ErrorCode(f.Error) == tenon.CodeUnreachable // it did not arrive
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.outcome = events
	switch {
	case l.state == lightAdopted:
		written(events)
		return l.applied(events)
	case again && l.cancel == nil:
		l.handOver(ctx)
	case len(events) == 1 && events[0].Kind == agent.EventResult && l.result != nil:
		// The caller need not wait for the core, because a result always ends the run.
		l.state, l.ended = lightEnded, l.cfg.Now()
		l.cfg.Ended(l)
	default:
		l.endAlone(ctx)
	}
	return false
}

// settle gives the core the result with which the call ended, and records the end of the run. The caller holds the
// lock.
func (l *Light) settle() {
	if l.ended.IsZero() {
		return
	}
	err := l.recordAt(l.ended, l.outcome...)
	if c, ok := l.doneCommand(); err == nil && ok {
		err = l.recordEnd(l.ended, c)
	} else if err == nil {
		err = tenon.Errorf(tenon.CodeInternal, "run %s: it does not end with its result", l.cfg.Row.ID)
	}
	if err != nil {
		l.done = tenon.DoneData{State: tenon.RunFailed, Stop: tenon.StopError, Error: l.x.cfg.Redactor.Error(err)}
	}
	l.ended = time.Time{}
}

// applied passes the outcome of an adopted call to the light call's own core, so that the caller receives the result.
// It reports whether the run needs more steps. The caller holds the lock.
func (l *Light) applied(events []tenon.Event) (more bool) {
	l.left = true
	if l.record(events...) != nil {
		return true // the engine reports it
	}
	c, ok := l.doneCommand()
	if done, err := tenon.CommandData[tenon.DoneData](c); ok && err == nil {
		l.done = *done
	}
	return !ok
}

// doneCommand returns the command that ends the run, false if the run has not ended.
func (l *Light) doneCommand() (tenon.Command, bool) {
	next := l.cfg.Core.Next()
	if len(next) != 1 || next[0].Kind != tenon.CommandDone {
		return tenon.Command{}, false
	}
	return next[0], true
}

// endAlone ends the run with the outcome of the call. If the run does not end with it, because the server needs input,
// an engine continues the run. The caller holds the lock.
func (l *Light) endAlone(ctx context.Context) {
	events := l.outcome
	if l.cancel == nil && slices.ContainsFunc(events, func(e tenon.Event) bool {
		return e.Kind == tenon.EventInterrupted
	}) {
		l.cancel = &tenon.CancelData{Reason: context.Cause(ctx).Error()}
	}
	if l.cancel != nil { // before the outcome, as an engine records it
		events = append([]tenon.Event{{Kind: tenon.EventCancel, Data: tenon.EventData(l.cancel)}}, events...)
	}
	err := l.record(events...)
	if err == nil {
		if c, ok := l.doneCommand(); ok {
			if err = l.end(c); err == nil {
				return
			}
		} else {
			l.mu.Unlock()
			err = l.Adopt(ctx)
			l.mu.Lock()
			if err == nil {
				l.move()
				return
			}
		}
	}
	l.fail(err)
}

// fail ends a run whose outcome can be recorded neither by the core nor by an engine. The caller holds the lock.
func (l *Light) fail(err error) {
	l.state, l.result = lightEnded, nil
	l.done = tenon.DoneData{State: tenon.RunFailed, Stop: tenon.StopError, Error: l.x.cfg.Redactor.Error(err)}
	l.cfg.Ended(l)
}

// handOver makes an engine repeat the call from the start. It is used if the call did not reach the server and the
// rules permit a repeat. The caller holds the lock.
func (l *Light) handOver(ctx context.Context) {
	l.state = lightEnded
	if err := l.cfg.Adopt(context.WithoutCancel(ctx)); err != nil {
		l.endAlone(ctx)
		return
	}
	l.move()
}

// move tells the caller to follow the run. The caller holds the lock.
func (l *Light) move() {
	select {
	case <-l.moved:
	default:
		close(l.moved)
	}
}

// Wait returns the result of the call when it has ended. Moved reports that the engine continues the run, which the
// caller then follows. Errors: the error of the run; cancelled.
func (l *Light) Wait(ctx context.Context) (result *tenon.Result, moved bool, err error) {
	select {
	case <-l.moved:
		return nil, true, nil
	case <-l.over:
	case <-ctx.Done():
		return nil, false, tenon.Errorf(tenon.CodeCancelled, "the call was cancelled: %w", context.Cause(ctx))
	}
	select {
	case <-l.moved:
		return nil, true, nil
	default:
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.done.Error != nil {
		return nil, false, l.done.Error
	}
	return l.result, false, nil
}
