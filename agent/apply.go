package agent

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/tenonhq/tenon"
)

// applyModel takes a model's answer: the turn's tool calls, or the end.
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
	if text := r.Message.Text(); text != "" {
		s.answer = text
	}
	if len(a.Output) > 0 {
		s.answer = string(a.Output)
	}
	// An answer that was cut off may hold half a call: none of its calls runs,
	// but each gets a result, so that the history stays valid.
	whole := r.Stop == tenon.StopToolUse || r.Stop == tenon.StopEnd
	room := s.room()
	for i, t := range calls {
		c := &call{run: e.Run, step: s.modelStep() + "." + strconv.Itoa(i), tool: t}
		switch {
		case !whole:
			c.settle(tenon.ErrorResult("not run: the answer was cut off (" + string(r.Stop) + ")"))
		case s.final != "":
			c.settle(tenon.ErrorResult("not run: the limit of the run was reached"))
		case room >= 0 && i >= room:
			s.refused = true
			c.settle(tenon.ErrorResult("not run: the run's limit of tool calls is reached"))
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
		s.turn++ // the turn goes back as it is
	case r.Stop == tenon.StopEnd && len(s.steer) > 0:
		s.turn++ // a message came in while the model wrote its last word
	case r.Stop == tenon.StopEnd && a.Misfit != "":
		s.applyMisfit(a.Misfit)
	case r.Stop == tenon.StopBadCall:
		s.add(tenon.UserMessage("Your last tool call could not be read (" + r.RawStop + "). Call the tool again with valid arguments, or answer without it."))
		s.turn++
	default:
		s.stop, s.answered = r.Stop, true
		s.failed = stopError(r)
	}
	return nil
}

// fills notes that the model could not take the conversation, which is then made
// shorter; false where that was tried for this turn, or is too late. Why is what the
// provider said, if it said anything.
func (s *State) fills(why string) bool {
	if s.fullAt == s.turn || s.final != "" {
		return false
	}
	s.full, s.fullAt, s.fullWhy = true, s.turn, why
	return true
}

// fullError says that the conversation is too long and cannot be made shorter. Why is what
// the provider said: by how much, and whether it was that at all.
func fullError(why string) *tenon.Error {
	if why != "" {
		why = ": " + why
	}
	return tenon.Errorf(tenon.CodeTooLarge, "the conversation no longer fits the model's context, and there is nothing in it to sum up; ask for less, or use a model with a larger one%s", why)
}

// closeTurn puts the results of the turn's calls into the history.
func (s *State) closeTurn() {
	s.add(s.results())
	s.moveState()
	s.calls = nil
}

// stopError says what is wrong with an answer that is not a whole one.
func stopError(r tenon.Response) *tenon.Error {
	switch r.Stop {
	case tenon.StopEnd, tenon.StopToolUse:
		return nil
	case tenon.StopMaxTokens:
		return tenon.Errorf(tenon.CodeLimit, "the answer was cut off at the model's limit of output tokens; raise max_tokens of the model")
	case tenon.StopContextFull:
		return tenon.Errorf(tenon.CodeTooLarge, "the conversation no longer fits the model's context; start a new session or use a model with a larger one")
	case tenon.StopContentFilter:
		return tenon.Errorf(tenon.CodeModel, "the model's provider refused to answer (%s)", r.RawStop)
	default:
		return tenon.Errorf(tenon.CodeModel, "the model ended its answer with %q", r.RawStop)
	}
}

// applyAttempt takes what happened to the model call that is under way.
func (s *State) applyAttempt(e tenon.Event) error {
	switch e.Kind {
	case tenon.EventStarted:
		var d started
		if err := decode(e, &d); err != nil {
			return err
		}
		if s.asked = true; d.Kind == CommandReserve {
			return nil
		}
		first := d.Kind == CommandFinal && s.final == ""
		if d.Kind == CommandFinal {
			s.beginFinal(e.Step)
		}
		if s.begunAt != s.turn || first {
			s.begun, s.begunAt = s.begun+1, s.turn
		}
		s.takeIn()
	case EventFailed:
		var f Failure
		if err := decode(e, &f); err != nil {
			return err
		}
		s.asked = false
		if f.Error != nil && f.Error.Code == tenon.CodeTooLarge && s.fills(f.Error.Message) {
			return nil
		}
		if f.Error != nil && f.Error.Code == tenon.CodeTimeout && s.overtime() && s.final == "" {
			return nil // it was the run's time that ended the call: what is next is for the limit to say
		}
		s.stop = tenon.StopError
		switch s.failed = f.Error; {
		case s.failed == nil:
			s.failed = tenon.Errorf(tenon.CodeModel, "the model gave no answer")
		case s.failed.Code == tenon.CodeTooLarge && s.fullAt == s.turn: // it was made shorter, and that was not enough
			s.stop, s.failed = tenon.StopContextFull, tenon.Errorf(tenon.CodeTooLarge,
				"the conversation does not fit the model's context, although it was made shorter; ask for less, offer fewer tools, or use a model with a larger one: %s", f.Error.Message)
		}
	default: // interrupted: a model call can always be made again
		s.asked = false
	}
	return nil
}

