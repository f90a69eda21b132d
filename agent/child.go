package agent

import (
	"cmp"
	"encoding/json"
	"time"

	"github.com/tenonhq/tenon"
)

// The kinds of a [Decision]. The kind of an ordinary tool call is empty.
const (
	KindAgent   = "agent"   // another agent answers in a separate run, then this run continues
	KindHandoff = "handoff" // another agent takes over the conversation
	// KindWorkflow is a workflow, which runs in a separate run.
	KindWorkflow = tenon.KindWorkflow
	// KindClient is a tool that the client of the run executes. The call waits for the client's result.
	KindClient = "client"
)

// callKinds is the table of the kinds of a [Decision]: the command that executes the call, and whether this command
// needs the run's view and tables.
var callKinds = map[string]struct {
	command      string
	view, tables bool
	asks         string // the kind of the [Asking] of a call that waits for input; empty means AskInput
}{
	"":           {command: CommandTool},
	KindSearch:   {command: CommandTool, view: true},
	KindQuery:    {command: CommandTool, tables: true},
	KindClient:   {command: CommandTool, asks: AskClient},
	KindAgent:    {command: CommandChild},
	KindWorkflow: {command: CommandChild, tables: true},
	KindHandoff:  {command: CommandHandoff},
}

// IsClients reports whether the client of the run executes the call.
func (d *Decision) IsClients() bool { return callKinds[d.Kind].asks == AskClient }

// Delegates reports whether the call starts a separate run, whose id is [tenon.ChildRun] of the step.
func (d *Decision) Delegates() bool { return callKinds[d.Kind].command == CommandChild }

// Kinds of event and command about other agents.
const (
	EventChild     = "child"   // the child run waits for a person; data: ChildWaits
	EventWake      = "wake"    // check the child run again, a signal
	EventHandoff   = "handoff" // another agent takes over; data: Handoff
	CommandChild   = "child"   // ask another agent; data: ChildCommand
	CommandHandoff = "handoff" // hand the conversation over; data: ChildCommand
)

// LiveChild is the kind of the live event that forwards an event of a child run; data: that event.
const LiveChild = "child_event"

// AskChild is the kind of an [Asking] of a run whose child waits for a person. The person decides about the child:
// Remote is its agent, Run its run.
const AskChild = "child"

// ChildCommand is the data of a [CommandChild] and a [CommandHandoff]. The child's
// run has the id RUN/STEP.
type ChildCommand struct {
	Name      string            `json:"name"`             // of the tool
	Server    string            `json:"server,omitempty"` // of the tool
	Agent     string            `json:"agent"`            // an entry of agents, or the tool of kind prompt or workflow
	Arguments json.RawMessage   `json:"arguments"`
	Depth     int               `json:"depth"`
	MaxDepth  int               `json:"max_depth"`
	Grant     string            `json:"grant,omitempty"`
	Grants    map[string]string `json:"grants,omitempty"`
	Allowance Allowance         `json:"allowance,omitzero"`
	// Inputs are the input tables of a workflow: port → table.
	Inputs map[string]tenon.Table `json:"inputs,omitempty"`
	// Debug keeps the working folder of a workflow that fails.
	Debug bool `json:"debug,omitempty"`
	// Target is copied from the decision; see [Decision.Target].
	Target string `json:"target,omitempty"`
}

// Allowance limits a child run to a part of what its caller has left. A zero field sets no limit.
type Allowance struct {
	ToolCalls int           `json:"tool_calls,omitempty"`
	Tokens    int           `json:"tokens,omitempty"`
	Cost      tenon.USD     `json:"cost,omitempty"`
	Time      time.Duration `json:"time,omitempty"` // nanoseconds
}

// Over returns s with limits that do not exceed the allowance.
func (a Allowance) Over(s Spec) Spec {
	s.MaxToolCalls = narrower(s.MaxToolCalls, a.ToolCalls)
	s.MaxTokens = narrower(s.MaxTokens, a.Tokens)
	s.MaxCost = narrower(s.MaxCost, a.Cost)
	s.Timeout = narrower(s.Timeout, a.Time)
	return s
}

// narrower returns the smaller of two limits; 0 is no limit.
func narrower[T int | tenon.USD | time.Duration](a, b T) T {
	if a == 0 || b != 0 && b < a {
		return b
	}
	return a
}

// ChildWaits is the data of an [EventChild].
type ChildWaits struct {
	Run string `json:"run"`
}

// Handoff is the data of an [EventHandoff]: the settings with which the conversation continues.
type Handoff struct {
	Agent      string    `json:"agent"`
	Model      string    `json:"model"`
	System     string    `json:"system,omitempty"`
	Tools      string    `json:"tools,omitempty"` // digest of the tool snapshot
	ToolChoice string    `json:"tool_choice,omitempty"`
	State      string    `json:"state,omitempty"`
	Excluded   string    `json:"tools_excluded,omitempty"` // see [Spec.Excluded]
	React      *React    `json:"react,omitempty"`
	Settings   *Sampling `json:"settings,omitempty"` // of the agent
	Text       string    `json:"text"`               // the result of the call, for the model
	// Warnings name the settings of the question that the agent's model is not sent.
	Warnings []string `json:"warnings,omitempty"`
}

