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

// raws returns the definitions of tools, one a line.
func raws(tools []tenon.Tool) string {
	var b strings.Builder
	for _, t := range tools {
		b.Write(t.Raw)
		b.WriteByte('\n')
	}
	return b.String()
}

// TestGW_7_KeptListsAreOfOnePrincipal checks that cached lists of tools are separate: a principal never gets the list
// of another one, in whatever order they list the tools, at one endpoint or at several.
func TestGW_7_KeptListsAreOfOnePrincipal(t *testing.T) {
	w := open(t, upstreamConfig(serveUpstream(t, mcp.ServerConfig{}), rules+"gateway: {endpoints: {few: {tools: [secret, write]}}}"),
		gateway.Config{})
	all, filtered := "broken echo guarded secret write", "broken echo guarded write"
	at := func(path, token string) *mcp.Client {
		there := world{url: w.url + path}
		return there.client(t, mcp.Modern, token)
	}
	for _, order := range [][]int{{0, 1, 2, 3}, {1, 0, 3, 2, 1, 0}, {3, 3, 2, 2, 1, 1, 0, 0}} {
		for _, i := range order {
			c := []struct{ path, token, want string }{{"", ownToken, all}, {"", annaToken, filtered},
				{"/few", ownToken, "secret write"}, {"/few", annaToken, "write"}}[i]
			tools, err := at(c.path, c.token).Tools(t.Context())
			if got := named(tools); err != nil || got != c.want {
				t.Errorf("order %v: '%s' of %.14s has %q, want %q (%v)", order, c.path, c.token, got, c.want, err)
			}
		}
	}
}

// TestGW_14_KeptListsChangeAtOnce checks that a cached list is no longer used when the rules, the host, the tools of a
// server or the secrets change.
func TestGW_14_KeptListsChangeAtOnce(t *testing.T) {
	u := serveUpstream(t, mcp.ServerConfig{})
	text := upstreamConfig(u, rules)
	w := open(t, text, gateway.Config{})
	list := func() (names, definitions string) {
		t.Helper()
		tools, err := w.client(t, mcp.Modern, annaToken).Tools(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return named(tools), raws(tools)
	}
	before, definitions := list()
	if names, again := list(); names != before || again != definitions {
		t.Fatalf("the second list differs: %s", names)
	}

	w.host.Service().Callers().RegisterSecret(tenon.NewSecret("says it back"))
	if _, now := list(); strings.Contains(now, "says it back") || now == definitions {
		t.Errorf("a secret that was registered after a list is shown: %s", now)
	}

	other := serveUpstream(t, mcp.ServerConfig{}, mcp.ServerTool{Definition: json.RawMessage(`{"name":"late","inputSchema":{"type":"object"}}`),
		Call: func(context.Context, *mcp.ToolRequest) (json.RawMessage, error) { return nil, nil }})
	w2 := &world{home: w.home + "2"}
	w2.start(t, upstreamConfig(other, "policy: {rules: [{when: 'tool.remote_name == \"echo\"', verdict: deny}]}"), gateway.Config{})
	w.gate.Use(w2.host)
	if names, _ := list(); names != "broken guarded late secret write" {
		t.Errorf("after a reload with other rules: %s", names)
	}
	w.gate.Use(w.host)
	if names, _ := list(); names != before {
		t.Errorf("after a reload with the rules of before: %s", names)
	}
}

// TestGW_7_KeptLists checks when a cached list is found, and that the oldest list is dropped first.
func TestGW_7_KeptLists(t *testing.T) {
	for _, tt := range []struct {
		name                  string
		who                   tenon.Principal
		endpoint, rules, down string
		masks                 int
		snapshot, want        bool
	}{
		{name: "the same", want: true},
		{name: "another principal", who: "bert"},
		{name: "another endpoint", endpoint: "e"},
		{name: "other rules", rules: "other"},
		{name: "one more secret", masks: 1},
		{name: "another catalog", snapshot: true},
		{name: "a server is down", down: "up"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := gateway.FindsKeptList(tt.who, tt.endpoint, tt.rules, tt.masks, tt.snapshot, tt.down); got != tt.want {
				t.Errorf("found: %v, want %v", got, tt.want)
			}
		})
	}
	if kept, first, last := gateway.KeepLists(3 * gateway.MaxLists); kept != gateway.MaxLists || first || !last {
		t.Errorf("%d lists are kept, want %d; the first is kept: %v, the last: %v", kept, gateway.MaxLists, first, last)
	}
}
