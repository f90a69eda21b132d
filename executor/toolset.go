package executor

import (
	"context"
	"errors"
	"strconv"
	"time"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/agent"
	"github.com/tenonhq/tenon/engine"
	"github.com/tenonhq/tenon/internal/patience"
	"github.com/tenonhq/tenon/mcp"
	"github.com/tenonhq/tenon/pins"
	"github.com/tenonhq/tenon/policy"
	"github.com/tenonhq/tenon/servers"
)

// Toolset offers tools and carries out steps of runs that call them. [Plain] makes one of tools that only return a
// result and need nothing from the run. Package host has the others: tools of tenon that begin other runs, or read
// data of the run.
type Toolset interface {
	// Tools is the method of [tenon.Toolset].
	Tools(ctx context.Context) ([]tenon.Tool, error)
	// Call carries out a step. It returns events that end the attempt or make the step wait; see [engine.Do].
	Call(ctx context.Context, s *Step) ([]tenon.Event, error)
}

// Step is a step of a run that calls a tool.
type Step struct {
	engine.Attempt
	Emit func(tenon.Event) // emits live events

	x      *Executor
	tool   *agent.ToolCommand // nil if the step begins another run
	block  policy.Block
	key    string          // key of the result in the cache
	limit  *patience.Limit // of the tool's time
	parent context.Context // without the limit
}

// errKind is the error of a call if its server's tools were of another kind at the time of the decision.
var errKind = tenon.Errorf(tenon.CodeInternal, "the call was decided about as one of a tool of another kind; call the "+
	"tool again")

// Tool returns the command of a call. Errors: internal (the step begins another run).
func (s *Step) Tool() (*agent.ToolCommand, error) {
	if s.tool == nil {
		return nil, errKind
	}
	return s.tool, nil
}

// Child returns the command of a step that begins another run or hands the conversation over. Errors: internal.
func (s *Step) Child() (*agent.ChildCommand, error) {
	if s.tool != nil {
		return nil, errKind
	}
	return tenon.CommandData[agent.ChildCommand](s.Command)
}

// Stopped returns the reason why the run was stopped, or nil if it was not. The tool's timeout does not stop the run.
func (s *Step) Stopped() error { return context.Cause(s.parent) }

// doRun carries out a call that begins another run or hands the conversation over.
func (x *Executor) doRun(ctx context.Context, a engine.Attempt, emit func(tenon.Event)) ([]tenon.Event, error) {
	c, err := tenon.CommandData[agent.ChildCommand](a.Command)
	if err != nil {
		return nil, err
	}
	set, err := x.cfg.Tools.Toolset(a.Row.ID, c.Server, c.Name)
	if err != nil {
		return []tenon.Event{x.Failed(a.Step, err, false, 0)}, nil
	}
	return carryOut(ctx, set, &Step{Attempt: a, Emit: emit, x: x, parent: ctx})
}

// carryOut makes a toolset carry out a step. If the toolset expects a step of another kind, the step fails.
func carryOut(ctx context.Context, set Toolset, s *Step) ([]tenon.Event, error) {
	events, err := set.Call(ctx, s)
	if errors.Is(err, errKind) {
		return []tenon.Event{s.x.Failed(s.Step, err, false, 0)}, nil
	}
	return events, err
}

// doTool calls a tool.
func (x *Executor) doTool(ctx context.Context, run string, a engine.Attempt, emit func(tenon.Event)) ([]tenon.Event,
	error) {
	c, err := tenon.CommandData[agent.ToolCommand](a.Command)
	if err != nil {
		return nil, err
	}
	if err := x.cfg.Tools.Ready(ctx, a.Row); err != nil {
		return []tenon.Event{x.Failed(a.Step, err, false, 0)}, nil
	}
	if name := x.cfg.Tools.ServerFor(c.Server, c.Target); name != c.Server {
		here := *c
		here.Server = name
		c = &here
	}
	set, err := x.cfg.Tools.Toolset(a.Row.ID, c.Server, c.Name)
	if err != nil {
		return []tenon.Event{x.Failed(a.Step, err, false, 0)}, nil
	}
	id, err := x.cfg.Tools.Identify(ctx, a.Row.ID, c.Server, c.Remote)
	if err != nil {
		return nil, err
	}
	if err := id.Check(c.Server, c.Remote, c.Target); err != nil {
		return []tenon.Event{x.Failed(a.Step, err, false, 0)}, nil
	}
	block := x.cfg.Rules.Ruleset().Layers.For(id.ID, a.Row.Agent)
	own, err := x.cfg.Tools.Overlay(ctx, a.Row, c.Server)
	if err != nil && ctx.Err() == nil {
		return []tenon.Event{x.Failed(a.Step, err, false, 0)}, nil
	}
	k, key, err := x.cached(ctx, a.Row, c, own)
	switch {
	case err != nil && ctx.Err() != nil:
		return []tenon.Event{{Step: a.Step, Kind: tenon.EventInterrupted}}, nil
	case err != nil:
		return nil, err
	case k != nil:
		return x.hit(ctx, a, c, block, k)
	case key != "":
		defer x.results.Land(key)
	}
	leave, err := x.gates.enter(ctx, id.ID, policy.Value(block.Concurrency))
	if err != nil { // the call was not made
		return []tenon.Event{{Step: a.Step, Kind: tenon.EventInterrupted}}, nil
	}
	defer leave()
	parent := ctx
	ctx = servers.WithOverlay(ctx, own)
	if mcp.CallerOf(ctx) == nil && x.cfg.Caller != nil {
		if caller := x.cfg.Caller(run); caller != nil {
			ctx = mcp.WithCaller(ctx, caller)
		}
	}
	// This may start the server, which has its own timeout. So do it before the tool's timeout begins.
	call := pins.Call{Server: c.Server, Remote: c.Remote, New: c.New, By: a.Row.Owner()}
	if err := x.cfg.Pins.CheckCall(ctx, call); err != nil && parent.Err() == nil {
		retry := (a.Idempotent || c.Unsent) && tenon.ErrorCode(err) == tenon.CodeUnreachable
		return []tenon.Event{x.Failed(a.Step, err, retry, 0)}, nil
	}
	if err := x.onlyOnce(ctx, a, c); err != nil {
		return []tenon.Event{x.Failed(a.Step, err, false, 0)}, nil
	}
	ctx, limit := patience.WithProgress(ctx, c.Timeout, block.TimeoutProgress)
	defer limit.Stop()
	x.cfg.Logger.Info("Executing tool: "+c.Name, "run", run, "step", a.Step, "server", c.Server)
	return carryOut(ctx, set, &Step{Attempt: a, Emit: emit, x: x, tool: c, block: block, key: key, limit: limit,
		parent: parent})
}

