package main

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/transcript"
	"github.com/tenonhq/tenon/view"
)

// TestOpenCalls checks which results of a conversation are shown as states.
func TestOpenCalls(t *testing.T) {
	result := func(id string) tenon.Part {
		return tenon.Part{Type: tenon.PartResult, Result: &tenon.ToolResult{ID: id, Name: "f" + id}}
	}
	message := func(n int, parts ...tenon.Part) transcript.Message {
		return transcript.Message{Message: &tenon.Message{Role: tenon.RoleTool, Parts: parts}, N: n, Run: "run_1"}
	}
	open := openCalls{message: 2, states: map[string]string{"run_1/b": "running", "run_1/c": "waits for input"}}
	said := []transcript.Message{message(1, result("b")), message(2, result("a"), result("b"), result("c"))}
	rest, states := open.split(said[1])
	if diff := cmp.Diff([]string{"fb running", "fc waits for input"}, states); diff != "" {
		t.Error(diff)
	}
	if len(rest.Parts) != 1 || rest.Parts[0].Result.ID != "a" || len(said[1].Parts) != 3 {
		t.Errorf("rest %+v of %+v", rest.Parts, said[1].Parts)
	}
	if rest, states := open.split(said[0]); rest != said[0].Message || states != nil { // the id of an earlier call
		t.Errorf("%+v, %v", rest, states)
	}
	if got := open.ended([]transcript.Message{said[0], message(2, result("c"))}); len(got) != 1 || got[0].N != 1 {
		t.Errorf("%+v", got)
	}
}

// TestStateOfOpen checks the words for a call that has not ended.
func TestStateOfOpen(t *testing.T) {
	for name, test := range map[string]struct {
		call view.Call
		dead bool
		want string
	}{
		"approval": {view.Call{Verdict: tenon.Ask}, false, "waits for approval"},
		"running":  {view.Call{Verdict: tenon.Allow, Attempts: 1}, false, "running"},
		"decided":  {view.Call{Verdict: tenon.Allow}, false, "not begun"},
		"dead":     {view.Call{Verdict: tenon.Allow, Attempts: 1}, true, "interrupted; tenon runs resume continues the run"},
		"question": {view.Call{Attempts: 1, Questions: []view.Asked{{Outcome: view.CallOpen}}}, false, "waits for input"},
		"answered": {view.Call{Attempts: 2, Questions: []view.Asked{{Outcome: view.AskedAnswered}}}, false, "running"},
	} {
		if got := stateOfOpen(test.call, test.dead); got != test.want {
			t.Errorf("%s: %s, not %s", name, got, test.want)
		}
	}
}
