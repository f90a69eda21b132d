package host

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"time"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/agent"
	"github.com/tenonhq/tenon/catalog"
	"github.com/tenonhq/tenon/engine"
	"github.com/tenonhq/tenon/store"
	"github.com/tenonhq/tenon/workflow"
)

// doChild has another agent answer, in a run of its own that this step follows.
// The run has the id of the step, so that it is found again after a crash.
func (h *Host) doChild(ctx context.Context, run string, a engine.Attempt, emit func(tenon.Event)) ([]tenon.Event, error) {
	var c agent.ChildCommand
	if err := json.Unmarshal(a.Data, &c); err != nil {
		return nil, tenon.Errorf(tenon.CodeInternal, "step %s: %w", a.Step, err)
	}
	id := run + "/" + a.Step
	row, err := h.store.Run(ctx, id)
	switch {
	case tenon.ErrorCode(err) == tenon.CodeNotFound:
		err = h.startChild(ctx, a.Row, id, &c)
	case err == nil && !row.State.Ended():
		err = h.engine.Start(ctx, engine.Spec{Run: tenon.Run{ID: id}})
	}
	if err != nil {
		if code := tenon.ErrorCode(err); ctx.Err() != nil || code == tenon.CodeStore || code == tenon.CodeInternal {
			return nil, err
		}
		return []tenon.Event{h.failed(a.Step, err, false, 0)}, nil
	}
	return h.followChild(ctx, id, row.Seq, a, emit)
}

// startChild begins the run of an agent that another one called.
func (h *Host) startChild(ctx context.Context, caller tenon.Run, id string, c *agent.ChildCommand) error {
	if c.Server == catalog.WorkflowServer {
		return h.startWorkflowChild(ctx, caller, id, c)
	}
	begin := engine.Spec{}
	spec, snapshot, err := h.childSpec(ctx, caller, c, &begin)
	if err != nil {
		return err
	}
	spec = c.Allowance.Over(spec)
	spec.Depth, spec.MaxDepth, spec.Grants = c.Depth, c.MaxDepth, c.Grants
	row := tenon.Run{ID: id, Session: caller.Session, Principal: caller.Principal, Caller: caller.ID, Core: agent.Version, Agent: c.Agent, Model: spec.Model,
		Title: shorten(spec.Question, titleLen), State: tenon.RunWorking, Created: h.now(), Updated: h.now()}
	begin.Run, begin.Data = row, encode(spec)
	return h.start(ctx, begin, snapshot)
}

// childSpec is what a called run begins with.
func (h *Host) childSpec(ctx context.Context, caller tenon.Run, c *agent.ChildCommand, begin *engine.Spec) (agent.Spec, *catalog.Snapshot, error) {
	if c.Server == catalog.PromptServer {
		spec, err := h.promptSpec(ctx, caller, c)
		return spec, nil, err
	}
	text := message(c.Arguments)
	if strings.TrimSpace(text) == "" {
		return agent.Spec{}, nil, tenon.Errorf(tenon.CodeInvalid, "agent '%s' was called without a message", c.Agent)
	}
	a, err := h.config.Agent(c.Agent)
	if err != nil {
		return agent.Spec{}, nil, err
	}
	q := Question{Text: text, Grant: c.Grant, called: caller.Core == agent.Version}
	if q.Data, err = dataInputs(a, nil); err != nil {
		return agent.Spec{}, nil, tenon.Errorf(tenon.ErrorCode(err), "agents.%s.%w", c.Agent, err)
	}
	q.own = len(q.Data)
	spec, snapshot, _, err := h.agentSpec(ctx, c.Agent, a, q)
	if err == nil && len(q.Data) > 0 {
		err = h.giveData(ctx, q, a, snapshot, &spec, begin)
	}
	return spec, snapshot, err
}

