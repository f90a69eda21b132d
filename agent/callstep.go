package agent

import (
	"encoding/json"
	"maps"
	"strings"
	"time"

	"github.com/tenonhq/tenon"
)

// CallStep is the life of one tool call that no model made: proposed → decided → started → result, with questions,
// approvals and rate limits in between. It serves a person's own call ([Direct]) and each call of a workflow. Like a
// core it has no clock and does no I/O.
type CallStep struct {
	call    *call
	outcome Outcome
	failed  *tenon.Error
	unknown bool
	bounds  CallBounds
	used    Summary // tokens used by models that answered the server's requests, and by child runs
}

// CallContext holds the data of a [CallStep]'s commands that is not part of the call.
type CallContext struct {
	Tools   string // digest of the tool snapshot
	Grant   string // who approved all calls in advance; empty if nobody did
	Grants  map[string]string
	Tool    *tenon.Tool   // nil: the tool is in the snapshot
	Timeout time.Duration // time limit of an attempt, in addition to the rules' timeout; 0 means no limit
	After   time.Duration // before the first attempt
	// Inner, Budget and Inputs are for a child run: who approved its calls in advance, its limits, and its tables.
	Inner  string
	Budget Allowance
	Inputs map[string]tenon.Table
	Debug  bool
	// Budgets are charged for the call. Client says that a client of the gateway makes it.
	Budgets Budgets
	Client  bool
	Again   bool // see [DecideCommand.Again]
}

// CallBounds limits the calls of a run.
type CallBounds struct {
	Depth    int            // depth of a child run that a call starts
	MaxDepth int            // maximum of Depth
	Called   map[string]int // number of calls of each tool; nil if calls are not counted
}

// NewCallStep returns the call as a step of a run. The policy has not decided about it yet.
func NewCallStep(run, step string, t tenon.ToolCall, b CallBounds) *CallStep {
	return &CallStep{call: &call{run: run, step: step, tool: &t}, bounds: b}
}

// NewChildStep returns a step in which an agent answers. It needs no decision, because each call of the agent needs
// one.
func NewChildStep(run, step, server, name string, args json.RawMessage, b CallBounds) *CallStep {
	c := NewCallStep(run, step, tenon.ToolCall{Name: name, Arguments: args}, b)
	c.call.status = ready
	c.call.decision = Decision{Verdict: tenon.Allow, Kind: KindAgent, Server: server, Remote: name, Arguments: args}
	c.bound()
	return c
}

// AskAgain makes a step of [NewChildStep] wait until a person allows it, because it repeats a step with an unknown
// outcome.
func (c *CallStep) AskAgain() {
	if c.call.status == ready {
		d := &c.call.decision
		c.call.status, d.Verdict, d.By, d.Reason, d.Again = waiting, tenon.Ask, ByPolicy, AgainReason, true
	}
}

// Owns reports whether the events of a step belong to the call or to one of its questions.
func (c *CallStep) Owns(step string) bool {
	return tenon.ParseStep(step).Asker().String() == c.call.step
}

// Apply applies an event that the call owns.
func (c *CallStep) Apply(e tenon.Event) error {
	if err := c.apply(e); err != nil {
		return err
	}
	if usage, cost := used(e); usage != nil {
		c.used.Usage.Add(usage)
		c.used.Cost += cost
	}
	return nil
}

func (c *CallStep) apply(e tenon.Event) error {
	if e.Step != c.call.step {
		return c.call.applyQuestion(e)
	}
	if c.call.status == settled {
		return outOfPlace(e)
	}
	if err := c.call.apply(e, &c.outcome); err != nil {
		return err
	}
	if e.Kind == EventDecided && c.call.status != settled {
		c.bound()
	}
	if c.call.status != settled || c.failed != nil {
		return nil
	}
	if e.Kind == EventResult || e.Kind == tenon.EventUnknown {
		c.used.Cost += c.call.cost()
	}
	c.unknown = e.Kind == tenon.EventUnknown
	c.failed = c.reason(e)
	if e.Kind != EventResult {
		return nil
	}
	if s := c.outcome.Spent; s != nil {
		c.used.Usage.Add(&s.Usage)
		c.used.Unmetered += s.Unmetered
		c.used.Cost += s.Cost
		c.used.ToolCalls += s.ToolCalls
	}
	return nil
}

// bound refuses a call that exceeds a limit.
func (c *CallStep) bound() {
	d := &c.call.decision
	switch {
	case d.Delegates() && c.bounds.Depth > c.bounds.MaxDepth:
		c.call.settle(tooDeepResult(c.bounds.MaxDepth))
		c.failed = tenon.Errorf(tenon.CodeLimit, "not run: agents and workflows may call one another %d deep; raise "+
			"limits.max_depth, or have less of them call others", c.bounds.MaxDepth)
		return
	case c.bounds.Called == nil:
		return
	case d.MaxCalls > 0 && d.counted(c.bounds.Called) >= d.MaxCalls:
		c.call.settle(tooMany(c.call.tool.Name, d.MaxCalls, "run"))
	default:
		c.bounds.Called[d.countKey()]++
		return
	}
	c.failed = tenon.Errorf(tenon.CodeLimit, "%s", strings.TrimPrefix(c.call.result.Content[0].Text, "Error: "))
}

