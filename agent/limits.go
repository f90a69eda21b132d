package agent

import (
	"cmp"
	"strconv"
	"strings"
	"time"

	"github.com/tenonhq/tenon"
)

// Values of Limits.OnLimit besides [OnLimitFail].
const (
	OnLimitFinal   = "final_response" // one more model request without tools
	OnLimitConfirm = "confirm"        // the run waits until a person allows it to continue
)

// defaultLimitPrompt is the user message that requests the last answer at a limit.
const defaultLimitPrompt = "The limit of this run is reached: no more tools can be used. Answer now with what you have."

// continueQuestion is the question to a person at a limit.
const continueQuestion = "Do you want me to continue?"

// finalTime is the timeout of the last model call.
const finalTime = 2 * time.Minute

// CommandFinal requests a last answer without tools; Local is a *Prompt.
const CommandFinal = "final"

// limit returns the limit that the next model call would exceed, and its error. It returns "" if there is none.
func (s *State) limit() (tenon.StopReason, *tenon.Error) {
	switch {
	case s.turn > s.lastTurn:
		return tenon.LimitTurns, tenon.Errorf(tenon.CodeLimit, "Iteration limit of %d reached. Tool use loop "+
			"exceeded maximum iterations; raise limits.max_turns, or --max-turns", s.spec.MaxTurns)
	case s.over != nil && s.over.Limit == tenon.LimitToolCalls:
		return s.over.Limit, tenon.Errorf(tenon.CodeLimit, "%s", s.over.Reason)
	case s.refused:
		return tenon.LimitToolCalls, tenon.Errorf(tenon.CodeLimit, "the run's limit of %d tool calls is reached; "+
			"raise limits.tool_calls", s.spec.MaxToolCalls)
	}
	return s.exhausted()
}

// exhausted returns the limit that allows no further step, not even pending tool calls of this turn, or "".
func (s *State) exhausted() (tenon.StopReason, *tenon.Error) {
	switch {
	case s.spec.MaxTokens > 0 && s.tokens() >= s.spec.MaxTokens:
		return tenon.LimitTokens, tenon.Errorf(tenon.CodeLimit, "the run's limit of %d tokens is reached (%d used); "+
			"raise limits.tokens", s.spec.MaxTokens, s.tokens())
	case s.spec.MaxCost > 0 && s.cost-s.spent.cost >= s.spec.MaxCost:
		return tenon.LimitCost, tenon.Errorf(tenon.CodeLimit, "the run's limit of %s is reached (%s spent); raise "+
			"limits.cost", s.spec.MaxCost, s.cost-s.spent.cost)
	case s.over != nil && s.over.Limit != tenon.LimitToolCalls:
		return s.over.Limit, tenon.Errorf(tenon.CodeLimit, "%s", s.over.Reason)
	case s.overtime():
		return tenon.LimitTime, s.timeError()
	}
	return "", nil
}

// spending is the tokens and the cost of a part of a run.
type spending struct {
	tokens int
	cost   tenon.USD
}

// tokens returns the tokens used since the run began or was last extended.
func (s *State) tokens() int { return s.usage.Input + s.usage.Output - s.spent.tokens }

// room returns the number of tool calls that the run may still make, or -1 if there is no limit.
func (s *State) room() int {
	if s.spec.MaxToolCalls <= 0 {
		return -1
	}
	return max(s.spec.MaxToolCalls-s.made, 0)
}

func (s *State) overtime() bool {
	return s.spec.Timeout > 0 && s.now.Sub(s.started) >= s.spec.Timeout
}

func (s *State) timeError() *tenon.Error {
	whose := ""
	if s.spec.Depth > 0 { // its limit is the time that its caller had left
		whose = ", or the time of what called it, such as the timeout of a workflow's step"
	}
	return tenon.Errorf(tenon.CodeLimit, "the run's time of %s is up; raise limits.run_timeout%s",
		s.spec.Timeout.Round(time.Millisecond), whose)
}

