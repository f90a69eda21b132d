package host

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/agent"
	"github.com/tenonhq/tenon/catalog"
	"github.com/tenonhq/tenon/engine"
	"github.com/tenonhq/tenon/policy"
	"github.com/tenonhq/tenon/workflow"
)

// doDecide evaluates the policy about a tool call, or asks the budgets about a
// model call.
func (h *Host) doDecide(ctx context.Context, run string, a engine.Attempt) ([]tenon.Event, error) {
	if e, ok := planned(a); ok {
		return []tenon.Event{e}, nil
	}
	c, err := tenon.CommandData[agent.DecideCommand](a.Command)
	if err != nil {
		return nil, err
	}
	if c.Admit != nil {
		return h.admit(ctx, a, c.Admit)
	}
	if _, ok := a.Local.(*agent.Prompt); ok {
		return h.decideModel(ctx, run, a, c)
	}
	d, err := h.decideCall(ctx, a, c)
	if err != nil {
		return nil, err
	}
	var events []tenon.Event
	if c.Propose {
		events = append(events, tenon.Event{Step: a.Step, Kind: agent.EventProposed, Data: encode(c.Call)})
	}
	return append(events, tenon.Event{Step: a.Step, Kind: agent.EventDecided, Data: encode(d)}), nil
}

// decideCall looks the call up in the catalog, asks the rules, those who allowed the
// tool before, and the budgets, in this order.
func (h *Host) decideCall(ctx context.Context, a engine.Attempt, c *agent.DecideCommand) (agent.Decision, error) {
	d := agent.Decision{Policy: h.law().digest}
	call, err := h.prepared(ctx, a.Row.Core, c)
	if call.Tool == nil && tenon.ErrorCode(err) == tenon.CodeStore {
		return d, err
	}
	t := call.Tool
	if d.Arguments = call.Arguments; len(d.Arguments) == 0 {
		d.Arguments = json.RawMessage("{}")
	}
	if t != nil {
		d.Server, d.Remote, d.Kind, d.NextState = t.Server, t.Remote, kindOf(t), t.Rules.NextState
		if t.Server != handoffServer {
			d.ToolKind = t.Kind
		}
	}
	if call.Warning != nil {
		h.log.Warn("the arguments are sent as they are: "+call.Warning.Error(), "step", a.Step, "server", t.Server)
	}
	if err != nil {
		d.Verdict, d.By, d.Reason = tenon.Deny, agent.ByCatalog, err.Error()
		return d, nil
	}
	if c.NoCalls {
		d.Verdict, d.By, d.Reason = tenon.Deny, agent.ByPolicy, "no tool is to be called here (tool_choice: none); answer without one"
		return d, nil
	}
	o := h.law().rules.Judge(h.facts(a.Row, c.State, t, d.Arguments))
	d.Verdict, d.By, d.Reason, d.Idempotent, d.Timeout = o.Verdict, agent.ByPolicy, o.Reason, o.Idempotent, o.Timeout
	d.Expires, d.MaxCalls, d.MaxSession = o.Expires, o.MaxRun, o.MaxSession
	if d.Rate, d.Cost = o.Rate, o.Cost; o.Cache > 0 {
		d.Cache = &agent.Caching{TTL: o.Cache, Scope: o.Scope}
	}
	if d.Verdict == tenon.Ask {
		by, err := h.allowedBefore(ctx, a.Row, c, t)
		if err != nil {
			return d, err
		}
		if by != "" {
			d.Verdict, d.By = tenon.Allow, by
		}
	}
	if d.Verdict == tenon.Deny {
		return d, nil
	}
	// A call is counted when it is let through: what it is charged is known before.
	switch refused, err := h.reserveCall(ctx, a, c); {
	case err != nil:
		return d, err
	case refused != nil:
		d.Verdict, d.By, d.Reason, d.Refused = tenon.Deny, agent.ByBudget, refused.Reason, refused
	default:
		h.bill(ctx, a.Row, a.Step, c.Budgets, callUnits, use{calls: 1})
	}
	return d, nil
}

