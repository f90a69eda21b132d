package servers

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/internal/testserver"
	"github.com/tenonhq/tenon/jsonrpc"
	"github.com/tenonhq/tenon/mcp"
)

// raceExit is a variable with options of the race detector. It turns off the delay of a second at each exit.
const raceExit = "GORACE"

// process returns the configuration of the test server as a process.
func process(args ...string) Config {
	return Config{Command: os.Args[0], Args: args, Env: map[string]string{role: "testserver", raceExit: "atexit_sleep_ms=0"}, InheritEnv: []string{}}
}

func started(t *testing.T, cfg Config, opts Options) *Server {
	t.Helper()
	s := New("t", cfg, opts)
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func text(t *testing.T, s *Server, tool, args string) string {
	t.Helper()
	r, err := s.Call(t.Context(), tenon.Call{Tool: tool, Arguments: json.RawMessage(args)})
	if err != nil {
		t.Errorf("%s: %v", tool, err)
		return ""
	}
	if len(r.Content) == 0 {
		return ""
	}
	return r.Content[0].Text
}

func readStats(t *testing.T, file string) (st testserver.Stats) {
	t.Helper()
	b, err := os.ReadFile(file)
	if err == nil {
		err = json.Unmarshal(b, &st)
	}
	if err != nil {
		t.Error(err)
	}
	return st
}

// children returns our child processes on Linux, and none on other systems.
func children(t *testing.T) []string {
	t.Helper()
	tasks, _ := filepath.Glob("/proc/self/task/*/children")
	var pids []string
	for _, f := range tasks {
		b, _ := os.ReadFile(f) // the thread may be gone
		pids = append(pids, strings.Fields(string(b))...)
	}
	return pids
}

// TestLazyStart checks that nothing is started before the first use, that concurrent first users share one process, and
// that Close ends it.
func TestLazyStart(t *testing.T) {
	stats := filepath.Join(t.TempDir(), "stats.json")
	s := started(t, process("--stats", stats), Options{})
	time.Sleep(20 * time.Millisecond)
	if _, err := os.Stat(stats); err == nil {
		t.Error("the server runs before it is used")
	}
	states(t, s, StateCold, 0)
	var wg sync.WaitGroup
	for i := range 20 {
		wg.Go(func() {
			if got := text(t, s, "add", fmt.Sprintf(`{"a":%d,"b":1}`, i)); got != strconv.Itoa(i+1) {
				t.Error(got)
			}
		})
	}
	wg.Wait()
	if st := readStats(t, stats); st.Connections != 1 || st.Calls != 20 {
		t.Errorf("%d connections, %d calls", st.Connections, st.Calls)
	}
	if pids := children(t); runtime.GOOS == "linux" && len(pids) != 1 {
		t.Errorf("processes %v; these tests cannot see what is left", pids)
	}
	st := states(t, s, StateReady, 1)
	if st.Protocol != mcp.Modern || st.Server != "tenon-testserver 1" || len(st.Phases) != 2 || st.Phases[0].Name != mcp.StepStart || st.Phases[1].Name != mcp.StepDiscover {
		t.Errorf("%+v", st)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	states(t, s, StateClosed, 1)
	if pids := children(t); len(pids) > 0 {
		t.Errorf("processes %v are left", pids)
	}
}

// TestW9_Crash ends the process during a call. It checks the error of this call, the status and the next call. The call
// must not be repeated.
func TestW9_Crash(t *testing.T) {
	effects := filepath.Join(t.TempDir(), "effects")
	s := started(t, process("--effects", effects), Options{})
	slow := make(chan error, 1)
	if _, err := s.Tools(t.Context()); err != nil {
		t.Fatal(err)
	}
	begun := make(chan struct{})
	var once sync.Once
	go func() {
		_, err := s.Call(context.Background(), tenon.Call{Tool: "slow", Arguments: json.RawMessage(`{"ms":60000,"steps":6000}`),
			Progress: func(tenon.Progress) { once.Do(func() { close(begun) }) }})
		slow <- err
	}()
	<-begun
	_, crash := s.Call(t.Context(), tenon.Call{Tool: "crash"})
	const gone = "server 't' is no longer available (exited with code 3); its last words on stderr: testserver: crashing as told"
	if tenon.ErrorCode(crash) != tenon.CodeUnknown || crash.Error() != "the call of tool 'crash' broke off: "+gone {
		t.Error(crash)
	}
	if err := <-slow; tenon.ErrorCode(err) != tenon.CodeUnknown || err.Error() != "the call of tool 'slow' broke off: "+gone {
		t.Error(err)
	}
	st := s.Status()
	for end := time.Now().Add(30 * time.Second); st.State == StateReady && st.Starts == 1 && time.Now().Before(end); st = s.Status() {
		time.Sleep(time.Millisecond)
	}
	// If this test was delayed by a second, the server may have been started again already.
	if st.Starts == 1 && st.State != StateStarting && (st.State != StateBackoff || st.Error == nil || st.Error.Message != gone) {
		t.Errorf("%s: %v", st.State, st.Error)
	}
	if got := text(t, s, "add", `{"a":2,"b":3}`); got != "5" {
		t.Error(got)
	}
	states(t, s, StateReady, 2)
	b, _ := os.ReadFile(effects)
	if got := strings.Fields(string(b)); !slices.Equal(got, []string{"slow", "crash", "add"}) {
		t.Errorf("calls %q", got)
	}
}

// TestConnectErrors checks the text, the code and the step of each failure to connect.
func TestConnectErrors(t *testing.T) {
	refuses := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusUnauthorized) }))
	defer refuses.Close()
	closed := httptest.NewServer(http.NotFoundHandler())
	closed.Close()
	short := process("--fail", "silent")
	short.Timeout = 300 * time.Millisecond
	tests := []struct {
		name    string
		cfg     Config
		code    tenon.Code
		state   State
		step    string
		message string // its beginning
	}{
		{"HD-US5.1 no such command", Config{Command: "nope-tenon"}, tenon.CodeUnreachable, StateFailed, mcp.StepStart,
			"could not start MCP server 't': command 'nope-tenon' not found in PATH"},
		{"silent", short, tenon.CodeTimeout, StateFailed, mcp.StepDiscover,
			"could not start MCP server 't': it did not answer server/discover within 300ms; command: " + os.Args[0] + " --fail silent; raise servers.t.timeout"},
		{"HD-EDGE-6 initialize is refused", process("--era", "legacy", "--fail", "initialize"), tenon.CodeProtocol, StateFailed, mcp.StepInitialize,
			"could not start MCP server 't': it refused to initialize: told to fail at initialize"},
		{"exits", process("--fail", "exit"), tenon.CodeUnreachable, StateFailed, mcp.StepInitialize, "could not start MCP server 't': command "},
		{"nobody there", Config{URL: closed.URL}, tenon.CodeUnreachable, StateFailed, mcp.StepDiscover,
			"Failed to connect to MCP server 't' at " + closed.URL + ": " + strings.TrimPrefix(closed.URL, "http://") + " cannot be reached"},
		{"401", Config{URL: refuses.URL}, tenon.CodeAuth, StateAuth, mcp.StepDiscover, "Failed to connect to MCP server 't' at " + refuses.URL + ": HTTP 401"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := started(t, tt.cfg, Options{})
			_, err := s.Tools(t.Context())
			if tenon.ErrorCode(err) != tt.code || !strings.HasPrefix(err.Error(), tt.message) {
				t.Errorf("%s: %v", tenon.ErrorCode(err), err)
			}
			st := states(t, s, tt.state, 1)
			if len(st.Phases) == 0 || st.Phases[len(st.Phases)-1].Name != tt.step || st.Error.Error() != err.Error() || st.Since.IsZero() {
				t.Errorf("%+v", st)
			}
		})
	}
	if pids := children(t); len(pids) > 0 {
		t.Errorf("processes %v are left", pids)
	}
}

