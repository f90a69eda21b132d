package executor

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/agent"
	"github.com/tenonhq/tenon/engine"
	"github.com/tenonhq/tenon/pins"
	"github.com/tenonhq/tenon/policy"
	"github.com/tenonhq/tenon/workflow"
)

// doDecide decides about a tool call by the rules, or about a model call by the budgets.
func (x *Executor) doDecide(ctx context.Context, run string, a engine.Attempt) ([]tenon.Event, error) {
	if e, ok := plannedEvent(a); ok {
		return []tenon.Event{e}, nil
	}
	c, err := tenon.CommandData[agent.DecideCommand](a.Command)
	if err != nil {
		return nil, err
	}
	if c.Admit != nil {
		return x.admit(ctx, a, c.Admit)
	}
	if _, ok := a.Local.(*agent.Prompt); ok {
		return x.decideModel(ctx, run, a, c)
	}
	d, err := x.decideCall(ctx, a, c)
	if err != nil {
		return nil, err
	}
	var events []tenon.Event
	if c.Propose {
		events = append(events, tenon.Event{Step: a.Step, Kind: agent.EventProposed, Data: tenon.EventData(c.Call)})
	}
	return append(events, tenon.Event{Step: a.Step, Kind: agent.EventDecided, Data: tenon.EventData(d)}), nil
}

// decideCall decides about a tool call: by the catalog, the rules, pins, earlier grants and the budgets, in this order.
func (x *Executor) decideCall(ctx context.Context, a engine.Attempt, c *agent.DecideCommand) (agent.Decision, error) {
	d, t, err := x.judge(ctx, a, c)
	if err != nil {
		return d, err
	}
	if d.Verdict == tenon.Ask && !d.Again { // nobody has allowed the repeat in advance
		if d.Subject, err = x.cfg.Grants.Subject(ctx, a.Row, t); err != nil {
			return d, err
		}
		by := x.runGrant(c)
		if d.New == "" { // an earlier grant does not cover a new tool
			by, err = x.allowedBefore(ctx, a, c, t, &d)
		}
		if err != nil {
			return d, err
		}
		if by != "" {
			d.Verdict, d.By, d.Subject = tenon.Allow, by, nil
		}
	}
	if d.Verdict == tenon.Deny {
		return d, nil
	}
	// A call is charged when it is allowed.
	refused, settle, err := x.countClient(ctx, a, c, &d)
	if err == nil && refused == nil {
		if refused, err = x.clientRoom(ctx, a, c); err == nil && refused == nil {
			refused, err = x.reserveCall(ctx, a, c)
		}
		settle(err == nil && refused == nil)
	}
	switch {
	case err != nil:
		return d, err
	case refused != nil:
		d.Verdict, d.By, d.Reason, d.Refused = tenon.Deny, agent.ByBudget, refused.Reason, refused
	}
	return d, nil
}