// prepared looks the tool of a call up and holds the arguments to it. A step of a
// workflow that is a request brings its tool along; one that calls a workflow has that
// one's parameters as arguments, its tables come beside them.
func (h *Host) prepared(ctx context.Context, core string, c *agent.DecideCommand) (catalog.Prepared, error) {
	if c.Tool != nil {
		return catalog.Prepared{Tool: c.Tool, Arguments: c.Call.Arguments}, nil
	}
	snapshot, err := h.inView(ctx, c.View, c.Propose)
	if err != nil {
		return catalog.Prepared{}, tenon.Errorf(tenon.CodeStore, "%w", err)
	}
	call := c.Call
	if t, ok := snapshot.Lookup(call.Name); ok && t.Server == catalog.WorkflowServer {
		var err error
		if f := h.flows.tools[t.Remote]; core == workflow.Version && f != nil {
			if _, err = f.Params(call.Arguments); err == nil {
				call.Arguments = f.whole(call.Arguments)
			}
		} else if !c.Propose {
			err = h.checkData(t, c)
		}
		if err != nil {
			return catalog.Prepared{Tool: t, Arguments: call.Arguments}, err
		}
	}
	return snapshot.Prepare(&call)
}

// reserveCall reserves a call. The last of a budget may be reserved by another run
// that has not counted it yet, which takes it a moment.
func (h *Host) reserveCall(ctx context.Context, a engine.Attempt, c *agent.DecideCommand) (*agent.Refusal, error) {
	var changed <-chan struct{} // asked for only by those who have to wait: to listen is work for the store
	for began := time.Now(); ; {
		refused, queued, err := h.reserve(ctx, a.Row, a.Step, c.Budgets, callUnits, use{calls: 1}, c.Beyond)
		if err != nil || !queued {
			return refused, err
		}
		if time.Since(began) > callPatience {
			return &agent.Refusal{Limit: tenon.LimitToolCalls, Reason: "the last calls of a budget of tool calls are held by other runs"}, nil
		}
		select {
		case <-changed:
		case <-time.After(callPause): // its process may have died, or it was done before we listened
		case <-ctx.Done():
			return nil, tenon.Errorf(tenon.CodeCancelled, "step %s: %w", a.Step, context.Cause(ctx))
		}
		changed = h.store.Changed(ctx)
	}
}

const (
	callPause    = 20 * time.Millisecond // between two looks at a budget that another call holds
	callPatience = 5 * time.Second
)

// ratePatience is how long a call waits for its turn under its tool's rate.
const ratePatience = time.Minute

// admit says when a call has its turn. The turn is taken in one transaction of the
// store, which all processes share, and becomes an event.
func (h *Host) admit(ctx context.Context, a engine.Attempt, c *agent.Admission) ([]tenon.Event, error) {
	calls, per, err := policy.ParseRate(c.Rate)
	if err != nil {
		return nil, tenon.Errorf(tenon.CodeInternal, "step %s: %w", a.Step, err)
	}
	var out agent.Admitted
	if calls > 0 {
		wait, ok, err := h.store.Admit(ctx, "rate/"+c.Server+"/"+c.Remote, calls, per, ratePatience, h.now().Add(c.After))
		if err != nil {
			return nil, err
		}
		if out.Wait = c.After + wait; !ok {
			out = agent.Admitted{Refused: fmt.Sprintf("tool '%s' of server '%s' may be called %s, and is free again in %s; go on without it, or call it then",
				c.Remote, c.Server, rateText(calls, per), wait.Round(time.Second))}
		}
	}
	return []tenon.Event{{Step: a.Step, Kind: agent.EventAdmitted, Data: encode(out)}}, nil
}

func rateText(calls int, per time.Duration) string {
	times := "once"
	if calls > 1 {
		times = fmt.Sprint(calls, " times")
	}
	return times + map[time.Duration]string{time.Second: " a second", time.Minute: " a minute", time.Hour: " an hour"}[per]
}

// facts are what rules look at.
func (h *Host) facts(run tenon.Run, state string, t *tenon.Tool, args json.RawMessage) *policy.Facts {
	return &policy.Facts{Tool: t, Arguments: args, Agent: run.Agent, Principal: string(principalOf(run)), State: state}
}

// allowedBefore says who allowed a tool for this run, for its session or for good,
// "" for nobody.
func (h *Host) allowedBefore(ctx context.Context, run tenon.Run, c *agent.DecideCommand, t *tenon.Tool) (string, error) {
	if by := c.GrantFor(t.Server, t.Remote); by != "" {
		return by, nil
	}
	grants, err := h.store.Grants(ctx, principalOf(run))
	if err != nil {
		return "", err
	}
	for _, g := range grants {
		if g.Server == t.Server && g.Remote == t.Remote {
			return g.By + " (always)", nil
		}
	}
	return "", nil
}

// principalOf is whose run it is; those of older versions are the local user's.
func principalOf(run tenon.Run) tenon.Principal { return cmp.Or(run.Principal, tenon.PrincipalLocal) }
