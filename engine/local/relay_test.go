package local

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/engine"
)

// TestRelay_Combine joins deltas of one kind, step and attempt that follow each other, and keeps the order of all
// other live events. Stored events and the end of a wait are not relayed.
func TestRelay_Combine(t *testing.T) {
	delta := func(step, kind, text string) tenon.Event {
		data, _ := json.Marshal(engine.Delta{Kind: kind, Text: text})
		return tenon.Event{Step: step, Kind: engine.LiveDelta, Data: data}
	}
	other := func(step, kind string) tenon.Event { return tenon.Event{Step: step, Kind: kind} }
	for name, c := range map[string]struct {
		queued []tenon.Event
		want   string
	}{
		"nothing":        {nil, ""},
		"one kind":       {[]tenon.Event{delta("1", "text", "a"), delta("1", "text", "b<"), delta("1", "text", "c")}, "1 text ab<c"},
		"two kinds":      {[]tenon.Event{delta("1", "thinking", "a"), delta("1", "text", "b")}, "1 thinking a, 1 text b"},
		"two steps":      {[]tenon.Event{delta("1", "text", "a"), delta("2", "text", "b")}, "1 text a, 2 text b"},
		"reset between":  {[]tenon.Event{delta("1", "text", "a"), other("1", engine.LiveReset), delta("1", "text", "b")}, "1 text a, 1 reset, 1 text b"},
		"stored between": {[]tenon.Event{delta("1", "text", "a"), {Seq: 3, Kind: "model"}, delta("1", "text", "b")}, "1 text ab"},
		"waiting":        {[]tenon.Event{other("", engine.EventWaiting), other("1.0", "progress")}, "1.0 progress"},
		"no delta":       {[]tenon.Event{{Step: "1", Kind: engine.LiveDelta, Data: json.RawMessage("null")}, delta("1", "text", "b")}, "1 delta, 1 text b"},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, e := range combine(c.queued) {
				var d engine.Delta
				if e.Kind == engine.LiveDelta && json.Unmarshal(e.Data, &d) == nil && d.Kind != "" {
					got = append(got, fmt.Sprintf("%s %s %s", e.Step, d.Kind, d.Text))
				} else {
					got = append(got, e.Step+" "+e.Kind)
				}
			}
			if text := strings.Join(got, ", "); text != c.want {
				t.Errorf("combined: %q, want %q", text, c.want)
			}
		})
	}
}
