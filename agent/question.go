package agent

import (
	"encoding/json"
	"maps"
	"slices"

	"github.com/tenonhq/tenon"
)

// Question is the data of a [tenon.EventQuestion]: a request of a server during a tool call. Its step is CALL/NAME.
type Question struct {
	Method string          `json:"method"` // elicitation/create or sampling/createMessage
	Params json.RawMessage `json:"params,omitempty"`
	// Verdict says who answers. ask: a person; allow: a model, for sampling; deny: the question is refused for
	// Reason.
	Verdict tenon.Verdict `json:"verdict"`
	Reason  string        `json:"reason,omitempty"`
}

// QuestionKey is the key of a [Question] in the requests of its [Asking], and of the response in its [Answer].
const QuestionKey = "question"

// Answer is the data of an [EventAnswer].
type Answer struct {
	tenon.InputAnswer
	By     string `json:"by,omitempty"`
	Reason string `json:"reason,omitempty"`
	// Model, Usage and Cost are set if a model answered.
	Model string       `json:"model,omitempty"`
	Usage *tenon.Usage `json:"usage,omitempty"`
	Cost  *tenon.USD   `json:"cost,omitempty"`
	// Error is the error that the server gets instead of a response.
	Error *tenon.Error `json:"error,omitempty"`
}

// Input is the data of an [EventInput]: the server's requests, and the responses that needed no person, with their
// model usage.
type Input struct {
	tenon.InputRequired
	Answered json.RawMessage `json:"answered,omitempty"` // object: key → result
	Model    string          `json:"model,omitempty"`    // that gave some responses
	Usage    *tenon.Usage    `json:"usage,omitempty"`
	Cost     *tenon.USD      `json:"cost,omitempty"`
}

// question is an open question.
type question struct {
	step string
	Question
	decided bool // a person has allowed or denied a model's answer
}

// applyQuestion applies an event of a question of this call.
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

// waits returns wait commands for the questions that a person has to answer.
func (c *call) waits() []tenon.Command {
	var cmds []tenon.Command
	for _, q := range c.questions {
		if q.Verdict != tenon.Ask || q.decided {
			continue
		}
		a := Asking{Kind: AskInput, Name: c.tool.Name, Server: c.decision.Server, Remote: c.decision.Remote,
			Arguments: c.decision.Arguments, Reason: q.Reason, Live: true,
			Requests: mustJSON(map[string]any{QuestionKey: Request{q.Method, q.Params}})}
		if q.Method == MethodSample {
			a.Kind = AskSampling
		}
		cmds = append(cmds, tenon.Command{Step: q.step, Kind: tenon.CommandWait, After: c.decision.Expires,
			Data: mustJSON(a)})
	}
	return cmds
}

// MethodSample is the method of a [Question] that a model answers.
const MethodSample = "sampling/createMessage"

// Request is one request of an [Asking].
type Request struct {
	Method string          `json:"method"`
	Params json.RawMessage `json:"params,omitempty"`
}

// isAwaited reports whether the call itself is running, so that it does not only wait for a person.
func (c *call) isAwaited() bool {
	return c.status == running && !slices.ContainsFunc(c.questions,
		func(q *question) bool { return q.Verdict == tenon.Ask && !q.decided })
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

// used returns the usage and cost of a model that answered a server, or nil.
func used(e tenon.Event) (*tenon.Usage, tenon.USD) {
	if e.Kind != EventAnswer && e.Kind != EventInput {
		return nil, 0
	}
	var a Answer // an Input has the same names for its usage
	if json.Unmarshal(e.Data, &a) != nil || a.Usage == nil {
		return nil, 0
	}
	if a.Cost == nil {
		return a.Usage, 0
	}
	return a.Usage, *a.Cost
}

// spend adds the usage of a model that answered a server.
func (s *State) spend(e tenon.Event) {
	if usage, cost := used(e); usage != nil {
		s.usage.Add(usage)
		s.cost += cost
	}
}

// without removes the requests that have been answered.
func without(requests, answered json.RawMessage) json.RawMessage {
	var all, done map[string]json.RawMessage
	if len(answered) == 0 || json.Unmarshal(requests, &all) != nil || json.Unmarshal(answered, &done) != nil {
		return requests
	}
	maps.DeleteFunc(all, func(key string, _ json.RawMessage) bool { return done[key] != nil })
	return mustJSON(all)
}

// MergeResponses adds a person's responses to the automatic responses. Both are objects: key → result. If one cannot
// be read, it returns the person's responses.
func MergeResponses(answered, responses json.RawMessage) json.RawMessage {
	if len(answered) == 0 {
		return responses
	}
	var all, more map[string]json.RawMessage
	if json.Unmarshal(answered, &all) != nil || json.Unmarshal(responses, &more) != nil && len(responses) > 0 {
		return responses // unreadable responses are dropped, and the server asks again
	}
	maps.Copy(all, more)
	return mustJSON(all)
}
