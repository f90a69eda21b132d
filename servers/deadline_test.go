package servers

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/tenonhq/tenon"
)

// neverReady is a process that is busy without ever answering.
func neverReady(how string) {
	for i := range 3 {
		fmt.Fprintln(os.Stderr, "loading", i)
	}
	for i := 0; ; i++ {
		line := "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/x\"}\n"
		if how == "drips" {
			time.Sleep(time.Millisecond)
			line = "x"
		}
		if _, err := os.Stdout.WriteString(line); err != nil {
			return
		}
	}
}

// TestConnectDeadline holds that a process that floods or drips is given up at
// the deadline, and what is said then: the command line, its last words and the
// cause, each once.
func TestConnectDeadline(t *testing.T) {
	for _, how := range []string{"floods", "drips"} {
		t.Run(how, func(t *testing.T) {
			cfg := process("--model", "x")
			cfg.Env[role] = how
			cfg.Timeout = 500 * time.Millisecond
			s := started(t, cfg, Options{})
			start := time.Now()
			_, err := s.Tools(t.Context())
			if took := time.Since(start); took > 5*time.Second { // it is timeout + teardown on a machine with time
				t.Errorf("it took %s", took)
			}
			var e *tenon.Error
			want := "could not start MCP server 't': it did not answer server/discover within 500ms; command: " + os.Args[0] +
				" --model x; its last words on stderr: loading 0 / loading 1 / loading 2; raise servers.t.timeout if it is slow to start"
			if !errors.As(err, &e) || e.Code != tenon.CodeTimeout || e.Message != want || strings.Contains(err.Error(), "context") {
				t.Errorf("got  %v\nwant %s", err, want)
			}
			t.Logf("%s", time.Since(start))
		})
	}
}
