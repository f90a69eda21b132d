package gateway_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/internal/authserver"
	"github.com/tenonhq/tenon/mcp"
)

// exchangeAuth and exchangeServe are parts of a configuration with token exchange. From exchangeServe on, the issuer
// signs in the name of the authorization server that exchanges its tokens.
func exchangeAuth(a *accounts) string { return "issuer: '" + a.Issuer + "', scopes: [files]" }

func exchangeServe(a *accounts, i *authserver.Issuer) string {
	keys := i.URL + "/keys"
	i.Set(func(i *authserver.Issuer) { i.URL = a.Issuer })
	return "serve: {auth: {oauth: {url: '" + publicURL + "', issuers: [{url: '" + i.URL + "', jwks_uri: '" + keys + "'}]}}}\n"
}

// exchanges returns the forms of the requests for token exchange.
func (a *accounts) exchanges() (list []url.Values) {
	for _, f := range a.Forms() {
		if strings.HasSuffix(f.Get("grant_type"), ":token-exchange") {
			list = append(list, f)
		}
	}
	return list
}

// echoes calls the tool echo, and returns the text of its error, or "".
func echoes(t *testing.T, c *mcp.Client) string {
	t.Helper()
	r, err := c.Call(t.Context(), tenon.Call{Tool: "echo"})
	if err != nil {
		t.Fatal(err)
	}
	if r.IsError {
		return r.Content[0].Text
	}
	return ""
}

// TestGW_11_TokenExchange checks that the access token of a client is exchanged once for each principal and token, and
// that the server never gets it.
func TestGW_11_TokenExchange(t *testing.T) {
	a, i := serveAccounts(t), startIssuer(t)
	a.Exchanges, a.ExpiresIn = true, 3600
	w := openAccounts(t, a, exchangeAuth(a), "exchange: true, exchange_audience: 'api://files', required: true", exchangeServe(a, i))
	tokens := map[string]string{"anna": i.Token("anna", publicURL+"/mcp", nil), "bert": i.Token("bert", publicURL+"/mcp", nil)}
	anna, bert := w.client(t, mcp.Modern, tokens["anna"]), w.client(t, mcp.LatestLegacy, tokens["bert"])
	for _, c := range []*mcp.Client{anna, anna, bert, bert} {
		if text := echoes(t, c); text != "" {
			t.Fatal(text)
		}
	}
	used, forms := a.called(), a.exchanges()
	if len(used) != 4 || used[0] != used[1] || used[2] != used[3] || used[0] == used[2] {
		t.Errorf("the calls were made with %q", used)
	}
	for _, token := range used {
		if token == "" || token == tokens["anna"] || token == tokens["bert"] {
			t.Errorf("the server got the token of a client: %q", token)
		}
	}
	if len(forms) != 2 {
		t.Fatalf("%d exchanges: %v", len(forms), forms)
	}
	for n, who := range []string{"anna", "bert"} {
		f := forms[n]
		for key, want := range map[string]string{"subject_token": tokens[who], "resource": a.URL, "audience": "api://files",
			"scope": "files", "requested_token_type": "urn:ietf:params:oauth:token-type:access_token"} {
			if f.Get(key) != want {
				t.Errorf("%s: %s is %q, want %q", who, key, f.Get(key), want)
			}
		}
		if !strings.HasPrefix(f.Get("_auth"), "Basic ") {
			t.Errorf("%s: tenon does not authenticate itself: %v", who, f)
		}
	}
	a.Revoke(true) // the server refuses the token; the next call gets a new one
	if text := echoes(t, anna); text == "" {
		t.Error("a revoked token was accepted")
	}
	if text := echoes(t, anna); text != "" {
		t.Errorf("after the refusal: %s", text)
	}
	if n := len(a.exchanges()); n != 3 {
		t.Errorf("%d exchanges", n)
	}
	if text := echoes(t, w.client(t, mcp.Modern, annaToken)); !strings.Contains(text, "up") {
		t.Errorf("a principal without an access token: %s", text)
	}
}

