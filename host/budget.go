package host

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/agent"
	"github.com/tenonhq/tenon/catalog"
	"github.com/tenonhq/tenon/engine"
	"github.com/tenonhq/tenon/store"
)

// answerTokens is how long an answer is taken to become where the model's
// max_tokens says nothing.
const answerTokens = 4096

// use is what a step uses, in the units of its budgets.
type use struct {
	turns, calls, tokens int
	cost                 tenon.USD
	time                 time.Duration
}

// account is one budget of the configuration as it is kept for one run: the
// session's, the day's, the principal's.
type account struct {
	name   string // for people
	key    string // in the store, without the unit
	limits agent.Budget
}

// accounts returns the budgets that a run draws on today.
func (h *Host) accounts(run tenon.Run, b agent.Budgets) []account {
	day := h.now().UTC().Format(time.DateOnly)
	session := run.Session
	if session == "" { // what a person began outside any conversation, with all that it called
		session, _, _ = strings.Cut(run.ID, "/")
	}
	return []account{
		{"session", "session/" + session, b.Session},
		{"day", "day/" + day, b.Day},
		{"principal", "principal/" + string(principalOf(run)) + "/" + day, b.Principal},
	}
}

// charge is one charge together with what a refusal of it means.
type charge struct {
	store.Charge
	budget string
	limit  tenon.StopReason
	say    func(int64) string
}

// The units that a step is charged in.
var (
	modelUnits = []string{"turns", "tokens", "cost", "time"}
	callUnits  = []string{"tool_calls"}
	timeUnits  = []string{"time"} // of each attempt at a call
	costUnits  = []string{"cost"} // of a call, whose price is its own and not that of an attempt
)

// charges are what a step of this use costs its budgets, of every budget that is
// bounded in one of the units. Beyond counts and bounds nothing.
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
			{"cost", int64(tenon.Dollars(a.limits.Cost)), int64(u.cost), tenon.LimitCost, func(n int64) string { return tenon.USD(n).String() }},
			{"time", a.limits.Time.Milliseconds(), u.time.Milliseconds(), tenon.LimitTime, func(n int64) string { return (time.Duration(n) * time.Millisecond).String() }},
		} {
			if c.most == 0 || !slices.Contains(units, c.unit) {
				continue
			}
			limit := c.most
			if beyond {
				limit = 0
			}
			list = append(list, charge{store.Charge{Key: a.key + "/" + c.unit, Amount: c.amount, Limit: limit}, a.name, c.limit, c.say})
		}
	}
	return list
}

// reserve asks the budgets of a run whether they have room for a step. Queued says
// that they may have when others' steps have ended.
func (h *Host) reserve(ctx context.Context, run tenon.Run, step string, b agent.Budgets, units []string, u use, beyond bool) (refused *agent.Refusal, queued bool, err error) {
	if b == (agent.Budgets{}) {
		return nil, false, nil
	}
	list := charges(h.accounts(run, b), units, u, beyond)
	if len(list) == 0 {
		return nil, false, nil
	}
	plain := make([]store.Charge, len(list))
	for i, c := range list {
		plain[i] = c.Charge
	}
	balances, err := h.store.Reserve(ctx, run.ID, step, plain)
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
		return &agent.Refusal{Budget: c.budget, Limit: c.limit, Reason: fmt.Sprintf("the budget of this %s is used up: %s of %s; raise budgets.%s in tenon.yaml",
			c.budget, c.say(got.Used), c.say(got.Limit), c.budget)}, false, nil
	}
	return nil, false, nil
}

// bill tells the budgets what a step that they had room for came to.
func (h *Host) bill(ctx context.Context, run tenon.Run, step string, b agent.Budgets, units []string, u use) {
	if b == (agent.Budgets{}) {
		return
	}
	list := charges(h.accounts(run, b), units, u, false)
	if len(list) == 0 {
		return
	}
	amounts := make([]int64, len(list))
	for i, c := range list {
		amounts[i] = c.Amount
	}
	ctx = context.WithoutCancel(ctx) // it was used, whoever has lost interest
	err := h.store.Settle(ctx, run.ID, step, amounts)
	if tenon.ErrorCode(err) == tenon.CodeNotFound { // what a process reserved that died was given back
		if _, _, err = h.reserve(ctx, run, step, b, units, u, true); err == nil {
			err = h.store.Settle(ctx, run.ID, step, amounts)
		}
	}
	if err != nil {
		h.log.Warn("what a step used could not be counted", "run", run.ID, "step", step, "error", err)
	}
}

