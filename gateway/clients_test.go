package gateway_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/gateway"
	"github.com/tenonhq/tenon/host"
	"github.com/tenonhq/tenon/httpapi"
	"github.com/tenonhq/tenon/mcp"
)

// timeless ignores the times of a client, and the revision of the era.
var timeless = cmpopts.IgnoreFields(host.GatewayClient{}, "Since", "Seen", "LastCall", "Protocol")

// api returns a client of the HTTP API with a token.
func (w *world) api(t *testing.T, token string) *httpapi.Client {
	t.Helper()
	c, err := httpapi.NewRemote(strings.TrimSuffix(w.url, "/mcp"), tenon.NewSecret(token))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// TestGW_25_Clients checks the list of clients: who they are, at which endpoint, and how the rules decided about their
// calls.
func TestGW_25_Clients(t *testing.T) {
	w := open(t, upstreamConfig(serveUpstream(t, mcp.ServerConfig{}), rules+
		"    - {when: 'tool.remote_name == \"broken\"', verdict: ask}\ngateway: {endpoints: {part: {tools: [echo]}}}\n"),
		gateway.Config{Park: 1})
	api := w.api(t, ownToken)
	if list, err := api.GatewayClients(t.Context()); err != nil || len(list) != 0 {
		t.Fatalf("before all clients %v, %v", list, err)
	}
	as := func(name string) func(*mcp.ClientConfig) {
		return func(cfg *mcp.ClientConfig) { cfg.Name, cfg.Version = name, "2" }
	}
	call := func(c *mcp.Client, tools ...string) {
		t.Helper()
		for _, name := range tools {
			_, _ = c.Call(t.Context(), tenon.Call{Tool: name, Arguments: []byte(`{"path":"/etc"}`)}) // some are refused
		}
	}
	old := w.client(t, mcp.LatestLegacy, ownToken, as("old"))
	call(old, "echo", "guarded", "nothing", "broken")
	call(w.client(t, mcp.Modern, annaToken, as("new\u202e"+strings.Repeat("\u0301", 4))), "echo", "secret")
	_ = w.at(t, "/part", mcp.LatestLegacy)
	want := []host.GatewayClient{
		{Name: "new\\u{202e}\u0301\u0301\u0301\\u{301}", Version: "2", Era: "modern", Principal: "anna", Calls: 2, Allowed: 1, Denied: 1},
		{Name: "old", Version: "2", Era: "legacy", Principal: "local", Sessions: 1, Calls: 4, Allowed: 1, Asked: 1, Denied: 1},
		{Name: "tenon", Version: "0", Era: "legacy", Principal: "local", Endpoint: "part", Sessions: 1},
	}
	sorted := func() []host.GatewayClient {
		t.Helper()
		list, err := api.GatewayClients(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		slices.SortFunc(list, func(a, b host.GatewayClient) int {
			return strings.Compare(a.Endpoint+a.Name, b.Endpoint+b.Name)
		})
		return list
	}
	if diff := cmp.Diff(want, sorted(), timeless); diff != "" {
		t.Errorf("clients differ (-want +got)\n%s", diff)
	}
	if c := sorted()[1]; c.Since.After(c.LastCall) || c.LastCall.After(c.Seen) || c.Protocol != mcp.LatestLegacy {
		t.Errorf("%+v", c)
	}
	_ = old.Close()
	until(t, "the end of the session", func() bool { return sorted()[1].Sessions == 0 })

	if _, err := w.api(t, annaToken).GatewayClients(t.Context()); tenon.ErrorCode(err) != tenon.CodeDenied {
		t.Errorf("another principal gets %v", err)
	}
}

// TestGW_25_ClientsAreBounded checks that the names that one principal invents do not make others forgotten.
func TestGW_25_ClientsAreBounded(t *testing.T) {
	w := open(t, "{}", gateway.Config{})
	_ = w.client(t, mcp.Modern, ownToken, func(cfg *mcp.ClientConfig) { cfg.Name = "mine" })
	for i := range 300 {
		body := fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25",`+
			`"capabilities":{},"clientInfo":{"name":"%d%s","version":"1"}}}`, i, strings.Repeat("x", 5000))
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, w.url, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Authorization", "Bearer "+annaToken)
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Accept", "application/json, text/event-stream")
		answer, err := http.DefaultClient.Do(r)
		if err != nil || answer.StatusCode != http.StatusOK {
			t.Fatal(err, answer)
		}
		_ = answer.Body.Close() // the status is enough
	}
	http.DefaultClient.CloseIdleConnections()
	count := map[tenon.Principal]int{}
	for _, c := range w.gate.Clients() {
		count[c.Principal]++
		if len(c.Name) > 100 {
			t.Fatalf("a name of %d bytes", len(c.Name))
		}
	}
	if count["local"] != 1 || count["anna"] != 256 {
		t.Errorf("%v", count)
	}
}
