package config

import (
	"slices"
	"strings"

	"github.com/tenonhq/tenon/config/tree"
	"github.com/tenonhq/tenon/internal/accesstoken"
)

// AllEndpoint names `/mcp`, the endpoint with all tools, unless an entry of gateway.endpoints has that name.
const AllEndpoint = "all"

// ServeOAuth makes the MCP endpoints protected resources of OAuth 2.1: clients present access tokens (JWT) of the
// issuers. The principal of a token is the issuer, #, and the subject. It owns nothing but its own runs and sessions.
type ServeOAuth struct {
	// Address of tenon as clients reach it, such as `https://tools.example.com`. `/mcp` and `/mcp/NAME` below it are
	// the resources that clients ask tokens for.
	URL string `yaml:"url"`
	// Authorization servers whose access tokens are accepted.
	Issuers []OAuthIssuer `yaml:"issuers" default:"[]"`
	// Requirements for tokens, by endpoint: an entry of gateway.endpoints, or all for `/mcp`.
	Endpoints map[string]OAuthEndpoint `yaml:"endpoints"`
}

// OAuthIssuer is an authorization server.
type OAuthIssuer struct {
	// Issuer identifier, exactly as in the claim iss of its tokens.
	URL string `yaml:"url"`
	// Address of its keys (JWK Set). Without it, the metadata of the issuer name it.
	JWKS string `yaml:"jwks_uri"`
	// Accepted signature algorithms.
	Algorithms []string `yaml:"algorithms" enum:"RS256,RS384,RS512,PS256,PS384,PS512,ES256,ES384,ES512,EdDSA"`
}

// OAuthEndpoint contains the requirements of an endpoint for access tokens.
type OAuthEndpoint struct {
	// Audience (claim aud) of its tokens. Without it, the address of the endpoint.
	Audience string `yaml:"audience"`
	// Scopes that a token must have, all of them. Scopes allow nothing that the rules do not allow.
	Scopes []string `yaml:"scopes" default:"[]"`
}

// IsOn reports whether access tokens are accepted.
func (o *ServeOAuth) IsOn() bool { return len(o.Issuers) > 0 }

// Accepted returns the issuers as values of package accesstoken.
func (o *ServeOAuth) Accepted() []accesstoken.Issuer {
	var list []accesstoken.Issuer
	for _, i := range o.Issuers {
		list = append(list, accesstoken.Issuer{URL: i.URL, JWKS: i.JWKS, Algorithms: i.Algorithms})
	}
	return list
}

// serveOAuth checks serve.auth.oauth.
func (k *checker) serveOAuth() {
	const p = "serve.auth.oauth"
	o := k.c.Serve.Auth.OAuth
	switch {
	case !k.has(p):
		return
	case k.c.Serve.Auth.Type == ServeOpen:
		k.bad(p, "write serve.auth.type: token", "access tokens have no effect beside serve.auth.type: none")
	case !o.IsOn() && !k.failedUnder(p):
		k.bad(p, "write issuers: [{url: https://login.example.com}]", "'issuers' is required")
	case o.URL == "" && !k.failedUnder(p):
		k.bad(p, "write url: https://tools.example.com", "'url' is required: the address of tenon for clients")
	}
	if o.URL != "" {
		if why := accesstoken.CheckURL(o.URL); why != "" {
			k.bad(p+".url", "", "%s", why)
		} else if strings.HasSuffix(o.URL, "/") {
			k.bad(p+".url", "", "it must not end in /, because /mcp follows")
		}
	}
	for i, issuer := range o.Issuers {
		at := tree.Index(p+".issuers", i)
		if issuer.URL == "" {
			k.bad(at, "write {url: https://login.example.com}", "'url' is required")
			continue
		}
		if why := accesstoken.CheckURL(issuer.URL); why != "" {
			k.bad(at+".url", "", "%s", why)
		}
		if slices.ContainsFunc(o.Issuers[:i], func(other OAuthIssuer) bool { return other.URL == issuer.URL }) {
			k.bad(at+".url", "", "the issuer is listed twice")
		}
		keys, _, _ := strings.Cut(issuer.JWKS, "?")
		if issuer.JWKS == "" {
			continue
		}
		if why := accesstoken.CheckURL(keys); why != "" {
			k.bad(at+".jwks_uri", "", "%s", why)
		} else if strings.HasPrefix(issuer.URL, "https:") && !strings.HasPrefix(keys, "https:") {
			k.bad(at+".jwks_uri", "", "it must begin with https://, like the issuer")
		}
	}
	for _, name := range k.order[p+".endpoints"] {
		if name != AllEndpoint && !slices.Contains(k.order["gateway.endpoints"], name) {
			k.bad(p+".endpoints."+name, k.known("gateway.endpoints"), "no endpoint '%s'", name)
		}
		for j, scope := range o.Endpoints[name].Scopes {
			if !isScope(scope) {
				k.bad(tree.Index(p+".endpoints."+name+".scopes", j), "", "not a scope of OAuth")
			}
		}
	}
}

// isScope reports whether a text is a scope token (RFC 6749, section 3.3), which needs no quoting in a header.
func isScope(s string) bool {
	return s != "" && !strings.ContainsFunc(s, func(r rune) bool {
		return r <= ' ' || r > '~' || r == '"' || r == '\\'
	})
}
