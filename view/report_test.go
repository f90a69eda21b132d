package view_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/agent"
	"github.com/tenonhq/tenon/view"
)

// TestFoldCost checks the cost of a run with child runs. The cost of a child counts. A child without any cost, such as
// a workflow, does not turn an unknown cost into a known one.
func TestFoldCost(t *testing.T) {
	known := tenon.USD(30)
	for name, tt := range map[string]struct {
		spent tenon.USD
		want  *tenon.USD
	}{"nothing": {0, nil}, "something": {30, &known}} {
		r := view.Of([]tenon.Event{
			{Step: "1", Kind: agent.EventModel, Data: data(agent.Answered{Response: tenon.Response{Message: tenon.UserMessage("x")}})},
			{Step: "1.0", Kind: agent.EventResult, Data: data(agent.Outcome{Spent: &agent.Summary{Cost: tt.spent}})},
		}).Report(tenon.Run{})
		if (r.Cost == nil) != (tt.want == nil) || r.Cost != nil && *r.Cost != *tt.want {
			t.Errorf("%s: cost %v, want %v", name, r.Cost, tt.want)
		}
	}
}

// TestReportedUsage checks that a report tells unknown tokens from none.
func TestReportedUsage(t *testing.T) {
	answer := func(u *tenon.Usage) tenon.Event {
		return tenon.Event{Step: "1", Kind: agent.EventModel,
			Data: data(agent.Answered{Response: tenon.Response{Message: tenon.UserMessage("x"), Usage: u}})}
	}
	called := func(s agent.Summary) tenon.Event {
		return tenon.Event{Step: "1.0", Kind: agent.EventResult, Data: data(agent.Outcome{Spent: &s})}
	}
	three := &tenon.Usage{Input: 2, Output: 1}
	for name, tt := range map[string]struct {
		events []tenon.Event
		want   string // members of the report, and of the tally of models
	}{
		"MD-4_no_model":             {nil, `{"input_tokens":0,"output_tokens":0} 0 0`},
		"MD-4_unknown":              {[]tenon.Event{answer(nil), answer(nil)}, `null 2 2`},
		"MD-4_known":                {[]tenon.Event{answer(three)}, `{"input_tokens":2,"output_tokens":1} 0 0`},
		"MD-4_known_to_be_none":     {[]tenon.Event{answer(&tenon.Usage{})}, `{"input_tokens":0,"output_tokens":0} 0 0`},
		"MD-4_some_known":           {[]tenon.Event{answer(nil), answer(three)}, `{"input_tokens":2,"output_tokens":1} 1 1`},
		"MD-4_unknown_in_a_child":   {[]tenon.Event{called(agent.Summary{Unmetered: 2})}, `null 2 0`},
		"MD-4_unknown_and_a_child":  {[]tenon.Event{answer(nil), called(agent.Summary{Usage: *three})}, `{"input_tokens":2,"output_tokens":1} 1 1`},
		"MD-4_sampling_by_a_person": {[]tenon.Event{{Step: "1.0.1", Kind: agent.EventAnswer, Data: data(agent.Answer{By: "ann"})}}, `{"input_tokens":0,"output_tokens":0} 0 0`},
		"MD-4_sampling_by_a_model":  {[]tenon.Event{{Step: "1.0.1", Kind: agent.EventAnswer, Data: data(agent.Answer{Model: "m"})}}, `null 1 0`},
	} {
		t.Run(name, func(t *testing.T) {
			r := view.Of(tt.events).Report(tenon.Run{})
			tally := view.TallyOf(tenon.Run{}, tt.events)
			if got := fmt.Sprintf("%s %d %d", data(r.Usage), r.Unmetered, tally.Models.Unmetered); got != tt.want {
				t.Errorf("got %s, want %s", got, tt.want)
			}
			if r.Usage == nil && r.Tokens() != (tenon.Usage{}) {
				t.Errorf("%+v", r.Tokens())
			}
		})
	}
}

func data(v any) json.RawMessage {
	raw, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return raw
}
