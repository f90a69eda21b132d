package executor

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/agent"
	"github.com/tenonhq/tenon/catalog"
	"github.com/tenonhq/tenon/engine"
	"github.com/tenonhq/tenon/store"
)

// answerTokens is the estimated length of an answer if max_tokens is not configured.
const answerTokens = 4096

// use is the amount that a step uses, by unit.
type use struct {
	turns, calls, tokens int
	cost                 tenon.USD
	time                 time.Duration
}

// account is a configured budget of a run's session, day or principal.
type account struct {
	name   string // its name in messages
	key    string // key of the budget in the store, without the unit
	limits agent.Budget
}

// accounts returns the budgets to which a run is charged today.
func (x *Executor) accounts(run tenon.Run, b agent.Budgets) []account {
	day := x.cfg.Now().UTC().Format(time.DateOnly)
	session := run.Session
	if run.Core == agent.DirectVersion { // a client has sessions; a person's own call is charged to none
		session = clientSession(run)
	} else if session == "" { // a call outside of any conversation, and the runs that it began
		session = tenon.RootRun(run.ID)
	}
	return []account{
		{"session", "session/" + session, b.Session},
		{"day", "day/" + day, b.Day},
		{"principal", "principal/" + string(run.Owner()) + "/" + day, b.Principal},
	}
}

// clientSession returns the key of the session of a call that a client of the gateway made: the calls of its
// principal on one day. Sessions of MCP are not used, because a client can begin a new one at any time, or have none.
func clientSession(run tenon.Run) string {
	return "client/" + string(run.Owner()) + "/" + run.Created.UTC().Format(time.DateOnly)
}

// countClient counts a call of a client of the gateway against max_calls of a session. If the limit is reached, it
// returns a refusal. settle completes the count; settle(false) undoes it, because the call was refused for another
// reason.
func (x *Executor) countClient(ctx context.Context, a engine.Attempt, c *agent.DecideCommand,
	d *agent.Decision) (refused *agent.Refusal, settle func(bool), err error) {
	if !c.Client || d.MaxSession <= 0 {
		return nil, func(bool) {}, nil
	}
	id, limit := a.Step+":max_calls", int64(d.MaxSession)
	balances, err := x.cfg.Store.Reserve(ctx, a.Row.ID, id, []store.Charge{{Amount: 1, Limit: limit,
		Key: "session/" + clientSession(a.Row) + "/calls/" + cmp.Or(d.Identity, d.Server) + "/" + d.Remote}})
	if err != nil {
		return nil, nil, err
	}
	if balances[0].Refused {
		return &agent.Refusal{Limit: tenon.LimitToolCalls, Reason: fmt.Sprintf("max_calls of '%s' allows %d in a "+
			"session, which is a day of this principal; it may be called again tomorrow (UTC)", c.Call.Name,
			limit)}, nil, nil
	}
	return nil, func(made bool) {
		amount := int64(0)
		if made {
			amount = 1
		}
		if err := x.cfg.Store.Settle(context.WithoutCancel(ctx), a.Row.ID, id, []int64{amount}); err != nil {
			x.cfg.Logger.Warn("a call could not be counted", "run", a.Row.ID, "error", err)
		}
	}, nil
}

// clientRoom refuses a call of a client of the gateway if its cost or time budgets are used up. In an agent's run,
// model calls reserve these budgets, but a client's run has no model calls. Calls that run at the same time may
// together exceed the budgets.
func (x *Executor) clientRoom(ctx context.Context, a engine.Attempt, c *agent.DecideCommand) (*agent.Refusal, error) {
	if !c.Client {
		return nil, nil
	}
	list := charges(x.accounts(a.Row, c.Budgets), []string{"cost", "time"}, use{}, false)
	refused, _, err := x.charge(ctx, a.Row, a.Step+":room", list, true)
	return refused, err
}

// charge is a charge of the store, with the values that describe its refusal.
type charge struct {
	store.Charge
	budget string
	limit  tenon.StopReason
	say    func(int64) string
}

// The units of charges.
var (
	modelUnits = []string{"turns", "tokens", "cost", "time"}
	callUnits  = []string{"tool_calls"}
	timeUnits  = []string{"time"} // charged for each attempt at a call
	costUnits  = []string{"cost"} // charged once for all attempts at a call
)