// judge decides about a tool call by the catalog, the rules and pins. It changes nothing. The tool is nil if there is
// no tool with the call's name.
func (x *Executor) judge(ctx context.Context, a engine.Attempt, c *agent.DecideCommand) (agent.Decision, *tenon.Tool,
	error) {
	rules := x.cfg.Rules.Ruleset()
	d := agent.Decision{Policy: rules.Digest}
	call, err := x.cfg.Rules.Prepare(ctx, a.Row.Core, c)
	if call.Tool == nil && tenon.ErrorCode(err) == tenon.CodeStore {
		return d, nil, err
	}
	t := call.Tool
	if t != nil && t.Rules.Target != "" {
		here := *t // apply the rules for the server's name in this host
		here.Server = x.cfg.Tools.ServerFor(t.Server, t.Rules.Target)
		t = &here
	}
	if d.Arguments = call.Arguments; len(d.Arguments) == 0 {
		d.Arguments = json.RawMessage("{}")
	}
	if t != nil {
		d.Server, d.Remote, d.NextState = t.Server, t.Remote, t.Rules.NextState
		d.Kind, d.ToolKind = x.cfg.KindOf(t)
		id, err := x.cfg.Tools.Identify(ctx, a.Row.ID, t.Server, t.Remote)
		if err != nil {
			return d, t, err
		}
		d.Identity, d.Target, d.Output = id.Server, id.Target, agent.OutputDigest(t.Output)
	}
	if call.Warning != nil {
		x.cfg.Logger.Warn("the arguments are sent as they are: "+call.Warning.Error(), "step", a.Step, "server",
			t.Server)
	}
	if err != nil {
		d.Verdict, d.By, d.Reason = tenon.Deny, agent.ByCatalog, err.Error()
		if t == nil && c.Removed {
			d.Reason = "the server removed this tool during the run, so it was not called; " + d.Reason
		}
		return d, t, nil
	}
	if why := notChosen(c); why != "" {
		d.Verdict, d.By, d.Reason = tenon.Deny, agent.ByPolicy, why
		return d, t, nil
	}
	if why := x.cfg.Rules.Protected(t, d.Arguments); why != "" {
		d.Verdict, d.By, d.Reason = tenon.Deny, agent.ByPolicy, why
		return d, t, nil
	}
	f, err := x.cfg.Rules.Facts(ctx, a.Row, c.State, t, d.Arguments)
	if err != nil {
		return d, t, err
	}
	o := rules.Layers.Judge(f)
	fresh, err := x.cfg.Pins.IsNew(ctx, t)
	if err != nil {
		return d, t, err
	}
	if fresh {
		d.New = t.Rules.New
		if o.Verdict != tenon.Deny {
			o.Verdict, o.Reason = tenon.Ask, pins.NewReason
		}
	}
	d.Verdict, d.By, d.Reason, d.Idempotent, d.Timeout = o.Verdict, agent.ByPolicy, o.Reason, o.Idempotent, o.Timeout
	d.Expires, d.MaxCalls, d.MaxSession = o.Expires, o.MaxRun, o.MaxSession
	d.Rate, d.Cost = o.Rate, o.Cost
	if o.Cache > 0 {
		d.Cache = &agent.Caching{TTL: o.Cache, Scope: o.Scope}
	}
	if c.Call.Connector != nil { // the call only records the answer to the provider
		d.Idempotent = true
	}
	if c.Again && !d.Idempotent && d.Verdict != tenon.Deny {
		d.Verdict, d.Reason, d.Again = tenon.Ask, agent.AgainReason, true
	}
	if d.IsClients() { // the client executes the call itself, and may refuse it
		d.Idempotent = true
		if d.Verdict == tenon.Ask {
			d.Verdict, d.By, d.Reason = tenon.Allow, agent.ByClient, ""
		}
	}
	return d, t, nil
}

// notChosen returns the reason why the tool choice does not permit a call, or "".
func notChosen(c *agent.DecideCommand) string {
	if c.NoCalls {
		return "no tool is to be called here (tool_choice: none); answer without one"
	}
	if c.Only != nil && !slices.Contains(c.Only, c.Call.Name) {
		return "only these tools are to be called here (tool_choice): " + strings.Join(c.Only, ", ")
	}
	return ""
}

// reserveCall charges a call to the budgets. It waits a moment if other runs have reserved the rest of a budget.
func (x *Executor) reserveCall(ctx context.Context, a engine.Attempt, c *agent.DecideCommand) (*agent.Refusal, error) {
	var changed <-chan struct{} // only requested when waiting, because it costs the store work
	for began := time.Now(); ; {
		list := charges(x.accounts(a.Row, c.Budgets), callUnits, use{calls: 1}, c.Beyond)
		refused, queued, err := x.charge(ctx, a.Row, a.Step, list, true)
		if err != nil || !queued {
			return refused, err
		}
		if time.Since(began) > callPatience {
			return &agent.Refusal{Limit: tenon.LimitToolCalls,
				Reason: "the last calls of a budget of tool calls are held by other runs"}, nil
		}
		select {
		case <-changed:
		case <-time.After(callPause): // a process may have died, or changed the budget before Changed was called
		case <-ctx.Done():
			return nil, tenon.Errorf(tenon.CodeCancelled, "step %s: %w", a.Step, context.Cause(ctx))
		}
		changed = x.cfg.Store.Changed(ctx)
	}
}

