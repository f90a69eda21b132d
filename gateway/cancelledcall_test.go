package gateway_test

import (
	"context"
	"encoding/json"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/gateway"
	"github.com/tenonhq/tenon/mcp"
)

// TestGW_25_CancelledCall checks that a call that its client cancels is recorded as cancelled, whether it is still
// without a journal, an engine has taken it over, or an engine began it.
func TestGW_25_CancelledCall(t *testing.T) {
	for name, tt := range map[string]struct {
		key   string
		after time.Duration
	}{"light": {}, "taken over": {"", 300 * time.Millisecond}, "of an engine": {"a key", 100 * time.Millisecond}} {
		for kind, reads := range map[string]string{"that reads": "true", "that changes": "false"} {
			t.Run(name+" "+kind, func(t *testing.T) {
				var calls atomic.Int32
				began := make(chan struct{}, 2)
				slow := blockingTool(&calls, began, nil)
				slow.Definition = json.RawMessage(strings.Replace(string(slow.Definition), `"readOnlyHint":true`,
					`"readOnlyHint":`+reads, 1))
				w := open(t, upstreamConfig(serveUpstream(t, mcp.ServerConfig{}, slow),
					"policy: {defaults: {approval: never}}\n"), gateway.Config{})
				c := w.client(t, mcp.Modern, ownToken)
				ctx, cancel := context.WithCancel(t.Context())
				ended := make(chan error, 1)
				go func() {
					_, err := c.Call(ctx, tenon.Call{Tool: "slow", Key: tt.key, Arguments: json.RawMessage(`{}`)})
					ended <- err
				}()
				<-began
				time.Sleep(tt.after)
				cancel()
				if err := <-ended; err == nil {
					t.Fatal("the call has a result")
				}
				until(t, "the end of the run", func() bool {
					list := w.runs(t)
					return len(list) == 1 && list[0].State.Ended()
				})
				run := w.runs(t)[0]
				kinds, _ := w.kinds(t, run.ID)
				if got := strings.Join(kinds, " "); run.State != tenon.RunCancelled || run.Stop != tenon.StopCancelled ||
					got != "run proposed decided started cancel unknown done" {
					t.Errorf("%s, %s: %s", run.State, run.Stop, kinds)
				}

				if replay, err := w.host.Runs().Open(run.ID).Replay(t.Context()); err != nil || !replay.Same {
					t.Errorf("%+v, %v", replay, err)
				}
			})
		}
	}
}
