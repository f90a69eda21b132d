package mcp_test

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/mcp"
	"github.com/tenonhq/tenon/transport"
)

// TestW10_ForgottenSession also checks that the call is made once in the new session, and that concurrent callers share
// the new session.
func TestW10_ForgottenSession(t *testing.T) {
	var calls, starts atomic.Int32
	s, err := mcp.NewServer(mcp.ServerConfig{NoModern: true, Tools: []mcp.ServerTool{tool(`{"name":"x"}`,
		func(context.Context, *mcp.ToolRequest) (json.RawMessage, error) {
			calls.Add(1)
			return json.RawMessage(`{"content":[]}`), nil
		})},
		Observe: func(_ context.Context, method string, _ []byte) error {
			if method == "initialize" {
				starts.Add(1)
			}
			return nil
		}})
	if err != nil {
		t.Fatal(err)
	}
	var handler atomic.Pointer[http.Handler]
	fresh := s.HTTP(mcp.HTTPConfig{})
	handler.Store(&fresh)
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { (*handler.Load()).ServeHTTP(w, r) }))
	t.Cleanup(web.Close)
	c := connect(t, mcp.ClientConfig{Dial: func(context.Context) (mcp.Stream, error) {
		return transport.DialHTTP(transport.HTTPConfig{URL: web.URL})
	}})
	restarted := s.HTTP(mcp.HTTPConfig{})
	handler.Store(&restarted) // it knows no session
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			if _, err := c.Call(t.Context(), tenon.Call{Tool: "x"}); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if calls.Load() != 8 || starts.Load() != 2 {
		t.Errorf("%d calls, %d sessions; want 8 and 2", calls.Load(), starts.Load())
	}
}

// TestHTTPSessionlessOutlivesConnection checks that a legacy call without a session continues when its client drops the
// connection, and is told that the client is gone.
func TestHTTPSessionlessOutlivesConnection(t *testing.T) {
	began, ended := make(chan context.Context, 1), make(chan error, 1)
	gone, look := make(chan bool, 1), make(chan struct{})
	s, err := mcp.NewServer(mcp.ServerConfig{Tools: []mcp.ServerTool{tool(`{"name":"x"}`,
		func(ctx context.Context, r *mcp.ToolRequest) (json.RawMessage, error) {
			began <- ctx
			<-look
			gone <- r.IsGone()
			ended <- ctx.Err()
			return json.RawMessage(`{"content":[]}`), nil
		})}})
	if err != nil {
		t.Fatal(err)
	}
	served := s.HTTP(mcp.HTTPConfig{Sessionless: true})
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		context.AfterFunc(r.Context(), func() { close(look) })
		served.ServeHTTP(w, r)
	}))
	t.Cleanup(web.Close)
	ctx, leave := context.WithCancel(t.Context())
	defer leave()
	left := make(chan struct{})
	go func() {
		defer close(left)
		r, _ := http.NewRequestWithContext(ctx, http.MethodPost, web.URL, strings.NewReader(
			`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"x","arguments":{}}}`))
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Accept", "application/json, text/event-stream")
		r.Header.Set("MCP-Protocol-Version", mcp.LatestLegacy)
		if answer, err := http.DefaultClient.Do(r); err == nil {
			_ = answer.Body.Close() // the call never ends before the client leaves
		}
	}()
	call := <-began
	leave()
	<-left
	if !<-gone {
		t.Error("the call is not told that its client is gone")
	}
	if err := <-ended; err != nil {
		t.Errorf("the call was cancelled: %v", err)
	}
	<-call.Done() // when the request has ended
}