// TestMended fixes a server that could not be started. The next use must start it.
func TestMended(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("needs a symbolic link")
	}
	dir := t.TempDir()
	cfg := process()
	cfg.Command, cfg.Env["PATH"] = "mended-server", dir
	s := started(t, cfg, Options{})
	if _, err := s.Tools(t.Context()); tenon.ErrorCode(err) != tenon.CodeUnreachable {
		t.Fatal(err)
	}
	if err := os.Symlink(os.Args[0], filepath.Join(dir, "mended-server")); err != nil {
		t.Fatal(err)
	}
	if got := text(t, s, "add", `{"a":2,"b":3}`); got != "5" {
		t.Error(got)
	}
	states(t, s, StateReady, 2)
}

// TestPR5_Environment checks that a process sees only the variables that the configuration grants, and that secrets are
// read when it starts.
func TestPR5_Environment(t *testing.T) {
	t.Setenv("TENON_TEST_OTHER", "leaked")
	cfg := process()
	cfg.Env["OWN"], cfg.InheritEnv = "${secret}", []string{"SHARED", "OWN", "ABSENT"}
	var resolved atomic.Int32
	s := started(t, cfg, Options{
		LookupEnv: func(name string) (string, bool) { return "from outside", name != "ABSENT" },
		Resolve: func(context.Context) (Config, error) {
			resolved.Add(1)
			c := cfg
			c.Env = map[string]string{role: "testserver", raceExit: "atexit_sleep_ms=0", "OWN": "s3cret"}
			return c, nil
		},
	})
	_ = s.Status()
	if resolved.Load() != 0 {
		t.Error("secrets are read before the server is used")
	}
	for name, want := range map[string]string{"OWN": "s3cret", "SHARED": "from outside", "ABSENT": "", "TENON_TEST_OTHER": "", "PATH": "", "HOME": ""} {
		if got := text(t, s, "echo_env", `{"name":"`+name+`"}`); got != want {
			t.Errorf("%s=%q, want %q", name, got, want)
		}
	}
	if n := resolved.Load(); n != 1 {
		t.Errorf("secrets were read %d times", n)
	}
	t.Run("a secret that is missing", func(t *testing.T) {
		s := started(t, cfg, Options{Resolve: func(context.Context) (Config, error) {
			return Config{}, tenon.Errorf(tenon.CodeConfig, "secret 'x' is not set")
		}})
		if _, err := s.Tools(t.Context()); tenon.ErrorCode(err) != tenon.CodeConfig || !strings.Contains(err.Error(), "'t'") {
			t.Error(err)
		}
		states(t, s, StateFailed, 1)
	})
}

