package gateway_test

import (
	"encoding/json"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/gateway"
	"github.com/tenonhq/tenon/mcp"
)

// TestGW_27_ParkedCallSurvivesRestart restarts the host while a call waits for approval. An equal call of the same
// principal gets the result of the first call, whether the decision comes before or after the restart. A later equal
// call is a new call.
func TestGW_27_ParkedCallSurvivesRestart(t *testing.T) {
	for name, before := range map[string]bool{"decided before": true, "decided after": false} {
		t.Run(name, func(t *testing.T) {
			u := serveUpstream(t, mcp.ServerConfig{})
			w := open(t, upstreamConfig(u, ""), gateway.Config{Park: 50 * time.Millisecond})
			call := func() *tenon.Result {
				t.Helper()
				r, err := w.client(t, mcp.Modern, annaToken).Call(t.Context(),
					tenon.Call{Tool: "write", Arguments: json.RawMessage(`{"n":1}`)})
				if err != nil {
					t.Fatal(err)
				}
				return r
			}
			if r := call(); !r.IsError {
				t.Fatalf("parked: %+v", r)
			}
			run := w.waiting(t, 1)[0].Run
			if before {
				w.decide(t, run, tenon.Allow)
				// If the process ends before the result of a call is stored, the outcome is unknown.
				until(t, "the end of the call", func() bool { return w.runs(t)[0].State == tenon.RunCompleted })
			}
			w.stop()
			w.start(t, upstreamConfig(u, ""), gateway.Config{Park: 50 * time.Millisecond})
			if !before {
				if r := call(); !r.IsError {
					t.Fatalf("still parked: %+v", r)
				}
				w.decide(t, w.waiting(t, 1)[0].Run, tenon.Allow)
			}
			var r *tenon.Result
			until(t, "the result", func() bool { r = call(); return !r.IsError })
			if r.Text() != "written" || u.writes.Load() != 1 || len(w.runs(t)) != 1 {
				t.Errorf("%+v after %d calls of %d runs", r, u.writes.Load(), len(w.runs(t)))
			}
			if r := call(); !r.IsError || len(w.waiting(t, 1)) != 1 || u.writes.Load() != 1 {
				t.Errorf("a new call: %+v after %d calls", r, u.writes.Load())
			}
		})
	}
}

// TestGW_27_SimultaneousEqualCallsJoin checks equal calls that arrive at the same time. If they need approval, they
// become one call. Otherwise they are separate calls.
func TestGW_27_SimultaneousEqualCallsJoin(t *testing.T) {
	const clients = 8
	for name, tt := range map[string]struct {
		policy string
		calls  int32
	}{"waiting": {"", 1}, "allowed": {"policy: {defaults: {approval: never}}\n", clients}} {
		t.Run(name, func(t *testing.T) {
			u := serveUpstream(t, mcp.ServerConfig{})
			w := open(t, upstreamConfig(u, tt.policy), gateway.Config{})
			var all []*mcp.Client
			for range clients {
				all = append(all, w.client(t, mcp.Modern, annaToken))
			}
			var wg sync.WaitGroup
			for _, c := range all {
				wg.Go(func() {
					r, err := c.Call(t.Context(), tenon.Call{Tool: "write", Arguments: json.RawMessage(`{"n":1}`)})
					if err != nil || !strings.Contains(r.Text(), "written") {
						t.Errorf("%+v, %v", r, err)
					}
				})
			}
			if tt.calls == 1 {
				// Before the decision, wait until all clients have joined the call. Otherwise it could end before they
				// join.
				until(t, "the followers", func() bool { return gateway.Followers(w.gate) == clients })
				w.decide(t, w.waiting(t, 1)[0].Run, tenon.Allow)
			}
			wg.Wait()
			if n := u.writes.Load(); n != tt.calls {
				t.Errorf("%d calls upstream, want %d", n, tt.calls)
			}
		})
	}
}
