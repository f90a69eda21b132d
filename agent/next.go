package agent

import (
	"cmp"
	"maps"
	"slices"

	"github.com/tenonhq/tenon"
)

// Next returns the commands that are due. See [tenon.Core].
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
	case s.badCalls > maxBadCalls && s.spec.React == nil: // each turn of a text loop may fail to parse
		return s.done(tenon.RunFailed, tenon.StopBadCall, s.badCallError())
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

// Prompt returns the next model request. Messages that arrived since the last model call are at its end; the started
// event of the call adds them to the history.
func (s *State) Prompt() *Prompt {
	messages := s.Messages()
	for _, text := range s.steer {
		messages = append(messages, tenon.UserMessage(text))
	}
	p := &Prompt{
		Agent:      s.spec.Agent,
		Groups:     s.spec.Groups,
		Selected:   s.spec.Selected,
		Excluded:   s.spec.Excluded,
		Model:      s.spec.Model,
		System:     s.spec.System,
		Messages:   messages,
		View:       s.View(),
		ToolChoice: s.toolChoice(),
		Output:     s.spec.Output,
		React:      s.spec.React,
		Budgets:    s.spec.Budgets,
		Tokens:     s.tokensNow(),
		Sampling:   s.sampling(),
	}
	if s.spec.Timeout > 0 {
		p.Timeout = max(s.spec.Timeout-s.now.Sub(s.started), 1)
	}
	return p
}

// toolChoice returns the tool choice of the next request. After the first tool call it is auto, because a model that
// has to call a tool in each answer would never finish.
func (s *State) toolChoice() string {
	c := s.spec.ToolChoice
	choice := tenon.ParseChoice(c)
	switch {
	case c == "":
		return c
	case choice.Forces() && s.hasCalled:
		return ToolChoiceAuto
	case choice.Names == nil:
		return c
	}
	return choice.Without(s.removed).String()
}

// onlyTools returns the tools to which the tool choice limits the run, or nil if it does not.
func (s *State) onlyTools() []string {
	if c := tenon.ParseChoice(s.spec.ToolChoice); !c.Forces() {
		return c.Names
	}
	return nil
}

// nextCalls returns the commands for the open calls of this turn: decisions, questions to a person, and at most
// Parallel calls at a time.
func (s *State) nextCalls() []tenon.Command {
	var cmds []tenon.Command
	free := s.spec.Parallel
	for _, c := range s.calls {
		if c.status == running {
			free--
		}
	}
	stop, limit := s.exhausted()
	// All calls of a turn are decided before the first one runs. Their decisions are then stored together, and a
	// person sees all questions at once.
	undecided := slices.ContainsFunc(s.calls, func(c *call) bool { return c.status == proposed })
	for _, c := range s.calls {
		switch c.status {
		case proposed:
			cmds = append(cmds, tenon.Command{Step: c.step, Kind: CommandDecide, Idempotent: true,
				Local: &DecideCommand{Call: *c.tool, View: s.View(), Grant: s.spec.Grant, Grants: maps.Clone(s.grants),
					Budgets: s.spec.Budgets, Beyond: s.beyond, NoCalls: s.spec.ToolChoice == ToolChoiceNone,
					Only:    s.onlyTools(),
					Removed: slices.Contains(s.removed, c.tool.Name)}})
		case waiting, asking:
			cmds = append(cmds, tenon.Command{Step: c.step, Kind: tenon.CommandWait, After: c.decision.Expires,
				Data: mustJSON(c.asking())})
		case delegated: // the child's own question has a timeout
			cmds = append(cmds, tenon.Command{Step: c.step, Kind: tenon.CommandWait, Data: mustJSON(c.asking())})
		case running:
			cmds = append(cmds, c.waits()...)
		case ready:
			if stop != "" || undecided || free <= 0 {
				continue
			}
			free--
			if c.needsTurn() {
				cmds = append(cmds, c.admission())
			} else {
				cmds = append(cmds, s.callCommand(c))
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
			Arguments: c.decision.Arguments, Timeout: c.decision.Timeout, Input: c.input, Budgets: b, Round: c.rounds,
			View: v, Data: slices.Clip(data),
			Cost: c.decision.Cost, Cache: c.decision.Cache, Resume: resume, Target: c.decision.Target,
			Output: c.decision.Output,
			New:    c.decision.New, Allowed: c.allowed}}
}

// clientCommand returns the command of a call that no model made.
func (c *call) clientCommand(x CallContext) tenon.Command {
	cmd := c.command(x.Budgets, nil, nil)
	if x.Client { // the promise to clients: a call that began is not sent again
		tool := cmd.Local.(*ToolCommand)
		tool.Client, tool.Unsent = true, c.decision.Idempotent
		cmd.Idempotent = tool.Resume
	}
	return cmd
}

// needsTurn reports whether the call's rate limit has to be checked before it begins.
func (c *call) needsTurn() bool { return c.decision.Rate != "" && !c.admitted }

// admission returns the command that checks the rate limit of the call's tool. It is sent only when the call could
// begin, so that a call that waits for a person uses up no slot.
func (c *call) admission() tenon.Command {
	return tenon.Command{Step: c.step, Kind: CommandDecide, Idempotent: true, Local: &DecideCommand{
		Admit: &Admission{Server: c.decision.Server, Remote: c.decision.Remote, Rate: c.decision.Rate, After: c.delay}}}
}

func (c *call) asking() Asking {
	a := Asking{Kind: AskApproval, Name: c.tool.Name, Server: c.decision.Server, Remote: c.decision.Remote,
		Arguments: c.decision.Arguments, Reason: c.decision.Reason, Connector: c.tool.Connector}
	if c.status == waiting {
		a.Subject, a.Again = c.decision.Subject, c.decision.Again
	}
	switch c.status {
	case asking:
		a.Kind = cmp.Or(callKinds[c.decision.Kind].asks, AskInput)
		a.Requests = without(c.asked.Requests, c.answered)
	case delegated:
		a.Kind, a.Run = AskChild, c.child
	}
	return a
}

// nextCancelled waits until the running calls have ended, and then ends the run.
func (s *State) nextCancelled() []tenon.Command {
	for _, c := range s.calls {
		if c.status == running {
			return nil
		}
	}
	if s.asked {
		return nil
	}
	reason := cmp.Or(s.cancel.Reason, "the run was cancelled")
	return s.done(tenon.RunCancelled, tenon.StopCancelled, tenon.Errorf(tenon.CodeCancelled, "%s", reason))
}

func (s *State) done(state tenon.RunState, stop tenon.StopReason, err *tenon.Error) []tenon.Command {
	return []tenon.Command{{Kind: tenon.CommandDone, Data: mustJSON(tenon.DoneData{
		State: state, Stop: stop, Answer: s.answer, Error: err,
		Data: mustJSON(Summary{Turns: s.begun, ToolCalls: s.count, Usage: s.usage, Cost: s.cost, Agent: s.spec.Agent}),
	})}}
}

// Summary is the core's part of a [tenon.DoneData].
type Summary struct {
	Turns     int         `json:"turns"`
	ToolCalls int         `json:"tool_calls"`
	Usage     tenon.Usage `json:"usage"` // tokens of all model calls of the run
	// Unmetered is the number of model calls whose provider reported no tokens. It is only in the outcome of a run that
	// another run called.
	Unmetered int       `json:"unmetered_calls,omitempty"`
	Cost      tenon.USD `json:"cost,omitempty"`  // cost of all model calls whose price is known
	Agent     string    `json:"agent,omitempty"` // the agent that had the conversation at the end
}
