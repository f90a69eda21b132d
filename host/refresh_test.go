package host_test

import (
	"context"
	"encoding/json"
	"iter"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/agent"
	"github.com/tenonhq/tenon/config"
	"github.com/tenonhq/tenon/host"
	"github.com/tenonhq/tenon/policy"
	"github.com/tenonhq/tenon/servers"
	"github.com/tenonhq/tenon/view"
)

// watchful is a model that lets the server add a tool, calls the tool, lets the server remove it, and calls it again.
// Notifications arrive asynchronously, so it calls another tool until it sees the change.
type watchful struct {
	sees  []string // changes of the tool in the requests, in order
	calls int
	last  string
}

func (*watchful) Name() string { return "watchful" }

func (m *watchful) Generate(_ context.Context, r *tenon.Request) iter.Seq2[tenon.Delta, error] {
	has := slices.ContainsFunc(r.Tools, func(t tenon.Tool) bool { return t.Name == "added" })
	now := map[bool]string{true: "added", false: "none"}[has]
	changed := len(m.sees) == 0 || m.sees[len(m.sees)-1] != now
	if changed {
		m.sees = append(m.sees, now)
	}
	m.calls++
	var next []string
	switch n := len(m.sees); {
	case changed && n == 1:
		next = []string{"mutate"}
	case changed && n == 2:
		next = []string{"added"}
	case m.last == "added" && n == 2:
		next = []string{"mutate"}
	case changed && n == 3:
		next = []string{"added"}
	case n < 3:
		next = []string{"counter"}
		time.Sleep(5 * time.Millisecond) // gives the notification time to arrive
	}
	m.last = strings.Join(next, "")
	message := &tenon.Message{Role: tenon.RoleAssistant}
	for i, name := range next {
		message.Parts = append(message.Parts, tenon.Part{Type: tenon.PartCall, Call: &tenon.ToolCall{
			ID: "c" + strings.Repeat("i", i) + string(rune('a'+m.calls%26)), Name: name, Arguments: json.RawMessage("{}")}})
	}
	stop := tenon.StopToolUse
	if len(next) == 0 {
		stop = tenon.StopEnd
		message.Parts = []tenon.Part{{Type: tenon.PartText, Text: "done"}}
	}
	return func(yield func(tenon.Delta, error) bool) {
		yield(tenon.Delta{Response: &tenon.Response{Message: message, Stop: stop}}, nil)
	}
}

// TestToolsOfARun checks that a run sees the tools that a server adds and removes, from its next turn on, and that its
// journal says so.
func TestToolsOfARun(t *testing.T) {
	for _, c := range []struct {
		name   string
		entry  servers.Config
		policy policy.Config
		sees   []string
	}{
		{"RP-8_http", servers.Config{}, policy.Config{}, []string{"none", "added", "none"}},
		{"RP-8_2025-11-25", servers.Config{Protocol: "2025-11-25"}, policy.Config{}, []string{"none", "added", "none"}},
		{"RP-8_excluded", servers.Config{Exclude: []string{"added"}}, policy.Config{}, []string{"none"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.entry.URL = overHTTP(t)
			m := &watchful{}
			h := openModel(t, t.TempDir(), m, &config.Config{Servers: map[string]servers.Config{"t": c.entry}, Policy: c.policy})
			r, err := host.Ask(t.Context(), h, host.Question{Text: "go", Grant: "test", MaxTurns: 40 + 360*(len(c.sees)-1)})
			if err != nil && tenon.ErrorCode(err) != tenon.CodeLimit {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.sees, m.sees); diff != "" {
				t.Fatal(diff)
			}
			if len(c.sees) == 1 {
				return
			}
			calls := callsOf(t, h, r.Run.ID)
			if !strings.Contains(calls, "t.added result") || !strings.Contains(calls, "the server removed this tool during the run") {
				t.Errorf("calls:\n%s", calls)
			}
			var told []agent.ToolsChanged
			for e, err := range h.Runs().Events(t.Context(), r.Run.ID, 0) {
				if err != nil {
					t.Fatal(err)
				}
				if e.Kind == agent.EventTools {
					told = append(told, view.As[agent.ToolsChanged](e))
				}
			}
			if len(told) != 2 || !slices.Equal(told[0].Added, []string{"added"}) || !slices.Equal(told[1].Removed, []string{"added"}) {
				t.Errorf("the journal has %+v", told)
			}
			replay, err := h.Runs().Open(r.Run.ID).Replay(t.Context())
			if err != nil || !replay.Same {
				t.Errorf("%+v, %v", replay, err)
			}
		})
	}
}

// TestRecordedToolsOfARun replays a cassette of a run whose server added and removed a tool.
func TestRecordedToolsOfARun(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "cassette")
	url := overHTTP(t)
	sees := func(record, replay string) []string {
		m := &watchful{}
		h, err := host.Open(t.Context(), host.Config{Home: t.TempDir(), Record: record, Replay: replay,
			Config: &config.Config{Servers: map[string]servers.Config{"t": {URL: url}}},
			Models: map[string]tenon.Model{"own": m}, Model: "own",
			LookupEnv: func(string) (string, bool) { return "", false }})
		if err != nil {
			t.Fatal(err)
		}
		r, err := host.Ask(t.Context(), h, host.Question{Text: "go", Grant: "test", MaxTurns: 400})
		if err != nil {
			t.Fatal(err)
		}
		calls := callsOf(t, h, r.Run.ID)
		if err := h.Close(); err != nil {
			t.Error(err)
		}
		return []string{calls}
	}
	recorded := sees(dir, "")
	if diff := cmp.Diff(recorded, sees("", dir)); diff != "" {
		t.Error("RP-8: " + diff)
	}
}
