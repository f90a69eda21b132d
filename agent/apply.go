package agent

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"

	"github.com/tenonhq/tenon"
)

// applyModel applies a model's answer: its tool calls, or the end of the run.
func (s *State) applyModel(e tenon.Event) error {
	var a Answered
	if err := decode(e, &a); err != nil {
		return err
	}
	r := a.Response
	if e.Step != s.modelStep() || len(s.calls) > 0 {
		return outOfPlace(e)
	}
	if r.Message == nil {
		r.Message = &tenon.Message{Role: tenon.RoleAssistant}
	}
	s.asked = false
	if r.Stop != tenon.StopBadCall {
		s.badCalls = 0
	}
	s.usage.Add(r.Usage)
	if r.Cost != nil {
		s.cost += *r.Cost
	}
	calls := r.Message.Calls()
	if r.Stop == tenon.StopContextFull && len(calls) == 0 && s.fills("") {
		return nil
	}
	if r.Usage != nil {
		s.calibrate(r.Usage.Input, len(s.messages))
	}
	s.add(r.Message)
	if r.Usage != nil {
		s.known, s.knownAt = r.Usage.Input+r.Usage.Output, len(s.messages)
	}
	s.answer = cmp.Or(r.Message.Text(), s.answer)
	if len(a.Output) > 0 {
		s.answer = string(a.Output)
	}
	// An answer that was cut off may contain half a call. So none of its calls runs, but each gets a result, so that
	// the history stays valid.
	whole := IsWhole(r.Stop)
	room := s.room()
	for i, t := range calls {
		c := &call{run: e.Run, step: s.modelStep() + "." + strconv.Itoa(i), tool: t}
		switch {
		case !whole:
			c.settle(tenon.ErrorResult(CutOffText(r.Stop)))
		case s.final != "":
			c.settle(tenon.ErrorResult(LimitText))
		case room >= 0 && i >= room:
			s.refused = true
			c.settle(tenon.ErrorResult(CallLimitText))
		}
		s.calls = append(s.calls, c)
	}
	s.count += len(calls)
	s.hasCalled = s.hasCalled || len(calls) > 0
	s.made += len(calls)
	switch {
	case s.final != "":
		return s.lastAnswer(a, len(calls) > 0)
	case whole && len(calls) > 0:
		s.settleTurn()
		return nil
	case len(calls) > 0:
		s.closeTurn()
	}
	switch {
	case r.Stop == tenon.StopPause:
		s.turn++ // the same turn is sent back, as the provider asks
	case r.Stop == tenon.StopEnd && len(s.steer) > 0:
		s.turn++ // a message arrived during the model's last answer
	case r.Stop == tenon.StopEnd && a.Misfit != "":
		s.applyMisfit(a.Misfit)
	case r.Stop == tenon.StopBadCall:
		s.applyBadCall(r.RawStop)
	default:
		s.stop, s.answered = r.Stop, true
		s.failed = stopError(r)
	}
	return nil
}

// fills records that the conversation does not fit the model's context, so that it is compacted before the next model
// call. It returns false if this was tried in this turn already, or if the run has reached its limit. why is the
// provider's message; it may be empty.
func (s *State) fills(why string) bool {
	if s.fullAt == s.turn || s.final != "" {
		return false
	}
	s.full, s.fullAt, s.fullWhy = true, s.turn, why
	return true
}

// fullError reports that the conversation is too long and that compaction cannot shorten it. why is the provider's
// message, which may give the size; it may be empty.
func fullError(why string) *tenon.Error {
	if why != "" {
		why = ": " + why
	}
	return tenon.Errorf(tenon.CodeTooLarge, "the conversation no longer fits the model's context, and there is "+
		"nothing in it to sum up; ask for less, or use a model with a larger one%s", why)
}

// closeTurn puts the results of the turn's calls into the history.
func (s *State) closeTurn() {
	s.add(s.results())
	s.moveState()
	s.calls = nil
}

