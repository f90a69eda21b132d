package host_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/config"
	"github.com/tenonhq/tenon/host"
	"github.com/tenonhq/tenon/mcp"
	"github.com/tenonhq/tenon/policy"
	"github.com/tenonhq/tenon/servers"
)

// TestOverlay checks that each principal uses a server with their own credentials, while others use the same server
// with theirs. Two people with two tokens never share a connection or a cached result.
func TestOverlay(t *testing.T) {
	for _, protocol := range []string{"2025-11-25", "2026-07-28"} {
		t.Run("AI-36_"+protocol, func(t *testing.T) { testOverlay(t, protocol) })
	}
	t.Run("a cache does not cross them", testOverlayCache)
}

// credentialsSeen is a server that records which token it is called with, for which user and in which session.
type credentialsSeen struct {
	t     *testing.T
	inner http.Handler

	mu       sync.Mutex
	pairs    map[string]int    // token and user of each call
	sessions map[string]string // session → the token that was used in it
}

func (s *credentialsSeen) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	token := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
	s.mu.Lock()
	if id := r.Header.Get("Mcp-Session-Id"); id != "" {
		if was, ok := s.sessions[id]; ok && was != token {
			s.t.Errorf("session %s is used with %s and with %s", id, was, token)
		}
		s.sessions[id] = token
	}
	if user := r.Header.Get("X-User"); user != "" {
		s.pairs[token+" of "+user]++
	}
	s.mu.Unlock()
	s.inner.ServeHTTP(w, r)
}

// check checks that ann and bob made their calls with their own tokens, and that no other token was used.
func (s *credentialsSeen) check() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for pair, n := range s.pairs {
		if pair != "token-of-ann of ann" && pair != "token-of-bob of bob" {
			s.t.Errorf("the server saw %s, %d times", pair, n)
		}
	}
	if s.pairs["token-of-ann of ann"] < 50 || s.pairs["token-of-bob of bob"] < 50 {
		s.t.Errorf("the server saw %v", s.pairs)
	}
}

func testOverlay(t *testing.T, protocol string) {
	srv, err := mcp.NewServer(mcp.ServerConfig{Name: "x", Version: "1", Tools: []mcp.ServerTool{{
		Definition: json.RawMessage(`{"name":"whoami","description":"x","inputSchema":{"type":"object","properties":{"user":{"type":"string"},"n":{"type":"integer"}}},"annotations":{"readOnlyHint":true}}`),
		Call: func(_ context.Context, r *mcp.ToolRequest) (json.RawMessage, error) {
			return json.RawMessage(`{"content":[{"type":"text","text":"you are known"}],"structuredContent":` + string(r.Arguments) + `}`), nil
		}}}})
	if err != nil {
		t.Fatal(err)
	}
	seen := &credentialsSeen{t: t, inner: srv.HTTP(mcp.HTTPConfig{}), pairs: map[string]int{}, sessions: map[string]string{}}
	web := httptest.NewServer(seen)
	t.Cleanup(web.Close)
	h, err := host.Open(t.Context(), host.Config{Home: t.TempDir(), LookupEnv: func(string) (string, bool) { return "", false },
		Config: &config.Config{Servers: map[string]servers.Config{"t": {URL: web.URL, Protocol: protocol}}},
		Overlay: func(_ context.Context, who tenon.Principal, server string) (servers.Overlay, error) {
			switch {
			case who == "eve":
				return servers.Overlay{}, errors.New("eve has none")
			case who == tenon.PrincipalLocal || server != "t":
				return servers.Overlay{}, nil
			}
			return servers.Overlay{Auth: servers.Auth{Type: servers.AuthBearer, Secret: tenon.NewSecret("token-of-" + string(who))}, Headers: map[string]string{"X-User": string(who)}}, nil
		}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = h.Close() })
	if _, _, err := h.Tools().Snapshot(t.Context()); err != nil {
		t.Fatal(err)
	}
	call := func(who tenon.Principal, n int) (string, error) {
		run, err := h.Tools().Start(t.Context(), host.ToolCall{Name: "whoami", Arguments: json.RawMessage(fmt.Sprintf(`{"user":%q,"n":%d}`, who, n)), Principal: who})
		if err != nil {
			return "", err
		}
		r, _ := follow(t, h, run.ID)
		if len(r.ToolCalls) != 1 || !r.ToolCalls[0].Success {
			return "", fmt.Errorf("%+v", r)
		}
		return string(r.ToolCalls[0].Args), nil
	}
	var wg sync.WaitGroup
	for _, who := range []tenon.Principal{"ann", "bob"} {
		for n := range 50 {
			wg.Go(func() {
				if got, err := call(who, n); err != nil || !strings.Contains(got, string(who)) {
					t.Errorf("%s: %s %v", who, got, err)
				}
			})
		}
	}
	wg.Wait()
	seen.check()
	if _, err := call("eve", 1); err == nil || !strings.Contains(err.Error(), "the credentials of eve for server 't' are not known: eve has none") {
		t.Errorf("eve: %v", err)
	}
	if st := h.Service().Connections()["t"].Status(); st.State != servers.StateReady || st.Starts != 1 {
		t.Errorf("the configuration's own connection: %s, started %d times", st.State, st.Starts)
	}
	for _, l := range h.Service().Connections()["t"].Logs(0) {
		if strings.Contains(l.Text, "token-of") {
			t.Errorf("a token stands in the log: %s", l.Text)
		}
	}
}

// testOverlayCache checks that the results that are cached for a principal are not given to another one.
func testOverlayCache(t *testing.T) {
	yes, hour := true, time.Hour
	url := overHTTP(t)
	h, err := host.Open(t.Context(), host.Config{Home: t.TempDir(), LookupEnv: func(string) (string, bool) { return "", false },
		Config: &config.Config{Servers: map[string]servers.Config{"t": {URL: url}},
			Policy: policy.Config{Defaults: policy.Block{Cache: policy.Cache{TTL: &hour, Scope: policy.ScopeProject, Force: &yes}, Approval: policy.Approval{Mode: "never"}}}},
		Overlay: func(_ context.Context, who tenon.Principal, _ string) (servers.Overlay, error) {
			return servers.Overlay{Headers: map[string]string{"X-User": string(who)}}, nil
		}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = h.Close() })
	for _, want := range []struct {
		who    tenon.Principal
		cached bool
	}{{"ann", false}, {"ann", true}, {"bob", false}, {"bob", true}} {
		run, err := h.Tools().Start(t.Context(), host.ToolCall{Name: "counter", Arguments: json.RawMessage("{}"), Principal: want.who})
		if err != nil {
			t.Fatal(err)
		}
		if r, _ := follow(t, h, run.ID); r.ToolCalls[0].Cached != want.cached {
			t.Errorf("%s: cached %v, want %v", want.who, r.ToolCalls[0].Cached, want.cached)
		}
	}
}
