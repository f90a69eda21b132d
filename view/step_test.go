package view_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/view"
)

func TestSteps(t *testing.T) {
	began := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	at := func(ms int, step, kind string, attempt int, data string) tenon.Event {
		return tenon.Event{Time: began.Add(time.Duration(ms) * time.Millisecond), Step: step, Kind: kind, Attempt: attempt, Data: json.RawMessage(data)}
	}
	events := []tenon.Event{
		at(0, "", "run", 0, `{}`),
		at(0, "1", "started", 1, `{"kind":"model"}`),
		at(100, "1", "model", 1, `{"model":"m","stop":"tool_use","usage":{"input_tokens":3,"output_tokens":4}}`),
		at(100, "1.0", "proposed", 0, `{"name":"add"}`),
		at(100, "1.0", "decided", 0, `{"verdict":"ask","by":"policy","server":"t","remote_name":"add"}`),
		at(100, "1.1", "proposed", 0, `{"name":"nope"}`),
		at(100, "1.1", "decided", 0, `{"verdict":"deny","by":"catalog","reason":"not found"}`),
		at(900, "1.0", "decision", 0, `{"verdict":"allow","by":"ann"}`),
		at(950, "", "message", 0, `{"text":"quick","by":"bob"}`),
		at(1000, "1.0", "started", 1, `{"kind":"tool"}`),
		at(1200, "1.0", "failed", 1, `{"error":{"code":"unreachable","message":"gone"},"retry":true}`),
		at(1700, "1.0", "started", 2, `{"kind":"tool"}`),
		at(1800, "1.0", "result", 2, `{"result":{"content":[{"type":"text","text":"no"}],"isError":true}}`),
		at(1800, "2", "started", 1, `{"kind":"model"}`),
	}
	// A call that the core settled at a limit has no event of its own. The next answer shows that it has ended.
	limited := append(events[:3:3], at(100, "1.0", "proposed", 0, `{"name":"add"}`),
		at(100, "1.0", "decided", 0, `{"verdict":"allow","by":"policy","server":"t","remote_name":"add","max_calls":0}`),
		at(110, "2", "started", 1, `{"kind":"model"}`), at(120, "2", "model", 1, `{"model":"m","stop":"stop"}`))
	if got := view.Of(limited).Steps(began.Add(time.Hour))[1]; got.Outcome != "denied" || !strings.HasPrefix(got.Error, "not run: the limit of the run was reached") {
		t.Errorf("a call that a limit refused is %+v", got)
	}
	want := []view.Step{
		{Step: "1", Kind: "model", Name: "m", Millis: 100, Spans: []view.Span{{Millis: 100}}, Outcome: "ok", Attempts: 1, Usage: &tenon.Usage{Input: 3, Output: 4}},
		{Step: "1.0", Kind: "tool", Name: "t.add", Start: 100, Millis: 1100, Outcome: "error", Error: "no", By: "ann", Attempts: 2,
			Spans: []view.Span{{Start: 100, Millis: 800, Wait: true}, {Start: 1000, Millis: 200}, {Start: 1700, Millis: 100}}},
		{Step: "1.1", Kind: "tool", Name: "nope", Start: 100, Outcome: "invalid", Error: "not found", By: "catalog"},
		{Kind: "message", Name: "quick", Start: 950, Outcome: "ok", By: "bob"},
		{Step: "2", Kind: "model", Start: 1800, Millis: 200, Spans: []view.Span{{Start: 1800, Millis: 200}}, Outcome: "open", Attempts: 1},
	}
	ignore := cmpopts.IgnoreUnexported(view.Step{})
	if diff := cmp.Diff(want, view.Of(events).Steps(began.Add(2*time.Second)), ignore); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	// The end of the run ends its open steps, also a step that was interrupted just before.
	broken := append(events[:len(events):len(events)], at(1840, "2", "interrupted", 0, ``), at(1850, "", "done", 0, `{"state":"cancelled"}`))
	if got := view.Of(broken).Steps(began.Add(time.Hour)); got[4].Outcome != "stopped" || got[4].Millis != 40 {
		t.Errorf("a step that was broken off is %+v", got[4])
	}
	want[4].Millis, want[4].Spans[0].Millis, want[4].Outcome = 50, 50, "stopped"
	events = append(events, at(1850, "", "done", 0, `{"state":"cancelled"}`))
	if diff := cmp.Diff(want, view.Of(events).Steps(began.Add(time.Hour)), ignore); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	// No prefix of a journal may cause a panic, and no unreadable data either.
	for i := range events {
		view.Of(events[:i]).Steps(began)
		broken := append([]tenon.Event{}, events...)
		broken[i].Data = json.RawMessage(`[`)
		view.Of(broken[i:]).Steps(began)
	}
}
