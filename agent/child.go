package agent

import (
	"encoding/json"
	"time"

	"github.com/tenonhq/tenon"
)

// The kinds of a [Decision], beside the empty one of a tool that is called.
const (
	KindAgent   = "agent"   // another agent answers, in a run of its own, and this one goes on
	KindHandoff = "handoff" // another agent takes over the conversation
	// KindWorkflow is a workflow that is run in a run of its own.
	KindWorkflow = tenon.KindWorkflow
)

// delegates reports whether the call is a run of its own.
func (d *Decision) delegates() bool { return d.Kind == KindAgent || d.Kind == KindWorkflow }

// The kinds of event and command about other agents.
const (
	EventChild     = "child"   // the run that was called waits for a person; data: ChildWaits
	EventWake      = "wake"    // look after that run again, a signal
	EventHandoff   = "handoff" // another agent has taken over; data: Handoff
	CommandChild   = "child"   // have another agent answer; data: ChildCommand
	CommandHandoff = "handoff" // hand the conversation over; data: ChildCommand
)

// LiveChild is the kind of the live event that passes on what happens in the run
// that a call began; data: the event of that run.
const LiveChild = "child_event"

// AskChild is the kind of an [Asking] of a run whose child waits for a person. It
// is the child that is decided about; Remote is the child's agent, Run its run.
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
	// Inputs are the tables that a workflow gets, by the names of its ports.
	Inputs map[string]tenon.Table `json:"inputs,omitempty"`
	// Debug keeps the folder of a workflow that fails.
	Debug bool `json:"debug,omitempty"`
}

// Allowance is what a child may use of what its caller has left. A zero field is
// no bound.
type Allowance struct {
	ToolCalls int           `json:"tool_calls,omitempty"`
	Tokens    int           `json:"tokens,omitempty"`
	Cost      tenon.USD     `json:"cost,omitempty"`
	Time      time.Duration `json:"time,omitempty"` // nanoseconds
}

// Over returns limits that are no wider than the allowance.
func (a Allowance) Over(s Spec) Spec {
	s.MaxToolCalls = narrower(s.MaxToolCalls, a.ToolCalls)
	s.MaxTokens = narrower(s.MaxTokens, a.Tokens)
	s.MaxCost = narrower(s.MaxCost, a.Cost)
	s.Timeout = narrower(s.Timeout, a.Time)
	return s
}

// narrower is the smaller of two bounds, of which 0 is none.
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

// Handoff is the data of an [EventHandoff]: what the conversation goes on with.
type Handoff struct {
	Agent      string `json:"agent"`
	Model      string `json:"model"`
	System     string `json:"system,omitempty"`
	Tools      string `json:"tools,omitempty"` // digest of the tool snapshot
	ToolChoice string `json:"tool_choice,omitempty"`
	State      string `json:"state,omitempty"`
	React      *React `json:"react,omitempty"`
	Text       string `json:"text"` // the result of the call, for the model
}

// share is what a call of another agent may use: an equal part, of what the run has
// left, for each call of this turn that is yet to begin.
func (s *State) share() Allowance {
	waiting := 0
	var given Allowance
	for _, c := range s.calls {
		switch {
		case !c.decision.delegates():
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

// childCommand wants another agent called, or the conversation handed over.
func (s *State) childCommand(c *call) tenon.Command {
	cmd := ChildCommand{Name: c.tool.Name, Server: c.decision.Server, Agent: c.decision.Remote, Arguments: c.decision.Arguments,
		Depth: s.spec.Depth + 1, MaxDepth: s.spec.MaxDepth, Grant: s.spec.Grant, Grants: s.grants}
	kind := CommandHandoff
	if c.decision.Kind == KindWorkflow {
		cmd.Inputs = s.inputs(cmd.Arguments)
	}
	if c.decision.delegates() {
		kind, cmd.Allowance = CommandChild, s.share()
	}
	// Both may be repeated: the child's run has an id of its own and is found again.
	return tenon.Command{Step: c.step, Kind: kind, Idempotent: true, Data: mustJSON(cmd)}
}

// tooDeep refuses a call of another agent by an agent that was called itself, and so
// on, once too often.
func (s *State) tooDeep(c *call) bool {
	return c.decision.delegates() && s.spec.Depth >= s.spec.MaxDepth
}

// applyHandoff notes who takes over at the end of the turn.
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

// takeOver has the agent that the conversation was handed over to go on.
func (s *State) takeOver() {
	h := s.handoff
	if h == nil {
		return
	}
	s.handoff = nil
	s.handedTo = h.Agent
	s.spec.Agent, s.spec.Model, s.spec.System, s.spec.Tools, s.spec.ToolChoice = h.Agent, h.Model, h.System, h.Tools, h.ToolChoice
	s.spec.React, s.state, s.found, s.hasCalled = h.React, h.State, nil, false
}

// HandedOver is the agent that the conversation was last handed over to in this run
// or an ancestor of it that the agent went on with; "" for none.
func (s *State) HandedOver() string { return s.handedTo }

// ended1 takes what the result of a call means for the run: what an agent used that
// was called, and that there is something to be read piece by piece.
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
