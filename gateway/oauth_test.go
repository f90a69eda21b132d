package gateway_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/gateway"
	"github.com/tenonhq/tenon/internal/authserver"
	"github.com/tenonhq/tenon/mcp"
)

// publicURL is the URL of the gateway as clients see it, in tests of OAuth.
const publicURL = "https://tools.example.com"

// oauthConfig returns a configuration that accepts access tokens of the issuers. Its endpoint coding requires a scope.
func oauthConfig(u *upstream, more string, issuers ...*authserver.Issuer) string {
	var list []string
	for _, i := range issuers {
		list = append(list, "{url: '"+i.URL+"'}")
	}
	return "servers: {up: {url: '" + u.url + "'}}\nserve: {auth: {oauth: {url: '" + publicURL + "', issuers: [" +
		strings.Join(list, ", ") + "], endpoints: {coding: {scopes: [code, run]}, api: {audience: 'api://tenon'}}}}}\n" +
		"gateway: {endpoints: {coding: {tools: [echo]}, api: {}}}\n" + more
}

func startIssuer(t *testing.T) *authserver.Issuer {
	t.Helper()
	i := authserver.StartIssuer()
	t.Cleanup(i.Close)
	return i
}

// ask sends tools/list of the modern era to a path.
func (w *world) ask(t *testing.T, path, token string) (int, http.Header, string) {
	t.Helper()
	there := world{url: w.url + path}
	return there.post(t, token, `{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":{`+
		`"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{},`+
		`"io.modelcontextprotocol/clientInfo":{"name":"t","version":"1"}}}}`,
		"Mcp-Method", "tools/list", "MCP-Protocol-Version", "2026-07-28")
}

// get reads a document that is served next to the gateway.
func (w *world) get(t *testing.T, path string) (int, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, strings.TrimSuffix(w.url, "/mcp")+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res.StatusCode, string(b)
}

// TestGW_9_Metadata checks the documents with protected resource metadata (RFC 9728).
func TestGW_9_Metadata(t *testing.T) {
	i := startIssuer(t)
	w := open(t, oauthConfig(serveUpstream(t, mcp.ServerConfig{}), "", i), gateway.Config{})
	const at = "/.well-known/oauth-protected-resource"
	for path, want := range map[string]map[string]any{
		"/mcp": {"resource": publicURL + "/mcp"},
		"/mcp/coding": {"resource": publicURL + "/mcp/coding", "scopes_supported": []any{"code", "run"},
			"resource_name": "tenon coding"},
		"/mcp/api":    {"resource": publicURL + "/mcp/api", "resource_name": "tenon api"},
		"/mcp/nobody": nil, "": nil, "/": nil, "/mcp/": nil, "/api/v1": nil,
	} {
		t.Run("path "+path, func(t *testing.T) {
			status, body := w.get(t, at+path)
			if want == nil {
				if status != http.StatusNotFound && status != http.StatusUnauthorized {
					t.Errorf("%d %s", status, body)
				}
				return
			}
			full := map[string]any{"authorization_servers": []any{i.URL}, "bearer_methods_supported": []any{"header"},
				"resource_name": "tenon"}
			for k, v := range want {
				full[k] = v
			}
			var got map[string]any
			if err := json.Unmarshal([]byte(body), &got); err != nil || status != http.StatusOK {
				t.Fatalf("%d %s", status, body)
			}
			if d := cmp.Diff(full, got); d != "" {
				t.Error(d)
			}
		})
	}
	prefixed := open(t, strings.Replace(oauthConfig(serveUpstream(t, mcp.ServerConfig{}), "", i), publicURL, publicURL+"/hub", 1),
		gateway.Config{})
	for _, path := range []string{"/hub/mcp/coding", "/mcp/coding"} { // a proxy may remove the prefix
		if status, body := prefixed.get(t, at+path); status != http.StatusOK || !strings.Contains(body, publicURL+"/hub/mcp/coding\"") {
			t.Errorf("%s: %d %s", path, status, body)
		}
	}
	without := open(t, upstreamConfig(serveUpstream(t, mcp.ServerConfig{}), ""), gateway.Config{})
	if status, _ := without.get(t, at+"/mcp"); status != http.StatusNotFound {
		t.Errorf("without serve.auth.oauth: %d", status)
	}
}