const (
	callPause    = 20 * time.Millisecond // between attempts to reserve
	callPatience = 5 * time.Second
)

// ratePatience is how long a call waits at most for the rate limit of its tool.
const ratePatience = time.Minute

// admit reserves a time slot for a call under the rate limit of its tool. All processes share the slots through the
// store.
func (x *Executor) admit(ctx context.Context, a engine.Attempt, c *agent.Admission) ([]tenon.Event, error) {
	calls, per, err := policy.ParseRate(c.Rate)
	if err != nil {
		return nil, tenon.Errorf(tenon.CodeInternal, "step %s: %w", a.Step, err)
	}
	var out agent.Admitted
	if calls > 0 {
		id, err := x.cfg.Tools.Identify(ctx, a.Row.ID, c.Server, c.Remote)
		if err != nil {
			return nil, err
		}
		wait, ok, err := x.cfg.Store.Admit(ctx, "rate/"+id.Server+"/"+id.Remote, calls, per, ratePatience,
			x.cfg.Now().Add(c.After))
		if err != nil {
			return nil, err
		}
		out.Wait = c.After + wait
		if !ok {
			out = agent.Admitted{Refused: fmt.Sprintf("tool '%s' of server '%s' may be called %s, "+
				"and is free again in %s; go on without it, or call it then",
				c.Remote, c.Server, rateText(calls, per), wait.Round(time.Second))}
		}
	}
	return []tenon.Event{{Step: a.Step, Kind: agent.EventAdmitted, Data: tenon.EventData(out)}}, nil
}

func rateText(calls int, per time.Duration) string {
	times := "once"
	if calls > 1 {
		times = fmt.Sprint(calls, " times")
	}
	return times + map[time.Duration]string{time.Second: " a second", time.Minute: " a minute",
		time.Hour: " an hour"}[per]
}

// plannedEvent returns the event of a workflow step whose plan is already complete.
func plannedEvent(a engine.Attempt) (tenon.Event, bool) {
	if _, call := a.Local.(*agent.DecideCommand); call || a.Row.Core != workflow.Version {
		return tenon.Event{}, false
	}
	p, err := tenon.CommandData[workflow.PlanCommand](a.Command)
	if err != nil || p.Plan == nil {
		return tenon.Event{}, false
	}
	return tenon.Event{Step: a.Step, Kind: workflow.EventPlanned, Data: tenon.EventData(p.Plan)}, true
}

// runGrant returns the author of a grant for the whole run (--yes), or "" if there is none or the administrator forbids
// it.
func (x *Executor) runGrant(c *agent.DecideCommand) string {
	if x.cfg.IgnoreRunGrants {
		return ""
	}
	return c.Grant
}

// allowedBefore returns the person who has allowed a tool for this run, for its session or permanently, or "" if
// nobody has.
func (x *Executor) allowedBefore(ctx context.Context, a engine.Attempt, c *agent.DecideCommand, t *tenon.Tool,
	d *agent.Decision) (string, error) {
	if key, by := c.SessionGrant(t.Server, t.Remote, d.Subject); by != "" {
		if holds, err := x.cfg.Grants.Holds(ctx, a.Row, key); err != nil || holds {
			return by, err
		}
	}
	if by := x.runGrant(c); by != "" {
		return by, nil
	}
	return x.cfg.Grants.Find(ctx, a.Row, a.Step, t.Remote, d.Subject, &policy.Facts{Arguments: d.Arguments})
}
