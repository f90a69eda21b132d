package gateway_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/gateway"
	"github.com/tenonhq/tenon/mcp"
)

// longText is the result of the tool long.
var longText = strings.Repeat("0123456789", 1000)

// longTools are tools that return longText; one of them also returns it as structured content.
func longTools() []mcp.ServerTool {
	answer := func(context.Context, *mcp.ToolRequest) (json.RawMessage, error) {
		return json.RawMessage(`{"content":[{"type":"text","text":"` + longText + `"}],"structuredContent":{"a":1}}`), nil
	}
	return []mcp.ServerTool{
		{Definition: json.RawMessage(`{"name":"long","inputSchema":{"type":"object"},"annotations":{"readOnlyHint":true}}`), Call: answer},
		{Definition: json.RawMessage(`{"name":"formed","inputSchema":{"type":"object"},"outputSchema":{"type":"object"},"annotations":{"readOnlyHint":true}}`), Call: answer},
	}
}

// TestGW_30_ResultLimits checks that a configured limit for results applies to clients. The client's principal can read
// the rest as a resource; others cannot. The default limits do not apply, because they are meant for tenon's own
// models.
func TestGW_30_ResultLimits(t *testing.T) {
	u := serveUpstream(t, mcp.ServerConfig{}, longTools()...)
	for _, tt := range []struct {
		name, config, tool string
		isError            bool
		least, most        int
		has                string
	}{
		{"no limit", "", "long", false, 10000, 10000, "01234567890123456789"},
		{"truncated", "policy: {defaults: {result_bytes: 1000}}", "long", false, 900, 1000, "of 10000 bytes; the full result"},
		{"tokens", "policy: {defaults: {result_tokens: 500}}", "long", false, 1900, 2000, "of 10000 bytes; the full result"},
		{"the first lines", "policy: {defaults: {result_bytes: 2000, on_large_result: artifact}}", "long", false, 1024, 1300,
			"the first 1024 of 10000 bytes"},
		{"an error", "policy: {defaults: {result_bytes: 1000, on_large_result: error}}", "long", true, 100, 400, "too large: 10000 bytes"},
		{"a result with a schema", "policy: {defaults: {result_bytes: 1000}}", "formed", true, 100, 400, "too large: 10000 bytes"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := open(t, upstreamConfig(u, tt.config), gateway.Config{})
			for name, era := range eras {
				c := w.client(t, era, annaToken)
				r, err := c.Call(t.Context(), tenon.Call{Tool: tt.tool})
				if err != nil {
					t.Fatalf("%s: %v", name, err)
				}
				text := r.Content[0].Text
				if r.IsError != tt.isError || len(text) < tt.least || len(text) > tt.most || !strings.Contains(text, tt.has) {
					t.Errorf("%s: error %t, %d bytes: %s", name, r.IsError, len(text), text)
				}
				if tt.config == "" {
					continue
				}
				if len(r.Content) != 2 || r.Content[1].Type != tenon.ContentLink {
					t.Fatalf("%s: there is no link: %s", name, r.Raw)
				}
				whole, err := c.Read(t.Context(), r.Content[1].URI)
				if err != nil || len(whole) != 1 || whole[0].Text != longText {
					t.Errorf("%s: the resource: %+v, %v", name, whole, err)
				}
				if _, err := w.client(t, era, ownToken).Read(t.Context(), r.Content[1].URI); err == nil {
					t.Errorf("%s: another principal reads it", name)
				}
			}
		})
	}
}

// TestGW_7_BudgetsAndMaxCalls checks that budgets and max_calls of a session count all calls of a principal, over
// several connections and restarts, and no calls of others.
func TestGW_7_BudgetsAndMaxCalls(t *testing.T) {
	u := serveUpstream(t, mcp.ServerConfig{})
	for _, tt := range []struct{ name, config, says string }{
		{"max_calls", "policy: {defaults: {max_calls: {session: 3}}}", "max_calls of 'echo' allows 3"},
		{"session", "budgets: {session: {tool_calls: 3}}", "budgets.session"},
		{"principal", "budgets: {principal: {tool_calls: 3}}", "budgets.principal"},
		{"cost", "policy: {defaults: {cost: 0.5}}\nbudgets: {principal: {cost: 1.4}}", "$1.50 of $1.40"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := open(t, upstreamConfig(u, tt.config), gateway.Config{})
			call := func(token, era string) *tenon.Result {
				t.Helper()
				r, err := w.client(t, eras[era], token).Call(t.Context(), tenon.Call{Tool: "echo"})
				if err != nil {
					t.Fatal(err)
				}
				return r
			}
			for i, era := range []string{"legacy", "modern", "legacy"} {
				if r := call(annaToken, era); r.IsError {
					t.Fatalf("call %d: %s", i, r.Text())
				}
				if i == 1 {
					w.stop()
					w.start(t, upstreamConfig(u, tt.config), gateway.Config{})
				}
			}
			if r := call(annaToken, "modern"); !r.IsError || !strings.Contains(r.Text(), tt.says) {
				t.Errorf("the fourth call: %s", r.Text())
			}
			if r := call(ownToken, "modern"); r.IsError {
				t.Errorf("another principal: %s", r.Text())
			}
		})
	}
}
