package agent

import (
	"encoding/json"
	"maps"
	"strings"
	"time"

	"github.com/tenonhq/tenon"
)

// CallStep is the life of one tool call that no model made: proposed → decided →
// started → result, with the questions, approvals and turns on the way. A person's
// own call is one ([Direct]), and each call of a workflow. Like a core it is pure.
type CallStep struct {
	call    *call
	outcome Outcome
	failed  *tenon.Error
	unknown bool
	bounds  CallBounds
	used    Summary // by models that answered the server, and by runs that were called
}

// CallContext is what the commands of a [CallStep] say beside the call itself.
type CallContext struct {
	Tools   string // digest of the tool snapshot
	Grant   string // who allowed beforehand whatever would ask
	Grants  map[string]string
	Tool    *tenon.Tool   // nil: the snapshot has it
	Timeout time.Duration // of an attempt, beside what the rules say; 0: none
	After   time.Duration // before the first attempt
	// Of a run that is called: who allowed beforehand what it asks, what it may use, and
	// its tables.
	Inner  string
	Budget Allowance
	Inputs map[string]tenon.Table
	Debug  bool
}

// CallBounds are what bounds the calls of a run.
type CallBounds struct {
	Depth    int            // of a run that a call leads to
	MaxDepth int            // that such a run may have
	Called   map[string]int // how often each tool was called; nil: nobody counts
}

// NewCallStep returns the call as a step of a run, yet to be decided about.
func NewCallStep(run, step string, t tenon.ToolCall, b CallBounds) *CallStep {
	return &CallStep{call: &call{run: run, step: step, tool: &t}, bounds: b}
}

// NewChildStep returns a step that has an agent answer, which nobody decides about: what
// the agent does is.
func NewChildStep(run, step, server, name string, args json.RawMessage, b CallBounds) *CallStep {
	c := NewCallStep(run, step, tenon.ToolCall{Name: name, Arguments: args}, b)
	c.call.status = ready
	c.call.decision = Decision{Verdict: tenon.Allow, Kind: KindAgent, Server: server, Remote: name, Arguments: args}
	c.bound()
	return c
}

// Owns reports whether events of a step are about the call: its own, or those of
// questions that came up in it.
func (c *CallStep) Owns(step string) bool {
	parent, isQuestion := parentStep(step)
	return step == c.call.step || isQuestion && parent == c.call.step
}

// Apply folds an event that the call owns.
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
	if c.failed = c.reason(e); e.Kind != EventResult {
		return nil
	}
	if s := c.outcome.Spent; s != nil {
		c.used.Usage.Add(&s.Usage)
		c.used.Cost += s.Cost
		c.used.ToolCalls += s.ToolCalls
	}
	return nil
}

// bound ends a call that would be one too many.
func (c *CallStep) bound() {
	d := &c.call.decision
	key := grantKey(d.Server, d.Remote)
	switch {
	case d.delegates() && c.bounds.Depth > c.bounds.MaxDepth:
		c.call.settle(tooDeepResult(c.bounds.MaxDepth))
		c.failed = tenon.Errorf(tenon.CodeLimit, "not run: agents and workflows may call one another %d deep; raise limits.max_depth, or have less of them call others", c.bounds.MaxDepth)
		return
	case c.bounds.Called == nil:
		return
	case d.MaxCalls > 0 && c.bounds.Called[key] >= d.MaxCalls:
		c.call.settle(tooMany(c.call.tool.Name, d.MaxCalls, "run"))
	default:
		c.bounds.Called[key]++
		return
	}
	c.failed = tenon.Errorf(tenon.CodeLimit, "%s", strings.TrimPrefix(c.call.result.Content[0].Text, "Error: "))
}