// followChild waits until the run of a called agent has ended, or waits itself for
// a person. What happens in it is passed on live.
func (h *Host) followChild(ctx context.Context, id string, after uint64, a engine.Attempt, emit func(tenon.Event)) ([]tenon.Event, error) {
	start := time.Now()
	for e, err := range h.engine.Events(ctx, id, after) {
		switch {
		case err != nil && ctx.Err() == nil:
			return nil, err
		case err != nil:
		case e.Kind == engine.EventWaiting:
			return []tenon.Event{{Step: a.Step, Kind: agent.EventChild, Data: encode(agent.ChildWaits{Run: id})}}, nil
		case e.Seq > 0 || e.Kind == agent.LiveProgress || e.Kind == agent.LiveChild:
			emit(tenon.Event{Step: a.Step, Kind: agent.LiveChild, Data: encode(e)})
		}
	}
	if ctx.Err() != nil {
		return nil, h.leaveChild(context.WithoutCancel(ctx), id, context.Cause(ctx))
	}
	row, err := h.store.Run(ctx, id)
	if err != nil {
		return nil, err
	}
	if !row.State.Ended() { // it was decided between its rest and our look: look again
		return []tenon.Event{{Step: a.Step, Kind: agent.EventChild, Data: encode(agent.ChildWaits{Run: id})}}, nil
	}
	o, err := h.childOutcome(ctx, id)
	if err != nil {
		return nil, err
	}
	o.Duration = time.Since(start)
	return []tenon.Event{{Step: a.Step, Kind: agent.EventResult, Data: encode(o)}}, nil
}

// leaveChild ends the run of a called agent whose caller was cancelled. One whose
// caller's process only ends stays as it is.
func (h *Host) leaveChild(ctx context.Context, id string, cause error) error {
	caller, _ := callerOf(id)
	events, err := h.store.Events(ctx, caller, 0, 0)
	if err != nil {
		return errors.Join(cause, err)
	}
	for _, e := range events {
		if e.Kind == tenon.EventCancel {
			return errors.Join(cause, h.Cancel(ctx, id, "the run that called this one was cancelled"))
		}
	}
	return cause
}

// childOutcome is what the run of a called agent came to, as its caller sees it.
func (h *Host) childOutcome(ctx context.Context, id string) (agent.Outcome, error) {
	r, err := h.Report(ctx, id)
	if err != nil {
		return agent.Outcome{}, err
	}
	if row, err := h.store.Run(ctx, id); err != nil || row.Core == workflow.Version {
		if err != nil {
			return agent.Outcome{}, err
		}
		return h.workflowOutcome(ctx, id)
	}
	o := agent.Outcome{Spent: &agent.Summary{Turns: r.Turns, ToolCalls: len(r.ToolCalls), Usage: r.Usage}}
	if r.Cost != nil {
		o.Spent.Cost = *r.Cost
	}
	switch {
	case r.State == tenon.RunCompleted && r.Answer != "":
		o.Result = &tenon.Result{Content: []tenon.Content{tenon.Text(r.Answer)}}
		return o, nil
	case r.State == tenon.RunCompleted:
		o.Result = &tenon.Result{Content: []tenon.Content{tenon.Text("(the agent gave no answer)")}}
		return o, nil
	}
	text := "agent '" + r.Agent + "' did not finish"
	if r.Error != nil {
		text += ": " + r.Error.Message
	}
	if r.Answer != "" {
		text += "\n\nIts last words were:\n" + r.Answer
	}
	o.Result = tenon.ErrorResult(text)
	return o, nil
}