// takeIn puts the messages that came in since the last model call into the history.
func (s *State) takeIn() {
	for _, text := range s.steer {
		s.add(tenon.UserMessage(text))
	}
	s.steer = nil
}

// applyCall takes an event of one tool call of the current turn.
func (s *State) applyCall(e tenon.Event) error {
	c := s.find(e.Step)
	if c == nil || c.status == settled {
		return outOfPlace(e)
	}
	if e.Kind == tenon.EventStarted && c.decision.delegates() {
		c.allowance = s.share() // as the command had it
	}
	var o Outcome // of a result
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

// remember keeps what a person allowed for the session. Other calls that wait for the
// same get decisions of their own, from whoever took this one.
func (s *State) remember(c *call, e tenon.Event) {
	var r Ruling
	_ = decode(e, &r) // call.apply has read it already
	if r.Verdict != tenon.Allow || r.Remember == "" {
		return
	}
	if s.grants == nil {
		s.grants = map[string]string{}
	}
	s.grants[grantKey(c.decision.Server, c.decision.Remote)] = r.By
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

// apply takes an event of the call. That of a result is read into o.
func (c *call) apply(e tenon.Event, o *Outcome) error {
	switch e.Kind {
	case EventDecided:
		if err := decode(e, &c.decision); err != nil {
			return err
		}
		switch c.decision.Verdict {
		case tenon.Allow:
			c.status = ready
		case tenon.Ask:
			c.status = waiting
		default:
			c.settle(tenon.ErrorResult(refusal(c.decision.By, c.decision.Reason)))
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
		var r Ruling
		if err := decode(e, &r); err != nil {
			return err
		}
		if c.status != waiting {
			return nil // somebody else was first; the engine tells the sender
		}
		if r.Verdict != tenon.Allow {
			c.settle(tenon.ErrorResult(refusal(r.By, r.Reason)))
			return nil
		}
		if len(r.Arguments) > 0 {
			c.decision.Arguments = r.Arguments
		}
		c.status = ready
	case tenon.EventExpired:
		c.settle(tenon.ErrorResult("not run: nobody " + map[status]string{waiting: "allowed", asking: "answered the question of"}[c.status] +
			" this call within " + c.decision.Expires.String()))
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
		c.settle(tenon.ErrorResult(unknownText(f.Error)))
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
		if c.status != asking {
			return nil
		}
		var a Answer
		if err := decode(e, &a); err != nil {
			return err
		}
		if a.Error != nil { // no answer, and no call without one
			c.settle(tenon.ErrorResult(a.Error.Message))
			return nil
		}
		c.input = &a.InputAnswer
		c.input.State, c.status = c.asked.State, ready // the state goes back as it came
		c.input.Responses = merge(c.answered, c.input.Responses)
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
	}
	return nil
}

// fail takes an attempt that came to nothing: another one where that is safe,
// else the model is told.
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

// cost is the price of the call, once it has a result.
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

// answer makes a tool's result into what the model sees.
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

// refusal is what the model is told about a call that does not run.
func refusal(by, reason string) string {
	switch {
	case by == ByCatalog:
		return reason // not a refusal but a mistake: the reason says what was expected
	case reason == "":
		return fmt.Sprintf("the call was denied by %s", by)
	default:
		return fmt.Sprintf("the call was denied by %s: %s", by, reason)
	}
}

func unknownText(err *tenon.Error) string {
	text := "the outcome of this call is unknown: it was under way when its process ended"
	if err != nil {
		text = "the outcome of this call is unknown: " + err.Message
	}
	return text + ". It may or may not have taken effect; check before you repeat it."
}

func outOfPlace(e tenon.Event) error {
	return tenon.Errorf(tenon.CodeStore, "run %s: event %d (%s of step %q) does not follow from what came before; the journal is damaged", e.Run, e.Seq, e.Kind, e.Step)
}
