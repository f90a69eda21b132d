package view_test

import (
	"encoding/json"
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

func data(v any) json.RawMessage {
	raw, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return raw
}
