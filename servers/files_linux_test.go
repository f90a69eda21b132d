package servers

import (
	"encoding/json"
	"strings"
	"syscall"
	"testing"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/mcp"
)

// TestNoFileDescriptors makes calls over HTTP in a process without free file descriptors. Calls that need a new
// connection fail with advice, and the server does not count as lost.
func TestNoFileDescriptors(t *testing.T) {
	for _, era := range []string{"2025-11-25", mcp.Modern} {
		t.Run("RP-27_"+era, func(t *testing.T) {
			var lost []error
			s := started(t, Config{URL: listening(t, "--http", "127.0.0.1:0"), Protocol: era}, Options{
				Notify: func(n Notification) {
					if n.Err != nil {
						lost = append(lost, n.Err)
					}
				}})
			text(t, s, "add", `{"a":1,"b":2}`)
			var before syscall.Rlimit
			if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &before); err != nil {
				t.Fatal(err)
			}
			if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &syscall.Rlimit{Cur: 3, Max: before.Max}); err != nil {
				t.Fatal(err)
			}
			const n = 10 // more than the number of idle connections
			ended := make(chan error, n)
			for range n {
				go func() {
					_, err := s.Call(t.Context(), tenon.Call{Tool: "slow", Arguments: json.RawMessage(`{"steps":2,"ms":100}`)})
					ended <- err
				}()
			}
			failed := 0
			for range n {
				if err := <-ended; err != nil {
					failed++
					if tenon.ErrorCode(err) != tenon.CodeUnreachable || !strings.Contains(err.Error(), "no file descriptors left") {
						t.Errorf("a call: %v", err)
					}
				}
			}
			if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &before); err != nil {
				t.Fatal(err)
			}
			if failed == 0 {
				t.Error("no call failed")
			}
			if st := s.Status().State; st != StateReady {
				t.Errorf("the server is %s", st)
			}
			if got := text(t, s, "add", `{"a":1,"b":2}`); got != "3" || len(lost) > 0 {
				t.Errorf("afterwards the result is %q, and lost: %v", got, lost)
			}
		})
	}
}
