package httpapi_test

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/host"
	"github.com/tenonhq/tenon/httpapi"
	"github.com/tenonhq/tenon/servers"
)

// TestAddedToolsets checks that a toolset that a program adds to a running server appears in both APIs, can be called
// there, and disappears when it is removed.
func TestAddedToolsets(t *testing.T) {
	h, err := host.Open(t.Context(), host.Config{Home: t.TempDir(), Model: host.DemoModel,
		LookupEnv: func(string) (string, bool) { return "", false }})
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	api := httpapi.New(h, httpapi.Config{APIs: []string{httpapi.Native, httpapi.ResearchAI}})
	do := func(want int, method, path, body string) string {
		t.Helper()
		req := httptest.NewRequest(method, path, strings.NewReader(body))
		req.Header.Set("Content-Type", "application/json")
		w := httptest.NewRecorder()
		api.ServeHTTP(w, req)
		if w.Code != want {
			t.Errorf("%s %s: %d %s", method, path, w.Code, w.Body)
		}
		var text bytes.Buffer
		if json.Compact(&text, w.Body.Bytes()) != nil {
			return w.Body.String()
		}
		return text.String()
	}
	get := func(path string) string { t.Helper(); return do(http.StatusOK, http.MethodGet, path, "") }
	if got := get("/api/v1/servers"); strings.Contains(got, "own") {
		t.Fatal(got)
	}
	if err := h.Tools().Add(t.Context(), "own", weather{}); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		"/mcp/tools":              `"name":"get_weather"`,
		"/mcp/tools?serverId=own": `"serverId":"own"`,
		"/mcp/servers":            `"id":"own","name":"own","description":"","connected":true,"enabled":true,"transport":"program","toolsCount":1`,
		"/mcp/servers/own":        `"toolsCount":1`,
		"/api/v1/servers/own":     `"transport":"program"`,
		"/api/v1/tools":           `"remote_name":"get_weather"`,
	} {
		if got := get(path); !strings.Contains(got, want) {
			t.Errorf("%s: %s, want %s", path, got, want)
		}
	}
	if got := get("/api/v1/servers"); !strings.Contains(got, `"name":"own","transport":"program","target":"","state":"ready","tools":1`) {
		t.Errorf("/api/v1/servers: %s", got)
	}
	if got := do(http.StatusOK, http.MethodPost, "/mcp/tools/call", `{"serverId":"own","toolName":"get_weather","arguments":{"location":"London"}}`); !strings.Contains(got, "15°C and cloudy") {
		t.Errorf("the call: %s", got)
	}
	if got := do(http.StatusBadRequest, http.MethodPost, "/api/v1/servers/own/restart", "{}"); !strings.Contains(got, "is a toolset of the program") {
		t.Errorf("restart: %s", got)
	}
	if err := h.Servers().Remove(t.Context(), "own"); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"/api/v1/servers", "/mcp/servers", "/mcp/tools"} {
		if got := get(path); strings.Contains(got, "own") {
			t.Errorf("%s after the removal: %s", path, got)
		}
	}
	do(http.StatusNotFound, http.MethodGet, "/mcp/servers/own", "")
}

