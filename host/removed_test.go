package host_test

import (
	"context"
	"encoding/json"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/config"
	"github.com/tenonhq/tenon/host"
	"github.com/tenonhq/tenon/mcp"
	"github.com/tenonhq/tenon/servers"
)

// TestRP16_CallOfARemovedServer removes a server during a call that may be repeated. The call fails with an error that
// says that the server was removed. It is the same for a server that the program added and for a configured one.
func TestRP16_CallOfARemovedServer(t *testing.T) {
	t.Parallel() // it mostly waits
	for _, configured := range []bool{false, true} {
		t.Run(map[bool]string{false: "added", true: "configured"}[configured], func(t *testing.T) {
			called := make(chan struct{}, 8)
			srv, err := mcp.NewServer(mcp.ServerConfig{Name: "x", Version: "1", Tools: []mcp.ServerTool{{
				Definition: json.RawMessage(`{"name":"pid","inputSchema":{"type":"object"},"annotations":{"readOnlyHint":true}}`),
				Call: func(ctx context.Context, _ *mcp.ToolRequest) (json.RawMessage, error) {
					called <- struct{}{}
					<-ctx.Done()
					return nil, ctx.Err()
				}}}})
			if err != nil {
				t.Fatal(err)
			}
			s := httptest.NewServer(srv.HTTP(mcp.HTTPConfig{}))
			defer s.Close()
			entry, c := servers.Config{URL: s.URL}, &config.Config{}
			if configured {
				c.Servers = map[string]servers.Config{"post": entry}
			}
			h, _ := budgeted(t, t.TempDir(), c, &shop{}, once(`pid {}`))
			if !configured {
				if err := h.Servers().Add(t.Context(), "post", entry); err != nil {
					t.Fatal(err)
				}
			}
			run, err := h.Start(t.Context(), host.Question{Text: "q"})
			if err != nil {
				t.Fatal(err)
			}
			<-called
			if err := h.Servers().Remove(t.Context(), "post"); err != nil {
				t.Fatal(err)
			}
			r, _ := follow(t, h, run.ID)
			if len(r.ToolCalls) != 1 || r.State != tenon.RunCompleted {
				t.Fatalf("%+v", r)
			}
			if got := r.ToolCalls[0]; !strings.Contains(got.Error, "server 'post' was removed") {
				t.Errorf("%+v", got)
			}
		})
	}
}
