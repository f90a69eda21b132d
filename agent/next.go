package agent

import (
	"maps"
	"slices"

	"github.com/tenonhq/tenon"
)

// Next returns what is to be done now. See [tenon.Core].
func (s *State) Next() []tenon.Command {
	switch {
	case s.ended != nil:
		return nil
	case s.cancel != nil:
		return s.nextCancelled()
	case s.asked:
		return nil
	case len(s.calls) > 0 && s.failed == nil:
		return s.nextCalls()
	case s.failed != nil:
		return s.done(tenon.RunFailed, s.stop, s.failed)
	case s.final != "" && s.stop != "":
		return s.done(tenon.RunCompleted, s.final, nil)
	case s.stop != "":
		return s.done(tenon.RunCompleted, s.stop, nil)
	}
	if s.spec.Task == TaskImport {
		return s.done(tenon.RunCompleted, tenon.StopEnd, nil)
	}
	if stop, err := s.limit(); stop != "" {
		return s.atLimit(stop, err)
	}
	if c, ok := s.nextCompact(); ok {
		return []tenon.Command{c}
	}
	switch {
	case s.spec.Task == TaskCompact:
		return s.done(tenon.RunCompleted, tenon.StopEnd, nil)
	case s.full:
		return s.done(tenon.RunFailed, tenon.StopContextFull, fullError(s.fullWhy))
	}
	if cmds := s.nextReserve(); cmds != nil {
		return cmds
	}
	return []tenon.Command{{
		Step:       s.modelStep(),
		Kind:       CommandModel,
		Idempotent: true,
		Local:      s.Prompt(),
	}}
}

// Prompt hands the conversation to the executor. Messages that came in since the
// last model call stand at its end; the started event of the call takes them
// into the history.
func (s *State) Prompt() *Prompt {
	messages := s.Messages()
	for _, text := range s.steer {
		messages = append(messages, tenon.UserMessage(text))
	}
	p := &Prompt{
		Model:      s.spec.Model,
		System:     s.spec.System,
		Messages:   messages,
		View:       s.View(),
		ToolChoice: s.toolChoice(),
		Output:     s.spec.Output,
		React:      s.spec.React,
		Budgets:    s.spec.Budgets,
		Tokens:     s.tokensNow(),
		Sampling:   s.spec.Sampling,
	}
	if s.spec.Timeout > 0 {
		p.Deadline = s.started.Add(s.spec.Timeout)
	}
	return p
}

// toolChoice is what the model is told now: who has to call a tool has done so with the
// first call, or would never come to an answer.
func (s *State) toolChoice() string {
	switch c := s.spec.ToolChoice; c {
	case "", ToolChoiceAuto, ToolChoiceNone:
		return c
	default:
		if s.hasCalled {
			return ToolChoiceAuto
		}
		return c
	}
}

// nextCalls names what the open calls of this turn need: a decision, a person,
// or to be run, at most Parallel of them at a time.
func (s *State) nextCalls() []tenon.Command {
	var cmds []tenon.Command
	free := s.spec.Parallel
	for _, c := range s.calls {
		if c.status == running {
			free--
		}
	}
	stop, limit := s.exhausted()
	// All calls of a turn are decided before the first one runs, so that their
	// decisions are stored together and a person sees all that is asked at once.
	undecided := slices.ContainsFunc(s.calls, func(c *call) bool { return c.status == proposed })
	for _, c := range s.calls {
		switch c.status {
		case proposed:
			cmds = append(cmds, tenon.Command{Step: c.step, Kind: CommandDecide, Idempotent: true,
				Local: &DecideCommand{Call: *c.tool, View: s.View(), Grant: s.spec.Grant, Grants: maps.Clone(s.grants),
					Budgets: s.spec.Budgets, Beyond: s.beyond, NoCalls: s.spec.ToolChoice == ToolChoiceNone}})
		case waiting, asking:
			cmds = append(cmds, tenon.Command{Step: c.step, Kind: tenon.CommandWait, After: c.decision.Expires, Data: mustJSON(c.asking())})
		case delegated: // what the child waits for has an end of its own
			cmds = append(cmds, tenon.Command{Step: c.step, Kind: tenon.CommandWait, Data: mustJSON(c.asking())})
		case running:
			cmds = append(cmds, c.waits()...)
		case ready:
			if stop != "" || undecided || free <= 0 {
				continue
			}
			free--
			switch {
			case c.needsTurn():
				cmds = append(cmds, c.admission())
			case c.decision.Kind == "":
				cmds = append(cmds, c.command(s.spec.Budgets, nil, nil))
			case c.decision.Kind == KindSearch:
				v := s.View()
				cmds = append(cmds, c.command(s.spec.Budgets, &v, nil))
			case c.decision.Kind == KindQuery:
				cmds = append(cmds, c.command(s.spec.Budgets, nil, s.tables))
			default:
				cmds = append(cmds, s.childCommand(c))
			}
		}
	}
	if stop != "" && free == s.spec.Parallel {
		return s.atLimit(stop, limit)
	}
	return cmds
}

