package host_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/config"
	"github.com/tenonhq/tenon/host"
	"github.com/tenonhq/tenon/internal/testserver"
	"github.com/tenonhq/tenon/mcp"
	"github.com/tenonhq/tenon/policy"
	"github.com/tenonhq/tenon/servers"
)

// visits counts the sessions that clients have begun and ended at a server.
type visits struct {
	url string
	mu  sync.Mutex
	now map[string]bool
	all int
}

func (v *visits) count() string {
	v.mu.Lock()
	defer v.mu.Unlock()
	return fmt.Sprintf("%d begun, %d open", v.all, len(v.now))
}

// visited starts a server with the tool wait, which answers when the test releases it.
func visited(t *testing.T, called chan<- struct{}, let <-chan struct{}) *visits {
	t.Helper()
	srv, err := mcp.NewServer(mcp.ServerConfig{Name: "x", Version: "1", Tools: []mcp.ServerTool{{
		Definition: json.RawMessage(`{"name":"wait","description":"Waits","inputSchema":{"type":"object"}}`),
		Call: func(ctx context.Context, _ *mcp.ToolRequest) (json.RawMessage, error) {
			called <- struct{}{}
			select {
			case <-let:
				return json.RawMessage(`{"content":[{"type":"text","text":"done"}]}`), nil
			case <-ctx.Done():
				return nil, ctx.Err()
			}
		}}}})
	if err != nil {
		t.Fatal(err)
	}
	v := &visits{now: map[string]bool{}}
	inner := srv.HTTP(mcp.HTTPConfig{NewSession: func() string {
		v.mu.Lock()
		defer v.mu.Unlock()
		v.all++
		id := fmt.Sprintf("s%d", v.all)
		v.now[id] = true
		return id
	}})
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodDelete {
			v.mu.Lock()
			delete(v.now, r.Header.Get("Mcp-Session-Id"))
			v.mu.Unlock()
		}
		inner.ServeHTTP(w, r)
	}))
	t.Cleanup(web.Close)
	v.url = web.URL
	return v
}

// reopening is a host that is opened again with other configurations of its only server.
type reopening struct {
	t           *testing.T
	v           *visits
	dir, token  string
	h           *host.Host
	called, let chan struct{} // of the tool wait
}

func (r *reopening) put(path, text string) {
	r.t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		r.t.Fatal(err)
	}
}

func (r *reopening) load(entry string) *config.Config {
	r.t.Helper()
	file := filepath.Join(r.dir, "tenon.yaml")
	r.put(file, "servers:\n  t: {url: \""+r.v.url+"\", protocol: \"2025-11-25\""+entry+"}\n")
	cfg, err := config.Load(r.t.Context(), config.Options{File: file, LookupEnv: func(string) (string, bool) { return "", false }})
	if err != nil {
		r.t.Fatal(err)
	}
	return cfg
}

func (r *reopening) connect(h *host.Host) {
	r.t.Helper()
	if _, err := h.Service().Connections()["t"].List(r.t.Context()); err != nil {
		r.t.Fatal(err)
	}
}

// seen checks how many sessions have begun and ended at the server.
func (r *reopening) seen(when, want string) {
	r.t.Helper()
	if got := r.v.count(); got != want {
		r.t.Errorf("%s: %s sessions, want %s", when, got, want)
	}
}

// reopen opens the host again with another server entry, and returns the old host.
func (r *reopening) reopen(entry string) (old *host.Host) {
	r.t.Helper()
	next, err := r.h.Reopen(r.load(entry))
	if err != nil {
		r.t.Fatal(err)
	}
	old, r.h = r.h, next
	return old
}

// TestReopenKeepsConnections reloads the configuration. A server keeps its connection, with its current calls, if the
// new entry leads to the same connection. Otherwise it gets a new connection. Each connection is closed with the last
// host that uses it.
func TestReopenKeepsConnections(t *testing.T) {
	r := &reopening{t: t, dir: t.TempDir(), called: make(chan struct{}, 1), let: make(chan struct{})}
	r.v, r.token = visited(t, r.called, r.let), filepath.Join(r.dir, "token")
	r.put(r.token, "first-token")
	var err error
	r.h, err = host.Open(t.Context(), host.Config{Config: r.load(""), Home: filepath.Join(r.dir, "home"), LookupEnv: func(string) (string, bool) { return "", false }})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := r.h.Close(); err != nil {
			t.Error(err)
		}
		r.seen("at the end", "4 begun, 0 open")
	}()
	r.connect(r.h)
	r.seen("connected", "1 begun, 1 open")
	r.otherRules()
	r.switched()
	r.otherHeader()
	r.abandoned()
	r.otherToken()
}