// stopError returns an error if the model's answer is incomplete, and nil for a complete one.
func stopError(r tenon.Response) *tenon.Error {
	switch r.Stop {
	case tenon.StopEnd, tenon.StopToolUse:
		return nil
	case tenon.StopMaxTokens:
		return tenon.Errorf(tenon.CodeLimit, "the answer was cut off at the model's limit of output tokens; raise "+
			"max_tokens of the model")
	case tenon.StopContextFull:
		return tenon.Errorf(tenon.CodeTooLarge, "the conversation no longer fits the model's context; start a new "+
			"session or use a model with a larger one")
	case tenon.StopContentFilter:
		return tenon.Errorf(tenon.CodeModel, "the model's provider refused to answer (%s)", r.RawStop)
	default:
		return tenon.Errorf(tenon.CodeModel, "the model ended its answer with %q", r.RawStop)
	}
}

// applyAttempt applies an event of the current model call.
func (s *State) applyAttempt(e tenon.Event) error {
	switch e.Kind {
	case tenon.EventStarted:
		var d started
		if err := decode(e, &d); err != nil {
			return err
		}
		s.asked = true
		if d.Kind == CommandReserve {
			return nil
		}
		first := d.Kind == CommandFinal && s.final == ""
		if d.Kind == CommandFinal {
			s.beginFinal(e.Step)
		}
		if s.begunAt != s.turn || first {
			s.begun, s.begunAt = s.begun+1, s.turn
		}
		s.keepPartial(nil)
		s.takeIn()
	case EventFailed:
		var f Failure
		if err := decode(e, &f); err != nil {
			return err
		}
		s.asked = false
		s.keepPartial(f.Partial)
		if f.Error != nil && f.Error.Code == tenon.CodeTooLarge && s.fills(f.Error.Message) {
			return nil
		}
		if f.Error != nil && f.Error.Code == tenon.CodeTimeout && s.overtime() && s.final == "" {
			return nil // the run's time ended the call; limit reports that
		}
		s.stop = tenon.StopError
		switch s.failed = f.Error; {
		case s.failed == nil:
			s.failed = tenon.Errorf(tenon.CodeModel, "the model gave no answer")
		case s.failed.Code == tenon.CodeTooLarge && s.fullAt == s.turn: // compaction did not help
			s.stop, s.failed = tenon.StopContextFull, tenon.Errorf(tenon.CodeTooLarge,
				"the conversation does not fit the model's context, although it was made shorter; ask for less, "+
					"offer fewer tools, or use a model with a larger one: %s", f.Error.Message)
		}
	default: // interrupted: a model call can always be repeated
		var p Partial
		if err := decode(e, &p); err != nil {
			return err
		}
		s.keepPartial(&p)
		s.asked, s.paused = false, len(e.Data) > 0 // its process wrote the event before it ended
	}
	return nil
}

// takeIn adds the messages that arrived since the last model call to the history.
func (s *State) takeIn() {
	for _, text := range s.steer {
		s.add(tenon.UserMessage(text))
	}
	s.steer = nil
}

// applyCall applies an event of a tool call of the current turn.
func (s *State) applyCall(e tenon.Event) error {
	c := s.find(e.Step)
	if c == nil || c.status == settled {
		return outOfPlace(e)
	}
	if e.Kind == tenon.EventStarted && c.decision.Delegates() {
		c.allowance = s.share() // the same share as in the command
	}
	var o Outcome // set by an EventResult
	wasAsked := c.status == waiting
	if err := c.apply(e, &o); err != nil {
		return err
	}
	switch e.Kind {
	case EventDecided:
		s.count1(c)
	case tenon.EventUnknown:
		s.cost += c.decision.Cost
	case EventResult:
		s.cost += c.cost()
		s.ended1(c, &o)
	case EventHandoff:
		if err := s.applyHandoff(c, e); err != nil {
			return err
		}
	case EventDecision:
		if wasAsked {
			s.remember(c, e)
		}
	}
	s.settleTurn()
	s.spend(e)
	return nil
}