// atLimit returns the commands for a run that has reached a limit.
func (s *State) atLimit(stop tenon.StopReason, err *tenon.Error) []tenon.Command {
	switch {
	case s.spec.OnLimit == OnLimitFinal && s.begun > 0: // a run without any model call gets no last answer
		p := s.Prompt()
		p.Tools, p.ToolChoice = "", ""
		p.Timeout = finalTime // the run's own deadline has passed
		if s.final == "" {    // otherwise the first attempt has added the prompt
			p.Messages = append(p.Messages, tenon.UserMessage(s.limitPrompt()))
		}
		return []tenon.Command{{Step: s.finalStep(), Kind: CommandFinal, Idempotent: true, Local: p}}
	case s.spec.OnLimit == OnLimitConfirm:
		return []tenon.Command{{Step: s.modelStep(), Kind: tenon.CommandWait, After: s.spec.Expires,
			Data: mustJSON(Asking{
				Kind: AskLimit, Name: string(stop), Reason: continueQuestion + " " + err.Message})}}
	}
	return s.done(tenon.RunFailed, stop, err)
}

func (s *State) limitPrompt() string {
	return cmp.Or(s.spec.LimitPrompt, defaultLimitPrompt)
}

// finalStep returns the step id of the last model call. If this turn has calls, it is the id of the next turn, so
// that steps stay unique.
func (s *State) finalStep() string {
	if len(s.calls) > 0 {
		return strconv.Itoa(s.turn + 1)
	}
	return s.modelStep()
}

// beginFinal adds the start of the last model call to the history. Pending calls are closed without being run.
func (s *State) beginFinal(step string) {
	if s.final != "" {
		return
	}
	s.final, _ = s.limit()
	if len(s.calls) > 0 {
		s.closeTurn()
		if step != s.modelStep() { // in older journals it is part of the turn
			s.turn++
		}
	}
	s.takeIn()
	s.add(tenon.UserMessage(s.limitPrompt()))
}

// lastAnswer applies the answer that was requested at a limit. If the model calls tools and writes no text, it is
// asked once more. Without any answer, the run fails at its limit.
func (s *State) lastAnswer(r Answered, called bool) error {
	if called {
		s.closeTurn()
	}
	bad := r.Stop == tenon.StopBadCall
	called = called || bad
	silent := strings.TrimSpace(r.Message.Text()) == ""
	if called && silent && !s.insisted {
		s.insisted = true
		s.turn++
		s.add(tenon.UserMessage(s.limitPrompt()))
		return nil
	}
	s.stop, s.answered = r.Stop, true
	if r.Stop == tenon.StopToolUse || bad {
		s.stop, r.Stop = tenon.StopEnd, tenon.StopEnd // no tool can be used, so only the text counts
	}
	switch s.failed = stopError(r.Response); {
	case s.failed != nil:
	case silent && s.answer == "":
		s.stop = s.final
		s.failed = tenon.Errorf(tenon.CodeLimit, "a limit of the run is reached (%s), and the model gave no "+
			"last answer", s.final)
	case r.Misfit != "":
		s.failed = misfit(r.Misfit)
	}
	return nil
}

// applyContinue applies a person's answer to the question whether to continue, or the expiry of the question.
func (s *State) applyContinue(e tenon.Event) error {
	var r Ruling
	switch e.Kind {
	case EventDecision:
		if err := decode(e, &r); err != nil {
			return err
		}
	case tenon.EventExpired:
	default:
		return outOfPlace(e)
	}
	stop, limit := s.limit()
	if stop == "" {
		return nil // an earlier decision won; the engine informs the sender
	}
	if r.Verdict == tenon.Allow {
		s.beyond = s.beyond || s.over != nil // a person's decision overrides the budgets
		s.extend()
		return nil
	}
	s.stop, s.failed, s.answered = stop, limit, false
	return nil
}

// extend resets the limits of the run. It asks the shared budgets again.
func (s *State) extend() {
	s.started, s.lastTurn = s.now, s.turn-1+s.spec.MaxTurns
	s.spent, s.made, s.refused = spending{s.usage.Input + s.usage.Output, s.cost}, 0, false
	s.over, s.reserved, s.queued = nil, 0, 0
}