// otherRules changes keys of the entry that only affect the catalog and the rules. The current call continues.
func (r *reopening) otherRules() {
	old := r.reopen(", description: x, include: [w*], trusted: false, policy: {approval: always}, naming: {template: \"my_{tool}\"}")
	answer := make(chan error, 1)
	go func() {
		_, err := old.Service().Connections()["t"].Call(r.t.Context(), tenon.Call{Tool: "wait"})
		answer <- err
	}()
	<-r.called
	if err := old.Close(); err != nil {
		r.t.Error(err)
	}
	r.connect(r.h)
	r.seen("what the catalog and the rules take", "1 begun, 1 open")
	if tools, problems, err := r.h.Tools().Snapshot(r.t.Context()); err != nil || len(problems) > 0 {
		r.t.Error(err, problems)
	} else if !slices.Contains(tools.Names(), "my_wait") {
		r.t.Error("the new entry does not count for the tools")
	}
	r.let <- struct{}{}
	if err := <-answer; err != nil {
		r.t.Errorf("a call that was under way: %v", err)
	}
}

// switched disables the server and enables it again. Later reloads keep the new connection.
func (r *reopening) switched() {
	if _, err := r.h.Servers().Switch(r.t.Context(), "t", false); err != nil {
		r.t.Fatal(err)
	}
	if _, err := r.h.Servers().Switch(r.t.Context(), "t", true); err != nil {
		r.t.Fatal(err)
	}
	r.connect(r.h)
	for range 3 { // many times
		if err := r.reopen("").Close(); err != nil {
			r.t.Error(err)
		}
	}
	for end := time.Now().Add(time.Minute); r.v.count() != "2 begun, 1 open" && time.Now().Before(end); {
		time.Sleep(time.Millisecond) // disabling a server does not wait until its session has ended
	}
	r.seen("switched", "2 begun, 1 open")
}

// otherHeader changes a header. The old host and the new one have separate connections.
func (r *reopening) otherHeader() {
	old := r.reopen(", headers: {X-A: b}")
	r.seen("before the first use of another header", "2 begun, 1 open")
	r.connect(r.h)
	r.connect(old)
	r.seen("both are at work", "3 begun, 2 open")
	if err := old.Close(); err != nil {
		r.t.Error(err)
	}
	r.seen("the old one is closed", "3 begun, 1 open")
}

// abandoned closes a new host at once. The old one keeps its connection.
func (r *reopening) abandoned() {
	next, err := r.h.Reopen(r.load(", headers: {X-A: b}"))
	if err != nil {
		r.t.Fatal(err)
	}
	if err := next.Close(); err != nil {
		r.t.Error(err)
	}
	r.connect(r.h)
	r.seen("the new host is closed", "3 begun, 1 open")
}

// otherToken changes the content of a token file. The configuration itself stays the same.
func (r *reopening) otherToken() {
	secret := ", headers: {X-A: b}, auth: {type: bearer, secret: {file: " + r.token + "}}"
	if err := r.reopen(secret).Close(); err != nil {
		r.t.Error(err)
	}
	r.connect(r.h)
	r.put(r.token, "second-token")
	before := r.h.Service().Connections()["t"]
	if err := r.reopen(secret).Close(); err != nil {
		r.t.Error(err)
	}
	if r.h.Service().Connections()["t"] == before {
		r.t.Error("a server with another token keeps its connection")
	}
}

