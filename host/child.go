package host

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/agent"
	"github.com/tenonhq/tenon/catalog"
	"github.com/tenonhq/tenon/engine"
	"github.com/tenonhq/tenon/executor"
	"github.com/tenonhq/tenon/store"
	"github.com/tenonhq/tenon/view"
	"github.com/tenonhq/tenon/workflow"
)

// startChild starts the run of a called agent or workflow. Its id is given.
type startChild func(ctx context.Context, caller tenon.Run, id string, c *agent.ChildCommand) error

// doChild starts another run and follows it. The run's id is made of the step, so that the run is found again after a
// crash.
func (h *Host) doChild(ctx context.Context, s *executor.Step, start startChild) ([]tenon.Event, error) {
	c, err := s.Child()
	if err != nil {
		return nil, err
	}
	id := tenon.ChildRun(s.Row.ID, s.Step)
	row, err := h.store.Run(ctx, id)
	switch {
	case tenon.ErrorCode(err) == tenon.CodeNotFound:
		now := h.identify(c.Server, c.Agent)
		if err = now.Check(c.Server, c.Agent, c.Target); err == nil {
			err = start(ctx, s.Row, id, c)
		}
	case err == nil && !row.State.Ended():
		err = h.engine.Start(ctx, engine.Spec{Run: tenon.Run{ID: id}})
	}
	if err != nil {
		if code := tenon.ErrorCode(err); ctx.Err() != nil || code == tenon.CodeStore || code == tenon.CodeInternal ||
			errors.Is(err, tenon.ErrClosing) {
			return nil, err
		}
		return []tenon.Event{h.executor.Failed(s.Step, err, false, 0)}, nil
	}
	return h.followChild(ctx, id, row.Seq, s)
}

// childSpec makes the spec and the tool snapshot of a called run. The snapshot is nil if the run has no tools. It may
// add to begin.
type childSpec func(ctx context.Context, caller tenon.Run, c *agent.ChildCommand, begin *engine.Spec) (agent.Spec,
	*catalog.Snapshot, error)

// startAgent starts runs of the agent core that others call.
func (h *Host) startAgent(of childSpec) startChild {
	return func(ctx context.Context, caller tenon.Run, id string, c *agent.ChildCommand) error {
		begin := engine.Spec{}
		spec, snapshot, err := of(ctx, caller, c, &begin)
		if err != nil {
			return err
		}
		spec = c.Allowance.Over(spec)
		spec.Depth, spec.MaxDepth, spec.Grants = c.Depth, c.MaxDepth, c.Grants
		row := tenon.Run{ID: id, Session: caller.Session, Principal: caller.Principal, Caller: caller.ID,
			Core: agent.Version, Agent: c.Agent, Model: spec.Model,
			Title: tenon.Shorten(h.redactor.Text(spec.Question), titleLen), State: tenon.RunWorking,
			Created: h.now(), Updated: h.now()}
		begin.Run, begin.Data = row, encode(spec)
		return h.start(ctx, begin, snapshot)
	}
}

// agentChild is the [childSpec] of agents of the configuration.
func (h *Host) agentChild(ctx context.Context, caller tenon.Run, c *agent.ChildCommand,
	begin *engine.Spec) (agent.Spec, *catalog.Snapshot, error) {
	text := message(c.Arguments)
	if strings.TrimSpace(text) == "" {
		return agent.Spec{}, nil, tenon.Errorf(tenon.CodeInvalid, "agent '%s' was called without a message", c.Agent)
	}
	if err := h.childInScope(ctx, caller, c); err != nil {
		return agent.Spec{}, nil, err
	}
	a, err := h.config.Agent(c.Agent)
	if err != nil {
		return agent.Spec{}, nil, err
	}
	q := Question{Text: text, Grant: c.Grant, called: caller.Core == agent.Version}
	var done func()
	if q.tables, done, err = h.dataInputs(a, nil); err != nil {
		return agent.Spec{}, nil, tenon.Errorf(tenon.ErrorCode(err), "agents.%s.%w", c.Agent, err)
	}
	q.own = len(q.tables)
	spec, snapshot, _, err := h.agentSpec(ctx, c.Agent, a, q)
	if err == nil && len(q.tables) > 0 {
		err = h.giveData(ctx, q, a, snapshot, &spec, begin)
	}
	late := begin.Late
	if late == nil {
		done()
		return spec, snapshot, err
	}
	begin.Late = func(ctx context.Context, run string) error {
		defer done()
		return late(ctx, run)
	}
	return spec, snapshot, err
}