// TestAddedServer checks the same for an MCP server that a program adds.
func TestAddedServer(t *testing.T) {
	mcpServer := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var q struct {
			ID     json.RawMessage
			Method string
		}
		if json.NewDecoder(r.Body).Decode(&q) != nil || q.ID == nil {
			w.WriteHeader(http.StatusAccepted)
			return
		}
		answer := map[string]string{
			"initialize": `"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"one","version":"1"}}`,
			"tools/list": `"result":{"tools":[{"name":"one","annotations":{"readOnlyHint":true},"inputSchema":{"type":"object"}}]}`,
			"tools/call": `"result":{"content":[{"type":"text","text":"1"}]}`,
		}[q.Method]
		answer = cmp.Or(answer, `"error":{"code":-32601,"message":"no such method"}`)
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(`{"jsonrpc":"2.0","id":` + string(q.ID) + `,` + answer + `}`))
	}))
	defer mcpServer.Close()
	h, err := host.Open(t.Context(), host.Config{Home: t.TempDir(), Model: host.DemoModel, Toolsets: map[string]tenon.Toolset{"a": weather{}},
		LookupEnv: func(string) (string, bool) { return "", false }})
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	if err := h.Servers().Add(t.Context(), "added", host.ServerConfig{URL: mcpServer.URL}); err != nil {
		t.Fatal(err)
	}
	api := httpapi.New(h, httpapi.Config{APIs: []string{httpapi.Native, httpapi.ResearchAI}})
	do := func(method, path, body string) string {
		req := httptest.NewRequest(method, path, strings.NewReader(body))
		req.Header.Set("Content-Type", "application/json")
		w := httptest.NewRecorder()
		api.ServeHTTP(w, req)
		return w.Body.String()
	}
	for path, want := range map[string]string{"/api/v1/servers": `"added"`, "/mcp/servers": `"added"`, "/mcp/tools": `"one"`} {
		if got := do(http.MethodGet, path, ""); !strings.Contains(got, want) {
			t.Errorf("%s: %s", path, got)
		}
	}
	if got := do(http.MethodPost, "/mcp/tools/call", `{"serverId":"added","toolName":"one","arguments":{}}`); !strings.Contains(got, `"1"`) {
		t.Errorf("the call: %s", got)
	}
	list, err := h.Servers().List(t.Context())
	if err != nil || len(list) != 2 || list[0].Name != "a" || list[1].Name != "added" || list[1].State != servers.StateReady {
		t.Errorf("%+v, %v", list, err)
	}
}

// hanging is a toolset that represents a server that never answers. To save time, it returns a timeout at once if the
// context has a deadline, and otherwise an error that says that the wait would have no end.
type hanging struct{ weather }

func (hanging) Tools(ctx context.Context) ([]tenon.Tool, error) {
	if _, ok := ctx.Deadline(); ok {
		return nil, tenon.Errorf(tenon.CodeTimeout, "the list timed out")
	}
	return nil, tenon.Errorf(tenon.CodeInternal, "the wait has no end")
}

// TestHangingServer checks that ResearchAI's lists and calls have a time limit. They contain the tools of the other
// servers, and name the server that did not answer.
func TestHangingServer(t *testing.T) {
	h, err := host.Open(t.Context(), host.Config{Home: t.TempDir(), Model: host.DemoModel,
		Toolsets: map[string]tenon.Toolset{"slow": hanging{}, "own": weather{}}})
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	api := httpapi.New(h, httpapi.Config{APIs: []string{httpapi.ResearchAI}})
	for _, c := range []struct {
		name, body, has string
		status          int
	}{
		{"RP-5_call_of_another", `{"serverId":"own","toolName":"get_weather","arguments":{"city":"Bern"}}`, `"success"`, http.StatusOK},
		{"RP-5_call_of_the_hanging", `{"serverId":"slow","toolName":"get_weather","arguments":{}}`, "the list timed out",
			http.StatusBadGateway},
		{"RP-5_call_of_unknown", `{"serverId":"own","toolName":"nothing","arguments":{}}`, "Tool not found", http.StatusNotFound},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := httptest.NewRequest(http.MethodPost, "/mcp/tools/call", strings.NewReader(c.body))
			r.Header.Set("Content-Type", "application/json")
			w := httptest.NewRecorder()
			api.ServeHTTP(w, r)
			if w.Code != c.status || !strings.Contains(w.Body.String(), c.has) {
				t.Errorf("%d: %s", w.Code, w.Body)
			}
		})
	}
	for _, c := range []struct{ path, missing, has string }{
		{"/mcp/tools", "slow", `"get_weather"`},
		{"/mcp/tools?serverId=slow", "slow", `"tools": []`},
		{"/mcp/tools?serverId=own", "", `"get_weather"`},
		{"/mcp/servers", "", "the list timed out"},
		{"/mcp/servers/slow", "", "the list timed out"},
	} {
		t.Run(c.path, func(t *testing.T) {
			w := httptest.NewRecorder()
			api.ServeHTTP(w, httptest.NewRequest(http.MethodGet, c.path, nil))
			if got := w.Header().Get(httpapi.MissingHeader); w.Code != http.StatusOK || got != c.missing ||
				!strings.Contains(strings.ReplaceAll(w.Body.String(), `":[`, `": [`), c.has) {
				t.Errorf("%d, missing %q: %s", w.Code, got, w.Body)
			}
		})
	}
}
