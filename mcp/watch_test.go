package mcp_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/mcp"
)

// TestWatch subscribes to a resource in both eras over each transport.
func TestWatch(t *testing.T) {
	for era, cfg := range map[string]mcp.ServerConfig{"legacy": {NoModern: true}, "modern": {NoLegacy: true}} {
		cfg.Resources = []mcp.ServerResource{{URI: "test://a", Name: "a", Text: "abc"}}
		cfg.Watch = func(context.Context, string) (func(), error) { return func() {}, nil }
		s, err := mcp.NewServer(cfg)
		if err != nil {
			t.Fatal(err)
		}
		for kind, dial := range endsOf(t, s) {
			t.Run("RP-11_watch/"+era+" "+kind, func(t *testing.T) {
				c := connect(t, mcp.ClientConfig{Dial: dial, Changed: func(string) {}})
				ctx, cancel := context.WithCancel(t.Context())
				begun, updated, ended := make(chan bool, 8), make(chan string, 8), make(chan error, 1)
				go func() {
					ended <- c.Watch(ctx, "test://a", func() { begun <- true }, func(uri string) { updated <- uri })
				}()
				<-begun
				s.ResourceUpdated("test://b", nil) // not watched
				s.ResourceUpdated("test://a", nil)
				if uri := <-updated; uri != "test://a" {
					t.Errorf("updated %q", uri)
				}
				cancel()
				if err := <-ended; err != context.Canceled {
					t.Errorf("the watch ended with %v", err)
				}
			})
		}
	}
}

// TestWatchRefused watches a resource of servers that offer no subscriptions.
func TestWatchRefused(t *testing.T) {
	for era, cfg := range map[string]mcp.ServerConfig{"legacy": {NoModern: true}, "modern": {NoLegacy: true}} {
		cfg.Resources = []mcp.ServerResource{{URI: "test://a", Name: "a", Text: "abc"}}
		for kind, dial := range ends(t, cfg) {
			t.Run("RP-11_refused/"+era+" "+kind, func(t *testing.T) {
				c := connect(t, mcp.ClientConfig{Dial: dial})
				err := c.Watch(t.Context(), "test://a", func() { t.Error("it began") }, func(string) {})
				if tenon.ErrorCode(err) != tenon.CodeInvalid || !strings.Contains(err.Error(), "does not report its changes") {
					t.Errorf("got %v", err)
				}
			})
		}
	}
}

// TestRootsChange replaces the roots of a connection. Only a legacy server, which asks for them, is notified.
func TestRootsChange(t *testing.T) {
	for era, cfg := range map[string]mcp.ServerConfig{"legacy": {NoModern: true}, "modern": {NoLegacy: true}} {
		t.Run("RP-11_roots/"+era, func(t *testing.T) {
			methods, roots := make(chan string, 16), make(chan string, 2)
			cfg.Observe = func(_ context.Context, method string, _ []byte) error {
				methods <- method
				return nil
			}
			cfg.Tools = []mcp.ServerTool{{Definition: json.RawMessage(`{"name":"roots","inputSchema":{"type":"object"}}`),
				Call: func(ctx context.Context, r *mcp.ToolRequest) (json.RawMessage, error) {
					if r.Modern {
						return json.RawMessage(`{"content":[]}`), nil
					}
					got, err := r.Ask(ctx, mcp.MethodRoots, json.RawMessage("{}"))
					roots <- string(got)
					return json.RawMessage(`{"content":[]}`), err
				}}}
			c := connect(t, mcp.ClientConfig{Dial: ends(t, cfg)["stdio"],
				Answers: mcp.Answers{Roots: []mcp.Root{{URI: "file:///old"}}}})
			if err := c.SetRoots(t.Context(), []mcp.Root{{URI: "file:///new"}}); err != nil {
				t.Fatal(err)
			}
			if _, err := c.Call(t.Context(), tenon.Call{Tool: "roots", Arguments: json.RawMessage("{}")}); err != nil {
				t.Fatal(err)
			}
			notified := false
			for len(methods) > 0 {
				notified = <-methods == "notifications/roots/list_changed" || notified
			}
			if notified != (era == "legacy") {
				t.Errorf("notified: %v", notified)
			}
			if era == "legacy" {
				if got := <-roots; got != `{"roots":[{"uri":"file:///new"}]}` {
					t.Errorf("the server received %s", got)
				}
			}
		})
	}
}
