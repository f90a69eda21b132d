package view_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/agent"
	"github.com/tenonhq/tenon/view"
)

// exampleTally has a value in every field.
func exampleTally() view.Tally {
	at := time.Date(2026, 1, 2, 3, 4, 5, 6, time.UTC)
	return view.Tally{Agent: "a", Model: "m", Session: "ses_1", Title: "héllo", Principal: "anna", Called: true,
		Ended: true, Created: at, Updated: at.Add(time.Second),
		Tools: []view.ToolTally{{Name: "add", Server: "calc", Identity: "project:calc", Remote: "sum", Calls: 9, Errors: 1,
			Denied: 2, Cached: 3, Unknown: 4, Bytes: 1 << 40, Cost: 5, Took: []int64{1, 0, 1 << 33}}, {Name: "none", Calls: 1}},
		Models: view.ModelTally{Calls: 3, Errors: 1, Unmetered: 1, Input: 100, Output: 20, CacheRead: 60, CacheWrite: 30, Cost: 7, Took: []int64{12, 13}}}
}

// TestTallyCode decodes what it encoded, and refuses everything that was cut off or changed in its form.
func TestTallyCode(t *testing.T) {
	t.Run("RP-26_round_trip", func(t *testing.T) {
		var r view.TallyReader
		for _, want := range []view.Tally{exampleTally(), {Created: time.Unix(0, 0).UTC(), Updated: time.Unix(0, 0).UTC()}} {
			got, err := r.Read(view.AppendTally(nil, &want))
			if diff := cmp.Diff(want, got); diff != "" || err != nil {
				t.Errorf("%v (-want +got):\n%s", err, diff)
			}
		}
	})
	t.Run("MD-8_earlier_version", func(t *testing.T) {
		want := view.Tally{Created: time.Unix(0, 0).UTC(), Updated: time.Unix(0, 0).UTC(), Models: view.ModelTally{Calls: 2, Input: 9}}
		for version, lacks := range map[byte]int{1: 3, 2: 1} {
			b := view.AppendTally(nil, &want)
			b[0] = version
			b = append(b[:len(b)-2-lacks], b[len(b)-2:]...) // without the last numbers; no durations and no tools follow
			var r view.TallyReader
			got, err := r.Read(b)
			if diff := cmp.Diff(want, got); diff != "" || err != nil {
				t.Errorf("version %d: %v (-want +got):\n%s", version, err, diff)
			}
		}
	})
	t.Run("RP-26_damaged", func(t *testing.T) {
		tally := exampleTally()
		whole := view.AppendTally(nil, &tally)
		var r view.TallyReader
		for n := range whole {
			if got, err := r.Read(whole[:n]); err == nil {
				t.Fatalf("the first %d bytes are read as %+v", n, got)
			}
		}
		if _, err := r.Read(append(whole, 0)); err == nil {
			t.Error("a byte too many is accepted")
		}
		whole[0]++
		if _, err := r.Read(whole); err == nil {
			t.Error("a later version is accepted")
		}
	})
}

// TestTallyOf summarizes a journal with a call that succeeded, one that was denied, and three model calls.
func TestTallyOf(t *testing.T) {
	at := func(ms int) time.Time { return time.Date(2026, 1, 2, 3, 4, 5, ms*1e6, time.UTC) }
	data := func(v any) json.RawMessage {
		b, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	decided := agent.Decision{Verdict: tenon.Allow, Server: "calc", Identity: "project:calc", Remote: "add"}
	denied := decided
	denied.Verdict = tenon.Deny
	run := tenon.Run{ID: "run_1", Session: "ses_1", Agent: "a", Model: "m", Title: "q", State: tenon.RunCompleted,
		Created: at(0), Updated: at(9)}
	got := view.TallyOf(run, []tenon.Event{
		{Step: "1", Kind: tenon.EventStarted, Time: at(1)},
		{Step: "1", Kind: agent.EventModel, Time: at(4), Data: data(answered(10, 2))},
		{Step: "1.0", Kind: agent.EventProposed, Data: json.RawMessage(`{"name":"add"}`)},
		{Step: "1.0", Kind: agent.EventDecided, Data: data(decided)},
		{Step: "1.0", Kind: agent.EventResult, Time: at(6),
			Data: data(agent.Outcome{Result: &tenon.Result{Content: []tenon.Content{tenon.Text("3")}}})},
		{Step: "1.1", Kind: agent.EventProposed, Data: json.RawMessage(`{"name":"add"}`)},
		{Step: "1.1", Kind: agent.EventDecided, Data: data(denied)},
		{Step: "2", Kind: tenon.EventStarted, Time: at(6)},
		{Step: "2", Kind: agent.EventFailed, Time: at(7), Data: json.RawMessage(`{}`)},
		{Step: "2", Kind: tenon.EventStarted, Time: at(7)},
		{Step: "2", Kind: agent.EventModel, Time: at(9), Data: data(answered(5, 1))},
	})
	if len(got.Tools) != 1 || got.Tools[0].Bytes == 0 {
		t.Fatalf("tools %+v", got.Tools)
	}
	got.Tools[0].Bytes = 0
	want := view.Tally{Agent: "a", Model: "m", Session: "ses_1", Title: "q", Principal: tenon.PrincipalLocal, Ended: true,
		Created: at(0), Updated: at(9),
		Tools: []view.ToolTally{{Name: "add", Server: "calc", Identity: "project:calc", Remote: "add", Calls: 2, Denied: 1,
			Took: []int64{0}}},
		Models: view.ModelTally{Calls: 3, Errors: 1, Input: 15, Output: 3, Took: []int64{3, 2}}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// FuzzTally reads any bytes as a tally. What it accepts has the same meaning when it is encoded again.
func FuzzTally(f *testing.F) {
	tally := exampleTally()
	f.Add(view.AppendTally(nil, &tally))
	f.Add([]byte{1, 0})
	f.Fuzz(func(t *testing.T, b []byte) {
		var r view.TallyReader
		got, err := r.Read(b)
		if err != nil {
			return
		}
		again, err := r.Read(view.AppendTally(nil, &got))
		if diff := cmp.Diff(got, again); diff != "" || err != nil {
			t.Errorf("%v:\n%s", err, diff)
		}
	})
}

func answered(input, output int) agent.Answered {
	return agent.Answered{Response: tenon.Response{Message: &tenon.Message{Role: tenon.RoleAssistant},
		Usage: &tenon.Usage{Input: input, Output: output}}}
}