// remember keeps a grant for the session. One that is valid for good is in the store instead, where it can be revoked.
// Other calls that wait for the same approval get their own decision events from the process that made this decision.
func (s *State) remember(c *call, e tenon.Event) {
	var r Ruling
	_ = decode(e, &r) // call.apply has read it already
	if r.Verdict != tenon.Allow || r.Remember != RememberSession || r.IsNarrow() {
		return
	}
	if s.grants == nil {
		s.grants = map[string]string{}
	}
	s.grants[c.decision.Subject.key(c.decision.Server, c.decision.Remote)] = r.By
}

// settleTurn ends the turn once its last call is settled: all results go back in
// one message.
func (s *State) settleTurn() {
	if slices.ContainsFunc(s.calls, func(c *call) bool { return c.status != settled }) {
		return
	}
	s.closeTurn()
	s.turn++
	s.takeOver()
}

// apply applies an event of the call. It decodes the data of an EventResult into o.
func (c *call) apply(e tenon.Event, o *Outcome) error {
	switch e.Kind {
	case EventDecided:
		if err := decode(e, &c.decision); err != nil {
			return err
		}
		switch c.decision.Verdict {
		case tenon.Allow:
			c.status, c.allowed = ready, c.decision.By != ByPolicy
		case tenon.Ask:
			c.status = waiting
		default:
			c.settle(tenon.ErrorResult(RefusalText(c.decision.By, c.decision.Reason)))
		}
	case EventAdmitted:
		var a Admitted
		if err := decode(e, &a); err != nil {
			return err
		}
		if a.Refused != "" {
			c.settle(tenon.ErrorResult("not run: " + a.Refused))
			return nil
		}
		c.admitted, c.delay = true, a.Wait
	case EventDecision:
		return c.ruled(e)
	case tenon.EventExpired:
		c.settle(tenon.ErrorResult(c.expiry() + " within " + c.decision.Expires.String()))
	case EventChild:
		var w ChildWaits
		if err := decode(e, &w); err != nil {
			return err
		}
		c.status, c.child = delegated, w.Run
	case EventWake:
		if c.status == delegated {
			c.status, c.delay = ready, 0
		}
	case tenon.EventStarted:
		c.status, c.attempt, c.questions = running, e.Attempt, nil
	case tenon.EventInterrupted:
		c.status, c.delay, c.admitted = ready, 0, false
	case tenon.EventUnknown:
		var f Failure
		if err := decode(e, &f); err != nil {
			return err
		}
		c.settle(tenon.ErrorResult(UnknownText(f.Error)))
	case EventFailed:
		return c.fail(e)
	case EventInput:
		var in Input
		if err := decode(e, &in); err != nil {
			return err
		}
		c.status, c.asked, c.answered = asking, &in.InputRequired, in.Answered
		c.rounds++
	case EventAnswer:
		return c.replied(e)
	case EventResult:
		if err := decode(e, o); err != nil {
			return err
		}
		if o.Result == nil {
			o.Result = &tenon.Result{}
		}
		c.cached = o.Source == SourceCache
		c.settle(o.Result)
		c.result.Found, c.succeeded = o.Found, !o.Result.IsError
		if o.Misfit != "" && !o.Result.IsError {
			c.result.Content = append(slices.Clip(c.result.Content), tenon.Text(MisfitText(o.Misfit)))
		}
	}
	return nil
}

// ruled applies the decision of a person or of a rule about a call that waits for one.
func (c *call) ruled(e tenon.Event) error {
	var r Ruling
	if err := decode(e, &r); err != nil {
		return err
	}
	if c.status != waiting {
		return nil // an earlier decision won; the engine informs the sender
	}
	if r.Verdict != tenon.Allow {
		c.settle(tenon.ErrorResult(RefusalText(r.By, r.Reason)))
		return nil
	}
	if len(r.Arguments) > 0 {
		c.decision.Arguments = r.Arguments
	}
	c.status, c.allowed = ready, true
	return nil
}