// followChild waits until the run of a called agent has ended or waits for a person. It passes on the run's events
// live.
func (h *Host) followChild(ctx context.Context, id string, after uint64, s *executor.Step) ([]tenon.Event, error) {
	start := time.Now()
	for e, err := range h.engine.Events(ctx, id, after) {
		switch {
		case err != nil && ctx.Err() == nil:
			return nil, err
		case err != nil:
		case e.Kind == engine.EventWaiting:
			return []tenon.Event{{Step: s.Step, Kind: agent.EventChild, Data: encode(agent.ChildWaits{Run: id})}}, nil
		case e.Seq > 0 || e.Kind == agent.LiveProgress || e.Kind == agent.LiveChild:
			s.Emit(tenon.Event{Step: s.Step, Kind: agent.LiveChild, Data: encode(e)})
		}
	}
	if ctx.Err() != nil {
		return nil, h.leaveChild(context.WithoutCancel(ctx), id, context.Cause(ctx))
	}
	row, err := h.store.Run(ctx, id)
	if err != nil {
		return nil, err
	}
	if !row.State.Ended() { // the run got a decision after it had stopped, so it continues
		return []tenon.Event{{Step: s.Step, Kind: agent.EventChild, Data: encode(agent.ChildWaits{Run: id})}}, nil
	}
	o, err := h.childOutcome(ctx, id)
	if err != nil {
		return nil, err
	}
	o.Duration = time.Since(start)
	return []tenon.Event{{Step: s.Step, Kind: agent.EventResult, Data: encode(o)}}, nil
}

// leaveChild cancels the run of a called agent if its caller was cancelled. If only the caller's process ends, the run
// stays as it is.
func (h *Host) leaveChild(ctx context.Context, id string, cause error) error {
	caller, _ := tenon.ParentRun(id)
	events, err := h.store.Events(ctx, caller, 0, 0)
	if err != nil {
		return errors.Join(cause, err)
	}
	for _, e := range events {
		if e.Kind == tenon.EventCancel {
			return errors.Join(cause, h.Runs().Cancel(ctx, id, "the run that called this one was cancelled"))
		}
	}
	return cause
}

// childOutcome returns the outcome of a called agent's run for its caller.
func (h *Host) childOutcome(ctx context.Context, id string) (agent.Outcome, error) {
	r, err := h.Runs().Open(id).Report(ctx)
	if err != nil {
		return agent.Outcome{}, err
	}
	if row, err := h.store.Run(ctx, id); err != nil || row.Core == workflow.Version {
		if err != nil {
			return agent.Outcome{}, err
		}
		return h.flows.Outcome(ctx, id)
	}
	o := agent.Outcome{Spent: &agent.Summary{Turns: r.Turns, ToolCalls: len(r.ToolCalls), Usage: r.Tokens(),
		Unmetered: r.Unmetered}}
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
	o.Unknown = slices.ContainsFunc(r.ToolCalls, func(c view.Call) bool { return c.Outcome == view.CallUnknown })
	return o, nil
}

