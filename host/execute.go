package host

import (
	"context"
	"encoding/json"
	"slices"
	"strconv"
	"time"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/agent"
	"github.com/tenonhq/tenon/engine"
	"github.com/tenonhq/tenon/internal/patience"
	"github.com/tenonhq/tenon/model"
	"github.com/tenonhq/tenon/policy"
	"github.com/tenonhq/tenon/servers"
	"github.com/tenonhq/tenon/telemetry"
	"github.com/tenonhq/tenon/workflow"
)

// do carries out one command of a core. See [engine.Do].
func (h *Host) do(ctx context.Context, run string, a engine.Attempt, emit func(tenon.Event)) ([]tenon.Event, error) {
	switch a.Kind {
	case agent.CommandModel, agent.CommandFinal:
		return h.doModel(ctx, run, a, emit)
	case agent.CommandReserve:
		return h.doReserve(ctx, run, a)
	case agent.CommandChild:
		return h.doChild(ctx, run, a, emit)
	case agent.CommandHandoff:
		return h.doHandoff(ctx, run, a)
	case agent.CommandCompact:
		return h.doCompact(ctx, run, a)
	case agent.CommandDecide:
		return h.doDecide(ctx, run, a)
	case agent.CommandTool:
		return h.doTool(ctx, run, a, emit)
	case workflow.CommandSQL:
		return h.doSQL(ctx, a)
	case workflow.CommandTable:
		return h.doTable(ctx, a)
	}
	return nil, tenon.Errorf(tenon.CodeInternal, "run %s: step %s wants %q, which this version of tenon cannot do", run, a.Step, a.Kind)
}

// doModel asks the model and records its answer and the calls it led to.
func (h *Host) doModel(ctx context.Context, run string, a engine.Attempt, emit func(tenon.Event)) ([]tenon.Event, error) {
	p, err := h.prompt(ctx, run, a)
	if err != nil {
		return nil, err
	}
	parent := ctx
	if !p.Deadline.IsZero() {
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadline(ctx, p.Deadline)
		defer cancel()
	}
	start := time.Now()
	answer, m, err := h.askModels(ctx, run, a.Step, p, emit)
	r := &answer.Response
	switch {
	case m.Model == nil && tenon.ErrorCode(err) == tenon.CodeStore:
		return nil, err
	case m.Model == nil:
		return []tenon.Event{h.failed(a.Step, err, false, 0)}, nil
	case err != nil && parent.Err() != nil:
		return nil, context.Cause(parent) // we are being closed or cancelled: nothing is known
	case err != nil:
		h.spent(ctx, a, p, use{turns: 1, time: time.Since(start)}, true)
		return []tenon.Event{h.failed(a.Step, err, false, time.Since(start))}, nil
	}
	r.Message = model.DistinctCalls(r.Message)
	h.spent(ctx, a, p, spentOn(r, time.Since(start)), r.Stop == tenon.StopContextFull && len(r.Message.Calls()) == 0)
	h.log.Info("Response received from provider: "+m.Name(), "run", run, "step", a.Step, "stop", string(r.Stop), "duration", time.Since(start))
	calls := r.Message.Calls()
	last := len(calls) == 0 && r.Stop == tenon.StopEnd
	if last {
		holdToSchema(p.Output, &answer)
	}
	if m.check != nil && last && answer.Misfit == "" {
		if err := m.check.Unconsumed(append(slices.Clip(p.Messages), r.Message)); err != nil {
			return []tenon.Event{h.failed(a.Step, err, false, time.Since(start))}, nil
		}
	}
	for _, w := range r.Warnings {
		h.log.Warn(w, "run", run, "step", a.Step, "model", m.Name())
	}
	events := []tenon.Event{{Step: a.Step, Kind: agent.EventModel, Data: encode(answer)}}
	if len(calls) > 0 {
		h.log.Info("Detected "+strconv.Itoa(len(calls))+" tool use(s) in AI response", "run", run, "step", a.Step)
	}
	for i, c := range calls {
		events = append(events, tenon.Event{Step: a.Step + "." + strconv.Itoa(i), Kind: agent.EventProposed, Data: encode(c)})
	}
	return events, nil
}