// replied applies an answer to what a call asked for. The call is then repeated with it.
func (c *call) replied(e tenon.Event) error {
	if c.status != asking {
		return nil
	}
	var a Answer
	if err := decode(e, &a); err != nil {
		return err
	}
	if a.Error != nil { // the call is not repeated without an answer
		c.settle(tenon.ErrorResult(a.Error.Message))
		return nil
	}
	c.input = &a.InputAnswer
	c.input.State, c.status = c.asked.State, ready // the server gets its state back unchanged
	c.input.Responses = MergeResponses(c.answered, c.input.Responses)
	return nil
}

// expiry returns the text about a wait of the call that has expired.
func (c *call) expiry() string {
	switch {
	case c.status == asking && c.decision.IsClients():
		return "the client sent no result of this call"
	case c.status == asking:
		return "not run: nobody answered the question of this call"
	}
	return "not run: nobody allowed this call"
}

// fail applies a failed attempt. The call is tried again if that is safe; otherwise the model gets the error as its
// result.
func (c *call) fail(e tenon.Event) error {
	var f Failure
	if err := decode(e, &f); err != nil {
		return err
	}
	if f.Retry && c.attempt < maxAttempts {
		c.status, c.admitted = ready, false
		c.delay = retryDelay << max(c.attempt-1, 0)
		return nil
	}
	text := "the call was not made"
	if f.Error != nil {
		text = f.Error.Message
	}
	c.settle(tenon.ErrorResult(text))
	return nil
}

// cost returns the price of the call, or 0 if its result came from the cache.
func (c *call) cost() tenon.USD {
	if c.cached {
		return 0
	}
	return c.decision.Cost
}

// settle ends the call with a result.
func (c *call) settle(r *tenon.Result) {
	c.status, c.questions = settled, nil
	c.result = c.answer(r)
}

// answer converts a tool's result into the form that the model sees.
func (c *call) answer(r *tenon.Result) *tenon.ToolResult {
	content := r.Content
	if len(content) == 0 && len(r.Structured) > 0 {
		content = []tenon.Content{tenon.Text(string(r.Structured))}
	}
	if slices.ContainsFunc(content, func(b tenon.Content) bool { return b.Data != "" }) {
		content = slices.Clone(content)
		for i := range content {
			if content[i].Data != "" {
				content[i].Artifact = tenon.ArtifactID(c.run, c.step, i)
			}
		}
	}
	if r.IsError {
		content = append([]tenon.Content(nil), content...)
		if len(content) > 0 && content[0].Type == tenon.ContentText {
			content[0] = tenon.Text("Error: " + content[0].Text)
		} else {
			content = append([]tenon.Content{tenon.Text("Error: the tool reported a failure")}, content...)
		}
	}
	return &tenon.ToolResult{ID: c.tool.ID, Name: c.tool.Name, Content: content, IsError: r.IsError}
}

// MisfitText returns the text that the model gets next to a structured result that does not fit the tool's output
// schema.
func MisfitText(misfit string) string {
	return "[this result does not fit the output schema of the tool: " + misfit + "]"
}

// RefusalText returns the result that the model gets for a call that was refused: by is a constant such as [ByPolicy]
// or a person.
func RefusalText(by, reason string) string {
	switch {
	case by == ByCatalog:
		return reason // the reason is a correction for the model, not a refusal
	case reason == "":
		return fmt.Sprintf("the call was denied by %s", by)
	default:
		return fmt.Sprintf("the call was denied by %s: %s", by, reason)
	}
}

// UnknownText returns the result that the model gets for a call whose outcome is unknown. err may be nil.
func UnknownText(err *tenon.Error) string {
	text := "the outcome of this call is unknown: it was under way when its process ended"
	if err != nil {
		text = "the outcome of this call is unknown: " + err.Message
	}
	return text + ". It may or may not have taken effect; check before you repeat it."
}

func outOfPlace(e tenon.Event) error {
	return tenon.Errorf(tenon.CodeStore, "run %s: event %d (%s of step %q) does not follow from what came before; "+
		"the journal is damaged", e.Run, e.Seq, e.Kind, e.Step)
}
