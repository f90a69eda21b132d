package model_test

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/model"
)

func TestDistinctCalls(t *testing.T) {
	call := func(id string, raw ...string) tenon.Part {
		p := tenon.Part{Type: tenon.PartCall, Call: &tenon.ToolCall{ID: id, Name: "x"}}
		for _, r := range raw {
			p.Wire, p.Raw = "anthropic", json.RawMessage(r)
		}
		return p
	}
	text := tenon.Part{Type: tenon.PartText, Text: "a"}
	for name, tt := range map[string]struct {
		parts, want []tenon.Part // if want is nil, the message stays the same
	}{
		"none":       {[]tenon.Part{text}, nil},
		"differ":     {[]tenon.Part{call("a"), text, call("b")}, nil},
		"no ids":     {[]tenon.Part{call(""), call("")}, nil},
		"twice":      {[]tenon.Part{text, call("a", "{}"), call("a", "{}")}, []tenon.Part{text, call("a", "{}"), call("a_2")}},
		"and taken":  {[]tenon.Part{call("a"), call("a"), call("a_2"), call("a")}, []tenon.Part{call("a"), call("a_2"), call("a_2_2"), call("a_3")}},
		"no call in": {[]tenon.Part{{Type: tenon.PartCall}, call("a")}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			m := &tenon.Message{Role: tenon.RoleAssistant, Parts: tt.parts, By: "m"}
			before, err := json.Marshal(m)
			if err != nil {
				t.Fatal(err)
			}
			got := model.DistinctCalls(m)
			switch {
			case tt.want == nil && got != m:
				t.Errorf("another message: %+v", got.Parts)
			case tt.want != nil && (got.Role != m.Role || got.By != m.By || !cmp.Equal(got.Parts, tt.want)):
				t.Errorf("%s", cmp.Diff(tt.want, got.Parts))
			}
			if after, err := json.Marshal(m); err != nil || string(after) != string(before) {
				t.Errorf("the message was changed: %s, %v", after, err)
			}
		})
	}
}
