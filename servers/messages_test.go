package servers

import (
	"os"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tenonhq/tenon"
)

// causes lists faults of servers, the operation in which each shows, and the part of the message that names the cause.
var causes = []struct{ kind, fault, op, cause string }{
	{"stdio", "silent", "connect", `did not answer (server/discover|initialize) within`},
	{"stdio", "silent", "call", `timed out after 1s`},
	{"stdio", "drop", "connect", `exited with code 3`},
	{"stdio", "drop-half", "connect", `cut off at byte`},
	{"stdio", "drop-half", "call", `cut off at byte`},
	{"stdio", "truncated", "call", `cut off at byte`},
	{"stdio", "trailing", "call", `trailing data after the value`},
	{"stdio", "two-in-one", "connect", `trailing data after the value`},
	{"stdio", "not-utf8", "connect", `invalid UTF-8`},
	{"stdio", "not-utf8", "call", `invalid UTF-8`},
	{"stdio", "nul", "call", `control character`},
	{"stdio", "nan", "call", `no JSON value at byte`},
	{"stdio", "comment", "call", `no key at byte`},
	{"stdio", "key-twice", "call", `duplicate key`},
	{"stdio", "key-twice-inside", "connect", `duplicate key`},
	{"stdio", "result-missing", "call", `neither a request nor a response`},
	{"stdio", "result-null", "call", `no object: "null"`},
	{"stdio", "result-text", "call", `no object: "\\"ok\\""`},
	{"stdio", "result-array", "call", `no object: "\[\]"`},
	{"stdio", "result-empty", "connect", `protocol version ""`},
	{"stdio", "result-and-error", "call", `neither a request nor a response`},
	{"stdio", "error-code-text", "connect", `refused to initialize: no`},
	{"stdio", "error-ansi", "connect", `\\u\{1b\}.*owned`},
	{"stdio", "content-object", "call", `no array as its content`},
	{"stdio", "content-null", "call", `no array as its content`},
	{"stdio", "type-unknown", "call", `resultType "teapot"`},
	{"stdio", "input-nothing", "call", `wants input and does not say which`},
	{"http", "html", "connect", `a web page`},
	{"http", "status-204", "call", `HTTP 204`},
	{"http", "status-400", "call", `HTTP 400`},
	{"http", "status-401", "call", `HTTP 401`},
	{"http", "status-403", "connect", `HTTP 403`},
	{"http", "status-404", "connect", `HTTP 404`},
	{"http", "status-429", "call", `HTTP 429`},
	{"http", "status-500", "connect", `HTTP 500`},
	{"http", "status-503", "call", `HTTP 503`},
	{"http", "redirect-other", "call", `redirects to another origin`},
	{"http", "redirect-loop", "connect", `redirects more than 3 times`},
	{"http", "type-missing", "call", `content type ""`},
	{"http", "gzip-broken", "connect", `gzip: invalid header`},
}

// TestMessages counts the helpful messages: they name the server, its fault and the remedy. Their codes must be in the
// documented table.
func TestMessages(t *testing.T) {
	t.Run("HD-SC-003", func(t *testing.T) {
		table, err := os.ReadFile("../docs/reference/cli/exit-codes.md")
		if err != nil {
			t.Fatal(err)
		}
		messages := make([]error, len(causes))
		limit := make(chan struct{}, 4)
		var wg sync.WaitGroup
		for i, c := range causes {
			wg.Go(func() {
				limit <- struct{}{}
				defer func() { <-limit }()
				messages[i] = message(t, c.kind, c.fault, c.op)
			})
		}
		wg.Wait()
		good := 0
		for i, c := range causes {
			err := messages[i]
			if err == nil {
				t.Errorf("%s %s, %s: no error", c.kind, c.fault, c.op)
				continue
			}
			if code := string(tenon.ErrorCode(err)); !regexp.MustCompile(`(?m)^\s*` + code + `\s`).Match(table) {
				t.Errorf("%s %s, %s: code %q is not in the table", c.kind, c.fault, c.op, code)
			}
			if text := err.Error(); strings.Contains(text, "'t'") && regexp.MustCompile(c.cause).MatchString(text) && remedy.MatchString(text) {
				good++
			} else {
				t.Logf("%s %s, %s: want the server, %s and what to do: %s", c.kind, c.fault, c.op, c.cause, text)
			}
		}
		if len(causes) != 40 || good < 38 {
			t.Errorf("%d of %d messages help, want 38 of 40", good, len(causes))
		}
	})
}

// message runs an operation on a server with a fault and returns the error.
func message(t *testing.T, kind, fault, op string) error {
	for _, o := range operations {
		if o.name != op {
			continue
		}
		cfg := process("--stdio", "--fault", fault+"@"+o.moment)
		if kind != "stdio" {
			url, stop := hostileServer(t, kind, fault+"@"+o.moment)
			defer stop()
			cfg = Config{URL: url}
		}
		cfg.Timeout, cfg.RequestTimeout = time.Minute, time.Minute
		if fault == "silent" || fault == "two-in-one" { // no answer ever arrives, because two-in-one is refused
			if op == "connect" {
				cfg.Timeout = time.Second
			} else {
				cfg.RequestTimeout = time.Second
			}
		}
		s := New("t", cfg, Options{})
		defer func() { _ = s.Close() }()
		return o.do(s)
	}
	return nil
}