// charges returns the charges of a step in the given units, for every account that limits one of them. If beyond is
// true, the charges have no limits.
func charges(accounts []account, units []string, u use, beyond bool) []charge {
	number := func(unit string) func(int64) string {
		return func(n int64) string { return fmt.Sprint(n, " ", unit) }
	}
	var list []charge
	for _, a := range accounts {
		for _, c := range []struct {
			unit   string
			most   int64
			amount int64
			limit  tenon.StopReason
			say    func(int64) string
		}{
			{"turns", int64(a.limits.Turns), int64(u.turns), tenon.LimitTurns, number("model requests")},
			{"tool_calls", int64(a.limits.ToolCalls), int64(u.calls), tenon.LimitToolCalls, number("tool calls")},
			{"tokens", int64(a.limits.Tokens), int64(u.tokens), tenon.LimitTokens, number("tokens")},
			{"cost", int64(tenon.Dollars(a.limits.Cost)), int64(u.cost), tenon.LimitCost,
				func(n int64) string { return tenon.USD(n).String() }},
			{"time", a.limits.Time.Milliseconds(), u.time.Milliseconds(), tenon.LimitTime,
				func(n int64) string { return (time.Duration(n) * time.Millisecond).String() }},
		} {
			if c.most == 0 || !slices.Contains(units, c.unit) {
				continue
			}
			limit := c.most
			if beyond {
				limit = 0
			}
			list = append(list, charge{store.Charge{Key: a.key + "/" + c.unit, Amount: c.amount, Limit: limit},
				a.name, c.limit, c.say})
		}
	}
	return list
}

// reserve reserves the use of a step in the budgets of a run. queued says that the step is refused now, but that
// there may be room when other steps have ended.
func (x *Executor) reserve(ctx context.Context, run tenon.Run, step string, b agent.Budgets, units []string, u use,
	beyond bool) (refused *agent.Refusal, queued bool, err error) {
	return x.charge(ctx, run, step, charges(x.accounts(run, b), units, u, beyond), false)
}

// charge reserves charges of a step. If made is set, they are spent at once, and need not be billed.
func (x *Executor) charge(ctx context.Context, run tenon.Run, step string, list []charge,
	made bool) (refused *agent.Refusal, queued bool, err error) {
	if len(list) == 0 {
		return nil, false, nil
	}
	plain := make([]store.Charge, len(list))
	for i, c := range list {
		plain[i] = c.Charge
		plain[i].Made = made
	}
	balances, err := x.cfg.Store.Reserve(ctx, run.ID, step, plain)
	if err != nil {
		return nil, false, err
	}
	for i, got := range balances {
		if !got.Refused {
			continue
		}
		if got.Reserved > 0 && got.Used < got.Limit {
			return nil, true, nil
		}
		c := list[i]
		return &agent.Refusal{Budget: c.budget, Limit: c.limit,
			Reason: fmt.Sprintf("the budget of this %s is used up: %s of %s; raise budgets.%s in tenon.yaml",
				c.budget, c.say(got.Used), c.say(got.Limit), c.budget)}, false, nil
	}
	return nil, false, nil
}

// bill charges a finished step to the budgets that reserved it.
func (x *Executor) bill(ctx context.Context, run tenon.Run, step string, b agent.Budgets, units []string, u use) {
	if b == (agent.Budgets{}) {
		return
	}
	list := charges(x.accounts(run, b), units, u, false)
	if len(list) == 0 {
		return
	}
	amounts := make([]int64, len(list))
	for i, c := range list {
		amounts[i] = c.Amount
	}
	ctx = context.WithoutCancel(ctx) // count the use even if the caller is gone
	err := x.cfg.Store.Settle(ctx, run.ID, step, amounts)
	if tenon.ErrorCode(err) == tenon.CodeNotFound { // the reservation of a dead process was released
		if _, _, err = x.reserve(ctx, run, step, b, units, u, true); err == nil {
			err = x.cfg.Store.Settle(ctx, run.ID, step, amounts)
		}
	}
	if err != nil {
		x.cfg.Logger.Warn("what a step used could not be counted", "run", run.ID, "step", step, "error", err)
	}
}

// count charges a step that has reserved nothing.
func (x *Executor) count(ctx context.Context, run tenon.Run, step string, b agent.Budgets, units []string, u use) {
	if b == (agent.Budgets{}) {
		return
	}
	ctx = context.WithoutCancel(ctx) // count the use even if the caller is gone
	if _, _, err := x.charge(ctx, run, step, charges(x.accounts(run, b), units, u, true), true); err != nil {
		x.cfg.Logger.Warn("what a step used could not be counted", "run", run.ID, "step", step, "error", err)
	}
}

