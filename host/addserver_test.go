package host_test

import (
	"context"
	"encoding/json"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/agent"
	"github.com/tenonhq/tenon/config"
	"github.com/tenonhq/tenon/host"
	"github.com/tenonhq/tenon/mcp"
	"github.com/tenonhq/tenon/policy"
	"github.com/tenonhq/tenon/servers"
)

// servedTools serves tools over HTTP.
func servedTools(t *testing.T, cfg mcp.ServerConfig) string {
	t.Helper()
	srv, err := mcp.NewServer(cfg)
	if err != nil {
		t.Fatal(err)
	}
	s := httptest.NewServer(srv.HTTP(mcp.HTTPConfig{}))
	t.Cleanup(s.Close)
	return s.URL
}

// TestAddedServerHasItsPolicy holds that the rules of a server that is added while the
// host is open hold for its tools, until it is removed, and that a rule which cannot
// hold refuses the server.
func TestAddedServerHasItsPolicy(t *testing.T) {
	url := servedTools(t, mcp.ServerConfig{Name: "x", Version: "1", Tools: []mcp.ServerTool{{
		Definition: json.RawMessage(`{"name":"send","description":"Sends","inputSchema":{"type":"object","properties":{"to":{"type":"string"}}}}`),
		Call: func(context.Context, *mcp.ToolRequest) (json.RawMessage, error) {
			return json.RawMessage(`{"content":[{"type":"text","text":"` + strings.Repeat("sent ", 100) + `"}]}`), nil
		}}}})
	h, _ := budgeted(t, t.TempDir(), &config.Config{Policy: policy.Config{Defaults: policy.Block{Approval: policy.Approval{If: `args.to == "all"`}}}}, &shop{},
		once(`send {"to":"a"}`, `send {"to":"b"}`, `send {"to":"me"}`))
	before := h.Policy()
	add := func(b policy.Block) error {
		return h.AddServer(t.Context(), "post", servers.Config{URL: url, Policy: b})
	}
	for name, b := range map[string]policy.Block{
		"no mode":     {Approval: policy.Approval{Mode: "sometimes"}},
		"two":         {Approval: policy.Approval{Mode: "never", If: "true"}},
		"no CEL":      {Approval: policy.Approval{If: `args.to ==`}},
		"no rate":     {Rate: "often"},
		"below zero":  {MaxCalls: policy.CallLimit{Run: new(-1)}},
		"no retry":    {Retry: "maybe"},
		"what is big": {OnLargeResult: "drop"},
		"no scope":    {Cache: policy.Cache{Scope: "world"}},
		"timeout":     {Timeout: -time.Second},
		"redact":      {Redact: []string{"to"}},
	} {
		if err := add(b); tenon.ErrorCode(err) != tenon.CodeConfig || !strings.Contains(err.Error(), "server 'post': policy.") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if h.Policy() != before {
		t.Error("a server that was refused has changed the rules")
	}
	if err := h.AddServer(t.Context(), "http_tools", servers.Config{URL: url}); tenon.ErrorCode(err) != tenon.CodeConfig {
		t.Errorf("a name of tenon's own: %v", err)
	}
	err := add(policy.Block{Approval: policy.Approval{If: `args.to == "boss"`}, MaxCalls: policy.CallLimit{Run: new(2)}, ResultBytes: 100, Cost: new(0.5)})
	if err != nil {
		t.Fatal(err)
	}
	if h.Policy() == before {
		t.Error("the rules have the same digest with other rules")
	}
	for to, want := range map[string]tenon.Verdict{"all": tenon.Allow, "boss": tenon.Ask, "me": tenon.Allow} {
		o, err := h.Judge(t.Context(), host.Proposal{Tool: "send", Arguments: json.RawMessage(`{"to":"` + to + `"}`)})
		if err != nil || o.Verdict != want || o.MaxRun != 2 || o.Cost != tenon.Dollars(0.5) {
			t.Errorf("to %s: %+v %v", to, o, err)
		}
	}
	r, _ := ask(t, h, host.Question{Text: "q"})
	if r.State != tenon.RunCompleted || len(r.ToolCalls) != 3 {
		t.Fatalf("%s %v, %d calls", r.State, r.Error, len(r.ToolCalls))
	}
	for i, want := range []string{agent.CallDone, agent.CallDone, agent.CallDenied} {
		if c := r.ToolCalls[i]; c.Outcome != want {
			t.Errorf("call %d: %+v, want %s", i, c, want)
		}
	}
	if err := h.RemoveServer("post"); err != nil || h.Policy() != before {
		t.Errorf("the rules stay behind: %v", err)
	}
	if err := add(policy.Block{}); err != nil {
		t.Fatal(err)
	}
	if o, err := h.Judge(t.Context(), host.Proposal{Tool: "send", Arguments: json.RawMessage(`{"to":"all"}`)}); err != nil || o.Verdict != tenon.Ask || o.MaxRun != 0 {
		t.Errorf("without a policy of its own: %+v %v", o, err)
	}
}