func TestHTTPServerRefuses(t *testing.T) {
	s, err := mcp.NewServer(mcp.ServerConfig{})
	if err != nil {
		t.Fatal(err)
	}
	h := s.HTTP(mcp.HTTPConfig{MaxBody: 1000})
	tests := []struct {
		name   string
		change func(*http.Request)
		body   string
		status int
	}{
		{"a foreign host", func(r *http.Request) { r.Host = "evil.example" }, `{}`, 403},
		{"a host that begins like ours", func(r *http.Request) { r.Host = "localhost.evil.example" }, `{}`, 403},
		{"a foreign origin", func(r *http.Request) { r.Header.Set("Origin", "https://evil.example") }, `{}`, 403},
		{"origin null", func(r *http.Request) { r.Header.Set("Origin", "null") }, `{}`, 403},
		{"two origins", func(r *http.Request) {
			r.Header["Origin"] = []string{"http://127.0.0.1", "https://evil.example"}
		}, `{}`, 403},
		{"another content type", func(r *http.Request) { r.Header.Set("Content-Type", "text/plain") }, `{}`, 415},
		{"too large", func(*http.Request) {}, strings.Repeat(" ", 2000), 413},
		{"no JSON", func(*http.Request) {}, `{`, 400},
		{"no session", func(*http.Request) {}, `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`, 400},
		{"a session that is not known", func(r *http.Request) { r.Header.Set("Mcp-Session-Id", "x") }, `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`, 404},
		{"a header that says something else", func(r *http.Request) {
			r.Header.Set("MCP-Protocol-Version", mcp.Modern)
			r.Header.Set("Mcp-Method", "tools/call")
		}, `{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}`, 400},
		{"an old version that is not known", func(r *http.Request) { r.Header.Set("MCP-Protocol-Version", "1999-01-01") },
			`{"jsonrpc":"2.0","id":1,"method":"tools/list"}`, 400},
		{"a version that is not known", func(r *http.Request) { r.Header.Set("MCP-Protocol-Version", "v999") },
			`{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"v999","io.modelcontextprotocol/clientCapabilities":{}}}}`, 400},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := httptest.NewRequest(http.MethodPost, "http://127.0.0.1/mcp", strings.NewReader(tt.body))
			r.Header.Set("Content-Type", "application/json")
			tt.change(r)
			w := httptest.NewRecorder()
			h.ServeHTTP(w, r)
			if w.Code != tt.status {
				t.Errorf("status %d, want %d: %s", w.Code, tt.status, w.Body)
			}
		})
	}
}

// TestHTTPVersionHeader checks that requests of a session are refused if their header names a revision that is not
// supported (2025-11-25, transports). The header of initialize does not matter: its params propose the revision.
func TestHTTPVersionHeader(t *testing.T) {
	s := batchServer(t)
	for name, cfg := range map[string]mcp.HTTPConfig{"with sessions": {}, "without": {Sessionless: true}} {
		h := s.HTTP(cfg)
		session := ""
		send := func(method, version, body string) *httptest.ResponseRecorder {
			ctx, cancel := context.WithCancel(t.Context())
			cancel() // ends the stream of a GET
			r := httptest.NewRequestWithContext(ctx, method, "http://127.0.0.1/mcp", strings.NewReader(body))
			r.Header.Set("Content-Type", "application/json")
			r.Header.Set("MCP-Protocol-Version", version)
			if session != "" {
				r.Header.Set("Mcp-Session-Id", session)
			}
			w := httptest.NewRecorder()
			h.ServeHTTP(w, r)
			return w
		}
		w := send(http.MethodPost, "1999-01-01", `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-03-26"}}`)
		if w.Code != 200 {
			t.Fatalf("%s: initialize: status %d: %s", name, w.Code, w.Body)
		}
		if !cfg.Sessionless {
			session = w.Header().Get("Mcp-Session-Id")
		}
		const ping = `{"jsonrpc":"2.0","id":1,"method":"ping"}`
		for _, c := range [][2]string{{http.MethodPost, ping}, {http.MethodPost, "[" + ping + "]"}, {http.MethodGet, ""}, {http.MethodDelete, ""}} {
			if w := send(c[0], "1999-01-01", c[1]); w.Code != 400 {
				t.Errorf("%s: %s %s: status %d: %s", name, c[0], c[1], w.Code, w.Body)
			}
		}
		for _, version := range []string{"", "2024-11-05", "2025-06-18", mcp.LatestLegacy} {
			if w := send(http.MethodPost, version, ping); w.Code != 200 {
				t.Errorf("%s: %q: status %d: %s", name, version, w.Code, w.Body)
			}
		}
	}
}

// TestInvalidParams checks the answers to requests whose params cannot be read.
func TestInvalidParams(t *testing.T) {
	h := batchServer(t).HTTP(mcp.HTTPConfig{Sessionless: true})
	for body, want := range map[string]string{
		`"method":"tools/call","params":[1]`:                              "params is not an object",
		`"method":"tools/call","params":"echo"`:                           "params is not an object",
		`"method":"tools/call","params":{}`:                               "params name no tool",
		`"method":"tools/call","params":{"name":5}`:                       "params name no tool",
		`"method":"tools/call"`:                                           "params name no tool",
		`"method":"initialize"`:                                           "params name no protocolVersion",
		`"method":"initialize","params":{"protocolVersion":5}`:            "params name no protocolVersion",
		`"method":"initialize","params":{"protocolVersion":"1999-01-01"}`: `"protocolVersion":"` + mcp.LatestLegacy,
		`"method":"tools/list","params":null`:                             `"tools":[`,
	} {
		r := httptest.NewRequest(http.MethodPost, "http://127.0.0.1/mcp", strings.NewReader(`{"jsonrpc":"2.0","id":1,`+body+`}`))
		r.Header.Set("Content-Type", "application/json")
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		if got := w.Body.String(); !strings.Contains(got, want) || strings.HasPrefix(want, "params") && !strings.Contains(got, "-32602") {
			t.Errorf("%s: %s, want %s", body, got, want)
		}
	}
}