// TestGW_11_BadExchange checks the errors about answers of the authorization server. They name the server and the key,
// and do not contain the token.
func TestGW_11_BadExchange(t *testing.T) {
	var thief atomic.Int32
	elsewhere := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if b, _ := io.ReadAll(r.Body); len(b) > 0 {
			thief.Add(1)
		}
	}))
	defer elsewhere.Close()
	set := func(key string, value any) func(*accounts) {
		return func(a *accounts) {
			a.Token = func(f url.Values, answer map[string]any) int {
				answer[key] = value
				return http.StatusOK
			}
		}
	}
	for name, tt := range map[string]struct {
		fault func(*accounts)
		has   string
	}{
		"refused":        {func(a *accounts) { a.Exchanges = false }, "invalid_grant"},
		"no token":       {set("access_token", ""), "usable access token"},
		"of no use":      {set("token_type", "N_A"), "N_A"},
		"another kind":   {set("issued_token_type", "urn:ietf:params:oauth:token-type:saml2"), "saml2"},
		"no metadata":    {func(a *accounts) { a.NoMetadata = true }, "metadata"},
		"another issuer": {func(a *accounts) { a.Metadata = map[string]any{"issuer": "https://other.example"} }, "other.example"},
		"not offered": {func(a *accounts) {
			a.Metadata = map[string]any{"grant_types_supported": []string{"client_credentials"}}
		}, "exchanges no tokens"},
		"the same token": {func(a *accounts) {
			a.Token = func(f url.Values, answer map[string]any) int {
				answer["access_token"] = f.Get("subject_token")
				return http.StatusOK
			}
		}, "token of the user"},
		"it repeats the token": {func(a *accounts) {
			a.Token = func(f url.Values, answer map[string]any) int {
				answer["error"], answer["error_description"] = "invalid_target", "no "+f.Get("subject_token")
				return http.StatusBadRequest
			}
		}, "invalid_target"},
		"it redirects": {func(a *accounts) { a.ExchangeAt = elsewhere.URL }, "HTTP 307"},
	} {
		t.Run(name, func(t *testing.T) {
			a, i := serveAccounts(t), startIssuer(t)
			a.Exchanges = true
			w := openAccounts(t, a, exchangeAuth(a), "exchange: true", exchangeServe(a, i))
			own := w.client(t, mcp.Modern, ownToken)
			if text := echoes(t, own); text != "" { // the list of tools is there before the fault begins
				t.Fatal(text)
			}
			before := len(a.called())
			tt.fault(a)
			token := i.Token("anna", publicURL+"/mcp", nil)
			text := echoes(t, w.client(t, mcp.Modern, token))
			for _, want := range []string{tt.has, "'up'", "servers.up.caller_credentials.exchange"} {
				if !strings.Contains(text, want) {
					t.Errorf("%q is not in: %s", want, text)
				}
			}
			if strings.Contains(text, token[:30]) || strings.Contains(text, token[len(token)-30:]) {
				t.Errorf("the error has the token: %s", text)
			}
			if len(a.called()) != before || thief.Load() != 0 {
				t.Errorf("the server was called, or the redirect followed")
			}
		})
	}
}

// TestGW_11_OtherIssuer checks that a token is not sent to another authorization server than the one that issued it.
func TestGW_11_OtherIssuer(t *testing.T) {
	a, i := serveAccounts(t), startIssuer(t)
	a.Exchanges = true
	w := openAccounts(t, a, exchangeAuth(a), "exchange: true",
		"serve: {auth: {oauth: {url: '"+publicURL+"', issuers: [{url: '"+i.URL+"'}]}}}\n")
	text := echoes(t, w.client(t, mcp.Modern, i.Token("anna", publicURL+"/mcp", nil)))
	for _, want := range []string{i.URL, a.Issuer, "serve.auth.oauth.issuers", "servers.up.auth.issuer"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not in: %s", want, text)
		}
	}
	if sent, used := a.exchanges(), a.called(); len(sent)+len(used) != 0 {
		t.Errorf("the token was sent: %v, and the server called: %q", sent, used)
	}
}

// TestGW_11_OtherAudience checks that a reload with another audience, which keeps the server, asks for a new token.
func TestGW_11_OtherAudience(t *testing.T) {
	a, i := serveAccounts(t), startIssuer(t)
	a.Exchanges, a.ExpiresIn = true, 3600
	serve := exchangeServe(a, i)
	w := openAccounts(t, a, exchangeAuth(a), "exchange: true, exchange_audience: first", serve)
	token := i.Token("anna", publicURL+"/mcp", nil)
	if text := echoes(t, w.client(t, mcp.Modern, token)); text != "" {
		t.Fatal(text)
	}
	w.reload(t, accountsConfig(a, exchangeAuth(a), "exchange: true, exchange_audience: second", serve))
	if text := echoes(t, w.client(t, mcp.Modern, token)); text != "" {
		t.Fatal(text)
	}
	var got []string
	for _, f := range a.exchanges() {
		got = append(got, f.Get("audience"))
	}
	if used := a.called(); strings.Join(got, " ") != "first second" || len(used) != 2 || used[0] == used[1] {
		t.Errorf("the audiences are %q, and the tokens %q", got, used)
	}
}
