package cli

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/tenonhq/tenon/mcp"
)

// TestServeStop stops tenon serve during a call of a gateway client. The client gets the result within the grace
// period, which is longer than the time that other requests have.
func TestServeStop(t *testing.T) {
	began, end := make(chan struct{}), make(chan struct{})
	up, err := mcp.NewServer(mcp.ServerConfig{Name: "up", Tools: []mcp.ServerTool{{
		Definition: json.RawMessage(`{"name":"slow","inputSchema":{"type":"object"},"annotations":{"readOnlyHint":true}}`),
		Call: func(ctx context.Context, _ *mcp.ToolRequest) (json.RawMessage, error) {
			close(began)
			select {
			case <-end:
				return json.RawMessage(`{"content":[{"type":"text","text":"done"}]}`), nil
			case <-ctx.Done():
				return nil, ctx.Err()
			}
		}}}})
	if err != nil {
		t.Fatal(err)
	}
	web := httptest.NewServer(up.HTTP(mcp.HTTPConfig{}))
	t.Cleanup(web.Close)
	s := startServing(t, map[string]string{"tenon.yaml": "servers: {up: {url: '" + web.URL + "'}}\n"}, "--grace", "1m")
	session := ""
	post := func(body string) string {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.url+"/mcp", strings.NewReader(body))
		if err != nil {
			return err.Error()
		}
		req.Header = http.Header{"Content-Type": {"application/json"}, "Authorization": {"Bearer " + s.token},
			"Accept": {"application/json, text/event-stream"}}
		if session != "" {
			req.Header.Set("Mcp-Session-Id", session)
		}
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			return err.Error()
		}
		defer res.Body.Close()
		session = res.Header.Get("Mcp-Session-Id")
		b, err := io.ReadAll(res.Body)
		if err != nil {
			return err.Error()
		}
		return string(b)
	}
	said := post(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25",` +
		`"capabilities":{},"clientInfo":{"name":"x","version":"1"}}}`)
	if session == "" {
		t.Fatalf("no session: %s", said)
	}
	got := make(chan string, 1)
	go func() {
		got <- post(`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"slow","arguments":{}}}`)
	}()
	select {
	case <-began:
	case answer := <-got:
		t.Fatalf("the call ended at once: %s", answer)
	}
	s.stop()
	late := time.NewTimer(shutdownTime + time.Second/2)
	defer late.Stop()
	select {
	case answer := <-got:
		t.Errorf("the call was cut off: %s", answer)
	case <-late.C:
		close(end)
		if answer := <-got; !strings.Contains(answer, `"done"`) {
			t.Errorf("the call under way: %s", answer)
		}
	}
}
