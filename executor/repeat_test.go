package executor

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/agent"
	"github.com/tenonhq/tenon/engine"
	"github.com/tenonhq/tenon/mcp"
)

// TestAnswered says which errors of a call leave its outcome unknown.
func TestAnswered(t *testing.T) {
	cut := fmt.Errorf("the answer is cut off: %w", mcp.ErrAnswered)
	for name, tt := range map[string]struct {
		idempotent bool
		err        error
		kind       string
	}{
		"an answer that is cut off":     {false, tenon.Errorf(tenon.CodeProtocol, "%w", cut), tenon.EventUnknown},
		"an answer that is too large":   {false, tenon.Errorf(tenon.CodeTooLarge, "%w", cut), tenon.EventUnknown},
		"a call that may be repeated":   {true, tenon.Errorf(tenon.CodeProtocol, "%w", cut), agent.EventFailed},
		"a server that did not connect": {false, tenon.Errorf(tenon.CodeProtocol, "no MCP"), agent.EventFailed},
	} {
		t.Run(name, func(t *testing.T) {
			x := &Executor{cfg: Config{Redactor: &tenon.Redactor{}}}
			a := engine.Attempt{Command: tenon.Command{Step: "1.0", Idempotent: tt.idempotent}, Attempt: 1}
			events := x.failureEvent(a, &agent.ToolCommand{}, tt.err, time.Millisecond)
			if len(events) != 1 || events[0].Kind != tt.kind {
				t.Errorf("%+v, want %s", events, tt.kind)
			}
		})
	}
}

// TestRepeats decides whether another attempt is made after one that failed, by its number and the time that it took.
func TestRepeats(t *testing.T) {
	lost := tenon.Errorf(tenon.CodeUnreachable, "no connection")
	for name, tt := range map[string]struct {
		idempotent bool
		attempt    int
		took       time.Duration
		err        error
		again      bool
		says       string
	}{
		"at once":           {true, 1, time.Millisecond, lost, true, "no connection"},
		"the second":        {true, 2, time.Millisecond, lost, true, "attempt 2"},
		"after a long wait": {true, 1, 25 * time.Second, lost, false, "not repeated, because it waited 25s"},
		"long, the second":  {true, 2, 25 * time.Second, lost, false, "attempt 2; the call is not repeated"},
		"not safe":          {false, 1, time.Millisecond, lost, false, "no connection"},
		"another error":     {true, 1, time.Millisecond, tenon.Errorf(tenon.CodeDenied, "no"), false, "no"},
	} {
		t.Run(name, func(t *testing.T) {
			x := &Executor{cfg: Config{Redactor: &tenon.Redactor{}}}
			a := engine.Attempt{Command: tenon.Command{Step: "1.0", Idempotent: tt.idempotent}, Attempt: tt.attempt}
			events := x.failureEvent(a, &agent.ToolCommand{Timeout: 30 * time.Second}, tt.err, tt.took)
			var f agent.Failure
			if len(events) != 1 || json.Unmarshal(events[0].Data, &f) != nil {
				t.Fatalf("%+v", events)
			}
			if f.Retry != tt.again || f.Error == nil || !strings.Contains(f.Error.Message, tt.says) || f.Error.Code != tenon.ErrorCode(tt.err) {
				t.Errorf("repeated: %t, %+v", f.Retry, f.Error)
			}
		})
	}
}
