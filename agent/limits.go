package agent

import (
	"strconv"
	"strings"
	"time"

	"github.com/tenonhq/tenon"
)

// What happens at a limit, beside [OnLimitFail].
const (
	OnLimitFinal   = "final_response" // one more model request without tools
	OnLimitConfirm = "confirm"        // a person is asked whether to go on
)

// defaultLimitPrompt asks for the last answer of a run at its limit.
const defaultLimitPrompt = "The limit of this run is reached: no more tools can be used. Answer now with what you have."

// continueQuestion is what a person is asked at a limit.
const continueQuestion = "Do you want me to continue?"

// finalTime is how long the last answer may take.
const finalTime = 2 * time.Minute

// CommandFinal asks the model for a last answer, without tools; Local is a
// *Prompt.
const CommandFinal = "final"

// limit returns the limit that the next model call would be over, with what to
// tell about it, or "".
func (s *State) limit() (tenon.StopReason, *tenon.Error) {
	switch {
	case s.turn > s.lastTurn:
		return tenon.LimitTurns, tenon.Errorf(tenon.CodeLimit, "Iteration limit of %d reached. Tool use loop exceeded maximum iterations; raise limits.max_turns, or --max-turns", s.spec.MaxTurns)
	case s.over != nil && s.over.Limit == tenon.LimitToolCalls:
		return s.over.Limit, tenon.Errorf(tenon.CodeLimit, "%s", s.over.Reason)
	case s.refused:
		return tenon.LimitToolCalls, tenon.Errorf(tenon.CodeLimit, "the run's limit of %d tool calls is reached; raise limits.tool_calls", s.spec.MaxToolCalls)
	}
	return s.exhausted()
}

// exhausted returns the limit that allows no step of any kind any more, tool calls
// of the turn that are not begun included, or "".
func (s *State) exhausted() (tenon.StopReason, *tenon.Error) {
	switch {
	case s.spec.MaxTokens > 0 && s.tokens() >= s.spec.MaxTokens:
		return tenon.LimitTokens, tenon.Errorf(tenon.CodeLimit, "the run's limit of %d tokens is reached (%d used); raise limits.tokens", s.spec.MaxTokens, s.tokens())
	case s.spec.MaxCost > 0 && s.cost-s.spent.cost >= s.spec.MaxCost:
		return tenon.LimitCost, tenon.Errorf(tenon.CodeLimit, "the run's limit of %s is reached (%s spent); raise limits.cost", s.spec.MaxCost, s.cost-s.spent.cost)
	case s.over != nil && s.over.Limit != tenon.LimitToolCalls:
		return s.over.Limit, tenon.Errorf(tenon.CodeLimit, "%s", s.over.Reason)
	case s.overtime():
		return tenon.LimitTime, s.timeError()
	}
	return "", nil
}

// spending is what a run has used.
type spending struct {
	tokens int
	cost   tenon.USD
}

// tokens counts what the run used since it began, or was last allowed to go on.
func (s *State) tokens() int { return s.usage.Input + s.usage.Output - s.spent.tokens }

// room is how many tool calls the run may still make; below zero: any number.
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
	if s.spec.Depth > 0 { // of what called it, it has the rest
		whose = ", or the time of what called it, such as the timeout of a workflow's step"
	}
	return tenon.Errorf(tenon.CodeLimit, "the run's time of %s is up; raise limits.run_timeout%s", s.spec.Timeout.Round(time.Millisecond), whose)
}

// atLimit names what is to be done at a limit.
func (s *State) atLimit(stop tenon.StopReason, err *tenon.Error) []tenon.Command {
	switch {
	case s.spec.OnLimit == OnLimitFinal && s.begun > 0: // a run that has not begun has no last word
		p := s.Prompt()
		p.Tools, p.ToolChoice = "", ""
		p.Deadline = s.now.Add(finalTime) // past the run's own: it is the last word
		if s.final == "" {                // else it stands there since the first attempt
			p.Messages = append(p.Messages, tenon.UserMessage(s.limitPrompt()))
		}
		return []tenon.Command{{Step: s.finalStep(), Kind: CommandFinal, Idempotent: true, Local: p}}
	case s.spec.OnLimit == OnLimitConfirm:
		return []tenon.Command{{Step: s.modelStep(), Kind: tenon.CommandWait, After: s.spec.Expires, Data: mustJSON(Asking{
			Kind: AskLimit, Name: string(stop), Reason: continueQuestion + " " + err.Message})}}
	}
	return s.done(tenon.RunFailed, stop, err)
}

func (s *State) limitPrompt() string {
	if s.spec.LimitPrompt != "" {
		return s.spec.LimitPrompt
	}
	return defaultLimitPrompt
}

// finalStep is the step of the last model call: that of the next turn where this
// one has calls, so that whatever it calls has a step of its own.
func (s *State) finalStep() string {
	if len(s.calls) > 0 {
		return strconv.Itoa(s.turn + 1)
	}
	return s.modelStep()
}

// beginFinal takes the start of the last model call into the history. Calls that
// were not run by now never will be.
func (s *State) beginFinal(step string) {
	if s.final != "" {
		return
	}
	s.final, _ = s.limit()
	if len(s.calls) > 0 {
		s.closeTurn()
		if step != s.modelStep() { // older journals have it within the turn
			s.turn++
		}
	}
	s.takeIn()
	s.add(tenon.UserMessage(s.limitPrompt()))
}

// lastAnswer takes the answer that was asked for at a limit. A model that calls tools
// all the same, and says nothing, is asked once more; a run that has no answer even then
// has failed at its limit.
func (s *State) lastAnswer(r Answered, called bool) error {
	if called {
		s.closeTurn()
	}
	silent := strings.TrimSpace(r.Message.Text()) == ""
	if called && silent && !s.insisted {
		s.insisted = true
		s.turn++
		s.add(tenon.UserMessage(s.limitPrompt()))
		return nil
	}
	if s.stop, s.answered = r.Stop, true; r.Stop == tenon.StopToolUse {
		s.stop = tenon.StopEnd
	}
	switch s.failed = stopError(r.Response); {
	case s.failed != nil:
	case silent && s.answer == "":
		s.stop = s.final
		s.failed = tenon.Errorf(tenon.CodeLimit, "a limit of the run is reached (%s), and the model gave no last answer", s.final)
	case r.Misfit != "":
		s.failed = misfit(r.Misfit)
	}
	return nil
}

// applyContinue takes a person's answer to the question whether to go on, or that
// there was none in time.
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
		return nil // somebody else was first; the engine tells the sender
	}
	if r.Verdict == tenon.Allow {
		s.beyond = s.beyond || s.over != nil // a person's word stands above the budgets, too
		s.extend()
		return nil
	}
	s.stop, s.failed, s.answered = stop, limit, false
	return nil
}

// extend gives the run its limits anew. The budgets that it shares with others are
// asked again.
func (s *State) extend() {
	s.started, s.lastTurn = s.now, s.turn-1+s.spec.MaxTurns
	s.spent, s.made, s.refused = spending{s.usage.Input + s.usage.Output, s.cost}, 0, false
	s.over, s.reserved, s.queued = nil, 0, 0
}