// share returns the allowance of a child run: the remaining limits of the run, in equal parts for the child runs of
// this turn that have not begun.
func (s *State) share() Allowance {
	waiting := 0
	var given Allowance
	for _, c := range s.calls {
		switch {
		case !c.decision.Delegates():
		case c.status == running || c.status == delegated:
			given.ToolCalls += c.allowance.ToolCalls
			given.Tokens += c.allowance.Tokens
			given.Cost += c.allowance.Cost
		case c.status != settled:
			waiting++
		}
	}
	waiting = max(waiting, 1)
	var a Allowance
	if s.spec.MaxToolCalls > 0 {
		a.ToolCalls = max((s.room()-given.ToolCalls)/waiting, 1)
	}
	if s.spec.MaxTokens > 0 {
		a.Tokens = max((s.spec.MaxTokens-s.tokens()-given.Tokens)/waiting, 1)
	}
	if s.spec.MaxCost > 0 {
		a.Cost = max((s.spec.MaxCost-(s.cost-s.spent.cost)-given.Cost)/tenon.USD(waiting), 1)
	}
	if s.spec.Timeout > 0 {
		a.Time = max(s.spec.Timeout-s.now.Sub(s.started), time.Second)
	}
	return a
}

// callCommand returns the command that executes a call: it calls the tool, starts a child run, or hands the
// conversation over.
func (s *State) callCommand(c *call) tenon.Command {
	k := callKinds[c.decision.Kind]
	if k.command == CommandTool {
		var v *View
		if k.view {
			v = new(s.View())
		}
		var tables []tenon.Table
		if k.tables {
			tables = s.tables
		}
		return c.command(s.spec.Budgets, v, tables)
	}
	cmd := ChildCommand{Name: c.tool.Name, Server: c.decision.Server, Agent: c.decision.Remote,
		Arguments: c.decision.Arguments,
		Depth:     s.spec.Depth + 1, MaxDepth: s.spec.MaxDepth, Grant: s.spec.Grant, Grants: s.grants,
		Target: c.decision.Target}
	if k.tables {
		cmd.Inputs = s.inputs(cmd.Arguments)
	}
	if c.decision.Delegates() {
		cmd.Allowance = s.share()
	}
	// The command may be repeated: the child's run has a fixed id, so it is found again.
	return tenon.Command{Step: c.step, Kind: cmp.Or(k.command, CommandHandoff), Idempotent: true, Data: mustJSON(cmd)}
}

// tooDeep reports whether the call exceeds the limit of nested child runs.
func (s *State) tooDeep(c *call) bool {
	return c.decision.Delegates() && s.spec.Depth >= s.spec.MaxDepth
}

// applyHandoff records the agent that takes over at the end of the turn.
func (s *State) applyHandoff(c *call, e tenon.Event) error {
	var h Handoff
	if err := decode(e, &h); err != nil {
		return err
	}
	if s.handoff != nil {
		c.settle(tenon.ErrorResult("not done: the conversation is handed over to " + s.handoff.Agent + " already"))
		return nil
	}
	s.handoff = &h
	c.settle(&tenon.Result{Content: []tenon.Content{tenon.Text(h.Text)}})
	return nil
}

// takeOver continues with the agent of the turn's handoff, if there was one.
func (s *State) takeOver() {
	h := s.handoff
	if h == nil {
		return
	}
	s.handoff = nil
	s.handedTo = h.Agent
	s.spec.Agent, s.spec.Model, s.spec.System, s.spec.Tools, s.spec.ToolChoice = h.Agent, h.Model, h.System, h.Tools,
		h.ToolChoice
	s.spec.React, s.spec.Settings, s.state, s.found, s.hasCalled = h.React, h.Settings, h.State, nil, false
	s.spec.Groups, s.spec.Selected, s.spec.Excluded, s.removed = nil, false, h.Excluded, nil
}

// HandedOver returns the agent to which the conversation was last handed over, in this run or in an ancestor that
// used the same agent. It returns "" if there was no handoff.
func (s *State) HandedOver() string { return s.handedTo }

// ended1 applies an outcome to the run: what a child run used, artifacts, found tools and tables.
func (s *State) ended1(c *call, o *Outcome) {
	if o.Spent != nil {
		s.usage.Add(&o.Spent.Usage)
		s.cost += o.Spent.Cost
		s.made += o.Spent.ToolCalls
	}
	s.artifacts = s.artifacts || o.Whole != nil
	s.addFound(o.Found)
	s.keepData(c, o)
}