// prompt is what a command about a model call wants asked.
func (h *Host) prompt(ctx context.Context, run string, a engine.Attempt) (*agent.Prompt, error) {
	if p, ok := a.Local.(*agent.Prompt); ok {
		return p, nil
	}
	s, err := h.state(ctx, run) // the command came over a wire: fold the journal again
	if err != nil {
		return nil, err
	}
	return s.Prompt(), nil
}

// generate runs the stream to its end and passes on what comes as live events.
func (h *Host) generate(ctx context.Context, m tenon.Model, req *tenon.Request, run, step string, emit func(tenon.Event)) (*tenon.Response, error) {
	for d, err := range m.Generate(ctx, req) {
		switch {
		case err != nil:
			return nil, err
		case d.Response != nil:
			return d.Response, nil
		case d.Kind == tenon.DeltaReset:
			h.log.Info("the answer starts over: "+d.Text, "run", run, "step", step, "model", m.Name())
			emit(tenon.Event{Step: step, Kind: engine.LiveReset, Data: encode(engine.Delta{Kind: d.Kind, Text: d.Text})})
		default:
			emit(tenon.Event{Step: step, Kind: engine.LiveDelta, Data: encode(engine.Delta{Kind: d.Kind, Text: d.Text})})
		}
	}
	return nil, tenon.Errorf(tenon.CodeInternal, "model %s ended its stream without an answer", m.Name())
}

// trace is the trace that a server is told of, where traces are sent anywhere.
func (h *Host) trace(run, step string) string {
	if h.config.Telemetry.OTLP == "" {
		return ""
	}
	return telemetry.TraceParent(run, step)
}

// doTool calls a tool and says how it ended.
func (h *Host) doTool(ctx context.Context, run string, a engine.Attempt, emit func(tenon.Event)) ([]tenon.Event, error) {
	c, err := tenon.CommandData[agent.ToolCommand](a.Command)
	if err != nil {
		return nil, err
	}
	if err := h.needFolder(ctx, a.Row); err != nil {
		return []tenon.Event{h.failed(a.Step, err, false, 0)}, nil
	}
	s, ok := h.sets()[c.Server]
	if c.Server == workflow.StepServer {
		if s, err = h.stepTools(ctx, a.Row); err != nil {
			return nil, err
		}
		ok = true
	}
	if !ok {
		err := tenon.Errorf(tenon.CodeUnreachable, "server '%s' of tool '%s' is not configured any more", c.Server, c.Name)
		return []tenon.Event{h.failed(a.Step, err, false, 0)}, nil
	}
	id := policy.ID{Server: c.Server, Remote: c.Remote}
	own, err := h.overlay(ctx, a.Row, c.Server)
	if err != nil && ctx.Err() == nil {
		return []tenon.Event{h.failed(a.Step, err, false, 0)}, nil
	}
	k, key, err := h.cached(ctx, a.Row, c, own)
	switch {
	case err != nil && ctx.Err() != nil:
		return []tenon.Event{{Step: a.Step, Kind: tenon.EventInterrupted}}, nil
	case err != nil:
		return nil, err
	case k != nil:
		return h.hit(ctx, a, c, k)
	case key != "":
		defer h.results.Land(key)
	}
	block := h.law().rules.For(id, a.Row.Agent)
	leave, err := h.gates.enter(ctx, id, policy.Value(block.Concurrency))
	if err != nil { // it was not made, and that is known
		return []tenon.Event{{Step: a.Step, Kind: tenon.EventInterrupted}}, nil
	}
	defer leave()
	parent := ctx
	ctx = servers.WithOverlay(ctx, own)
	// It may have to start the server, which has its own time for that: the tool's is
	// that of the call.
	if err := h.checkCall(ctx, c.Server, c.Remote); err != nil && parent.Err() == nil {
		retry := a.Idempotent && tenon.ErrorCode(err) == tenon.CodeUnreachable
		return []tenon.Event{h.failed(a.Step, err, retry, 0)}, nil
	}
	ctx, limit := patience.WithTimeout(ctx, c.Timeout)
	defer limit.Stop()
	asks := &questioner{h: h, run: run, attempt: &a, command: c, limit: limit}
	h.log.Info("Executing tool: "+c.Name, "run", run, "step", a.Step, "server", c.Server)
	start := time.Now()
	switch {
	case c.View != nil:
		return h.doFind(ctx, a, c)
	case c.Server == dataServer:
		return h.doQuery(ctx, parent, a, c)
	}
	r, err := s.Call(ctx, tenon.Call{
		Tool: c.Remote, Arguments: c.Arguments, Key: run + "/" + a.Step, Trace: h.trace(run, a.Step), Input: c.Input, Ask: asks.ask,
		Progress: func(p tenon.Progress) {
			p.Message = tenon.Visible(h.redactor.Text(p.Message))
			emit(tenon.Event{Step: a.Step, Kind: agent.LiveProgress, Data: encode(p)})
		},
	})
	took := time.Since(start)
	h.called(ctx, a, c, took)
	h.log.Info("Tool "+c.Name+" executed: success="+strconv.FormatBool(err == nil && !r.IsError), "run", run, "step", a.Step, "duration", took)
	switch {
	case err != nil && limit.IsExpired() && parent.Err() == nil:
		err = tenon.Errorf(tenon.CodeTimeout, "tool '%s' of server '%s' timed out after %s", c.Remote, c.Server, c.Timeout)
	case err != nil && parent.Err() != nil && !a.Idempotent:
		err = tenon.Errorf(tenon.CodeUnknown, "the run was stopped while tool '%s' of server '%s' was at work", c.Remote, c.Server)
	case err != nil && parent.Err() != nil:
		return nil, context.Cause(parent)
	}
	if err == nil && r.Input != nil {
		var events []tenon.Event
		if events, err = asks.required(ctx, r.Input); err == nil {
			return events, nil
		}
	}
	if err != nil {
		return h.wentWrong(a, c, err, took), nil
	}
	clean := masked(shown(h.redacted(r)), block.Redact)
	if key != "" {
		h.keep(ctx, a, c, key, clean)
	}
	return h.gave(ctx, a, c, block, clean, took)
}