// TestReopenWithoutAServer checks that a server that the new configuration lacks is stopped, and that the others stay
// connected.
func TestReopenWithoutAServer(t *testing.T) {
	v := visited(t, nil, nil)
	both := &config.Config{Servers: map[string]servers.Config{"a": {URL: v.url, Protocol: "2025-11-25"}, "b": {URL: v.url, Protocol: "2025-11-25"}}}
	h, err := host.Open(t.Context(), host.Config{Config: both, Home: t.TempDir(), LookupEnv: func(string) (string, bool) { return "", false }})
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range h.Service().Connections() {
		if _, err := s.List(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	next, err := h.Reopen(&config.Config{Servers: map[string]servers.Config{"b": both.Servers["b"]}})
	if err != nil {
		t.Fatal(err)
	}
	if err := h.Servers().Remove(t.Context(), "b"); err != nil { // the other host still has it
		t.Error(err)
	}
	if got := v.count(); got != "2 begun, 2 open" {
		t.Error(got)
	}
	if err := h.Close(); err != nil {
		t.Error(err)
	}
	if got := v.count(); got != "2 begun, 1 open" {
		t.Error(got)
	}
	if _, err := next.Service().Connections()["b"].List(t.Context()); err != nil {
		t.Error(err)
	}
	public := false
	last, err := next.Reopen(&config.Config{Servers: map[string]servers.Config{"b": both.Servers["b"]}, Policy: policy.Config{URLs: policy.URLs{AllowPrivate: &public}}})
	if err != nil {
		t.Fatal(err)
	}
	if err := next.Close(); err != nil {
		t.Error(err)
	}
	if got := v.count(); got != "2 begun, 0 open" {
		t.Errorf("an address that is not allowed any more: %s", got)
	}
	if err := last.Close(); err != nil {
		t.Error(err)
	}
}

// TestReopenChangesRoots changes the roots of a connected server. The server is notified and not restarted, unless it
// had no roots before.
func TestReopenChangesRoots(t *testing.T) {
	for _, tt := range []struct{ name, before, after, want string }{
		{"RP-11_other_roots", "[a]", "[b]", "1 connection, notified"},
		{"RP-11_the_same", "[a]", "[a]", "1 connection"},
		{"RP-11_first_roots", "[]", "[b]", "2 connections"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			stats := filepath.Join(dir, "stats.json")
			url := overHTTP(t, "--stats", stats, "--era", "legacy")
			for _, name := range []string{"a", "b"} {
				if err := os.Mkdir(filepath.Join(dir, name), 0o700); err != nil {
					t.Fatal(err)
				}
			}
			load := func(roots string) *config.Config {
				t.Helper()
				file := filepath.Join(dir, "tenon.yaml")
				text := "servers:\n  t: {url: \"" + url + "\", roots: " + roots + "}\n"
				if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
				none := func(string) (string, bool) { return "", false }
				cfg, err := config.Load(t.Context(), config.Options{File: file, LookupEnv: none})
				if err != nil {
					t.Fatal(err)
				}
				return cfg
			}
			h, err := host.Open(t.Context(), host.Config{Config: load(tt.before), Home: filepath.Join(dir, "home"),
				LookupEnv: func(string) (string, bool) { return "", false }})
			if err != nil {
				t.Fatal(err)
			}
			call := func(h *host.Host) {
				t.Helper()
				r, err := h.Service().Connections()["t"].Call(t.Context(), tenon.Call{Tool: "add",
					Arguments: json.RawMessage(`{"a":1,"b":2}`)})
				if err != nil || r.IsError {
					t.Fatal(r, err)
				}
			}
			call(h)
			next, err := h.Reopen(load(tt.after))
			if err != nil {
				t.Fatal(err)
			}
			call(next)
			if err := errors.Join(h.Close(), next.Close()); err != nil {
				t.Error(err)
			}
			b, err := os.ReadFile(stats)
			if err != nil {
				t.Fatal(err)
			}
			var st testserver.Stats
			if err := json.Unmarshal(b, &st); err != nil {
				t.Fatal(err)
			}
			begun, got := 0, "1 connection"
			for _, m := range st.Methods {
				if m == "initialize" {
					begun++
				}
			}
			if begun != 1 {
				got = fmt.Sprint(begun, " connections")
			}
			if slices.Contains(st.Methods, "notifications/roots/list_changed") {
				got += ", notified"
			}
			if got != tt.want {
				t.Errorf("%s, want %s; the server saw %v", got, tt.want, st.Methods)
			}
		})
	}
}
