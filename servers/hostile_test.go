package servers

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/internal/longtest"
	"github.com/tenonhq/tenon/internal/testserver"
)

// The limits for a server that misbehaves.
const (
	hostileConnect = 700 * time.Millisecond
	hostileRequest = 400 * time.Millisecond
	hostileClose   = 2500 * time.Millisecond // stdin, SIGTERM, SIGKILL
	hostileSlack   = time.Second
	hostileMemory  = 64 << 20
)

// remedy matches a verb with which an advice to the user begins.
var remedy = regexp.MustCompile(`\b(raise|check|see|start|try|ask|write|set|remove|report|repeat)\b`)

// heavy matches the faults that need much memory. They run one at a time.
var heavy = regexp.MustCompile(`huge|many|flood|bomb|endless|deep|keys|stderr`)

// operations are tested with each fault. moment is the request at which the server shows the fault.
var operations = []struct {
	name, moment string
	limit        time.Duration
	do           func(s *Server) error
}{
	{"connect", "connect", hostileConnect + hostileRequest, func(s *Server) error { _, err := s.Tools(context.Background()); return err }},
	{"list", "list", hostileConnect + hostileRequest, func(s *Server) error { _, err := s.Tools(context.Background()); return err }},
	{"call", "call", hostileConnect + hostileRequest, hostileCall(context.Background())},
	{"cancel", "call", 100 * time.Millisecond, func(s *Server) error {
		ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
		defer cancel()
		return hostileCall(ctx)(s)
	}},
	{"close", "call", hostileClose, func(s *Server) error {
		var wg sync.WaitGroup
		wg.Go(func() { _ = hostileCall(context.Background())(s) })
		time.Sleep(60 * time.Millisecond)
		err := s.Close()
		wg.Wait()
		return err
	}},
}

func hostileCall(ctx context.Context) func(s *Server) error {
	return func(s *Server) error {
		_, err := s.Call(ctx, tenon.Call{Tool: "add", Arguments: json.RawMessage(`{"a":1,"b":2}`), Progress: func(tenon.Progress) {}})
		return err
	}
}

// TestA1 runs each operation with each fault of the test server. No operation may exceed its limit or panic. No
// goroutine and no process may be left, and memory must stay bounded. The error must name the server and the operation,
// and say what to do. make check runs all cases (TENON_HOSTILE=all); otherwise every sixteenth fault is run.
func TestA1(t *testing.T) {
	longtest.Skip(t)
	n, rows := 0, 0
	for _, kind := range []string{"stdio", "http", "sse", "ws", "jsonrpc"} {
		t.Run(kind, func(t *testing.T) {
			for _, fault := range testserver.Faults(kind) {
				if n++; os.Getenv("TENON_HOSTILE") != "all" && n%16 != 0 {
					continue
				}
				rows += len(operations)
				t.Run(fault, func(t *testing.T) { hostile(t, kind, fault) })
			}
		})
	}
	t.Logf("%d rows", rows)
}

// hostile runs all operations with one fault.
func hostile(t *testing.T, kind, fault string) {
	leaks := goleak.IgnoreCurrent()
	debug.FreeOSMemory()
	before := resident(t, "VmRSS")
	_ = os.WriteFile("/proc/self/clear_refs", []byte("5"), 0) // resets the peak, on Linux
	var wg sync.WaitGroup
	for _, op := range operations {
		wg.Go(func() {
			// A delay by the fault happens every time; a delay by other programs does not.
			var late []string
			for len(late) < 4 {
				now := suffer(t, kind, fault, op.name, op.moment, op.limit, op.do)
				if now == "" {
					return
				}
				late = append(late, now)
			}
			t.Errorf("%s: %s", op.name, strings.Join(late, "; "))
		})
		if heavy.MatchString(fault) {
			wg.Wait() // so that the measured memory belongs to one server
		}
	}
	wg.Wait()
	if peak := resident(t, "VmHWM"); peak-before > hostileMemory {
		t.Errorf("%d MiB more than before", (peak-before)>>20)
	}
	err, left := goleak.Find(leaks), children(t)
	for end := time.Now().Add(30 * time.Second); (err != nil || len(left) > 0) && time.Now().Before(end); {
		err, left = goleak.Find(leaks), children(t)
	}
	if err != nil {
		t.Errorf("goroutines are left: %v", err)
	}
	if len(left) > 0 {
		t.Errorf("processes are left: %v", left)
	}
}

