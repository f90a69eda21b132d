package config_test

import (
	"strings"
	"testing"

	"github.com/tenonhq/tenon/config"
)

// TestGW_11_AccountKeys checks the keys for sign-ins and token exchange of callers.
func TestGW_11_AccountKeys(t *testing.T) {
	const oauth = "auth: {type: oauth, issuer: 'https://login.example', client_id: tenon}, "
	for name, tt := range map[string]struct{ entry, want string }{
		"sign-in":                {"url: 'https://a.example/mcp', caller_credentials: {sign_in: true}", ""},
		"sign-in is enough":      {"url: 'https://a.example/mcp', caller_credentials: {sign_in: true, required: true}", ""},
		"sign-in of a process":   {"command: a, caller_credentials: {sign_in: true}", "'sign_in' has no effect for stdio"},
		"exchange":               {oauth + "url: 'https://a.example/mcp', caller_credentials: {exchange: true}", ""},
		"exchange, no issuer":    {"auth: {type: oauth, client_id: tenon}, url: 'https://a.example/mcp', caller_credentials: {exchange: true}", "'exchange' needs auth with type oauth, issuer and client_id"},
		"exchange without auth":  {"url: 'https://a.example/mcp', caller_credentials: {exchange: true}", "'exchange' needs auth"},
		"exchange of a process":  {"command: a, caller_credentials: {exchange: true}", "'exchange' has no effect for stdio"},
		"audience, no exchange":  {"url: 'https://a.example/mcp', caller_credentials: {exchange_audience: a}", "'exchange_audience' has no effect without"},
		"required without means": {"url: 'https://a.example/mcp', caller_credentials: {required: true}", "every caller would be refused"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := config.Parse("tenon.yaml", []byte("servers: {a: {"+tt.entry+"}}\n"), config.Options{Dir: t.TempDir(),
				LookupEnv: func(string) (string, bool) { return "", false }})
			if tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
				t.Errorf("%v, want %q", err, tt.want)
			}
		})
	}
}

// TestGW_11_ExchangeAtOneIssuer checks the warning about an exchange for which no client can have a token.
func TestGW_11_ExchangeAtOneIssuer(t *testing.T) {
	for issuer, want := range map[string]bool{"https://login.example": false, "https://other.example": true} {
		c, err := config.Parse("tenon.yaml", []byte("servers: {a: {url: 'https://a.example/mcp', auth: {type: oauth, "+
			"issuer: 'https://login.example', client_id: tenon}, caller_credentials: {exchange: true}}}\n"+
			"serve: {auth: {oauth: {url: 'https://tools.example', issuers: [{url: '"+issuer+"'}]}}}\n"),
			config.Options{Dir: t.TempDir(), LookupEnv: func(string) (string, bool) { return "", false }})
		if err != nil {
			t.Fatal(err)
		}
		warned := false
		for _, w := range c.Warnings {
			warned = warned || w.Path == "servers.a.caller_credentials.exchange" &&
				strings.Contains(w.Message, "serve.auth.oauth.issuers")
		}
		if warned != want {
			t.Errorf("%s: %v", issuer, c.Warnings)
		}
	}
}