// called charges the time of an attempt at a tool call, and, once for all attempts, the price of the call.
func (x *Executor) called(ctx context.Context, a engine.Attempt, c *agent.ToolCommand, took time.Duration) {
	if c.Budgets == (agent.Budgets{}) {
		return
	}
	x.count(ctx, a.Row, a.Step+":time:"+strconv.Itoa(a.Attempt), c.Budgets, timeUnits, use{time: took})
	x.count(ctx, a.Row, a.Step+":cost", c.Budgets, costUnits, use{cost: c.Cost})
}

// modelUse estimates the maximum use of a model call.
func (x *Executor) modelUse(ctx context.Context, p *agent.Prompt) use {
	out := answerTokens
	if n := x.cfg.Models.MaxTokens(p.Model); n > 0 {
		out = n
	}
	in := p.Tokens + len(p.System)/4
	if req, err := x.cfg.Conversations.Request(ctx, p); err == nil {
		for i := range req.Tools {
			in += catalog.Tokens(&req.Tools[i])
		}
	}
	return use{turns: 1, tokens: in + out, cost: x.cfg.Models.Cost(ctx, p.Model, tenon.Usage{Input: in, Output: out})}
}

// spentOn returns the use of a finished model call.
func spentOn(r *tenon.Response, took time.Duration) use {
	u := use{turns: 1, time: took}
	if r.Usage != nil {
		u.tokens = r.Usage.Input + r.Usage.Output
	}
	if r.Cost != nil {
		u.cost = *r.Cost
	}
	return u
}

// spent charges a model call. The final answer at a limit is charged without a reservation. A failed call keeps its
// reservation for the next attempt of the step.
func (x *Executor) spent(ctx context.Context, a engine.Attempt, p *agent.Prompt, u use, failed bool) {
	switch {
	case a.Kind == agent.CommandFinal:
		x.count(ctx, a.Row, a.Step+":final", p.Budgets, modelUnits, u)
	case failed:
		x.count(ctx, a.Row, a.Step+":"+strconv.Itoa(a.Attempt), p.Budgets, modelUnits, u)
	default:
		x.bill(ctx, a.Row, a.Step, p.Budgets, modelUnits, u)
	}
}

// decideModel reserves a model call in the budgets without waiting.
func (x *Executor) decideModel(ctx context.Context, run string, a engine.Attempt,
	c *agent.DecideCommand) ([]tenon.Event, error) {
	p, err := x.prompt(ctx, run, a)
	if err != nil {
		return nil, err
	}
	refused, queued, err := x.reserve(ctx, a.Row, a.Step, c.Budgets, modelUnits, x.modelUse(ctx, p), c.Beyond)
	if err != nil {
		return nil, err
	}
	return []tenon.Event{{Step: a.Step, Kind: agent.EventReserved,
		Data: tenon.EventData(agent.Reserved{Refused: refused, Queued: queued})}}, nil
}

// doReserve waits until the budgets have room for a model call or are used up.
func (x *Executor) doReserve(ctx context.Context, run string, a engine.Attempt) ([]tenon.Event, error) {
	c, err := tenon.CommandData[agent.DecideCommand](a.Command)
	if err != nil {
		return nil, err
	}
	p, err := x.prompt(ctx, run, a)
	if err != nil {
		return nil, err
	}
	parent := ctx
	if p.Timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, p.Timeout)
		defer cancel()
	}
	u := x.modelUse(ctx, p)
	for {
		changed := x.cfg.Store.Changed(ctx)
		refused, queued, err := x.reserve(ctx, a.Row, a.Step, c.Budgets, modelUnits, u, c.Beyond)
		if err != nil && ctx.Err() == nil {
			return nil, err
		}
		if !queued && ctx.Err() == nil {
			return []tenon.Event{{Step: a.Step, Kind: agent.EventReserved,
				Data: tenon.EventData(agent.Reserved{Refused: refused})}}, nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			// Nothing was started, so the core decides what to do. The time in the queue counts for the run, the time
			// of an interruption does not.
			if parent.Err() == nil {
				return []tenon.Event{{Step: a.Step, Kind: agent.EventReserved,
					Data: tenon.EventData(agent.Reserved{Queued: true})}}, nil
			}
			return []tenon.Event{{Step: a.Step, Kind: tenon.EventInterrupted}}, nil
		}
	}
}
