package agent_test

import (
	"encoding/json"
	"slices"
	"testing"
	"time"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/agent"
	"github.com/tenonhq/tenon/view"
)

// TestQuestion has a server ask a question during a call. The core waits for a person while the call is running. The
// wait does not count as time of the run, and the usage of a model that answers does count.
func TestQuestion(t *testing.T) {
	d := newDriver(t, agent.Spec{Question: "q", Timeout: time.Hour}, nil)
	d.do = func(c tenon.Command) []tenon.Event {
		switch {
		case c.Kind == agent.CommandDecide:
			events := decided(c, tenon.Allow, false)
			var dec agent.Decision
			_ = json.Unmarshal(events[0].Data, &dec)
			dec.Server, dec.Remote, dec.Expires = "crm", "update", 24*time.Hour
			events[0].Data = data(dec)
			return events
		case c.Kind == agent.CommandModel && c.Step == "1":
			return answer(c.Step, "", "crm_update")
		case c.Kind == agent.CommandModel:
			return answer(c.Step, "end")
		}
		ask := func(step string, q agent.Question) {
			d.apply(tenon.Event{Step: step, Kind: tenon.EventQuestion, Data: data(q)})
		}
		ask("1.0/q1", agent.Question{Method: "elicitation/create", Params: json.RawMessage(`{"message":"who?"}`), Verdict: tenon.Ask})
		ask("1.0/q2", agent.Question{Method: agent.MethodSample, Verdict: tenon.Ask})
		ask("1.0/q3", agent.Question{Method: agent.MethodSample, Verdict: tenon.Allow})
		waits := d.core.Next()
		if len(waits) != 2 || waits[0].Kind != tenon.CommandWait || waits[0].Step != "1.0/q1" || waits[0].After != 24*time.Hour {
			t.Fatalf("it wants %s", show(waits))
		}
		var a agent.Asking
		if err := json.Unmarshal(waits[0].Data, &a); err != nil || a.Kind != agent.AskInput || a.Server != "crm" || a.Remote != "update" || !a.Live ||
			string(a.Requests) != `{"question":{"method":"elicitation/create","params":{"message":"who?"}}}` {
			t.Errorf("a person is asked %+v, %v", a, err)
		}
		_ = json.Unmarshal(waits[1].Data, &a)
		if a.Kind != agent.AskSampling {
			t.Errorf("a sampling is asked about as %q", a.Kind)
		}
		d.now = d.now.Add(72 * time.Hour) // three days of waiting do not count as time of the run
		d.apply(tenon.Event{Step: "1.0/q1", Kind: agent.EventAnswer, Data: data(agent.Answer{By: "ann", InputAnswer: tenon.InputAnswer{Responses: json.RawMessage(`{"question":{"action":"accept","content":{}}}`)}})})
		d.apply(tenon.Event{Step: "1.0/q2", Kind: agent.EventDecision, Data: data(agent.Ruling{Verdict: tenon.Allow, By: "bob"})})
		if waits := d.core.Next(); len(waits) != 0 {
			t.Errorf("it still wants %s", show(waits))
		}
		d.apply(tenon.Event{Step: "1.0/q2", Kind: agent.EventAnswer, Data: data(agent.Answer{Model: "m", InputAnswer: tenon.InputAnswer{Responses: json.RawMessage(`{"question":{"role":"assistant"}}`)}, Usage: &tenon.Usage{Input: 100, Output: 5}})})
		d.apply(tenon.Event{Step: "1.0/q3", Kind: tenon.EventExpired, Data: data(tenon.ExpiredData{Reason: "taken back"})})
		return result(c.Step, "done", false)
	}
	d.run()
	var sum agent.Summary
	if d.done == nil || d.done.State != tenon.RunCompleted || json.Unmarshal(d.done.Data, &sum) != nil || sum.Usage.Input != 120 || sum.Usage.Output != 9 {
		t.Fatalf("done %+v, used %+v", d.done, sum.Usage)
	}
	report := view.Of(d.journal).Report(tenon.Run{})
	if report.Tokens() != sum.Usage || len(report.ToolCalls) != 1 || report.ToolCalls[0].Outcome != view.CallDone {
		t.Errorf("report %+v", report)
	}
	var got []string
	for _, q := range report.ToolCalls[0].Questions {
		got = append(got, q.Step+" "+q.Outcome+" "+q.By+" "+q.Reason+" "+q.Model)
	}
	if want := []string{"1.0/q1 answered ann  ", "1.0/q2 answered bob  m", "1.0/q3 expired  taken back "}; !slices.Equal(got, want) {
		t.Errorf("questions %q, want %q", got, want)
	}
}

// TestInputInPart has a call that needs several responses. Some are given without a person, and a person gives the
// others.
func TestInputInPart(t *testing.T) {
	d := newDriver(t, agent.Spec{Question: "q"}, nil)
	calls := 0
	d.do = func(c tenon.Command) []tenon.Event {
		switch {
		case c.Kind == agent.CommandDecide:
			return decided(c, tenon.Allow, false)
		case c.Kind == agent.CommandModel && c.Step == "1":
			return answer(c.Step, "", "a")
		case c.Kind == agent.CommandModel:
			return answer(c.Step, "end")
		}
		if calls++; calls == 1 {
			return []tenon.Event{{Step: c.Step, Kind: agent.EventInput, Data: data(agent.Input{Answered: json.RawMessage(`{"roots":{"roots":[]}}`), Usage: &tenon.Usage{Input: 9},
				InputRequired: tenon.InputRequired{State: "s", Requests: json.RawMessage(`{"roots":{},"name":{}}`)}})}}
		}
		if cmd := said[agent.ToolCommand](c); cmd.Round != 1 || cmd.Input.State != "s" || string(cmd.Input.Responses) != `{"name":{"action":"accept"},"roots":{"roots":[]}}` {
			t.Errorf("the call is made again with %+v", cmd)
		}
		return result(c.Step, "ok", false)
	}
	d.run()
	d.apply(tenon.Event{Step: "1.0", Kind: agent.EventAnswer, Data: data(agent.Answer{InputAnswer: tenon.InputAnswer{Responses: json.RawMessage(`{"name":{"action":"accept"}}`)}})})
	d.run()
	if d.done == nil || d.done.State != tenon.RunCompleted {
		t.Fatalf("done %+v", d.done)
	}
}