// TestGW_9_Tokens checks which access tokens open which endpoint, and the answers to the others.
func TestGW_9_Tokens(t *testing.T) {
	i := startIssuer(t)
	w := open(t, oauthConfig(serveUpstream(t, mcp.ServerConfig{}), "", i), gateway.Config{})
	meta := func(path string) string {
		return `resource_metadata="` + publicURL + "/.well-known/oauth-protected-resource" + path + `"`
	}
	all, coding := publicURL+"/mcp", publicURL+"/mcp/coding"
	scoped := i.Token("anna", coding, map[string]any{"scope": "code run more"})
	for _, tt := range []struct {
		name, path, token string
		status            int
		challenge         string
	}{
		{"no token", "", "", 401, `Bearer realm="tenon", ` + meta("/mcp")},
		{"no token, an endpoint", "/coding", "", 401, `Bearer realm="tenon", ` + meta("/mcp/coding") + `, scope="code run"`},
		{"a token for it", "", i.Token("anna", all, nil), 200, ""},
		{"a token of serve.auth", "", ownToken, 200, ""},
		{"a token of serve.auth for a principal", "/coding", annaToken, 200, ""},
		{"an unknown token of serve.auth", "", "unknown", 401, `Bearer realm="tenon", error="invalid_token", ` + meta("/mcp")},
		{"a token of another endpoint", "", scoped, 401, `Bearer realm="tenon", error="invalid_token", ` + meta("/mcp")},
		{"a token of the whole for an endpoint", "/coding", i.Token("anna", all, map[string]any{"scope": "code run"}), 401,
			`Bearer realm="tenon", error="invalid_token", ` + meta("/mcp/coding") + `, scope="code run"`},
		{"without scopes", "/coding", i.Token("anna", coding, nil), 403,
			`Bearer realm="tenon", error="insufficient_scope", ` + meta("/mcp/coding") + `, scope="code run"`},
		{"with one scope of two", "/coding", i.Token("anna", coding, map[string]any{"scope": "code"}), 403,
			`Bearer realm="tenon", error="insufficient_scope", ` + meta("/mcp/coding") + `, scope="code run"`},
		{"step-up", "/coding", scoped, 200, ""},
		{"a configured audience", "/api", i.Token("anna", "api://tenon", nil), 200, ""},
		{"its address, which is not the audience", "/api", i.Token("anna", publicURL+"/mcp/api", nil), 401,
			`Bearer realm="tenon", error="invalid_token", ` + meta("/mcp/api")},
		{"an endpoint that does not exist", "/nobody", i.Token("anna", publicURL+"/mcp/nobody", nil), 401,
			`Bearer realm="tenon", error="invalid_token"`},
		{"expired", "", i.Token("anna", all, map[string]any{"exp": 1}), 401,
			`Bearer realm="tenon", error="invalid_token", ` + meta("/mcp")},
	} {
		t.Run(tt.name, func(t *testing.T) {
			status, header, body := w.ask(t, tt.path, tt.token)
			if status != tt.status || header.Get("WWW-Authenticate") != tt.challenge {
				t.Errorf("%d %s\n%s\nwant %s", status, body, header.Get("WWW-Authenticate"), tt.challenge)
			}
			if len(tt.token) > 40 && strings.Contains(body, tt.token[:40]) {
				t.Errorf("the answer quotes the token: %s", body)
			}
		})
	}
	i.Set(func(i *authserver.Issuer) { i.Down = true })
	down := open(t, oauthConfig(serveUpstream(t, mcp.ServerConfig{}), "", i), gateway.Config{})
	if status, _, body := down.ask(t, "", i.Token("anna", all, nil)); status != http.StatusServiceUnavailable {
		t.Errorf("an issuer that is down: %d %s", status, body)
	}
}

// TestGW_9_OnlyMCP checks that access tokens are accepted by no other API.
func TestGW_9_OnlyMCP(t *testing.T) {
	i := startIssuer(t)
	w := open(t, oauthConfig(serveUpstream(t, mcp.ServerConfig{}), "", i), gateway.Config{})
	for _, path := range []string{"/api/v1/me", "/api/v1/runs", "/mcp/tools", "/v1/models", "/metrics"} {
		for _, audience := range []string{publicURL + "/mcp", publicURL + path} {
			req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, strings.TrimSuffix(w.url, "/mcp")+path, nil)
			if err != nil {
				t.Fatal(err)
			}
			req.Header.Set("Authorization", "Bearer "+i.Token("anna", audience, nil))
			res, err := http.DefaultClient.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			_ = res.Body.Close()
			if res.StatusCode != http.StatusUnauthorized || strings.Contains(res.Header.Get("WWW-Authenticate"), "resource") {
				t.Errorf("%s: %s, %s", path, res.Status, res.Header.Get("WWW-Authenticate"))
			}
		}
	}
}

