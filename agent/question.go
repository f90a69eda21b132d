package agent

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/tenonhq/tenon"
)

// Question is the data of a [tenon.EventQuestion]: what a server asks while its
// tool is at work. Its step is that of the call, "/" and a name.
type Question struct {
	Method string          `json:"method"` // elicitation/create or sampling/createMessage
	Params json.RawMessage `json:"params,omitempty"`
	// Verdict says who answers: ask a person; allow, for sampling, a model at once;
	// deny nobody, for the reason given.
	Verdict tenon.Verdict `json:"verdict"`
	Reason  string        `json:"reason,omitempty"`
}

// QuestionKey is the key of the one request of a [Question] among the requests of
// its [Asking], and of the response to it in an [Answer].
const QuestionKey = "question"

// Answer is the data of an [EventAnswer].
type Answer struct {
	tenon.InputAnswer
	By     string `json:"by,omitempty"`
	Reason string `json:"reason,omitempty"`
	// Of a model that answered.
	Model string       `json:"model,omitempty"`
	Usage *tenon.Usage `json:"usage,omitempty"`
	Cost  *tenon.USD   `json:"cost,omitempty"`
	// Error is what the server was told in place of a response.
	Error *tenon.Error `json:"error,omitempty"`
}

// Input is the data of an [EventInput]: what the server wants, and the responses
// to those of its requests that no person had to answer, with what they used.
type Input struct {
	tenon.InputRequired
	Answered json.RawMessage `json:"answered,omitempty"` // object: key → result
	Model    string          `json:"model,omitempty"`    // that gave some of them
	Usage    *tenon.Usage    `json:"usage,omitempty"`
	Cost     *tenon.USD      `json:"cost,omitempty"`
}

// question is one that is open.
type question struct {
	step string
	Question
	decided bool // a person has said whether a model may answer
}

// parentStep returns the step in the middle of which a question came up.
func parentStep(step string) (parent string, isQuestion bool) {
	parent, _, isQuestion = strings.Cut(step, "/")
	return parent, isQuestion
}

// applyQuestion takes an event of a question that came up during a call.
func (c *call) applyQuestion(e tenon.Event) error {
	i := slices.IndexFunc(c.questions, func(q *question) bool { return q.step == e.Step })
	if e.Kind == tenon.EventQuestion {
		q := &question{step: e.Step}
		if i >= 0 || c.status != running {
			return outOfPlace(e)
		}
		if err := decode(e, &q.Question); err != nil {
			return err
		}
		c.questions = append(c.questions, q)
		return nil
	}
	if i < 0 {
		return outOfPlace(e)
	}
	switch e.Kind {
	case EventDecision:
		c.questions[i].decided = true
	case EventAnswer, tenon.EventExpired:
		c.questions = slices.Delete(c.questions, i, i+1)
	default:
		return outOfPlace(e)
	}
	return nil
}

// waits are the questions of a call that a person is to answer.
func (c *call) waits() []tenon.Command {
	var cmds []tenon.Command
	for _, q := range c.questions {
		if q.Verdict != tenon.Ask || q.decided {
			continue
		}
		a := Asking{Kind: AskInput, Name: c.tool.Name, Server: c.decision.Server, Remote: c.decision.Remote,
			Arguments: c.decision.Arguments, Reason: q.Reason, Live: true,
			Requests: mustJSON(map[string]any{QuestionKey: request{q.Method, q.Params}})}
		if q.Method == MethodSample {
			a.Kind = AskSampling
		}
		cmds = append(cmds, tenon.Command{Step: q.step, Kind: tenon.CommandWait, After: c.decision.Expires, Data: mustJSON(a)})
	}
	return cmds
}

// MethodSample is the method of a [Question] that a model answers.
const MethodSample = "sampling/createMessage"

type request struct {
	Method string          `json:"method"`
	Params json.RawMessage `json:"params,omitempty"`
}

// isAwaited reports whether the call is at work itself, and not only waiting for
// a person.
func (c *call) isAwaited() bool {
	return c.status == running && !slices.ContainsFunc(c.questions, func(q *question) bool { return q.Verdict == tenon.Ask && !q.decided })
}

