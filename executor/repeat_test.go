package executor

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/agent"
	"github.com/tenonhq/tenon/engine"
)

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
