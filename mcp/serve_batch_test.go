package mcp_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/tenonhq/tenon/jsonrpc"
	"github.com/tenonhq/tenon/mcp"
	"github.com/tenonhq/tenon/transport"
)

// batchServer is a server with a tool that says whom it greets, and one that reports progress.
func batchServer(t *testing.T) *mcp.Server {
	t.Helper()
	s, err := mcp.NewServer(mcp.ServerConfig{Tools: []mcp.ServerTool{
		tool(`{"name":"echo","inputSchema":{"type":"object"}}`, echo),
		tool(`{"name":"slow","inputSchema":{"type":"object"}}`,
			func(_ context.Context, r *mcp.ToolRequest) (json.RawMessage, error) {
				r.Progress(1, 2, "half")
				return json.RawMessage(`{"content":[]}`), nil
			}),
	}})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// begin opens a session of a revision.
func begin(t *testing.T, url, version string) *sseClient {
	t.Helper()
	c := &sseClient{url: url}
	res := c.send(t, t.Context(), http.MethodPost, fmt.Sprintf(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{`+
		`"protocolVersion":%q,"capabilities":{},"clientInfo":{"name":"c","version":"1"}}}`, version), "")
	defer res.Body.Close()
	if c.session = res.Header.Get("Mcp-Session-Id"); c.session == "" {
		t.Fatalf("initialize: %s", res.Status)
	}
	return c
}

// post sends a body and returns the status, the content type and the body of the answer.
func (c *sseClient) post(t *testing.T, body string) (status int, kind, answer string) {
	t.Helper()
	res := c.send(t, t.Context(), http.MethodPost, body, "")
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res.StatusCode, res.Header.Get("Content-Type"), string(b)
}

// TestHTTPBatch checks that a client of revision 2025-03-26 can send batches over HTTP, as that revision requires. All
// other revisions have no batches.
func TestHTTPBatch(t *testing.T) {
	web := httptest.NewServer(batchServer(t).HTTP(mcp.HTTPConfig{}))
	defer web.Close()
	c := begin(t, web.URL, "2025-03-26")

	status, kind, answer := c.post(t, ` [{"jsonrpc":"2.0","id":1,"method":"ping"},{"jsonrpc":"2.0","method":"notifications/x"},`+
		`{"jsonrpc":"2.0","id":"two","method":"tools/call","params":{"name":"echo","arguments":{}}},{"jsonrpc":"2.0","id":3},`+
		`{"jsonrpc":"2.0","id":4,"method":"initialize","params":{"protocolVersion":"2025-03-26"}}]`)
	var list []struct {
		ID     any
		Result json.RawMessage
		Error  *jsonrpc.Error
	}
	if err := json.Unmarshal([]byte(answer), &list); err != nil || status != 200 || kind != "application/json" || len(list) != 4 {
		t.Fatalf("status %d, %s, %v: %s", status, kind, err, answer)
	}
	for _, one := range list {
		wrong := one.ID == nil || one.ID == 4.
		if wrong != (one.Error != nil) || wrong && one.Error.Code != jsonrpc.CodeInvalidRequest {
			t.Errorf("answer to %v: %s, %v", one.ID, one.Result, one.Error)
		}
	}

	if status, _, answer := c.post(t, `[{"jsonrpc":"2.0","method":"notifications/initialized"}]`); status != 202 || answer != "" {
		t.Errorf("only notifications: status %d: %s", status, answer)
	}
	_, kind, answer = c.post(t, `[{"jsonrpc":"2.0","id":1,"method":"ping"},{"jsonrpc":"2.0","id":2,"method":"tools/call",`+
		`"params":{"name":"slow","arguments":{},"_meta":{"progressToken":"p"}}}]`)
	progress, first := strings.Index(answer, "notifications/progress"), strings.Index(answer, `"result"`)
	if kind != "text/event-stream" || progress < 0 || first < progress || strings.Count(answer, `"result"`) != 2 {
		t.Errorf("with progress: %s: %s", kind, answer)
	}
	many := strings.Repeat(`{"jsonrpc":"2.0","method":"x"},`, jsonrpc.MaxBatch)
	if _, _, answer := c.post(t, "["+many+`{"jsonrpc":"2.0","id":9,"method":"ping"}]`); !strings.Contains(answer, `"id":9,"error"`) {
		t.Errorf("over the limit: %s", answer)
	}
	for _, body := range []string{`[]`, `[`, `[1`} {
		if status, _, answer := c.post(t, body); status != 400 {
			t.Errorf("%s: status %d: %s", body, status, answer)
		}
	}
	for _, version := range []string{"2024-11-05", "2025-06-18", mcp.LatestLegacy} {
		if status, _, answer := begin(t, web.URL, version).post(t, `[{"jsonrpc":"2.0","id":1,"method":"ping"}]`); status != 400 ||
			!strings.Contains(answer, "not allowed in "+version) {
			t.Errorf("%s: status %d: %s", version, status, answer)
		}
	}
	if status, kind, answer := (&sseClient{url: web.URL, session: "x"}).post(t, `[{"jsonrpc":"2.0","id":1,"method":"ping"}]`); status != 404 ||
		kind != "application/json" || answer != `{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"no such session"}}` {
		t.Errorf("unknown session: status %d, %s: %s", status, kind, answer)
	}
	single := httptest.NewServer(batchServer(t).HTTP(mcp.HTTPConfig{Sessionless: true}))
	defer single.Close()
	if status, _, answer := (&sseClient{url: single.URL}).post(t, `[{"jsonrpc":"2.0","id":1,"method":"ping"}]`); status != 200 ||
		answer != `[{"jsonrpc":"2.0","id":1,"result":{}}]` {
		t.Errorf("without a session: status %d: %s", status, answer)
	}
}

// TestStreamBatch checks that batches are accepted over a stream.
func TestStreamBatch(t *testing.T) {
	in, send := io.Pipe()
	receive, out := io.Pipe()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = batchServer(t).Serve(ctx, transport.NewLines(in, out, 0)) // it ends with ctx
	}()
	t.Cleanup(func() { _ = send.Close(); _ = receive.Close(); cancel(); <-done })
	if _, err := io.WriteString(send, `[{"jsonrpc":"2.0","id":1,"method":"ping"},{"jsonrpc":"2.0","id":2,"method":"ping"}]`+"\n"); err != nil {
		t.Fatal(err)
	}
	lines := transport.NewLines(receive, io.Discard, 0)
	got := ""
	for range 2 {
		b, err := lines.Recv(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		got += string(b)
	}
	if !strings.Contains(got, `"id":1,"result"`) || !strings.Contains(got, `"id":2,"result"`) {
		t.Error(got)
	}
}
