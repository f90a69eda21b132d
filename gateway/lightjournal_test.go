package gateway_test

import (
	"context"
	"encoding/json"
	"regexp"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/gateway"
	"github.com/tenonhq/tenon/mcp"
)

// TestGW_25_SameJournal checks that a call that is journaled after it is sent has the journal of a run of the engine,
// byte for byte except ids, times and durations: the engine makes the same call with a key.
func TestGW_25_SameJournal(t *testing.T) {
	u := serveUpstream(t, mcp.ServerConfig{NoModern: true}, spacedTool, failingTool)
	w := open(t, upstreamConfig(u, "policy: {defaults: {approval: never}}\n"), gateway.Config{})
	c := w.client(t, mcp.Modern, ownToken)
	for _, tool := range []string{"echo", "write", "spaced", "fails"} {
		t.Run(tool, func(t *testing.T) {
			var journals [2][]string
			for i, key := range []string{"", "key-" + tool} {
				before := w.ids(t)
				if _, err := c.Call(t.Context(), tenon.Call{Tool: tool, Key: key,
					Arguments: json.RawMessage(`{"text":"A\u0301 <b>"}`)}); err != nil {
					t.Fatal(err)
				}
				run := ""
				until(t, "the journal", func() bool {
					for _, r := range w.runs(t) {
						if !slices.Contains(before, r.ID) && r.State.Ended() {
							run = r.ID
						}
					}
					return run != ""
				})
				_, events := w.kinds(t, run)
				for _, e := range events {
					e.Run = ""
					journals[i] = append(journals[i], volatile.ReplaceAllString(e.Step+" "+e.Kind+" "+string(e.Data), "$2"))
				}
				if replay, err := w.host.Runs().Open(run).Replay(t.Context()); err != nil || !replay.Same {
					t.Errorf("run %s: %+v, %v", run, replay, err)
				}
			}
			if diff := cmp.Diff(journals[1], journals[0]); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// volatile matches what differs between the journals of equal calls. The engine may repeat an idempotent call.
var volatile = regexp.MustCompile(`(,"idempotent":true)|("id":|"created":|"updated":|"duration_ns":)("[^"]*"|[0-9]+)`)

// failingTool answers with an error result.
var failingTool = mcp.ServerTool{
	Definition: json.RawMessage(`{"name":"fails","inputSchema":{"type":"object"}}`),
	Call: func(context.Context, *mcp.ToolRequest) (json.RawMessage, error) {
		return json.RawMessage(`{"content":[{"type":"text","text":"no"}],"isError":true}`), nil
	}}

// ids returns the ids of all runs.
func (w *world) ids(t *testing.T) (list []string) {
	t.Helper()
	for _, r := range w.runs(t) {
		list = append(list, r.ID)
	}
	return list
}