// TestGW_9_PrincipalsApart checks that principals of access tokens have separate rules, cached results and sessions,
// even if they have the same subject at different issuers.
func TestGW_9_PrincipalsApart(t *testing.T) {
	one, two := startIssuer(t), startIssuer(t)
	var calls atomic.Int32
	u := serveUpstream(t, mcp.ServerConfig{}, mcp.ServerTool{
		Definition: json.RawMessage(`{"name":"count","inputSchema":{"type":"object"},"annotations":{"readOnlyHint":true}}`),
		Call: func(context.Context, *mcp.ToolRequest) (json.RawMessage, error) {
			return json.RawMessage(fmt.Sprintf(`{"content":[{"type":"text","text":"call %d"}]}`, calls.Add(1))), nil
		}})
	anna := one.URL + "#anna"
	w := open(t, oauthConfig(u, `
policy:
  defaults: {cache: {ttl: 1h, scope: project}, approval: always}
  rules:
    - {when: 'tool.remote_name == "count"', verdict: allow}
    - {when: 'tool.remote_name == "secret" && principal != "`+anna+`"', verdict: deny, reason: only anna may}
`, one, two), gateway.Config{})
	token := map[string]string{
		"anna":  one.Token("anna", publicURL+"/mcp", nil),
		"bert":  one.Token("bert", publicURL+"/mcp", nil),
		"other": two.Token("anna", publicURL+"/mcp", nil), // another anna
	}
	seen := map[string]string{}
	for who, token := range token {
		c := w.client(t, mcp.Modern, token)
		tools, err := c.Tools(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if has := strings.Contains(named(tools), "secret"); has != (who == "anna") {
			t.Errorf("%s sees %s", who, named(tools))
		}
		res, err := c.Call(t.Context(), tenon.Call{Tool: "count"})
		if err != nil {
			t.Fatal(err)
		}
		if before, taken := seen[res.Content[0].Text]; taken {
			t.Errorf("%s gets the result of %s", who, before)
		}
		seen[res.Content[0].Text] = who
	}
	owners := map[tenon.Principal]bool{}
	for _, r := range w.runs(t) {
		owners[r.Principal] = true
	}
	if !owners[tenon.Principal(anna)] || !owners[tenon.Principal(two.URL+"#anna")] || len(owners) != 3 {
		t.Errorf("the runs are of %v", owners)
	}
	session := w.legacySession(t, token["anna"])
	for who, token := range token {
		for _, method := range []string{http.MethodGet, http.MethodDelete} {
			if who != "anna" {
				if status := w.inSession(t, method, token, session); status != http.StatusNotFound {
					t.Errorf("%s, %s in the session of another: %d", who, method, status)
				}
			}
		}
	}
	if status := w.inSession(t, http.MethodDelete, token["anna"], session); status >= 300 {
		t.Errorf("the session is no longer there for its owner: %d", status)
	}
}

// legacySession begins a session of the older era.
func (w *world) legacySession(t *testing.T, token string) string {
	t.Helper()
	status, header, body := w.post(t, token, `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"`+
		mcp.LatestLegacy+`","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`)
	if status != http.StatusOK || header.Get("Mcp-Session-Id") == "" {
		t.Fatalf("%d %s", status, body)
	}
	return header.Get("Mcp-Session-Id")
}

// inSession sends a request without a body in a session, and returns its status.
func (w *world) inSession(t *testing.T, method, token, session string) int {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, w.url, nil)
	if err != nil {
		t.Fatal(err)
	}
	for k, v := range map[string]string{"Authorization": "Bearer " + token, "Mcp-Session-Id": session,
		"Accept": "text/event-stream", "MCP-Protocol-Version": mcp.LatestLegacy} {
		req.Header.Set(k, v)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	_ = res.Body.Close()
	return res.StatusCode
}

// TestGW_9_StreamEnds checks that a stream of notifications ends when the token of its client expires.
func TestGW_9_StreamEnds(t *testing.T) {
	i := startIssuer(t)
	w := open(t, oauthConfig(serveUpstream(t, mcp.ServerConfig{}), "", i), gateway.Config{})
	claims := i.Claims("anna", publicURL+"/mcp", nil)
	session := w.legacySession(t, i.Sign("ES256", claims, nil))
	// The token has expired, but is accepted for two more seconds because of the tolerance for clock differences.
	claims["exp"] = claims["iat"].(int64) - 28
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, w.url, nil)
	if err != nil {
		t.Fatal(err)
	}
	for k, v := range map[string]string{"Authorization": "Bearer " + i.Sign("ES256", claims, nil), "Mcp-Session-Id": session,
		"Accept": "text/event-stream", "MCP-Protocol-Version": mcp.LatestLegacy} {
		req.Header.Set(k, v)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		t.Fatal(res.Status)
	}
	if _, err := io.Copy(io.Discard, res.Body); err != nil && t.Context().Err() != nil {
		t.Fatal(err)
	}
}
