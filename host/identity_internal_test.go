package host

import (
	"cmp"
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/agent"
	"github.com/tenonhq/tenon/config"
	"github.com/tenonhq/tenon/engine"
	"github.com/tenonhq/tenon/policy"
	"github.com/tenonhq/tenon/servers"
	"github.com/tenonhq/tenon/table"
)

// identified opens a host with the text as its configuration file. If there are rows, they are a table that tool_tables
// names.
func identified(t *testing.T, dir, text string, rows ...*table.Tool) *Host {
	t.Helper()
	none := func(string) (string, bool) { return "", false }
	if len(rows) > 0 {
		list := make([]table.Row, len(rows))
		for i, r := range rows {
			list[i] = table.Row{ID: string(rune('a' + i)), Tool: r}
		}
		if err := table.WriteTools(t.Context(), filepath.Join(dir, "t.arrow"), list, table.WriteOptions{}); err != nil {
			t.Fatal(err)
		}
		text = "tool_tables: [" + filepath.Join(dir, "t.arrow") + "]\n" + text
	}
	cfg, err := config.Parse("tenon.yaml", []byte(text), config.Options{Dir: dir, LookupEnv: none})
	if err != nil {
		t.Fatal(err)
	}
	h, err := Open(t.Context(), Config{Config: cfg, Home: filepath.Join(dir, "home"), LookupEnv: none})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = h.Close() })
	return h
}

func row(name, server string) *table.Tool {
	return &table.Tool{Kind: table.MCP, Name: name, Remote: name, Server: server, Message: -1}
}

// TestIdentify checks the identity of each tool. The identity contains the layer and the entry that define the tool, or
// its target.
func TestIdentify(t *testing.T) {
	h := identified(t, t.TempDir(), `
servers: {bank: {url: "http://127.0.0.1:1/mcp"}}
models: {m: {provider: anthropic, model: x}}
agents: {default: {model: m, handoffs: [helper]}, helper: {model: m, description: Helps}}
tools:
  web: {kind: http, description: Gets, request: {url: "https://API.example.com:8443/x?q={{ args.q }}"}, arguments: [{name: q, type: string}]}
  ask: {kind: prompt, description: Asks, template: Say it}
  helper: {kind: agent, agent: helper}
`, row("send", "http://127.0.0.1:2/mcp"), &table.Tool{Kind: table.HTTP, Name: "req", Message: -1, Server: table.Request{URL: "https://h.example/"}.URI()})
	if err := h.Servers().Add(t.Context(), "late", servers.Config{Command: "/nonexistent"}); err == nil {
		t.Fatal("a server that cannot start was added")
	}
	request := ""
	for name, e := range h.config.Tools {
		if e = e.WithDefaults(name); strings.HasPrefix(e.RemoteName, "req@") {
			request = e.RemoteName
		}
	}
	for _, tt := range []struct{ name, server, remote, id, host string }{
		{"a configured server", "bank", "send", "project:bank", "127.0.0.1"},
		{"a server of a table", "127.0.0.1", "send", "target:" + h.targetOf("127.0.0.1"), "127.0.0.1"},
		{"a request", "http_tools", "web", "project:http_tools", "api.example.com"},
		{"a prompt", "prompt_tools", "ask", "project:prompt_tools", ""},
		{"an agent", "agents", "helper", "project:agents", ""},
		{"an agent that takes over", "handoffs", "transfer_to_helper", "project:handoffs", ""},
		{"a request of a table", "http_tools", request, "", "h.example"},
		{"the finder", "tool_search", "find_tools", "builtin:tool_search", ""},
		{"a toolset of a program", "own", "x", "program:own", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			id := h.identify(tt.server, tt.remote)
			tt.id = cmp.Or(tt.id, "target:"+id.Target)
			if id.Server != tt.id || id.Remote != tt.remote {
				t.Errorf("%+v, want %s", id, tt.id)
			}
			if got := h.serverFacts(tt.server, tt.remote); got.Host != tt.host {
				t.Errorf("host %q, want %q", got.Host, tt.host)
			}
		})
	}
	if a, b := h.targetOf("bank"), h.targetOf("127.0.0.1"); a == b || a == "" || b == "" {
		t.Errorf("targets %q, %q", a, b)
	}
}

