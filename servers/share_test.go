package servers

import (
	"context"
	"encoding/json"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/tenonhq/tenon"
)

// sharingTwo returns two servers that share one connection.
func sharingTwo(t *testing.T, cfg Config) (a, b *Server) {
	t.Helper()
	cfg.Share = true
	pool := new(Pool)
	a = New("a", cfg, Options{Pool: pool, Logs: t.TempDir()})
	b = New("b", cfg, Options{Pool: pool, Logs: t.TempDir()})
	t.Cleanup(func() { _, _ = a.Close(), b.Close() })
	return a, b
}

// TestShare checks servers that share a connection.
func TestShare(t *testing.T) {
	t.Run("AI-37_one_process", shareOneProcess)
	t.Run("other settings", shareNotWithOtherSettings)
	t.Run("crash", shareAfterCrash)
	t.Run("both are told of changes", shareChanges)
	t.Run("closed with a call under way", shareClosedDuringCall)
	t.Run("switched off with a call under way", shareSwitchedOffDuringCall)
	t.Run("cannot start", shareThatCannotStart)
}

// shareOneProcess checks that one process serves both servers until the second of them is closed.
func shareOneProcess(t *testing.T) {
	file := filepath.Join(t.TempDir(), "stats.json")
	a, b := sharingTwo(t, process("--stdio", "--stats", file))
	var wg sync.WaitGroup
	for _, s := range []*Server{a, b, a, b} {
		wg.Go(func() {
			if got := text(t, s, "add", `{"a":1,"b":2}`); got != "3" {
				t.Errorf("%s: %q", s.name, got)
			}
		})
	}
	wg.Wait()
	if pids := children(t); len(pids) > 1 {
		t.Errorf("processes %v, want one", pids)
	}
	if st := readStats(t, file); st.Connections != 1 || st.Calls != 4 {
		t.Errorf("%+v", st)
	}
	if err := a.Close(); err != nil { // the other one keeps it
		t.Error(err)
	}
	if got := text(t, b, "add", `{"a":2,"b":2}`); got != "4" {
		t.Error(got)
	}
	if err := b.Close(); err != nil {
		t.Error(err)
	}
	if pids := children(t); len(pids) > 0 {
		t.Errorf("processes %v are left", pids)
	}
}

// shareNotWithOtherSettings checks that servers with different settings do not share a connection.
func shareNotWithOtherSettings(t *testing.T) {
	file := filepath.Join(t.TempDir(), "stats.json")
	url := listening(t, "--ws", "127.0.0.1:0", "--stats", file)
	pool := new(Pool)
	for i, cfg := range []Config{{URL: url, Share: true}, {URL: url, Share: true, Auth: Auth{Type: AuthBearer, Secret: tenon.NewSecret("x")}},
		{URL: url, Share: true, Auth: Auth{Type: AuthBearer, Secret: tenon.NewSecret("y")}}, {URL: url}, {URL: url, Share: true, ResultFormat: FormatText}} {
		s := started(t, cfg, Options{Pool: pool})
		text(t, s, "add", `{"a":1,"b":2}`)
		if st := readStats(t, file); st.Connections != []int{1, 2, 3, 4, 4}[i] {
			t.Errorf("%d connections after server %d", st.Connections, i)
		}
	}
}

// shareAfterCrash checks that both servers work again after a crash, with one new process.
func shareAfterCrash(t *testing.T) {
	a, b := sharingTwo(t, process("--stdio"))
	text(t, b, "add", `{"a":1,"b":2}`)
	if _, err := a.Call(t.Context(), tenon.Call{Tool: "crash"}); tenon.ErrorCode(err) != tenon.CodeUnknown {
		t.Error(err)
	}
	for _, s := range []*Server{a, b} {
		if got := text(t, s, "add", `{"a":1,"b":2}`); got != "3" {
			t.Errorf("%s does not come back: %q", s.name, got)
		}
		if st := s.Status(); st.State != StateReady || st.Restarts > 1 {
			t.Errorf("%+v", st)
		}
	}
	if pids := children(t); len(pids) > 1 {
		t.Errorf("processes %v, want one", pids)
	}
}

// shareChanges checks that one server is notified of a change of tools that the other one caused.
func shareChanges(t *testing.T) {
	a, b := sharingTwo(t, process("--stdio"))
	for _, s := range []*Server{a, b} {
		if _, err := s.List(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	before := b.Status().Tools
	text(t, a, "mutate", `{}`)
	for end := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
		tools, err := b.List(t.Context())
		if err != nil || time.Now().After(end) {
			t.Fatalf("%d tools, %v", len(tools), err)
		}
		if len(tools) == before+1 {
			break
		}
	}
}

// shareClosedDuringCall checks that closing one server ends its call, while the other one keeps working.
func shareClosedDuringCall(t *testing.T) {
	a, b := sharingTwo(t, process("--stdio"))
	text(t, b, "add", `{"a":1,"b":2}`)
	done := make(chan error, 1)
	go func() {
		_, err := a.Call(context.Background(), tenon.Call{Tool: "slow", Arguments: []byte(`{"ms":60000}`)})
		done <- err
	}()
	time.Sleep(50 * time.Millisecond) // the call is running by now, or begins too late; both must end
	if err := a.Close(); err != nil {
		t.Error(err)
	}
	if err := <-done; err == nil {
		t.Error("the call did not end")
	}
	if got := text(t, b, "add", `{"a":1,"b":2}`); got != "3" {
		t.Error(got)
	}
}

// shareSwitchedOffDuringCall checks that switching off one server ends only its own call.
func shareSwitchedOffDuringCall(t *testing.T) {
	a, b := sharingTwo(t, process("--stdio"))
	text(t, b, "add", `{"a":1,"b":2}`)
	text(t, a, "add", `{"a":1,"b":2}`)
	begun, done := make(chan struct{}, 1), make(chan error, 1)
	go func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		_, err := a.Call(ctx, tenon.Call{Tool: "slow", Arguments: []byte(`{"ms":60000,"steps":6000}`), Progress: func(tenon.Progress) {
			select {
			case begun <- struct{}{}:
			default:
			}
		}})
		done <- err
	}()
	select {
	case <-begun:
	case err := <-done:
		t.Fatal(err)
	}
	a.Switch(false)
	if err := <-done; err == nil || tenon.ErrorCode(err) == tenon.CodeTimeout {
		t.Errorf("the call did not end: %v", err)
	}
	if got := text(t, b, "add", `{"a":1,"b":2}`); got != "3" {
		t.Error(got)
	}
}

// shareThatCannotStart checks that both report that the program does not start.
func shareThatCannotStart(t *testing.T) {
	cfg := Config{Command: "/no/such/program"}
	a, b := sharingTwo(t, cfg)
	for _, s := range []*Server{a, b} {
		if _, err := s.List(t.Context()); tenon.ErrorCode(err) != tenon.CodeUnreachable {
			t.Errorf("%s: %v", s.name, err)
		}
	}
}

// TestKeyOfInvalidSettings checks that entries with settings that are not JSON still have different keys.
func TestKeyOfInvalidSettings(t *testing.T) {
	entry := func(command, settings string) Config {
		return Config{Command: command, Settings: map[string]json.RawMessage{"a": json.RawMessage(settings)}}
	}
	keys := map[string]bool{}
	for _, c := range []Config{entry("one", "{"), entry("two", "{"), entry("one", "["), entry("one", "1")} {
		keys[c.key()], keys[c.sharing()] = true, true
	}
	if len(keys) != 8 || keys[""] {
		t.Errorf("%d different keys: %v", len(keys), keys)
	}
}
