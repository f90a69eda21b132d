package host_test

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/host"
	"github.com/tenonhq/tenon/mcp"
	"github.com/tenonhq/tenon/servers"
)

// TestRP16_TwoAddsOfOneName adds a second server while the first server of the same name is still starting. The second
// one is refused before it receives a request. If the first one does not start, the name is free again.
func TestRP16_TwoAddsOfOneName(t *testing.T) {
	one := mcp.ServerConfig{Name: "x", Version: "1", Tools: []mcp.ServerTool{{
		Definition: json.RawMessage(`{"name":"pid","inputSchema":{"type":"object"}}`),
		Call: func(context.Context, *mcp.ToolRequest) (json.RawMessage, error) {
			return json.RawMessage(`{"content":[]}`), nil
		}}}}
	srv, err := mcp.NewServer(one)
	if err != nil {
		t.Fatal(err)
	}
	for name, starts := range map[string]bool{"the first starts": true, "the first does not start": false} {
		t.Run(name, func(t *testing.T) {
			asked, release := make(chan struct{}, 100), make(chan struct{})
			answer := srv.HTTP(mcp.HTTPConfig{})
			first := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				asked <- struct{}{}
				<-release
				if !starts {
					http.Error(w, "no", http.StatusNotFound)
					return
				}
				answer.ServeHTTP(w, r)
			}))
			defer first.Close()
			var started atomic.Int32
			second := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { started.Add(1) }))
			defer second.Close()
			h, err := host.Open(t.Context(), host.Config{Home: t.TempDir()})
			if err != nil {
				t.Fatal(err)
			}
			defer h.Close()
			done := make(chan error, 1)
			go func() { done <- h.Servers().Add(t.Context(), "x", servers.Config{URL: first.URL}) }()
			<-asked
			for what, err := range map[string]error{
				"a server":  h.Servers().Add(t.Context(), "x", servers.Config{URL: second.URL}),
				"a toolset": h.Tools().Add(t.Context(), "x", ownTools{}),
			} {
				if tenon.ErrorCode(err) != tenon.CodeConfig || !strings.Contains(err.Error(), "there is a server 'x' already") {
					t.Errorf("%s: %v", what, err)
				}
			}
			close(release)
			if err := <-done; err == nil != starts {
				t.Errorf("the first: %v", err)
			}
			if n := started.Load(); n != 0 {
				t.Errorf("the second server was asked %d times", n)
			}
			if !starts {
				if err := h.Servers().Add(t.Context(), "x", servers.Config{URL: servedTools(t, one)}); err != nil {
					t.Errorf("after the first: %v", err)
				}
			}
		})
	}
}

// TestRP16_AddToAClosedHost checks that a host adds nothing after Close, and that Close ends an addition under way.
// The test binary's check for goroutines finds a server that nobody ended.
func TestRP16_AddToAClosedHost(t *testing.T) {
	asked, release := make(chan struct{}, 100), make(chan struct{})
	hangs := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		asked <- struct{}{}
		<-release
	}))
	defer hangs.Close()
	defer close(release)
	h, err := host.Open(t.Context(), host.Config{Home: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- h.Servers().Add(t.Context(), "x", servers.Config{URL: hangs.URL, Transport: "http"}) }()
	<-asked
	if err := h.Close(); err != nil {
		t.Error(err)
	}
	refused := func(what string, err error) {
		t.Helper()
		if tenon.ErrorCode(err) != tenon.CodeCancelled || !strings.Contains(err.Error(), "the host is closed") {
			t.Errorf("%s: %v", what, err)
		}
	}
	refused("a server that was being added", <-done)
	one := servedTools(t, mcp.ServerConfig{Name: "x", Version: "1"})
	refused("a server", h.Servers().Add(t.Context(), "x", servers.Config{URL: one}))
	refused("a toolset", h.Tools().Add(t.Context(), "x", ownTools{}))
	if n := len(h.Service().Connections()); n != 0 {
		t.Errorf("%d servers", n)
	}
}
