package servers

import (
	"encoding/json"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tenonhq/tenon"
)

// TestFlood checks that a burst of messages is admitted, and then as many as the rate allows. The rest is counted
// exactly, and reported in one line per window and at Close.
func TestFlood(t *testing.T) {
	for kind, allowed := range allowances {
		t.Run("SEC-F10_"+kind, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var mu sync.Mutex
				var said []string
				f := &flood{report: func(text string) { mu.Lock(); said = append(said, text); mu.Unlock() }}
				let := func(n int) (passed int) {
					for range n {
						if f.admit(kind) {
							passed++
						}
					}
					return passed
				}
				if got := let(100_000); got != int(allowed.burst) {
					t.Errorf("%d passed at once, want %v", got, allowed.burst)
				}
				time.Sleep(2 * time.Second)
				if got := let(1000); got != int(2*allowed.perSecond) {
					t.Errorf("%d passed after two seconds, want %v", got, 2*allowed.perSecond)
				}
				time.Sleep(floodWindow)
				synctest.Wait()
				mu.Lock()
				dropped := 101_000 - int(allowed.burst) - int(2*allowed.perSecond)
				if len(said) != 1 || !strings.HasPrefix(said[0], grouped(dropped)+" ") || !strings.HasSuffix(said[0], "came too fast and were dropped") {
					t.Errorf("said %q, want %s", said, grouped(dropped))
				}
				mu.Unlock()
				time.Sleep(time.Hour)
				if got := let(int(allowed.burst)); got != int(allowed.burst) {
					t.Errorf("%d passed after an hour of calm", got)
				}
				let(3)
				f.close()
				let(3)
				if len(said) != 2 || !strings.HasPrefix(said[1], "3 ") {
					t.Errorf("said %q", said)
				}
				if len(f.buckets) > len(allowances) {
					t.Errorf("%d buckets", len(f.buckets))
				}
			})
		})
	}
}

// TestFloodOfAServer calls a real process that logs more than tenon keeps. The calls must be answered, the log must
// stay bounded, and the dropped lines must be counted.
func TestFloodOfAServer(t *testing.T) {
	dir := t.TempDir()
	script := filepath.Join(dir, "flood.sh")
	// A legacy server that answers every request and writes many log lines before each answer.
	text := `#!/bin/sh
i=0
while read -r line; do
  id=$(printf '%s' "$line" | sed -n 's/.*"id":\([0-9]*\).*/\1/p')
  case "$line" in
  *'"server/discover"'*) printf '{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"no"}}\n' "$id" ;;
  *'"initialize"'*) printf '{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{},"logging":{}},"serverInfo":{"name":"f","version":"1"}}}\n' "$id" ;;
  *'"tools/list"'*) printf '{"jsonrpc":"2.0","id":%s,"result":{"tools":[{"name":"noisy","inputSchema":{"type":"object"}}]}}\n' "$id" ;;
  *'"tools/call"'*)
    token=$(printf '%s' "$line" | sed -n 's/.*"progressToken":"*\([0-9]*\).*/\1/p')
    awk -v n=LINES -v token="$token" 'BEGIN { for (i = 0; i < n; i++) { printf "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/message\",\"params\":{\"level\":\"error\",\"data\":\"line %d\"}}\n", i; printf "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\",\"params\":{\"progressToken\":%s,\"progress\":%d,\"message\":\"m\"}}\n", token, i; printf "noise %d\n", i > "/dev/stderr" } }'
    printf '{"jsonrpc":"2.0","id":%s,"result":{"content":[{"type":"text","text":"done"}]}}\n' "$id" ;;
  *'"id"'*) printf '{"jsonrpc":"2.0","id":%s,"result":{}}\n' "$id" ;;
  esac
done
`
	const lines = 20_000
	if err := os.WriteFile(script, []byte(strings.ReplaceAll(text, "LINES", strconv.Itoa(lines))), 0o600); err != nil {
		t.Fatal(err)
	}
	logs := &counting{}
	s := New("noisy", Config{Command: "sh", Args: []string{script}}, Options{Logs: filepath.Join(dir, "logs"), Logger: slog.New(slog.NewTextHandler(logs, nil))})
	progress := 0
	const calls = 3
	for range calls {
		r, err := s.Call(t.Context(), tenon.Call{Tool: "noisy", Arguments: json.RawMessage(`{}`), Progress: func(tenon.Progress) { progress++ }})
		if err != nil || r.Text() != "done" {
			t.Fatalf("SEC-F10: %v, %v", r, err)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	total := 0
	for _, l := range s.Logs(0) {
		if m := regexp.MustCompile(`([\d,]+) log messages?`).FindStringSubmatch(l.Text); l.Kind == "state" && m != nil {
			n, err := strconv.Atoi(strings.ReplaceAll(m[1], ",", ""))
			if err != nil {
				t.Fatal(err)
			}
			total += n
		}
	}
	if logged := strings.Count(logs.String(), "MCP server says"); logged+total != calls*lines || logged > 5000 {
		t.Errorf("SEC-F10: %d messages logged and %d counted as dropped, want %d together", logged, total, calls*lines)
	}
	if progress == 0 || progress > 5000 {
		t.Errorf("SEC-F10: %d notices of progress came through", progress)
	}
	size := int64(0)
	for _, name := range []string{"noisy.jsonl", "noisy.jsonl.old"} {
		if st, err := os.Stat(filepath.Join(dir, "logs", name)); err == nil {
			size += st.Size()
		}
	}
	if size == 0 || size > 2*(maxJournal+maxPending)+4096 {
		t.Errorf("SEC-F10: the log has %d bytes", size)
	}
}

// counting keeps what is logged.
type counting struct {
	mu sync.Mutex
	b  strings.Builder
}

func (c *counting) Write(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.b.Write(p)
}

func (c *counting) String() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.b.String()
}

// TestLogger checks that a log message keeps the name of its logger, with control characters replaced, in the log and
// among the server's lines.
func TestLogger(t *testing.T) {
	for _, c := range []struct{ name, params, logged, kept string }{
		{"named", `{"level":"warning","logger":"app.db","data":"slow"}`, `mcp_level=warning mcp_logger=app.db data=slow`,
			"warning (app.db): slow"},
		{"hostile", `{"level":"error","logger":"a\u001b[2J","data":"x"}`, `mcp_logger=a\u{1b}[2J data=x`,
			`error (a\u{1b}[2J): x`},
		{"none", `{"level":"error","data":"x"}`, `mcp_level=error data=x`, "error: x"},
		{"no text", `{"level":"error","logger":{"a":1},"data":"x"}`, `mcp_level=error data=x`, "error: x"},
		{"endless", `{"level":"error","logger":"` + strings.Repeat("a", maxNotice) + `","data":"x"}`,
			`mcp_level=error data=x`, "error: x"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var logs strings.Builder
			s := New("t", process("--stdio"), Options{Logs: t.TempDir(), Logger: slog.New(slog.NewTextHandler(&logs, nil))})
			s.notice("notifications/message", json.RawMessage(c.params))
			lines := s.Logs(0)
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			if got := logs.String(); !strings.Contains(got, c.logged) {
				t.Errorf("logged %s", got)
			}
			if len(lines) != 1 || lines[0].Text != c.kept {
				t.Errorf("%+v", lines)
			}
		})
	}
}

