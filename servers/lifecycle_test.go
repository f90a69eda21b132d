package servers

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/mcp"
)

// until waits for a state.
func until(t *testing.T, s *Server, want State) Status {
	t.Helper()
	for range 12_000 { // a minute
		if st := s.Status(); st.State == want {
			return st
		}
		time.Sleep(5 * time.Millisecond)
	}
	st := s.Status()
	t.Fatalf("state %s, want %s: %v", st.State, want, st.Error)
	return st
}

// TestCatalogueIsKept checks that the tools of a server that was listed before are known without its process. The first
// use lists them again. Another configuration must not get the kept list.
func TestCatalogueIsKept(t *testing.T) {
	cache := t.TempDir()
	opts := Options{Cache: cache}
	cfg := process("--stdio", "--only", "add,greet")
	names := func(s *Server) (list []string) {
		tools, err := s.Tools(t.Context())
		if err != nil {
			t.Error(err)
		}
		for _, tool := range tools {
			list = append(list, tool.Remote)
		}
		return list
	}
	first := New("t", cfg, opts)
	if got := names(first); !slices.Equal(got, []string{"add", "greet"}) {
		t.Fatal(got)
	}
	_ = first.Close()
	if st, err := os.Stat(filepath.Join(cache, "t.json")); err != nil || st.Mode().Perm() != 0o600 {
		t.Fatal(st, err)
	}
	s := started(t, cfg, opts)
	if got := names(s); !slices.Equal(got, []string{"add", "greet"}) {
		t.Error(got)
	}
	if st := states(t, s, StateCold, 0); st.Tools != 2 || st.Cached.IsZero() || st.Protocol != mcp.Modern || len(children(t)) != 0 {
		t.Errorf("%+v, processes %v", st, children(t))
	}
	if got := text(t, s, "add", `{"a":1,"b":2}`); got != "3" {
		t.Error(got)
	}
	states(t, s, StateReady, 1)
	for name, change := range map[string]func(c *Config, o *Options){
		"arguments": func(c *Config, _ *Options) { c.Args = append(slices.Clone(c.Args), "--tools", "1", "--only", "") },
		"variable":  func(c *Config, _ *Options) { c.Env = map[string]string{role: "testserver", "X": "1"} },
		"live":      func(c *Config, _ *Options) { c.Discover = DiscoverLive },
		"eager":     func(c *Config, _ *Options) { c.Lifecycle = LifecycleEager },
		"required":  func(c *Config, _ *Options) { c.Required = true },
		"asked":     func(_ *Config, o *Options) { o.RefreshTools = true },
	} {
		c, o := cfg, opts
		change(&c, &o)
		other := New("t", c, o)
		_ = names(other)
		if st := other.Status(); st.State != StateReady {
			t.Errorf("%s: state %s", name, st.State)
		}
		_ = other.Close()
	}
	_ = s.Close() // Close writes what is pending
	if err := os.WriteFile(filepath.Join(cache, "t.json"), []byte("{broken"), 0o600); err != nil {
		t.Fatal(err)
	}
	broken := started(t, cfg, opts)
	if got := names(broken); len(got) != 2 {
		t.Error(got)
	}
	states(t, broken, StateReady, 1)
}

// TestStaleCatalogue checks that Changed is called if a server's tools differ from the kept list.
func TestStaleCatalogue(t *testing.T) {
	cache := t.TempDir()
	list := []tenon.Tool{{Remote: "old", Raw: []byte(`{"name":"old"}`)}}
	dial := func(context.Context) (connection, error) {
		c := newFake()
		c.tools = func(context.Context) ([]tenon.Tool, error) { return list, nil }
		return c, nil
	}
	first := faked(Config{}, dial)
	first.opts.Cache = cache
	if _, err := first.Tools(t.Context()); err != nil {
		t.Fatal(err)
	}
	_ = first.Close()
	list = []tenon.Tool{{Remote: "new", Raw: []byte(`{"name":"new"}`)}}
	told := make(chan string, 1)
	s := faked(Config{}, dial)
	s.opts.Cache, s.opts.Changed = cache, func(name string) { told <- name }
	defer func() { _ = s.Close() }()
	if tools, err := s.Tools(t.Context()); err != nil || tools[0].Remote != "old" {
		t.Fatal(tools, err)
	}
	if _, err := s.Call(t.Context(), tenon.Call{Tool: "old"}); err != nil {
		t.Fatal(err)
	}
	if name := <-told; name != "t" {
		t.Error(name)
	}
	if tools, err := s.Tools(t.Context()); err != nil || tools[0].Remote != "new" {
		t.Error(tools, err)
	}
}