// doHandoff finds out what the conversation goes on with under another agent.
func (h *Host) doHandoff(ctx context.Context, run string, a engine.Attempt) ([]tenon.Event, error) {
	var c agent.ChildCommand
	if err := json.Unmarshal(a.Data, &c); err != nil {
		return nil, tenon.Errorf(tenon.CodeInternal, "step %s: %w", a.Step, err)
	}
	name := strings.TrimPrefix(c.Agent, handoffPrefix)
	conf, err := h.config.Agent(name)
	if err != nil {
		return []tenon.Event{h.failed(a.Step, err, false, 0)}, nil
	}
	conf.ResponseFormat = agent.ResponseFormat{} // the run keeps the form that it began with
	spec, snapshot, _, err := h.agentSpec(ctx, name, conf, Question{})
	if err == nil && snapshot != nil {
		_, err = h.store.PutBlob(ctx, run, snapshot.Encode())
	}
	if err != nil {
		if ctx.Err() != nil || tenon.ErrorCode(err) == tenon.CodeStore {
			return nil, err
		}
		return []tenon.Event{h.failed(a.Step, err, false, 0)}, nil
	}
	return []tenon.Event{{Step: a.Step, Kind: agent.EventHandoff, Data: encode(agent.Handoff{Agent: name, Model: spec.Model, System: spec.System,
		Tools: spec.Tools, ToolChoice: spec.ToolChoice, State: spec.State, React: spec.React, Text: "The conversation is handed over to you, " + name + ". Go on with it."})}}, nil
}

// callerOf takes the id of a called run apart: the run that called it, and the step.
func callerOf(id string) (caller, step string) {
	i := strings.LastIndexByte(id, '/')
	if i < 0 {
		return "", ""
	}
	return id[:i], id[i+1:]
}

// Resume goes on with a run that has no owner: one whose process died, one that
// was decided while nobody worked on it, or one that had failed. A run that another
// one called goes on together with that one.
func (h *Host) Resume(ctx context.Context, run string) error {
	row, err := h.store.Run(ctx, run)
	if err != nil {
		return err
	}
	for row.Caller != "" {
		id := row.ID
		if row, err = h.store.Run(ctx, row.Caller); err != nil {
			return err
		}
		if row.State.Ended() {
			return tenon.Errorf(tenon.CodeConflict, "run %s was called by run %s, which has ended (%s)", id, row.ID, row.State)
		}
	}
	if err := h.Give(ctx, row.ID, nil); err != nil {
		return err
	}
	if err := h.wake(ctx, row); err != nil {
		return err
	}
	if row.State == tenon.RunFailed {
		if err := h.store.Release(ctx, row.ID); err != nil { // the budgets are asked again about the steps that failed
			return err
		}
		retry := engine.Signal{ID: tenon.NewID("sig", h.now()), Kind: tenon.EventRetry, By: string(tenon.PrincipalLocal)}
		if _, err := h.engine.Signal(ctx, row.ID, retry); err != nil {
			return err
		}
	}
	return h.engine.Start(ctx, engine.Spec{Run: tenon.Run{ID: row.ID}})
}

// wake has a run, and those that it called, look again after the called ones that
// they wait for.
func (h *Host) wake(ctx context.Context, row tenon.Run) error {
	for _, w := range row.Waiting {
		var a agent.Asking
		if json.Unmarshal(w.Data, &a) != nil || a.Kind != agent.AskChild {
			continue
		}
		child, err := h.store.Run(ctx, a.Run)
		if err != nil {
			return err
		}
		if err := h.wake(ctx, child); err != nil {
			return err
		}
		s := engine.Signal{ID: tenon.NewID("sig", h.now()), Kind: agent.EventWake, Step: w.Step}
		if _, err := h.engine.Signal(ctx, row.ID, s); err != nil {
			return err
		}
	}
	return nil
}

// Cancel asks a run to end, together with the runs that it called.
func (h *Host) Cancel(ctx context.Context, run, reason string) error {
	// The caller first: it calls nobody any more.
	if err := h.engine.Cancel(ctx, run, reason); err != nil {
		return err
	}
	children, err := h.store.Runs(ctx, store.RunFilter{Caller: run, Limit: maxListed})
	if err != nil {
		return err
	}
	var errs []error
	for _, c := range children {
		if !c.State.Ended() {
			errs = append(errs, h.Cancel(ctx, c.ID, "the run that called this one was cancelled"))
		}
	}
	return errors.Join(errs...)
}