// TestUnknownNotification checks that a notification that tenon does not use leaves a line in the debug log.
func TestUnknownNotification(t *testing.T) {
	for _, c := range []struct {
		name, method string
		want         bool
	}{
		{"RP-11_unknown", "notifications/made\u202eup", true},
		{"RP-11_known", "notifications/resources/updated", false},
		{"RP-11_acknowledged", "notifications/subscriptions/acknowledged", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			var logs strings.Builder
			s := New("t", process("--stdio"), Options{Logs: t.TempDir(),
				Logger: slog.New(slog.NewTextHandler(&logs, &slog.HandlerOptions{Level: slog.LevelDebug}))})
			s.notice(c.method, nil)
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			named := strings.Contains(logs.String(), `method=notifications/made\u{202e}up`)
			if got := strings.Contains(logs.String(), "does not use"); got != c.want || named != c.want {
				t.Errorf("logged %q", logs.String())
			}
		})
	}
}

// TestUnknownNotificationsFlood checks that notifications without effect do not use up the allowance of log messages, and
// that they are not counted if the debug log does not name them.
func TestUnknownNotificationsFlood(t *testing.T) {
	for name, level := range map[string]slog.Level{"RP-11_debug": slog.LevelDebug, "RP-11_info": slog.LevelInfo} {
		t.Run(name, func(t *testing.T) {
			var logs strings.Builder
			s := New("t", process("--stdio"), Options{Logs: t.TempDir(),
				Logger: slog.New(slog.NewTextHandler(&logs, &slog.HandlerOptions{Level: level}))})
			for range 10_000 {
				s.notice("notifications/other", nil)
			}
			s.notice("notifications/message", json.RawMessage(`{"level":"error","data":"the disk is full"}`))
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			got := logs.String()
			if !strings.Contains(got, "the disk is full") {
				t.Errorf("the message is not in the log of %d bytes", len(got))
			}
			if dropped := strings.Contains(got, "notices of another kind came too fast"); dropped != (level == slog.LevelDebug) {
				t.Errorf("notifications counted as dropped: %t", dropped)
			}
		})
	}
}