// Plain returns a toolset for tools that are called in the same way in a run and outside of one.
func Plain(t tenon.Toolset) Toolset { return plain{t} }

type plain struct{ set tenon.Toolset }

func (p plain) Tools(ctx context.Context) ([]tenon.Tool, error) { return p.set.Tools(ctx) }

// Call calls the tool, and masks, bounds and keeps its result.
func (p plain) Call(ctx context.Context, s *Step) ([]tenon.Event, error) {
	c, err := s.Tool()
	if err != nil {
		return nil, err
	}
	x, a, run, step := s.x, s.Attempt, s.Row.ID, s.Step
	asks := &questioner{x: x, run: run, attempt: &a, command: c, limit: s.limit, caller: mcp.CallerOf(ctx)}
	start := time.Now()
	r, err := p.set.Call(ctx, tenon.Call{
		Tool: c.Remote, Arguments: c.Arguments, Key: run + "/" + step, Trace: x.cfg.Trace(run, step),
		Input: c.Input, Ask: asks.ask,
		Progress: func(p tenon.Progress) {
			s.limit.Progress()
			p.Message = tenon.Visible(x.cfg.Redactor.Text(p.Message))
			s.Emit(tenon.Event{Step: step, Kind: agent.LiveProgress, Data: tenon.EventData(p)})
		},
	})
	took := time.Since(start)
	x.called(ctx, a, c, took)
	x.cfg.Logger.Info("Tool "+c.Name+" executed: success="+strconv.FormatBool(err == nil && !r.IsError), "run", run,
		"step", step, "duration", took)
	stopped := s.Stopped()
	switch {
	case err != nil && s.limit.IsExpired() && stopped == nil:
		err = tenon.Errorf(tenon.CodeTimeout, "tool '%s' of server '%s' timed out after %s; raise %s if it "+
			"needs longer", c.Remote, c.Server, s.limit.Length(),
			x.cfg.TimeoutKey(c.Server, c.Remote, a.Row.Agent))
	case err != nil && stopped != nil && !a.Idempotent:
		err = tenon.Errorf(tenon.CodeUnknown, "the run was stopped while tool '%s' of server '%s' was at work",
			c.Remote, c.Server)
	case err != nil && stopped != nil:
		return nil, stopped
	}
	if err == nil && r.Input != nil {
		var events []tenon.Event
		if events, err = asks.required(ctx, r.Input); err == nil {
			return events, nil
		}
	}
	if err != nil {
		return x.failureEvent(a, c, maskedError(err, s.block.Redact), took), nil
	}
	masked := x.cfg.Redactor.Result(r)
	shown := tenon.VisibleResult(masked)
	if caller := mcp.CallerOf(ctx); caller != nil && caller.Original != nil && shown != masked {
		caller.Original(policy.MaskResult(masked, s.block.Redact))
	}
	clean := policy.MaskResult(shown, s.block.Redact)
	misfit := x.misfit(ctx, run, c, s.block, r)
	switch {
	case misfit != "" && s.block.Results == policy.ResultsStrict:
		clean = refusedResult(c, misfit)
	case misfit == "" && s.key != "":
		x.keep(ctx, a, c, s.key, clean)
	}
	return x.resultEvent(ctx, a, c, s.block, clean, misfit, took)
}
