package mcp_test

import (
	"context"
	"encoding/json"
	"net/http/httptest"
	"testing"

	"github.com/tenonhq/tenon/mcp"
)

// TestHTTPCancelled checks that a request that its client cancelled gets no response over HTTP, also in a batch, and
// that its id can be used again.
func TestHTTPCancelled(t *testing.T) {
	began := make(chan struct{})
	s, err := mcp.NewServer(mcp.ServerConfig{Tools: []mcp.ServerTool{tool(`{"name":"wait","inputSchema":{"type":"object"}}`,
		func(ctx context.Context, _ *mcp.ToolRequest) (json.RawMessage, error) {
			began <- struct{}{}
			<-ctx.Done()
			return nil, ctx.Err()
		})}})
	if err != nil {
		t.Fatal(err)
	}
	web := httptest.NewServer(s.HTTP(mcp.HTTPConfig{}))
	defer web.Close()
	c := begin(t, web.URL, "2025-03-26")
	const wait = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"wait","arguments":{}}}`
	for body, want := range map[string]string{
		wait: "",
		"[" + wait + `,{"jsonrpc":"2.0","id":2,"method":"ping"}]`: `[{"jsonrpc":"2.0","id":2,"result":{}}]`,
	} {
		answered := make(chan string)
		go func() {
			status, _, answer := c.post(t, body)
			if status != 200 && status != 202 {
				t.Errorf("status %d", status)
			}
			answered <- answer
		}()
		<-began
		c.post(t, `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`)
		if got := <-answered; got != want {
			t.Errorf("%s is answered with %q, want %q", body, got, want)
		}
	}
	if _, _, answer := c.post(t, `{"jsonrpc":"2.0","id":1,"method":"ping"}`); answer != `{"jsonrpc":"2.0","id":1,"result":{}}` {
		t.Errorf("the id again: %s", answer)
	}
}