// count adds to the budgets what a step used that asked nobody before.
func (h *Host) count(ctx context.Context, run tenon.Run, step string, b agent.Budgets, units []string, u use) {
	if b == (agent.Budgets{}) {
		return
	}
	if _, _, err := h.reserve(ctx, run, step, b, units, u, true); err != nil {
		h.log.Warn("what a step used could not be counted", "run", run.ID, "step", step, "error", err)
		return
	}
	h.bill(ctx, run, step, b, units, u)
}

// called adds to the budgets what an attempt at a tool call took, and, once for all of
// them, the price of the call.
func (h *Host) called(ctx context.Context, a engine.Attempt, c *agent.ToolCommand, took time.Duration) {
	if c.Budgets == (agent.Budgets{}) {
		return
	}
	h.count(ctx, a.Row, a.Step+":time:"+strconv.Itoa(a.Attempt), c.Budgets, timeUnits, use{time: took})
	h.count(ctx, a.Row, a.Step+":cost", c.Budgets, costUnits, use{cost: c.Cost})
}

// modelUse is the most that a model call may come to.
func (h *Host) modelUse(ctx context.Context, p *agent.Prompt) use {
	out := answerTokens
	if c, err := h.models.settings(p.Model); err == nil && c.MaxTokens > 0 {
		out = c.MaxTokens
	}
	in := p.Tokens + len(p.System)/4
	if req, err := h.request(ctx, p); err == nil {
		for i := range req.Tools {
			in += catalog.Tokens(&req.Tools[i])
		}
	}
	return use{turns: 1, tokens: in + out, cost: h.cost(ctx, p.Model, tenon.Usage{Input: in, Output: out})}
}

// cost is the price of tokens, 0 where none is known.
func (h *Host) cost(ctx context.Context, model string, u tenon.Usage) tenon.USD {
	price, ok, err := h.Price(ctx, model)
	if err != nil || !ok {
		return 0
	}
	return price.Cost(u)
}

// spentOn is what a model call came to.
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

// spent tells the budgets what a model call came to. A last answer at a limit asked
// nobody before, and one that was in vain leaves what is reserved to the next, which the
// core may want in the same step.
func (h *Host) spent(ctx context.Context, a engine.Attempt, p *agent.Prompt, u use, vain bool) {
	switch {
	case a.Kind == agent.CommandFinal:
		h.count(ctx, a.Row, a.Step+":final", p.Budgets, modelUnits, u)
	case vain:
		h.count(ctx, a.Row, a.Step+":"+strconv.Itoa(a.Attempt), p.Budgets, modelUnits, u)
	default:
		h.bill(ctx, a.Row, a.Step, p.Budgets, modelUnits, u)
	}
}

// decideModel asks the budgets about a model call, in place.
func (h *Host) decideModel(ctx context.Context, run string, a engine.Attempt, c *agent.DecideCommand) ([]tenon.Event, error) {
	p, err := h.prompt(ctx, run, a)
	if err != nil {
		return nil, err
	}
	refused, queued, err := h.reserve(ctx, a.Row, a.Step, c.Budgets, modelUnits, h.modelUse(ctx, p), c.Beyond)
	if err != nil {
		return nil, err
	}
	return []tenon.Event{{Step: a.Step, Kind: agent.EventReserved, Data: encode(agent.Reserved{Refused: refused, Queued: queued})}}, nil
}

// doReserve waits until the budgets have room for a model call, or are used up.
func (h *Host) doReserve(ctx context.Context, run string, a engine.Attempt) ([]tenon.Event, error) {
	c, err := tenon.CommandData[agent.DecideCommand](a.Command)
	if err != nil {
		return nil, err
	}
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
	u := h.modelUse(ctx, p)
	for {
		changed := h.store.Changed(ctx)
		refused, queued, err := h.reserve(ctx, a.Row, a.Step, c.Budgets, modelUnits, u, c.Beyond)
		if err != nil && ctx.Err() == nil {
			return nil, err
		}
		if !queued && ctx.Err() == nil {
			return []tenon.Event{{Step: a.Step, Kind: agent.EventReserved, Data: encode(agent.Reserved{Refused: refused})}}, nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			// Nothing was begun. What the run is to do now the core knows. The time of an
			// interruption is not the run's, that of the queue is.
			if parent.Err() == nil {
				return []tenon.Event{{Step: a.Step, Kind: agent.EventReserved, Data: encode(agent.Reserved{Queued: true})}}, nil
			}
			return []tenon.Event{{Step: a.Step, Kind: tenon.EventInterrupted}}, nil
		}
	}
}
