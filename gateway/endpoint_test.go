package gateway_test

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/gateway"
	"github.com/tenonhq/tenon/mcp"
)

// endpoints is a configuration with virtual servers and changed tools.
const endpoints = `
tools:
  say: {server: up, remote_name: echo, description: says it}
  write: {server: up, groups: [risky]}
  steps: {kind: workflow, path: steps.yaml, annotations: {read_only: true}}
gateway:
  endpoints:
    risky: {description: with care, groups: [risky]}
    some: {tools: [say, 'up/brok*', steps], exclude: [broken]}
    server: {servers: [up], exclude: [secret]}
    all: {}
`

// steps is a workflow.
const steps = `kind: workflow
version: 1
name: steps
steps:
  - {id: one, tool: echo, server: up}
`

// TestGW_6_8_31_VirtualServers checks that an endpoint lists the tools that its entry selects, with the changes of the
// catalog, and calls no others. A workflow can be a tool, too.
func TestGW_6_8_31_VirtualServers(t *testing.T) {
	u := serveUpstream(t, mcp.ServerConfig{})
	w := openWith(t, "servers: {up: {url: '"+u.url+"', transform: [{set_params: {text: fixed}}]}}\n"+endpoints, map[string]string{"steps.yaml": steps})
	for name, want := range map[string]string{"risky": "write", "some": "say steps", "server": "broken guarded say write",
		"all": "broken guarded say secret steps write"} {
		t.Run(name, func(t *testing.T) {
			c := w.at(t, "/"+name, mcp.Modern)
			tools, err := c.Tools(t.Context())
			if got := named(tools); err != nil || got != want {
				t.Errorf("tools %q, want %q (%v)", got, want, err)
			}
			if _, err := c.Call(t.Context(), tenon.Call{Tool: "secret"}); (err == nil) != (name == "all") {
				t.Errorf("a call beside the endpoint: %v", err)
			}
		})
	}
	c := w.at(t, "/some", mcp.LatestLegacy)
	tools, err := c.Tools(t.Context())
	if err != nil || tools[0].Description != "says it" || strings.Contains(string(tools[0].Input), "text") {
		t.Errorf("the shaped tool: %+v, %v", tools[0], err)
	}
	r, err := c.Call(t.Context(), tenon.Call{Tool: "steps", Arguments: json.RawMessage(`{}`)})
	if err != nil || r.IsError {
		t.Errorf("the workflow: %+v, %v", r, err)
	}
	w.url += "/none"
	if status, _, _ := w.post(t, ownToken, `{"jsonrpc":"2.0","id":1,"method":"ping"}`); status != http.StatusNotFound {
		t.Errorf("an endpoint that is not configured: status %d", status)
	}
}

// TestGW_5_20_DeadServerKeepsItsTools checks that a server that cannot be reached neither empties the list nor loses
// its tools. They are listed as they were last known, with a mark.
func TestGW_5_20_DeadServerKeepsItsTools(t *testing.T) {
	u, dead := serveUpstream(t, mcp.ServerConfig{}), serveUpstream(t, mcp.ServerConfig{}, mcp.ServerTool{
		Definition: json.RawMessage(`{"name":"lost","inputSchema":{"type":"object"}}`),
		Call:       func(context.Context, *mcp.ToolRequest) (json.RawMessage, error) { return nil, nil }})
	text := "servers: {up: {url: '" + u.url + "'}, dead: {url: '" + dead.url + "', include: [lost]}}\n"
	w := open(t, text, gateway.Config{})
	c := w.client(t, mcp.Modern, ownToken)
	if tools, err := c.Tools(t.Context()); err != nil || !strings.Contains(named(tools), "lost") {
		t.Fatalf("tools %q, %v", named(tools), err)
	}
	dead.web.CloseClientConnections()
	dead.web.Close()
	if _, err := w.host.Servers().Restart(t.Context(), "dead"); err == nil {
		t.Fatal("the server is not dead")
	}
	tools, err := c.Tools(t.Context())
	if err != nil || named(tools) != "broken echo guarded lost secret write" && named(tools) != "broken echo guarded secret write lost" {
		t.Fatalf("tools %q, %v", named(tools), err)
	}
	for _, tool := range tools {
		if marked := strings.Contains(string(tool.Raw), "tenonhq.github.io/unavailable"); marked != (tool.Remote == "lost") {
			t.Errorf("%s is marked: %v", tool.Remote, marked)
		}
	}
}

// TestGW_14_InstructionsChange checks that an endpoint whose description was changed has the new one after a reload,
// also for a principal that used the endpoint before.
func TestGW_14_InstructionsChange(t *testing.T) {
	u := serveUpstream(t, mcp.ServerConfig{})
	endpoint := func(about string) string {
		return upstreamConfig(u, "gateway: {endpoints: {few: {description: "+about+", tools: [write]}}}")
	}
	w := open(t, endpoint("Before"), gateway.Config{})
	at := world{url: w.url + "/few"}
	for name, era := range eras {
		if got := at.client(t, era, ownToken).Info().Instructions; got != "Before" {
			t.Errorf("%s: %q", name, got)
		}
	}
	w2 := &world{home: w.home + "2"}
	w2.start(t, endpoint("After"), gateway.Config{})
	w.gate.Use(w2.host)
	for name, era := range eras {
		if got := at.client(t, era, ownToken).Info().Instructions; got != "After" {
			t.Errorf("%s, after the reload: %q", name, got)
		}
	}
	w.gate.Use(w.host)
}