// gave is the event of a call that came to a result, which is cut where it is too large; the
// rows of such a one become a table.
func (h *Host) gave(ctx context.Context, a engine.Attempt, c *agent.ToolCommand, block policy.Block, r *tenon.Result, took time.Duration) ([]tenon.Event, error) {
	result, whole, err := h.bounded(ctx, a, block, r)
	if err != nil {
		return nil, err
	}
	var tables []tenon.Table
	if whole != nil {
		if tables, err = h.tabular(ctx, a, c, r); err != nil {
			return nil, err
		}
	}
	return []tenon.Event{{Step: a.Step, Kind: agent.EventResult, Data: encode(agent.Outcome{Result: result, Whole: whole, Outputs: tables, Duration: took})}}, nil
}

// wentWrong is the event of a call that came to no result: whether it may be made again hangs on
// what is known of it.
func (h *Host) wentWrong(a engine.Attempt, c *agent.ToolCommand, err error, took time.Duration) []tenon.Event {
	switch code := tenon.ErrorCode(err); {
	case !a.Idempotent && (code == tenon.CodeUnknown || code == tenon.CodeTimeout), c.Resume && code == tenon.CodeUnknown:
		return []tenon.Event{{Step: a.Step, Kind: tenon.EventUnknown, Data: encode(agent.Failure{Error: h.asError(err), Duration: took})}}
	case a.Idempotent && (code == tenon.CodeUnknown || code == tenon.CodeUnreachable):
		return []tenon.Event{h.failed(a.Step, err, true, took)}
	default:
		return []tenon.Event{h.failed(a.Step, err, false, took)}
	}
}

func (h *Host) failed(step string, err error, retry bool, took time.Duration) tenon.Event {
	return tenon.Event{Step: step, Kind: agent.EventFailed, Data: encode(agent.Failure{Error: h.asError(err), Retry: retry, Duration: took})}
}

// encode writes a value of our own types; only raw JSON that was checked when it
// came in is part of them.
func encode(v any) json.RawMessage {
	b, err := json.Marshal(v)
	if err != nil {
		b, _ = json.Marshal(agent.Failure{Error: tenon.Errorf(tenon.CodeInternal, "this event could not be written: %w", err)})
	}
	return b
}
