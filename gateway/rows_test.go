package gateway_test

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/gateway"
	"github.com/tenonhq/tenon/mcp"
)

// TestGW_10_OwnCredentials checks that the calls of a principal reach a server with the credentials of this principal.
func TestGW_10_OwnCredentials(t *testing.T) {
	u := serveUpstream(t, mcp.ServerConfig{})
	var mu sync.Mutex
	keys := map[string]bool{}
	inner := u.web.Config.Handler
	u.web.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Mcp-Method") == "tools/call" {
			mu.Lock()
			keys[r.Header.Get("X-Key")] = true
			mu.Unlock()
		}
		inner.ServeHTTP(w, r)
	})
	w := open(t, "servers: {up: {url: '"+u.url+"', headers: {X-Key: of-the-owner}, principals: {anna: {headers: {X-Key: of-anna}}}}}\n",
		gateway.Config{})
	for _, tt := range []struct{ token, key string }{{ownToken, "of-the-owner"}, {annaToken, "of-anna"}} {
		for name, era := range eras {
			t.Run(tt.key+", "+name, func(t *testing.T) {
				mu.Lock()
				clear(keys)
				mu.Unlock()
				if _, err := w.client(t, era, tt.token).Call(t.Context(), tenon.Call{Tool: "echo"}); err != nil {
					t.Fatal(err)
				}
				mu.Lock()
				defer mu.Unlock()
				if len(keys) != 1 || !keys[tt.key] {
					t.Errorf("the server gets %v", keys)
				}
			})
		}
	}
}

// TestGW_22_AppsPass checks that the resources of MCP Apps reach the client unchanged, and so do the _meta members of
// their tools.
func TestGW_22_AppsPass(t *testing.T) {
	cfg := mcp.ServerConfig{Offers: func(_ context.Context, method string, _ json.RawMessage) (json.RawMessage, error) {
		switch method {
		case "resources/list":
			return json.RawMessage(`{"resources":[{"uri":"ui://a","name":"a","mimeType":"text/html;profile=mcp-app"}]}`), nil
		case "resources/templates/list":
			return json.RawMessage(`{"resourceTemplates":[]}`), nil
		case "resources/read":
			return json.RawMessage(`{"contents":[{"uri":"ui://a","mimeType":"text/html;profile=mcp-app","text":"<p>hi</p>"}]}`), nil
		}
		return nil, nil
	}}
	w := open(t, upstreamConfig(serveUpstream(t, cfg), ""), gateway.Config{})
	for name, era := range eras {
		t.Run(name, func(t *testing.T) {
			c := w.client(t, era, ownToken)
			got, err := c.Read(t.Context(), "ui://a")
			if err != nil || len(got) != 1 || got[0].Text != "<p>hi</p>" || got[0].MimeType != "text/html;profile=mcp-app" {
				t.Errorf("%+v, %v", got, err)
			}
			tools, err := c.Tools(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			for _, tool := range tools {
				if tool.Remote == "echo" && !strings.Contains(string(tool.Raw), `"ui":{"resourceUri":"ui://a"}`) {
					t.Errorf("%s", tool.Raw)
				}
			}
		})
	}
}
