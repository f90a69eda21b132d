package gateway_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/agent"
	"github.com/tenonhq/tenon/gateway"
	"github.com/tenonhq/tenon/mcp"
)

// spacedResult has blanks, escapes, numbers and members that would change if it were decoded and encoded again.
const spacedResult = `{ "content" : [ {"type":"text", "text":"A\/b \u00e9" , "x" : 1.50e0} ], "token": "t-0\u0031" ,` +
	` "structuredContent":{ "b":1,"a":9007199254740993 } ,"vendor" :null  }`

// spacedTool answers with spacedResult.
var spacedTool = mcp.ServerTool{
	Definition: json.RawMessage(`{"name":"spaced","inputSchema":{"type":"object"},"annotations":{"readOnlyHint":true}}`),
	Call: func(context.Context, *mcp.ToolRequest) (json.RawMessage, error) {
		return json.RawMessage(spacedResult), nil
	}}

// kinds returns the kinds of the events of a run.
func (w *world) kinds(t *testing.T, run string) (kinds []string, events []tenon.Event) {
	t.Helper()
	events, err := w.host.Runs().Open(run).Journal(t.Context(), 0, 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range events {
		kinds = append(kinds, e.Kind)
	}
	return kinds, events
}

// TestGW_2_3_4_ResultBytesPass checks that the bytes of a result reach the client unchanged, over both transports and
// in all combinations of eras. Only the member with the type of a modern result is added or removed. A rule that masks
// a member changes only this member.
func TestGW_2_3_4_ResultBytesPass(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for of, up := range upstreams {
		stdio := fmt.Sprintf("servers: {up: {command: '%s', env: {%s: %s}}}\n", self, envServe, of)
		for via, text := range map[string]string{"stdio": stdio, "http": upstreamConfig(serveUpstream(t, up, spacedTool), "")} {
			for rule, more := range map[string]string{"": "", "redact": "policy: {defaults: {redact: [token]}}\n"} {
				w := open(t, text+more, gateway.Config{})
				want := spacedResult
				if rule != "" {
					want = strings.Replace(want, `"t-0\u0031"`, `"***"`, 1)
				}
				for name, era := range eras {
					t.Run(strings.Join([]string{name, "client", of, via, rule}, " "), func(t *testing.T) {
						r, err := w.client(t, era, ownToken).Call(t.Context(), tenon.Call{Tool: "spaced"})
						if err != nil {
							t.Fatal(err)
						}
						got := string(r.Raw)
						if name == "modern" {
							got = strings.Replace(got, `"resultType":"complete",`, "", 1)
						}
						if got != want {
							t.Errorf("result\n%s, want\n%s", got, want)
						}
					})
				}
			}
		}
	}
}

// blockingTool returns a tool that waits for a channel, or for the end of its call, and counts its calls.
func blockingTool(calls *atomic.Int32, began chan<- struct{}, end <-chan struct{}) mcp.ServerTool {
	return mcp.ServerTool{
		Definition: json.RawMessage(`{"name":"slow","inputSchema":{"type":"object"},"annotations":{"readOnlyHint":true}}`),
		Call: func(ctx context.Context, r *mcp.ToolRequest) (json.RawMessage, error) {
			calls.Add(1)
			began <- struct{}{}
			select {
			case <-end:
				return json.RawMessage(spacedResult), nil
			case <-ctx.Done():
				return nil, ctx.Err()
			}
		}}
}

// TestGW_25_CallUnderWayIsJournaled checks that a slow call is in the journal while it is in progress, marked as one
// that must not be repeated. Its client still gets the original bytes of the result.
func TestGW_25_CallUnderWayIsJournaled(t *testing.T) {
	var calls atomic.Int32
	began, end := make(chan struct{}, 2), make(chan struct{})
	w := open(t, upstreamConfig(serveUpstream(t, mcp.ServerConfig{}, blockingTool(&calls, began, end)), ""), gateway.Config{})
	c := w.client(t, mcp.LatestLegacy, ownToken)
	got := make(chan string, 1)
	go func() {
		r, err := c.Call(t.Context(), tenon.Call{Tool: "slow"})
		if err != nil {
			got <- err.Error()
			return
		}
		got <- string(r.Raw)
	}()
	<-began
	until(t, "the journal", func() bool { return len(w.runs(t)) == 1 })
	run := w.runs(t)[0]
	kinds, events := w.kinds(t, run.ID)
	if want := "run proposed decided started"; run.State != tenon.RunWorking || strings.Join(kinds, " ") != want {
		t.Errorf("under way: %s with events %v, want %s", run.State, kinds, want)
	}
	var started tenon.StartedData
	if err := json.Unmarshal(events[len(events)-1].Data, &started); err != nil || started.Idempotent {
		t.Errorf("the start of a read-only call: %+v, %v; it must not be repeated after a crash", started, err)
	}
	close(end)
	if raw := <-got; raw != spacedResult {
		t.Errorf("result %s", raw)
	}
	until(t, "the end of the run", func() bool { return w.runs(t)[0].State == tenon.RunCompleted })
	if calls.Load() != 1 {
		t.Errorf("%d calls", calls.Load())
	}
}

// TestGW_25_StoppedInFlightIsUnknown stops the host during a call. In the next process the call ends as unknown and is
// not made again, although its tool only reads.
func TestGW_25_StoppedInFlightIsUnknown(t *testing.T) {
	var calls atomic.Int32
	began := make(chan struct{}, 2)
	text := upstreamConfig(serveUpstream(t, mcp.ServerConfig{}, blockingTool(&calls, began, nil)), "")
	w := open(t, text, gateway.Config{})
	c := w.client(t, mcp.Modern, ownToken)
	go func() { _, _ = c.Call(t.Context(), tenon.Call{Tool: "slow"}) }() // its gateway goes away
	<-began
	w.stop()
	w.start(t, text, gateway.Config{})
	until(t, "the end of the run", func() bool {
		list := w.runs(t)
		return len(list) == 1 && list[0].State.Ended()
	})
	kinds, _ := w.kinds(t, w.runs(t)[0].ID)
	if !strings.Contains(strings.Join(kinds, " "), "started unknown done") || calls.Load() != 1 {
		t.Errorf("events %v after %d calls", kinds, calls.Load())
	}
}

// TestGW_25_StopStoresCalls checks that calls that have ended are stored when the host closes, each in a separate run.
func TestGW_25_StopStoresCalls(t *testing.T) {
	text := upstreamConfig(serveUpstream(t, mcp.ServerConfig{}), rules)
	w := open(t, text, gateway.Config{})
	c := w.client(t, mcp.Modern, annaToken)
	for range 5 {
		for _, tool := range []string{"echo", "secret"} {
			if _, err := c.Call(t.Context(), tenon.Call{Tool: tool}); err != nil {
				t.Fatal(err)
			}
		}
	}
	w.stop()
	w.start(t, text, gateway.Config{})
	states := map[tenon.RunState]int{}
	for _, r := range w.runs(t) {
		states[r.State]++
		if report, err := w.host.Runs().Open(r.ID).Replay(t.Context()); err != nil || !report.Same {
			t.Errorf("run %s cannot be replayed: %+v, %v", r.ID, report, err)
		}
	}
	if states[tenon.RunCompleted] != 5 || states[tenon.RunFailed] != 5 {
		t.Errorf("states %v", states)
	}
}

// TestGW_25_LargeResultByDigest checks that the journal contains only the digest of a large result. The client gets the
// whole result.
func TestGW_25_LargeResultByDigest(t *testing.T) {
	large := `{"content":[{"type":"text","text":"` + strings.Repeat("0123456789", 10_000) + `"}]}`
	w := open(t, upstreamConfig(serveUpstream(t, mcp.ServerConfig{NoModern: true}, mcp.ServerTool{
		Definition: json.RawMessage(`{"name":"large","inputSchema":{"type":"object"},"annotations":{"readOnlyHint":true}}`),
		Call: func(context.Context, *mcp.ToolRequest) (json.RawMessage, error) {
			return json.RawMessage(large), nil
		}}), ""), gateway.Config{})
	r, err := w.client(t, mcp.LatestLegacy, ownToken).Call(t.Context(), tenon.Call{Tool: "large"})
	if err != nil || string(r.Raw) != large {
		t.Fatalf("result of %d bytes, %v; want %d", len(r.Raw), err, len(large))
	}
	until(t, "the audit", func() bool { return len(w.runs(t)) == 1 && w.runs(t)[0].State.Ended() })
	_, events := w.kinds(t, w.runs(t)[0].ID)
	for _, e := range events {
		if e.Kind == agent.EventResult && (len(e.Data) > 1000 || !strings.Contains(string(e.Data), "100039 bytes, sha256:")) {
			t.Errorf("recorded %d bytes: %.300s", len(e.Data), e.Data)
		}
	}
}

// TestGW_24_28_RateAndCacheHoldForClients checks that rate limits also apply to calls that are stored after they are
// sent, and that equal calls share a cached result.
func TestGW_24_28_RateAndCacheHoldForClients(t *testing.T) {
	var calls atomic.Int32
	began, end := make(chan struct{}, 9), make(chan struct{})
	close(end)
	u := serveUpstream(t, mcp.ServerConfig{}, blockingTool(&calls, began, end))
	for name, tt := range map[string]struct {
		policy         string
		results, calls int32
		has            string
	}{
		"rate":    {"{rate: 2/h}", 2, 2, "may be called 2 times an hour"},
		"project": {"{cache: {ttl: 1h, scope: project}}", 5, 1, ""},
		"none":    {"{}", 5, 5, ""},
	} {
		t.Run(name, func(t *testing.T) {
			calls.Store(0)
			for len(began) > 0 {
				<-began
			}
			w := open(t, upstreamConfig(u, "tools: {slow: {server: up, policy: "+tt.policy+"}}\n"), gateway.Config{})
			c := w.client(t, mcp.Modern, ownToken)
			results := int32(0)
			for range 5 {
				r, err := c.Call(t.Context(), tenon.Call{Tool: "slow"})
				if err != nil {
					t.Fatal(err)
				}
				if !r.IsError {
					results++
				} else if !strings.Contains(r.Text(), tt.has) {
					t.Errorf("refused: %s", r.Text())
				}
			}
			if results != tt.results || calls.Load() != tt.calls {
				t.Errorf("%d results of %d calls, want %d of %d", results, calls.Load(), tt.results, tt.calls)
			}
			until(t, "the audit", func() bool { return len(w.runs(t)) == 5 })
		})
	}
}