// TestRulesAboutHosts checks that a rule about a network host applies to a server under any name, to a request, and to
// a server of a table.
func TestRulesAboutHosts(t *testing.T) {
	h := identified(t, t.TempDir(), `
servers: {harmless: {url: "http://127.0.0.1.:1/mcp", transport: auto}}
tools: {web: {kind: http, description: Gets, request: {url: "http://127.0.0.1:3/"}}}
policy: {rules: [{when: 'server.host == "127.0.0.1"', verdict: deny}, {when: 'true', verdict: allow}]}
`, row("send", "http://[::ffff:127.0.0.1]:2/mcp"))
	for _, tool := range []tenon.Tool{{Server: "harmless", Remote: "send", Name: "send"}, {Server: "http_tools", Remote: "web", Name: "web"}, {Server: "127.0.0.1", Remote: "send", Name: "send"}} {
		t.Run("SEC-T3_"+tool.Server, func(t *testing.T) {
			f, err := h.facts(t.Context(), tenon.Run{}, "", &tool, nil)
			if err != nil {
				t.Fatal(err)
			}
			if o := h.ruleset().Layers.Judge(f); o.Verdict != tenon.Deny {
				t.Errorf("%+v about %+v", o, f.Server)
			}
		})
	}
}

// TestCacheKeyFollowsIdentity checks that cached results belong to a target. Another target with the same name does not
// find them, and the same target with another name does.
func TestCacheKeyFollowsIdentity(t *testing.T) {
	key := func(h *Host, server string) string {
		t.Helper()
		k, err := h.executor.CacheKey(t.Context(), tenon.Run{}, &agent.ToolCommand{Server: server, Remote: "get", Arguments: json.RawMessage(`{}`), Cache: &agent.Caching{Scope: policy.ScopeProject}}, servers.Overlay{})
		if err != nil {
			t.Fatal(err)
		}
		return k
	}
	dir := t.TempDir()
	one := identified(t, dir, "version: 1\n", row("get", "http://127.0.0.1:1/a"))
	other := identified(t, dir, "version: 1\n", row("get", "http://127.0.0.1:1/b"))
	both := identified(t, dir, "version: 1\n", row("get", "http://127.0.0.1:1/b"), row("get", "http://127.0.0.1:1/a"))
	if key(one, "127.0.0.1") == key(other, "127.0.0.1") {
		t.Error("SEC-T1: two targets share kept results")
	}
	found := 0
	for name := range both.Service().Connections() {
		if k := key(both, name); k == key(one, "127.0.0.1") || k == key(other, "127.0.0.1") {
			found++
		}
	}
	if found != 2 {
		t.Errorf("SEC-T4: %d of 2 servers have their kept results under another name", found)
	}
}

// TestRateFollowsIdentity checks that the rate limit of a tool counts calls by the tool's identity.
func TestRateFollowsIdentity(t *testing.T) {
	dir := t.TempDir()
	one := identified(t, dir, "version: 1\n", row("get", "http://127.0.0.1:1/a"))
	other := identified(t, dir, "version: 1\n", row("get", "http://127.0.0.1:1/b"))
	admitted := func(h *Host) bool {
		t.Helper()
		admission := &agent.DecideCommand{Admit: &agent.Admission{Server: "127.0.0.1", Remote: "get", Rate: "1/h"}}
		events, err := h.do(t.Context(), "", engine.Attempt{Command: tenon.Command{Kind: agent.CommandDecide, Local: admission}}, nil)
		if err != nil {
			t.Fatal(err)
		}
		var a agent.Admitted
		if err := json.Unmarshal(events[0].Data, &a); err != nil {
			t.Fatal(err)
		}
		return a.Refused == ""
	}
	if !admitted(one) || admitted(one) {
		t.Error("the rate of one server does not hold")
	}
	if !admitted(other) {
		t.Error("SEC-T1: calls of another target of that name count")
	}
}