func (c *call) command(b Budgets, v *View, data []tenon.Table) tenon.Command {
	resume := c.asked != nil && c.asked.Resume
	return tenon.Command{Step: c.step, Kind: CommandTool, Idempotent: c.decision.Idempotent || resume, After: c.delay,
		Local: &ToolCommand{Name: c.tool.Name, Server: c.decision.Server, Remote: c.decision.Remote,
			Arguments: c.decision.Arguments, Timeout: c.decision.Timeout, Input: c.input, Budgets: b, Round: c.rounds, View: v, Data: slices.Clip(data),
			Cost: c.decision.Cost, Cache: c.decision.Cache, Resume: resume}}
}

// needsTurn reports whether the call is to ask first when it may begin.
func (c *call) needsTurn() bool { return c.decision.Rate != "" && !c.admitted }

// admission asks for the call's turn under its tool's rate. It is asked for when the
// call could begin, so that no turn is lost on one that waits for a person.
func (c *call) admission() tenon.Command {
	return tenon.Command{Step: c.step, Kind: CommandDecide, Idempotent: true, Local: &DecideCommand{
		Admit: &Admission{Server: c.decision.Server, Remote: c.decision.Remote, Rate: c.decision.Rate, After: c.delay}}}
}

func (c *call) asking() Asking {
	a := Asking{Kind: AskApproval, Name: c.tool.Name, Server: c.decision.Server, Remote: c.decision.Remote,
		Arguments: c.decision.Arguments, Reason: c.decision.Reason}
	switch c.status {
	case asking:
		a.Kind, a.Requests = AskInput, without(c.asked.Requests, c.answered)
	case delegated:
		a.Kind, a.Run = AskChild, c.child
	}
	return a
}

// nextCancelled lets what is under way come to its end and then ends the run.
func (s *State) nextCancelled() []tenon.Command {
	for _, c := range s.calls {
		if c.status == running {
			return nil
		}
	}
	if s.asked {
		return nil
	}
	reason := s.cancel.Reason
	if reason == "" {
		reason = "the run was cancelled"
	}
	return s.done(tenon.RunCancelled, tenon.StopCancelled, tenon.Errorf(tenon.CodeCancelled, "%s", reason))
}

func (s *State) done(state tenon.RunState, stop tenon.StopReason, err *tenon.Error) []tenon.Command {
	return []tenon.Command{{Kind: tenon.CommandDone, Data: mustJSON(tenon.DoneData{
		State: state, Stop: stop, Answer: s.answer, Error: err,
		Data: mustJSON(Summary{Turns: s.begun, ToolCalls: s.count, Usage: s.usage, Cost: s.cost, Agent: s.spec.Agent}),
	})}}
}

// Summary is the core's own part of a [tenon.DoneData].
type Summary struct {
	Turns     int         `json:"turns"`
	ToolCalls int         `json:"tool_calls"`
	Usage     tenon.Usage `json:"usage"`           // of all model calls of the run
	Cost      tenon.USD   `json:"cost,omitempty"`  // of those whose price is known
	Agent     string      `json:"agent,omitempty"` // who had the conversation at the end
}