// TestCalls checks the requests that a server receives for calls that overlap, wait and end.
func TestCalls(t *testing.T) {
	no := false
	for name, tt := range map[string]struct {
		parallel *bool
		ms       string
	}{"parallel": {nil, "2000"}, "one at a time": {&no, "200"}} {
		t.Run(name, func(t *testing.T) {
			stats := filepath.Join(t.TempDir(), "stats.json")
			cfg := process("--stats", stats)
			cfg.Parallel = tt.parallel
			s := started(t, cfg, Options{})
			var wg sync.WaitGroup
			for range 3 {
				wg.Go(func() { text(t, s, "slow", `{"ms":`+tt.ms+`,"steps":1}`) })
			}
			wg.Wait()
			if n := readStats(t, stats).MaxInFlight; (n == 1) != (tt.parallel != nil) {
				t.Errorf("%d calls at a time", n)
			}
		})
	}
	t.Run("HD-US5.4 a limit", func(t *testing.T) {
		stats := filepath.Join(t.TempDir(), "stats.json")
		cfg := process("--stats", stats)
		cfg.RequestTimeout = 100 * time.Millisecond
		s := started(t, cfg, Options{})
		_, err := s.Call(t.Context(), tenon.Call{Tool: "slow", Arguments: json.RawMessage(`{"ms":60000}`)})
		if tenon.ErrorCode(err) != tenon.CodeTimeout || !strings.HasPrefix(err.Error(), "tool 'slow' of server 't' timed out after 100ms") {
			t.Error(err)
		}
		late := 0                    // on a busy machine, the limit can be too short for any call
		for got := ""; got != "5"; { // the server still works
			r, err := s.Call(t.Context(), tenon.Call{Tool: "add", Arguments: json.RawMessage(`{"a":2,"b":3}`)})
			switch {
			case err == nil && r.Text() != "5", err != nil && tenon.ErrorCode(err) != tenon.CodeTimeout, late > 1000:
				t.Fatal(r, err)
			case err == nil:
				got = r.Text()
			default:
				late++
			}
		}
		_ = s.Close()
		if n := readStats(t, stats).Cancelled; n < 1 || n > 1+late {
			t.Errorf("%d cancelled, and %d late", n, late)
		}
	})
	t.Run("HD-US5.3 an error of the protocol", func(t *testing.T) {
		s := started(t, process(), Options{})
		_, err := s.Call(t.Context(), tenon.Call{Tool: "fail_rpc"})
		var e *tenon.Error
		var rpc *jsonrpc.Error
		if !errors.As(err, &e) || e.Code != tenon.CodeTool || string(e.Data) != `{"field":"x","id":9007199254740993}` || !errors.As(err, &rpc) || rpc.Code != jsonrpc.CodeInvalidParams {
			t.Errorf("%v %s", err, e.Data)
		}
	})
}

// TestListChanged checks in both eras that tools are listed again after a notification that they changed.
func TestListChanged(t *testing.T) {
	for _, era := range []string{"legacy", "modern"} {
		t.Run(era, func(t *testing.T) {
			told := make(chan string, 10)
			stats := filepath.Join(t.TempDir(), "stats.json")
			s := started(t, process("--era", era, "--stats", stats), Options{Changed: func(name string) { told <- name }})
			before, err := s.Tools(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			for range 6000 { // in the modern era, the subscription opens after the connect has returned
				if era == "legacy" || slices.Contains(readStats(t, stats).Methods, "subscriptions/listen") {
					break
				}
				time.Sleep(5 * time.Millisecond)
			}
			text(t, s, "mutate", "")
			if name := <-told; name != "t" {
				t.Error(name)
			}
			after, err := s.Tools(t.Context())
			if err != nil || len(after) != len(before)+1 || s.Status().Tools != len(after) {
				t.Errorf("%d tools, then %d: %v", len(before), len(after), err)
			}
		})
	}
}