// applyQuestion finds the call of a question.
func (s *State) applyQuestion(parent string, e tenon.Event) error {
	c := s.find(parent)
	if c == nil {
		return outOfPlace(e)
	}
	if err := c.applyQuestion(e); err != nil {
		return err
	}
	s.spend(e)
	return nil
}

// used returns what a model used that answered a server, nil for none.
func used(e tenon.Event) (*tenon.Usage, tenon.USD) {
	if e.Kind != EventAnswer && e.Kind != EventInput {
		return nil, 0
	}
	var a Answer // an Input has its figures under the same names
	if json.Unmarshal(e.Data, &a) != nil || a.Usage == nil {
		return nil, 0
	}
	if a.Cost == nil {
		return a.Usage, 0
	}
	return a.Usage, *a.Cost
}

// spend counts what a model used that answered a server.
func (s *State) spend(e tenon.Event) {
	if usage, cost := used(e); usage != nil {
		s.usage.Add(usage)
		s.cost += cost
	}
}

// without leaves those requests out that were answered already.
func without(requests, answered json.RawMessage) json.RawMessage {
	var all, done map[string]json.RawMessage
	if len(answered) == 0 || json.Unmarshal(requests, &all) != nil || json.Unmarshal(answered, &done) != nil {
		return requests
	}
	maps.DeleteFunc(all, func(key string, _ json.RawMessage) bool { return done[key] != nil })
	return mustJSON(all)
}

// merge adds the responses of a person to those that were there before.
func merge(answered, responses json.RawMessage) json.RawMessage {
	if len(answered) == 0 {
		return responses
	}
	var all, more map[string]json.RawMessage
	if json.Unmarshal(answered, &all) != nil || json.Unmarshal(responses, &more) != nil && len(responses) > 0 {
		return responses // what cannot be read is not answered, and the server asks again
	}
	maps.Copy(all, more)
	return mustJSON(all)
}

// The outcomes of an [Asked], beside [CallOpen].
const (
	AskedAnswered = "answered"
	AskedDeclined = "declined"
	AskedExpired  = "expired"
)

// foldQuestion takes an event of a question into the record of its call.
func (c *CallRecord) foldQuestion(e tenon.Event) {
	switch e.Kind {
	case tenon.EventQuestion:
		var q Question
		_ = json.Unmarshal(e.Data, &q) // ours; an unreadable one shows as a question without words
		c.Questions = append(c.Questions, Asked{Step: e.Step, Outcome: CallOpen, Reason: q.Reason,
			Requests: mustJSON(map[string]request{QuestionKey: {q.Method, q.Params}})})
		return
	case EventInput:
		var in Input
		_ = json.Unmarshal(e.Data, &in)
		c.Questions = append(c.Questions, Asked{Step: e.Step, Outcome: CallOpen, Requests: in.Requests, Model: in.Model, answered: in.Answered})
		return
	}
	// Questions come in rounds: the last of a step is the one that is meant.
	i := len(c.Questions) - 1
	for i >= 0 && c.Questions[i].Step != e.Step {
		i--
	}
	if i < 0 {
		return
	}
	q := &c.Questions[i]
	switch e.Kind {
	case EventDecision:
		var r Ruling
		_ = json.Unmarshal(e.Data, &r)
		if q.By, q.Reason = r.By, r.Reason; r.Verdict != tenon.Allow {
			q.Outcome = AskedDeclined
		}
	case EventAnswer:
		var a Answer
		_ = json.Unmarshal(e.Data, &a)
		a.Responses = merge(q.answered, a.Responses)
		if q.Outcome = a.outcome(); a.Model != "" {
			q.Model = a.Model
		}
		if a.By != "" {
			q.By = a.By
		}
		if a.Reason != "" {
			q.Reason = a.Reason
		}
	case tenon.EventExpired:
		var x tenon.ExpiredData
		_ = json.Unmarshal(e.Data, &x)
		q.Outcome, q.Reason = AskedExpired, x.Reason
	}
}

// outcome says whether any response is one that the server can go on with.
func (a *Answer) outcome() string {
	var responses map[string]struct {
		Action string `json:"action"`
	}
	if a.Error != nil || json.Unmarshal(a.Responses, &responses) != nil {
		return AskedDeclined
	}
	for _, r := range responses {
		if r.Action == "" || r.Action == "accept" {
			return AskedAnswered
		}
	}
	return AskedDeclined
}