// reason returns the error of a call that ended without a result, or nil if it has one.
func (c *CallStep) reason(e tenon.Event) *tenon.Error {
	switch e.Kind {
	case EventResult:
		return nil
	case tenon.EventExpired:
		return tenon.Errorf(tenon.CodeWaiting, "%s", c.call.result.Content[0].Text)
	case EventAdmitted:
		return tenon.Errorf(tenon.CodeRateLimited, "%s", c.call.result.Content[0].Text[len("Error: "):])
	case EventDecision:
		var r Ruling
		_ = decode(e, &r) // call.apply has read it already
		return refused(r.By, r.Reason)
	case EventDecided:
		return refused(c.call.decision.By, c.call.decision.Reason)
	}
	var f Failure     // an Answer stores its error in a member of the same name
	_ = decode(e, &f) // call.apply has read it already
	switch {
	case e.Kind == tenon.EventUnknown:
		return tenon.Errorf(tenon.CodeUnknown, "%s", UnknownText(f.Error))
	case f.Error == nil:
		return tenon.Errorf(tenon.CodeInternal, "%s", strings.TrimPrefix(c.call.result.Content[0].Text, "Error: "))
	}
	return f.Error
}

// refused returns the error of a call that was denied or that is invalid.
func refused(by, reason string) *tenon.Error {
	code := tenon.CodeDenied
	if by == ByCatalog {
		code = tenon.CodeInvalid
	}
	return tenon.Errorf(code, "%s", RefusalText(by, reason))
}

// IsRunning reports whether an attempt is under way.
func (c *CallStep) IsRunning() bool { return c.call.status == running }

// IsSettled reports whether the call has ended.
func (c *CallStep) IsSettled() bool { return c.call.status == settled }

// Outcome returns how the call ended. If it has no result, err is the reason. unknown says that the call may or may
// not have taken effect.
func (c *CallStep) Outcome() (o *Outcome, unknown bool, err *tenon.Error) {
	if c.failed != nil {
		return nil, c.unknown, c.failed
	}
	return &c.outcome, false, nil
}

// Used returns the usage and cost of the call so far.
func (c *CallStep) Used() Summary { return c.used }

// Granted reports whether an event, which was not applied yet, allows the call's tool for the session. It returns the
// key of the tool in [DecideCommand.Grants] and the person who allowed it, or "" for both.
func (c *CallStep) Granted(e tenon.Event) (key, by string) {
	var r Ruling
	if e.Kind != EventDecision || e.Step != c.call.step || c.call.status != waiting || decode(e, &r) != nil ||
		r.Verdict != tenon.Allow || r.Remember != RememberSession || r.IsNarrow() {
		return "", ""
	}
	d := &c.call.decision
	return d.Subject.key(d.Server, d.Remote), r.By
}

// Next returns the command that the call needs now. The decision also proposes the call, because no model has
// proposed it.
func (c *CallStep) Next(x CallContext) []tenon.Command {
	one := func(cmd tenon.Command) []tenon.Command { return []tenon.Command{cmd} }
	switch call := c.call; {
	case call.status == settled:
		return nil
	case call.status == running:
		return call.waits()
	case call.status == proposed:
		return one(tenon.Command{Step: call.step, Kind: CommandDecide, Idempotent: true, Local: &DecideCommand{
			Call: *call.tool, View: View{Tools: x.Tools}, Grant: x.Grant, Grants: maps.Clone(x.Grants), Tool: x.Tool,
			Propose: true, Budgets: x.Budgets, Client: x.Client, Again: x.Again}})
	case call.status == ready && call.needsTurn():
		return one(call.admission())
	case call.status == ready && call.decision.Delegates():
		// The command may be repeated: the child's run has a fixed id, so it is found again.
		return one(tenon.Command{Step: call.step, Kind: CommandChild, Idempotent: true,
			After: max(call.delay, x.After), Data: mustJSON(ChildCommand{
				Name: call.tool.Name, Server: call.decision.Server, Agent: call.decision.Remote,
				Arguments: call.decision.Arguments, Inputs: x.Inputs, Debug: x.Debug,
				Depth: c.bounds.Depth, MaxDepth: c.bounds.MaxDepth, Grant: x.Inner, Grants: x.Grants,
				Allowance: x.Budget,
				Target:    call.decision.Target})})
	case call.status == ready:
		cmd := call.clientCommand(x)
		if x.Timeout > 0 && (call.decision.Timeout == 0 || x.Timeout < call.decision.Timeout) {
			narrow := *call
			narrow.decision.Timeout = x.Timeout
			cmd = narrow.clientCommand(x)
		}
		cmd.After = max(cmd.After, x.After)
		return one(cmd)
	case call.status == delegated:
		return one(tenon.Command{Step: call.step, Kind: tenon.CommandWait, Data: mustJSON(call.asking())})
	}
	return one(tenon.Command{Step: c.call.step, Kind: tenon.CommandWait, After: c.call.decision.Expires,
		Data: mustJSON(c.call.asking())})
}
