package executor

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"time"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/agent"
	"github.com/tenonhq/tenon/engine"
	"github.com/tenonhq/tenon/mcp"
	"github.com/tenonhq/tenon/model"
	"github.com/tenonhq/tenon/policy"
)

// Do executes one command of a core; see [engine.Do].
func (x *Executor) Do(ctx context.Context, run string, a engine.Attempt, emit func(tenon.Event)) ([]tenon.Event,
	error) {
	if l := x.lightOf(run); l != nil {
		return l.answer(ctx, a, emit)
	}
	switch a.Kind {
	case agent.CommandModel, agent.CommandFinal:
		return x.doModel(ctx, run, a, emit)
	case agent.CommandReserve:
		return x.doReserve(ctx, run, a)
	case agent.CommandCompact:
		return x.doCompact(ctx, run, a)
	case agent.CommandDecide:
		return x.doDecide(ctx, run, a)
	case agent.CommandTool:
		return x.doTool(ctx, run, a, emit)
	case agent.CommandChild, agent.CommandHandoff:
		return x.doRun(ctx, a, emit)
	}
	if do := x.cfg.Commands[a.Kind]; do != nil {
		return do(ctx, run, a, emit)
	}
	return nil, tenon.Errorf(tenon.CodeInternal, "run %s: step %s wants %q, which this version of tenon cannot do", run,
		a.Step, a.Kind)
}

// doModel sends a prompt to the model. It returns the answer and the proposed calls as events.
func (x *Executor) doModel(ctx context.Context, run string, a engine.Attempt, emit func(tenon.Event)) ([]tenon.Event,
	error) {
	p, err := x.prompt(ctx, run, a)
	if err != nil {
		return nil, err
	}
	var events []tenon.Event
	if a.Kind == agent.CommandModel {
		c, err := x.cfg.Conversations.Refresh(ctx, a.Row, p)
		if err != nil {
			return nil, err
		}
		if c != nil {
			p = p.WithTools(c)
			events = append(events, tenon.Event{Step: a.Step, Kind: agent.EventTools, Data: tenon.EventData(c)})
		}
	}
	names := x.cfg.Models.Candidates(a.Row.Agent, p.Model)
	p.Model = names[0]
	parent := ctx
	if p.Timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, p.Timeout)
		defer cancel()
	}
	start := time.Now()
	var text streamed
	answer, m, err := x.askModels(ctx, a.Row, a.Step, names, p, emit, &text)
	r := &answer.Response
	switch {
	case m.Model == nil && tenon.ErrorCode(err) == tenon.CodeStore:
		return nil, err
	case m.Model == nil:
		return []tenon.Event{x.Failed(a.Step, err, false, 0)}, nil
	case err != nil && parent.Err() != nil:
		return text.stopped(parent, a.Step)
	case err != nil:
		x.spent(ctx, a, p, use{turns: 1, time: time.Since(start)}, true)
		return []tenon.Event{{Step: a.Step, Kind: agent.EventFailed, Data: tenon.EventData(agent.Failure{
			Error: x.cfg.Redactor.Error(err), Duration: time.Since(start), Partial: text.partial()})}}, nil
	}
	r.Message = model.DistinctCalls(r.Message)
	model.RequireCalls(r)
	x.maskItems(r.Message)
	x.maskText(r.Message)
	x.spent(ctx, a, p, spentOn(r, time.Since(start)), r.Stop == tenon.StopContextFull && len(r.Message.Calls()) == 0)
	x.cfg.Logger.Info("Response received from provider: "+m.Name(), "run", run, "step", a.Step, "stop",
		string(r.Stop), "duration", time.Since(start))
	calls := r.Message.Calls()
	last := len(calls) == 0 && r.Stop == tenon.StopEnd
	if last {
		checkOutput(p.Output, &answer)
	}
	if m.Check != nil && last && answer.Misfit == "" {
		if err := m.Check.Unconsumed(append(slices.Clip(p.Messages), r.Message)); err != nil {
			return []tenon.Event{x.Failed(a.Step, err, false, time.Since(start))}, nil
		}
	}
	for _, w := range r.Warnings {
		x.cfg.Logger.Warn(w, "run", run, "step", a.Step, "model", m.Name())
	}
	events = append(events, tenon.Event{Step: a.Step, Kind: agent.EventModel, Data: tenon.EventData(answer)})
	if len(calls) > 0 {
		x.cfg.Logger.Info("Detected "+strconv.Itoa(len(calls))+" tool use(s) in AI response", "run", run, "step",
			a.Step)
	}
	for i, c := range calls {
		events = append(events, tenon.Event{Step: a.Step + "." + strconv.Itoa(i), Kind: agent.EventProposed,
			Data: tenon.EventData(c)})
	}
	return events, nil
}

// prompt returns the prompt of a model command.
func (x *Executor) prompt(ctx context.Context, run string, a engine.Attempt) (*agent.Prompt, error) {
	if p, ok := a.Local.(*agent.Prompt); ok {
		return p, nil
	}
	s, err := x.cfg.Conversations.State(ctx, run) // the command came from another process
	if err != nil {
		return nil, err
	}
	return s.Prompt(), nil
}

