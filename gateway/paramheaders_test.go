package gateway_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/gateway"
	"github.com/tenonhq/tenon/mcp"
)

// routedTool is a tool with two arguments that are also headers.
var routedTool = mcp.ServerTool{Definition: json.RawMessage(`{"name":"route","inputSchema":{"type":"object","properties":{` +
	`"region":{"type":"string","x-mcp-header":"Region"},"n":{"type":"integer","x-mcp-header":"N"}}},"annotations":{"readOnlyHint":true}}`),
	Call: func(context.Context, *mcp.ToolRequest) (json.RawMessage, error) {
		return json.RawMessage(`{"content":[{"type":"text","text":"routed"}]}`), nil
	}}

// TestGW_2_ParamHeaders checks the headers of arguments (Mcp-Param-…) on both sides. A modern client over HTTP needs
// them, and they must be equal to the arguments; a server gets them, also if the gateway fixes or renames an argument.
func TestGW_2_ParamHeaders(t *testing.T) {
	s, err := mcp.NewServer(mcp.ServerConfig{Name: "up", Tools: []mcp.ServerTool{routedTool}})
	if err != nil {
		t.Fatal(err)
	}
	var calls atomic.Int32
	var last atomic.Value
	inner := s.HTTP(mcp.HTTPConfig{Strict: true})
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Mcp-Method") == "tools/call" {
			calls.Add(1)
			last.Store(r.Header.Get("Mcp-Param-Region") + " " + r.Header.Get("Mcp-Param-N"))
		}
		inner.ServeHTTP(w, r)
	}))
	t.Cleanup(web.Close)
	w := open(t, "servers: {up: {url: '"+web.URL+"'}, fixed: {url: '"+web.URL+"', transform: [{prefix: fixed_}, {set_params: {region: north}}]}}\n"+
		"gateway: {endpoints: {found: {mode: search}}}\n", gateway.Config{})
	send := func(path, tool, args string, header ...string) (int, string) {
		t.Helper()
		there := world{url: w.url + path}
		status, _, body := there.post(t, ownToken, fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":%q,"arguments":%s,"_meta":{`+
			`"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}`, tool, args),
			append([]string{"MCP-Protocol-Version", mcp.Modern, "Mcp-Method", "tools/call", "Mcp-Name", tool}, header...)...)
		return status, body
	}
	c := w.client(t, mcp.Modern, ownToken)
	tools, err := c.Tools(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	fixed, plain := "", ""
	for _, one := range tools {
		if strings.Contains(one.Remote, "fixed") {
			fixed = one.Remote
		} else {
			plain = one.Remote
		}
	}
	for name, tt := range map[string]struct {
		path, tool, args string
		header           []string
		status           int
		want             string // part of the answer
		upstream         string // headers of the call upstream
	}{
		"equal":              {"", plain, `{"region":"grüezi","n":7}`, []string{"Mcp-Param-Region", "=?base64?Z3LDvGV6aQ==?=", "Mcp-Param-N", "7"}, 200, "routed", "=?base64?Z3LDvGV6aQ==?= 7"},
		"without arguments":  {"", plain, `{}`, nil, 200, "routed", " "},
		"missing":            {"", plain, `{"region":"south"}`, nil, 400, "-32020", ""},
		"differs":            {"", plain, `{"region":"south"}`, []string{"Mcp-Param-Region", "north"}, 400, "-32020", ""},
		"no base64":          {"", plain, `{"region":"south"}`, []string{"Mcp-Param-Region", "=?base64?!?="}, 400, "-32020", ""},
		"a fixed argument":   {"", fixed, `{"n":1}`, []string{"Mcp-Param-N", "1"}, 200, "routed", "north 1"},
		"found by a search":  {"/found", "call_tool", fmt.Sprintf(`{"name":%q,"arguments":{"region":"south"}}`, plain), nil, 200, "routed", "south "},
		"unknown by the way": {"", plain, `{}`, []string{"Mcp-Param-Other", "x"}, 200, "routed", " "},
	} {
		t.Run(name, func(t *testing.T) {
			calls.Store(0)
			last.Store("")
			status, body := send(tt.path, tt.tool, tt.args, tt.header...)
			if status != tt.status || !strings.Contains(body, tt.want) {
				t.Errorf("%d %s, want %d with %s", status, body, tt.status, tt.want)
			}
			if got := last.Load(); got != tt.upstream || (tt.status == 400) != (calls.Load() == 0) {
				t.Errorf("%d calls upstream, with %q, want %q", calls.Load(), got, tt.upstream)
			}
		})
	}
	if r, err := c.Call(t.Context(), tenon.Call{Tool: plain, Arguments: json.RawMessage(`{"region":"west","n":42}`)}); err != nil || r.Text() != "routed" {
		t.Errorf("a whole client: %+v, %v", r, err)
	}
	legacy := w.client(t, mcp.LatestLegacy, ownToken)
	if r, err := legacy.Call(t.Context(), tenon.Call{Tool: plain, Arguments: json.RawMessage(`{"region":"east"}`)}); err != nil || r.Text() != "routed" || last.Load() != "east " {
		t.Errorf("a legacy client: %+v, %v, %v", r, err, last.Load())
	}
}
