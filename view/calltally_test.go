package view_test

import (
	"encoding/json"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/agent"
	"github.com/tenonhq/tenon/view"
)

// TestCallTally compares the short way with the fold of the whole journal.
func TestCallTally(t *testing.T) {
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	run := tenon.Run{ID: "run_1", Title: "call add", Principal: "anna", State: tenon.RunCompleted, Created: at,
		Updated: at.Add(time.Second)}
	decision := agent.Decision{Verdict: tenon.Allow, By: agent.ByPolicy, Server: "cälc", Identity: "project:calc",
		Remote: "add", Cost: 7}
	outcome := agent.Outcome{Result: &tenon.Result{Content: []tenon.Content{tenon.Text("3 < 4 é")}},
		Duration: 1500 * time.Millisecond}
	journal := func(change func(map[string]any)) []tenon.Event {
		data := map[string]any{tenon.EventRun: map[string]any{}, agent.EventProposed: tenon.ToolCall{Name: "a\"dd"},
			agent.EventDecided: decision, tenon.EventStarted: tenon.StartedData{Kind: agent.CommandTool},
			agent.EventResult: outcome, tenon.EventDone: tenon.DoneData{State: tenon.RunCompleted}}
		if change != nil {
			change(data)
		}
		var list []tenon.Event
		for i, kind := range []string{tenon.EventRun, agent.EventProposed, agent.EventDecided, tenon.EventStarted,
			agent.EventResult, tenon.EventDone} {
			step := "1.0"
			if kind == tenon.EventRun || kind == tenon.EventDone {
				step = ""
			}
			list = append(list, tenon.Event{Run: run.ID, Seq: uint64(i + 1), Time: at, Step: step, Kind: kind, Attempt: 1,
				Data: tenon.EventData(data[kind])})
		}
		return list
	}
	result := func(f func(*agent.Outcome)) func(map[string]any) {
		return func(data map[string]any) {
			o := outcome
			f(&o)
			data[agent.EventResult] = o
		}
	}
	denied := decision
	denied.Verdict = tenon.Deny
	for _, c := range []struct {
		name   string
		events []tenon.Event
		short  bool
	}{
		{"answered", journal(nil), true},
		{"tool error", journal(result(func(o *agent.Outcome) {
			o.Result = &tenon.Result{IsError: true, Content: []tenon.Content{tenon.Text("no")}}
		})), true},
		{"raw result", journal(result(func(o *agent.Outcome) {
			o.Result = &tenon.Result{Raw: json.RawMessage(`{ "content": [], "isError" : true, "x": "<>" }`)}
		})), true},
		{"misfit", journal(result(func(o *agent.Outcome) { o.Misfit = "no number" })), true},
		{"from the cache", journal(result(func(o *agent.Outcome) { o.Source, o.Of = agent.SourceCache, "run_0/1.0" })), false},
		{"without a result", journal(result(func(o *agent.Outcome) { o.Result = nil })), false},
		{"denied", journal(func(data map[string]any) { data[agent.EventDecided] = denied }), false},
		{"damaged", slices.Concat(journal(nil)[:2], []tenon.Event{{Kind: agent.EventDecided, Data: []byte(`{"cost":"`)}},
			journal(nil)[3:]), false},
		{"called twice", slices.Concat(journal(nil)[:5], journal(nil)[4:]), false},
		{"no end", journal(nil)[:5], false},
		{"more after the end", slices.Concat(journal(nil), journal(nil)[5:]), false},
		{"no events", nil, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, ok := view.CallTally(run, c.events)
			if ok != c.short {
				t.Fatalf("ok: %t, want %t", ok, c.short)
			}
			if !ok {
				return
			}
			if diff := cmp.Diff(view.TallyOf(run, c.events), got); diff != "" {
				t.Errorf("-TallyOf +CallTally:\n%s", diff)
			}
		})
	}
}