// Generate reads a model's stream to its end and emits live events. Errors: errors of the model, internal.
func (x *Executor) Generate(ctx context.Context, m tenon.Model, req *tenon.Request, run, step string,
	emit func(tenon.Event)) (*tenon.Response, error) {
	return x.generate(ctx, m, req, run, step, emit, &streamed{})
}

func (x *Executor) generate(ctx context.Context, m tenon.Model, req *tenon.Request, run, step string,
	emit func(tenon.Event), text *streamed) (*tenon.Response, error) {
	masked := &maskedDeltas{redactor: x.cfg.Redactor, pass: func(d tenon.Delta) {
		text.add(d)
		emit(tenon.Event{Step: step, Kind: engine.LiveDelta, Data: tenon.EventData(engine.Delta{Kind: d.Kind,
			Text: d.Text})})
	}}
	defer masked.end()
	for d, err := range m.Generate(ctx, req) {
		switch {
		case err != nil:
			return nil, err
		case d.Response != nil:
			return d.Response, nil
		case d.Kind == tenon.DeltaReset:
			masked.drop()
			text.reset()
			x.cfg.Logger.Info("the answer starts over: "+d.Text, "run", run, "step", step, "model", m.Name())
			emit(tenon.Event{Step: step, Kind: engine.LiveReset, Data: tenon.EventData(engine.Delta{Kind: d.Kind,
				Text: d.Text})})
		default:
			masked.add(d)
		}
	}
	return nil, tenon.Errorf(tenon.CodeInternal, "model %s ended its stream without an answer", m.Name())
}

// resultEvent returns the event of a call with a result. A result that is too large is shortened, and its rows become
// a table. misfit is the reason why the result does not fit the output schema, or "".
func (x *Executor) resultEvent(ctx context.Context, a engine.Attempt, c *agent.ToolCommand, block policy.Block,
	r *tenon.Result, misfit string, took time.Duration) ([]tenon.Event, error) {
	result, whole, err := x.bounded(ctx, a, c, block, r)
	if err != nil {
		return nil, err
	}
	var tables []tenon.Table
	if whole != nil && !c.Client {
		if tables, err = x.cfg.Tables(ctx, a, c, r); err != nil {
			return nil, err
		}
	}
	return []tenon.Event{outcomeEvent(a, agent.Outcome{Result: result, Whole: whole, Outputs: tables, Misfit: misfit,
		Duration: took})}, nil
}

// failureEvent returns the event of a call without a result. The event says whether the call may be repeated.
func (x *Executor) failureEvent(a engine.Attempt, c *agent.ToolCommand, err error, took time.Duration) []tenon.Event {
	switch code := tenon.ErrorCode(err); {
	case !a.Idempotent && (code == tenon.CodeUnknown || code == tenon.CodeTimeout || errors.Is(err, mcp.ErrAnswered)),
		c.Resume && code == tenon.CodeUnknown:
		return []tenon.Event{{Step: a.Step, Kind: tenon.EventUnknown,
			Data: tenon.EventData(agent.Failure{Error: x.cfg.Redactor.Error(err), Duration: took})}}
	case a.Idempotent && (code == tenon.CodeUnknown || code == tenon.CodeUnreachable):
		if a.Attempt > 1 {
			err = tenon.Errorf(code, "%w; this was attempt %d", err, a.Attempt)
		}
		again := c.Timeout <= 0 || took < c.Timeout/patientParts
		if !again {
			err = tenon.Errorf(code, "%w; the call is not repeated, because it waited %s already", err,
				took.Round(time.Millisecond))
		}
		return []tenon.Event{x.Failed(a.Step, err, again, took)}
	case c.Unsent && code == tenon.CodeUnreachable:
		return []tenon.Event{x.Failed(a.Step, err, c.Timeout <= 0 || took < c.Timeout/patientParts, took)}
	default:
		return []tenon.Event{x.Failed(a.Step, err, false, took)}
	}
}

// patientParts bounds the time of all attempts at a call by its timeout, more or less: an attempt that took longer than
// this part of the timeout is not repeated. Otherwise three attempts would wait three times as long as was allowed.
const patientParts = 2

// Failed returns the event of a failed attempt. retry says that another attempt may succeed.
func (x *Executor) Failed(step string, err error, retry bool, took time.Duration) tenon.Event {
	return tenon.Event{Step: step, Kind: agent.EventFailed,
		Data: tenon.EventData(agent.Failure{Error: x.cfg.Redactor.Error(err), Retry: retry, Duration: took})}
}

// onlyOnce refuses an attempt at an allowed call that was already made. That happens if the store was replaced by an
// older copy, in which the call has not begun. A repeat after a crash has another attempt number and is not refused.
func (x *Executor) onlyOnce(ctx context.Context, a engine.Attempt, c *agent.ToolCommand) error {
	if x.cfg.Attempts == nil || !c.Allowed || a.Attempt == 0 {
		return nil
	}
	fresh, err := x.cfg.Attempts.Attempt(ctx, a.Row.ID, a.Step, a.Attempt)
	if err == nil && !fresh {
		err = tenon.Errorf(tenon.CodeDenied, "tool '%s' of server '%s' was not called: "+
			"this call, which somebody allowed, was made before: "+
			"the store is an older copy; ask again if it is to be made once more", c.Remote, c.Server)
	}
	return err
}