// suffer runs one operation with one fault. It returns a text if this took too long.
func suffer(t *testing.T, kind, fault, op, moment string, limit time.Duration, do func(*Server) error) (late string) {
	at := fault + "@" + moment
	cfg := process("--stdio", "--fault", at)
	if kind != "stdio" {
		url, stop := hostileServer(t, kind, at)
		defer stop()
		cfg = Config{URL: url, Transport: map[string]string{"sse": TransportSSE, "jsonrpc": TransportJSONRPC}[kind]}
	}
	cfg.Timeout, cfg.RequestTimeout, cfg.SSEReadTimeout = hostileConnect, hostileRequest, 5*time.Second
	s := New("t", cfg, Options{})
	if op != "connect" {
		if c, err := s.connect(context.Background(), ""); err == nil { // the server may show the fault here already
			c.users.Done()
		}
	}
	begun := time.Now()
	err := do(s)
	if took := time.Since(begun); took > limit+hostileSlack {
		late = fmt.Sprintf("back after %s, want %s", took.Round(time.Millisecond), limit)
	}
	if err != nil {
		told(t, op, err)
	}
	begun = time.Now()
	_ = s.Close()
	if took := time.Since(begun); took > hostileClose+hostileSlack {
		late += fmt.Sprintf(" close took %s", took.Round(time.Millisecond))
	}
	return late
}

// told checks the text of an error: it names the server and the operation, and advises the user.
func told(t *testing.T, op string, err error) {
	t.Helper()
	text := err.Error()
	switch {
	case !strings.Contains(text, "'t'"):
		t.Errorf("%s: the server is not named: %s", op, text)
	case op != "connect" && op != "close" && !regexp.MustCompile(`add|list of tools|MCP server 't'`).MatchString(text):
		t.Errorf("%s: what was asked is not named: %s", op, text)
	case len(text) > 2000:
		t.Errorf("%s: %d bytes of text", op, len(text))
	case strings.ContainsFunc(text, func(r rune) bool { return r < ' ' || r == 0x7f || r == 0x202e }):
		t.Errorf("%s: the text can write to a terminal: %q", op, text)
	}
	switch tenon.ErrorCode(err) {
	case tenon.CodeTool, tenon.CodeCancelled: // the server's own text, without a fault
	case tenon.CodeUnknown: // the host says whether the call may be repeated
	case tenon.CodeTimeout:
		if op == "cancel" {
			return // it was our own wish
		}
		fallthrough
	default:
		if !remedy.MatchString(text) {
			t.Errorf("%s: nothing is said about what to do: %s", op, text)
		}
	}
}

// hostileServer starts a server. stop kills the process and waits for its end.
func hostileServer(t *testing.T, kind, fault string) (url string, stop func()) {
	t.Helper()
	cmd, url := listen(t, "--"+kind, "127.0.0.1:0", "--fault", fault)
	return url, func() {
		_ = cmd.Process.Kill() // fails if the process has ended by itself
		_ = cmd.Wait()
	}
}

// resident returns a figure about our memory in bytes, or 0 if the system has none.
func resident(t *testing.T, key string) int {
	if runtime.GOOS != "linux" {
		return 0
	}
	b, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Fatal(err)
	}
	for line := range bytes.Lines(b) {
		if v, ok := strings.CutPrefix(string(line), key+":"); ok {
			kb, err := strconv.Atoi(strings.Fields(v)[0])
			if err != nil {
				t.Fatal(fmt.Errorf("%s: %w", line, err))
			}
			return kb << 10
		}
	}
	return 0
}