// doHandoff determines the spec with which the conversation continues under another agent.
func (h *Host) doHandoff(ctx context.Context, s *executor.Step) ([]tenon.Event, error) {
	c, err := s.Child()
	if err != nil {
		return nil, err
	}
	name := strings.TrimPrefix(c.Agent, handoffPrefix)
	conf, err := h.config.Agent(name)
	if err != nil {
		return []tenon.Event{h.executor.Failed(s.Step, err, false, 0)}, nil
	}
	conf.ResponseFormat = agent.ResponseFormat{} // the run keeps its initial format
	spec, snapshot, _, err := h.agentSpec(ctx, name, conf, Question{})
	if err == nil && snapshot != nil {
		_, err = h.store.PutBlob(ctx, s.Row.ID, snapshot.Encode())
	}
	if err != nil {
		if ctx.Err() != nil || tenon.ErrorCode(err) == tenon.CodeStore {
			return nil, err
		}
		return []tenon.Event{h.executor.Failed(s.Step, err, false, 0)}, nil
	}
	state, err := execution{h}.host.state(ctx, s.Row.ID)
	if err != nil {
		return nil, err
	}
	warnings := h.models.dropped(state.Spec().Sampling, &spec)
	for _, w := range warnings {
		h.log.Warn(w, "run", s.Row.ID, "step", s.Step)
	}
	return []tenon.Event{{Step: s.Step, Kind: agent.EventHandoff,
		Data: encode(agent.Handoff{Warnings: warnings, Agent: name, Model: spec.Model, System: spec.System,
			Tools: spec.Tools, Excluded: spec.Excluded,
			ToolChoice: spec.ToolChoice, State: spec.State, React: spec.React, Settings: spec.Settings,
			Text: "The conversation is handed over to you, " + name + ". Go on with it."})}}, nil
}

func (h runsHandle) Resume(ctx context.Context, run string) error {
	ctx = store.OwnOnly(ctx)
	row, err := h.host.store.Run(ctx, run)
	if err != nil {
		return err
	}
	for row.Caller != "" {
		id := row.ID
		if row, err = h.host.store.Run(ctx, row.Caller); err != nil {
			return err
		}
		if row.State.Ended() {
			return tenon.Errorf(tenon.CodeConflict, "run %s was called by run %s, which has ended (%s)", id, row.ID,
				row.State)
		}
	}
	if err := h.host.Service().Callers().SetCredentials(ctx, row.ID, nil); err != nil {
		return err
	}
	if err := h.host.wake(ctx, row); err != nil {
		return err
	}
	if row.State == tenon.RunFailed {
		if err := h.host.store.Release(ctx, row.ID); err != nil { // the failed steps run again and are charged again
			return err
		}
		retry := engine.Signal{ID: tenon.NewID("sig", h.host.now()), Kind: tenon.EventRetry,
			By: string(tenon.PrincipalLocal)}
		if _, err := h.host.engine.Signal(ctx, row.ID, retry); err != nil {
			return err
		}
	}
	return h.host.driveOn(ctx, row)
}

// driveOn makes this process work on a run, unless only other replicas can.
func (h *Host) driveOn(ctx context.Context, row tenon.Run) error {
	if left, err := h.leftToOthers(ctx, row); left || err != nil {
		return err
	}
	return h.engine.Start(ctx, engine.Spec{Run: tenon.Run{ID: row.ID}})
}

// takeUp resumes a run if no process works on it, because its process died or closed its host. It is for callers that
// ask for the run by its key: they wait for it, and perhaps nobody else does.
func (h *Host) takeUp(ctx context.Context, run tenon.Run, c Credentials) error {
	if run.State != tenon.RunWorking {
		return nil
	}
	held, err := h.store.Held(run.ID)
	if held || err != nil {
		return err
	}
	if err := h.Service().Callers().SetCredentials(ctx, run.ID, c); err != nil {
		return err
	}
	if err := h.wake(ctx, run); err != nil {
		return err
	}
	err = h.driveOn(ctx, run)
	if tenon.ErrorCode(err) == tenon.CodeConflict { // another process resumed or ended it
		return nil
	}
	return err
}

// wake makes a run continue after the called runs for which it waits, and does the same in those runs.
func (h *Host) wake(ctx context.Context, row tenon.Run) error {
	for _, w := range row.Waiting {
		a, ok := view.Asking(w)
		if !ok || a.Kind != agent.AskChild {
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

func (h runsHandle) Cancel(ctx context.Context, run, reason string) error {
	ctx = store.OwnOnly(ctx)
	// The caller first, so that it makes no further calls.
	if err := h.host.engine.Cancel(ctx, run, reason); err != nil {
		return err
	}
	children, err := h.host.store.Runs(ctx, store.RunFilter{Caller: run, Limit: maxListed})
	if err != nil {
		return err
	}
	var errs []error
	for _, c := range children {
		if !c.State.Ended() {
			errs = append(errs, h.host.Runs().Cancel(ctx, c.ID, "the run that called this one was cancelled"))
		}
	}
	return errors.Join(errs...)
}