// TestHTTPServerThatIsDown stops a server and starts it again. Its state must not stay ready, and it must reconnect by
// itself.
func TestHTTPServerThatIsDown(t *testing.T) {
	srv, err := mcp.NewServer(mcp.ServerConfig{Name: "x", Version: "1"})
	if err != nil {
		t.Fatal(err)
	}
	serve := func(l net.Listener) *httptest.Server {
		w := httptest.NewUnstartedServer(srv.HTTP(mcp.HTTPConfig{}))
		if l != nil {
			_ = w.Listener.Close()
			w.Listener = l
		}
		w.Start()
		return w
	}
	web := serve(nil)
	addr := web.Listener.Addr().String()
	s := started(t, Config{URL: web.URL}, Options{})
	if _, err := s.Tools(t.Context()); err != nil {
		t.Fatal(err)
	}
	until(t, s, StateReady)
	web.CloseClientConnections()
	web.Close()
	for range 2 { // the first call may only notice that its connection was closed
		_, err = s.Call(t.Context(), tenon.Call{Tool: "x"})
	}
	if err == nil || !strings.Contains(err.Error(), addr) {
		t.Error(err)
	}
	if st := s.Status(); st.State == StateReady || st.Error == nil {
		t.Errorf("state %s", st.State)
	}
	l, err := net.Listen("tcp", addr)
	if err != nil {
		t.Skip("the port was taken by somebody else: ", err)
	}
	again := serve(l)
	defer func() { _ = s.Close(); again.Close() }() // the web server waits for the end of our subscription
	if st := until(t, s, StateReady); st.Restarts == 0 {
		t.Errorf("%+v", st)
	}
}

// TestDegraded breaks a subscription and repairs it. The status must show both.
func TestDegraded(t *testing.T) {
	srv, err := mcp.NewServer(mcp.ServerConfig{Name: "x", Version: "1"})
	if err != nil {
		t.Fatal(err)
	}
	handler := srv.HTTP(mcp.HTTPConfig{})
	var cut atomic.Bool
	cut.Store(true)
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Mcp-Method") == "subscriptions/listen" && cut.Load() {
			w.Header().Set("Content-Type", "text/event-stream")
			return
		}
		handler.ServeHTTP(w, r)
	}))
	s := started(t, Config{URL: web.URL}, Options{})
	t.Cleanup(func() { _ = s.Close(); web.Close() })
	if _, err := s.Tools(t.Context()); err != nil {
		t.Fatal(err)
	}
	if st := until(t, s, StateDegraded); st.Error == nil || !strings.Contains(st.Error.Message, "does not report changes") {
		t.Errorf("%+v", st)
	}
	cut.Store(false)
	until(t, s, StateReady)
}

// TestPerCall checks that a server with connections per call has one connection for each call, and none between calls.
func TestPerCall(t *testing.T) {
	file := filepath.Join(t.TempDir(), "stats.json")
	cfg := Config{URL: listening(t, "--ws", "127.0.0.1:0", "--stats", file), Lifecycle: LifecyclePerCall}
	s := started(t, cfg, Options{})
	for range 3 {
		if got := text(t, s, "add", `{"a":1,"b":2}`); got != "3" {
			t.Error(got)
		}
	}
	if st := readStats(t, file); st.Connections != 3 || st.Calls != 3 {
		t.Errorf("%+v", st)
	}
	if st := states(t, s, StateCold, 3); st.Protocol != mcp.Modern {
		t.Errorf("%+v", st)
	}
	down := started(t, Config{URL: "ws://127.0.0.1:1/", Lifecycle: LifecyclePerCall}, Options{})
	if _, err := down.Call(t.Context(), tenon.Call{Tool: "x"}); tenon.ErrorCode(err) != tenon.CodeUnreachable {
		t.Error(err)
	}
	states(t, down, StateFailed, 1)
}

// TestLogs checks that the lines of a server are kept for other processes, in order and within a bound.
func TestLogs(t *testing.T) {
	dir := t.TempDir()
	s := New("t", process("--stdio"), Options{Logs: dir})
	text(t, s, "add", `{"a":1,"b":2}`)
	_, _ = s.Call(t.Context(), tenon.Call{Tool: "crash"})
	_ = s.Close()
	var kinds []string
	for _, l := range New("t", Config{Command: "x"}, Options{Logs: dir}).Logs(0) {
		kinds = append(kinds, l.Kind)
	}
	if !slices.Equal(kinds, []string{"state", "stderr", "error"}) {
		t.Errorf("%q", kinds)
	}
	j := newJournal(dir, "flood")
	for range 100_000 {
		j.add("stderr", strings.Repeat("x", 100))
	}
	j.close()
	st, err := os.Stat(j.path)
	if err != nil || st.Size() > maxJournal+2*maxPending {
		t.Errorf("%v %v", st, err)
	}
	var none *journal
	none.add("x", "y")
	none.close()
}
