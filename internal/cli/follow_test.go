package cli

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/agent"
)

// TestTriedInChild checks that a failed attempt of a call in a called run is shown with the called run, even if a call
// of the followed run has the same step id.
func TestTriedInChild(t *testing.T) {
	var out, errs bytes.Buffer
	f := newFollower(newApp(stdio{strings.NewReader(""), &out, &errs}))
	raw := func(v any) json.RawMessage {
		b, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	show := func(e tenon.Event) {
		t.Helper()
		if err := f.show(e); err != nil {
			t.Fatal(err)
		}
	}
	call := func(run, name string) []tenon.Event {
		return []tenon.Event{
			{Run: run, Step: "1.0", Kind: agent.EventProposed, Data: raw(tenon.ToolCall{Name: name})},
			{Run: run, Step: "1.0", Kind: agent.EventDecided, Data: raw(agent.Decision{Verdict: tenon.Allow, Server: "s", Remote: name})},
			{Run: run, Step: "1.0", Kind: tenon.EventStarted, Attempt: 1}}
	}
	for _, e := range call("run_a", "delegate") {
		show(e)
	}
	inner := call("run_a/1.0", "fetch")
	inner = append(inner, tenon.Event{Run: "run_a/1.0", Step: "1.0", Kind: agent.EventFailed,
		Data: raw(agent.Failure{Error: tenon.Errorf(tenon.CodeUnreachable, "it is gone"), Retry: true})})
	for _, e := range inner {
		show(tenon.Event{Run: "run_a", Step: "1.0", Kind: agent.LiveChild, Data: raw(e)})
	}
	show(tenon.Event{Run: "run_a", Step: "2", Kind: tenon.EventStarted})
	if got := errs.String(); !strings.HasPrefix(got, "  ● s.fetch") || !strings.Contains(got, "it is gone") || strings.Contains(got, "s.delegate") {
		t.Errorf("shown is:\n%s", got)
	}
}

// TestAtALimit checks that a run that asks whether it may continue past its limit accepts exactly two answers.
func TestAtALimit(t *testing.T) {
	for typed, want := range map[string]tenon.Verdict{"s\ne\na\n\nYES\n": tenon.Allow, "session\nn enough\n": tenon.Deny} {
		var out, errs bytes.Buffer
		a := newApp(stdio{strings.NewReader(typed), &out, &errs})
		r, err := a.askRuling(t.Context(), agent.Asking{Kind: agent.AskLimit}, nil)
		if err != nil || r.Verdict != want || r.Remember != "" || r.Arguments != nil {
			t.Errorf("%q: %+v, %v\n%s", typed, r, err, errs.String())
		}
	}
}