// reason says why the call came to no result, nil where it did.
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
	var f Failure     // an Answer has its error under the same name
	_ = decode(e, &f) // call.apply has read it already
	switch {
	case e.Kind == tenon.EventUnknown:
		return tenon.Errorf(tenon.CodeUnknown, "%s", unknownText(f.Error))
	case f.Error == nil:
		return tenon.Errorf(tenon.CodeInternal, "%s", strings.TrimPrefix(c.call.result.Content[0].Text, "Error: "))
	}
	return f.Error
}

// refused is the error of a call that was not to be made, or could not be.
func refused(by, reason string) *tenon.Error {
	code := tenon.CodeDenied
	if by == ByCatalog {
		code = tenon.CodeInvalid
	}
	return tenon.Errorf(code, "%s", refusal(by, reason))
}

// IsRunning reports whether an attempt is under way.
func (c *CallStep) IsRunning() bool { return c.call.status == running }

// IsSettled reports whether the call has ended.
func (c *CallStep) IsSettled() bool { return c.call.status == settled }

// Outcome is how the call ended; without a result the error says why. Unknown says
// that it may or may not have taken effect.
func (c *CallStep) Outcome() (o *Outcome, unknown bool, err *tenon.Error) {
	if c.failed != nil {
		return nil, c.unknown, c.failed
	}
	return &c.outcome, false, nil
}

// Used is what the call has cost so far.
func (c *CallStep) Used() Summary { return c.used }

// Granted says which tool a person allowed for good or for the session with an event
// of the call that is yet to be applied, and who did; "" for none. The key is one of
// [DecideCommand.Grants].
func (c *CallStep) Granted(e tenon.Event) (key, by string) {
	var r Ruling
	if e.Kind != EventDecision || e.Step != c.call.step || c.call.status != waiting || decode(e, &r) != nil || r.Verdict != tenon.Allow || r.Remember == "" {
		return "", ""
	}
	return grantKey(c.call.decision.Server, c.call.decision.Remote), r.By
}

// Next returns what the call needs now. The call is proposed with its decision, as no
// model did so.
func (c *CallStep) Next(x CallContext) []tenon.Command {
	one := func(cmd tenon.Command) []tenon.Command { return []tenon.Command{cmd} }
	switch call := c.call; {
	case call.status == settled:
		return nil
	case call.status == running:
		return call.waits()
	case call.status == proposed:
		return one(tenon.Command{Step: call.step, Kind: CommandDecide, Idempotent: true, Local: &DecideCommand{
			Call: *call.tool, View: View{Tools: x.Tools}, Grant: x.Grant, Grants: maps.Clone(x.Grants), Tool: x.Tool, Propose: true}})
	case call.status == ready && call.needsTurn():
		return one(call.admission())
	case call.status == ready && call.decision.delegates():
		// It may be repeated: the child's run has an id of its own and is found again.
		return one(tenon.Command{Step: call.step, Kind: CommandChild, Idempotent: true, After: max(call.delay, x.After), Data: mustJSON(ChildCommand{
			Name: call.tool.Name, Server: call.decision.Server, Agent: call.decision.Remote, Arguments: call.decision.Arguments, Inputs: x.Inputs, Debug: x.Debug,
			Depth: c.bounds.Depth, MaxDepth: c.bounds.MaxDepth, Grant: x.Inner, Grants: x.Grants, Allowance: x.Budget})})
	case call.status == ready:
		cmd := call.command(Budgets{}, nil, nil)
		if x.Timeout > 0 && (call.decision.Timeout == 0 || x.Timeout < call.decision.Timeout) {
			narrow := *call
			narrow.decision.Timeout = x.Timeout
			cmd = narrow.command(Budgets{}, nil, nil)
		}
		cmd.After = max(cmd.After, x.After)
		return one(cmd)
	case call.status == delegated:
		return one(tenon.Command{Step: call.step, Kind: tenon.CommandWait, Data: mustJSON(call.asking())})
	}
	return one(tenon.Command{Step: c.call.step, Kind: tenon.CommandWait, After: c.call.decision.Expires, Data: mustJSON(c.call.asking())})
}
