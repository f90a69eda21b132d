package agent_test

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/agent"
)

// TestForeign continues an imported conversation. Its texts and calls are kept. The provider's own data and the grants
// are dropped. The state of the imported run stays unchanged.
func TestForeign(t *testing.T) {
	said := tenon.UserMessage("q")
	wired := &tenon.Message{Role: tenon.RoleAssistant, Parts: []tenon.Part{
		{Type: tenon.PartOpaque, Wire: "anthropic", Raw: json.RawMessage(`{"type":"redacted_thinking"}`)},
		{Type: tenon.PartText, Text: "a", Wire: "anthropic", Raw: json.RawMessage(`{"type":"text"}`)},
		{Type: tenon.PartCall, Call: &tenon.ToolCall{ID: "x", Name: "f"}, Wire: "anthropic", Raw: json.RawMessage(`{}`)},
	}}
	given := &tenon.Message{Role: tenon.RoleTool, Parts: []tenon.Part{{Type: tenon.PartResult, Result: &tenon.ToolResult{ID: "x", Name: "f"}}}}
	spec := agent.Spec{Task: agent.TaskImport, History: []*tenon.Message{said, wired, given}, Grants: map[string]string{"s/f": "somebody"}}
	parent := agent.New(spec, nil)
	next := agent.New(agent.Spec{Question: "and now?", Model: "m"}, parent.Foreign())
	want := []*tenon.Message{said, {Role: tenon.RoleAssistant, Parts: []tenon.Part{
		{Type: tenon.PartText, Text: "a"}, {Type: tenon.PartCall, Call: &tenon.ToolCall{ID: "x", Name: "f"}}}}, given, tenon.UserMessage("and now?")}
	ignore := cmpopts.IgnoreUnexported(tenon.Message{})
	if diff := cmp.Diff(want, next.Messages(), ignore); diff != "" {
		t.Errorf("messages (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(want, next.History(), ignore); diff != "" {
		t.Errorf("history (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(spec.History, parent.History(), ignore); diff != "" {
		t.Errorf("the state itself has changed:\n%s", diff)
	}
	cmds := agent.New(agent.Spec{Question: "q2"}, next).Next() // grants of the import would reach this run
	if len(cmds) != 1 || cmds[0].Kind != agent.CommandModel {
		t.Errorf("%+v", cmds)
	}
	done := parent.Next()
	if len(done) != 1 || done[0].Kind != tenon.CommandDone {
		t.Errorf("a run that holds a conversation wants %+v", done)
	}
}
