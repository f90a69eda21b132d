package view

import (
	"cmp"
	"encoding/json"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/agent"
)

// Asked is the record of one question of a server during a call, or of one round of requests for input.
type Asked struct {
	Step     string          `json:"step"`
	Requests json.RawMessage `json:"requests,omitempty"`
	Outcome  string          `json:"outcome"` // AskedAnswered, AskedDeclined, AskedExpired or CallOpen
	By       string          `json:"by,omitempty"`
	Reason   string          `json:"reason,omitempty"`
	Model    string          `json:"model,omitempty"` // the model that answered

	answered json.RawMessage // responses that were given without a person
}

// The outcomes of an [Asked], in addition to [CallOpen].
const (
	AskedAnswered = "answered"
	AskedDeclined = "declined"
	AskedExpired  = "expired"
)

// applyQuestion folds an event of a question during the call.
func (c *Call) applyQuestion(step string, data any) {
	switch d := data.(type) {
	case *agent.Question:
		requests, err := json.Marshal(map[string]agent.Request{agent.QuestionKey: {Method: d.Method, Params: d.Params}})
		if err != nil { // the params are not valid JSON
			requests = nil
		}
		c.Questions = append(c.Questions, Asked{Step: step, Outcome: CallOpen, Reason: d.Reason, Requests: requests})
		return
	case *agent.Input:
		c.Questions = append(c.Questions, Asked{Step: step, Outcome: CallOpen, Requests: d.Requests, Model: d.Model,
			answered: d.Answered})
		return
	}
	// A step may ask in several rounds. The event belongs to the last round.
	for i := len(c.Questions) - 1; i >= 0; i-- {
		if c.Questions[i].Step == step {
			c.Questions[i].apply(data)
			return
		}
	}
}

// apply folds the data of an event that follows the question.
func (q *Asked) apply(data any) {
	switch d := data.(type) {
	case *agent.Ruling:
		q.By, q.Reason = d.By, d.Reason
		if d.Verdict != tenon.Allow {
			q.Outcome = AskedDeclined
		}
	case *agent.Answer:
		q.Outcome = outcomeOf(d.Error, agent.MergeResponses(q.answered, d.Responses))
		q.Model = cmp.Or(d.Model, q.Model)
		q.By = cmp.Or(d.By, q.By)
		q.Reason = cmp.Or(d.Reason, q.Reason)
	case *tenon.ExpiredData:
		q.Outcome, q.Reason = AskedExpired, d.Reason
	}
}

// outcomeOf returns the outcome of a question that was answered. It depends on whether the server can use any of the
// responses.
func outcomeOf(failed *tenon.Error, responses json.RawMessage) string {
	var list map[string]struct {
		Action string `json:"action"`
	}
	if failed != nil || json.Unmarshal(responses, &list) != nil {
		return AskedDeclined
	}
	for _, r := range list {
		if r.Action == "" || r.Action == "accept" {
			return AskedAnswered
		}
	}
	return AskedDeclined
}
