package httpapi

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/config"
	"github.com/tenonhq/tenon/internal/accesstoken"
)

// resourceMetadata is the prefix of the paths of the metadata of protected resources (RFC 9728, section 3.1).
const resourceMetadata = "/.well-known/oauth-protected-resource"

// OAuth checks the access tokens of serve.auth.oauth. All handlers of a process share one value, so that a reload of
// the configuration does not fetch the keys of issuers again. The zero value is usable.
type OAuth struct {
	// Keys are the keys of issuers.
	Keys accesstoken.Keys
}

// scopeError is the error about a token that lacks scopes of its endpoint (RFC 6750, section 3.1).
type scopeError struct {
	error
	scopes []string
}

func (e scopeError) Unwrap() error { return e.error }

// oauth returns serve.auth.oauth if access tokens are accepted at the route of the request, otherwise nil.
func (c *call) oauth() *config.ServeOAuth {
	if c.cfg.OAuth == nil || c.route.api != MCP {
		return nil
	}
	if o := &c.h.Service().Info().Config.Serve.Auth.OAuth; o.IsOn() {
		return o
	}
	return nil
}

// endpoint returns the requirements for tokens of a gateway endpoint, and its address. The name "" denotes /mcp. ok is
// false if there is no such endpoint.
func (a *api) endpoint(o *config.ServeOAuth, name string) (e config.OAuthEndpoint, address string, ok bool) {
	address = o.URL + "/mcp"
	endpoints := a.h.Service().Info().Config.Gateway.Endpoints
	key := name
	if name == "" {
		if _, taken := endpoints[config.AllEndpoint]; !taken {
			key = config.AllEndpoint
		}
	} else if _, ok = endpoints[name]; !ok {
		return e, "", false
	} else {
		address += "/" + url.PathEscape(name)
	}
	if key != "" {
		e = o.Endpoints[key]
	}
	e.Audience = cmp.Or(e.Audience, address)
	return e, address, true
}

// accessToken identifies the sender of a request by an access token. cause is the error of the other authentication.
// accessToken returns cause if the request contains no access token.
func (c *call) accessToken(o *config.ServeOAuth, cause error) (Caller, error) {
	scheme, token, _ := strings.Cut(c.req.Header.Get("Authorization"), " ")
	if !strings.EqualFold(scheme, "Bearer") || strings.Count(token, ".") != 2 {
		return Caller{}, cause
	}
	want, address, ok := c.endpoint(o, c.req.PathValue("endpoint"))
	if !ok { // the same error as for a wrong token, so that nobody can find out the names of endpoints
		return Caller{}, tenon.Errorf(tenon.CodeAuth, "the access token is refused: it is not for this endpoint")
	}
	t, err := c.cfg.OAuth.Keys.Check(c.ctx(), o.Accepted(), token, want.Audience)
	if err != nil {
		if tenon.ErrorCode(err) == tenon.CodeUnreachable {
			err = refuse(http.StatusServiceUnavailable, tenon.CodeUnreachable, "%w", err)
		}
		return Caller{}, err
	}
	for _, scope := range want.Scopes {
		if !slices.Contains(t.Scopes, scope) {
			return Caller{}, scopeError{refuse(http.StatusForbidden, tenon.CodeDenied,
				"%s needs a token with the scopes %s; this one lacks %s", address, strings.Join(want.Scopes, ", "),
				scope), want.Scopes}
		}
	}
	return Caller{Principal: principalOf(t), until: t.Expires, access: tenon.NewSecret(token), issuer: t.Issuer}, nil
}

// principalOf returns the principal of a token. Two different pairs of issuer and subject never have the same
// principal, because an issuer has no fragment and # is escaped in the subject. The names in serve.auth.tokens contain
// no colon.
func principalOf(t accesstoken.Token) tenon.Principal {
	return tenon.Principal(t.Issuer + "#" + url.PathEscape(t.Subject))
}

// challenge returns the header WWW-Authenticate for an error of a request (RFC 6750, RFC 9728, section 5.1).
func (c *call) challenge(err error) string {
	o := c.oauth()
	if o == nil {
		return `Bearer realm="tenon"`
	}
	parts := []string{`realm="tenon"`}
	var lacks scopeError
	switch {
	case errors.As(err, &lacks):
		parts = append(parts, `error="insufficient_scope"`)
	case c.req.Header.Get("Authorization") != "":
		parts = append(parts, `error="invalid_token"`)
	}
	want, address, ok := c.endpoint(o, c.req.PathValue("endpoint"))
	if u, err := url.Parse(address); err == nil && ok {
		parts = append(parts, fmt.Sprintf(`resource_metadata="%s://%s%s%s"`, u.Scheme, u.Host, resourceMetadata,
			u.EscapedPath()))
		if len(want.Scopes) > 0 {
			parts = append(parts, fmt.Sprintf(`scope="%s"`, strings.Join(want.Scopes, " ")))
		}
	}
	return "Bearer " + strings.Join(parts, ", ")
}

// resource answers with the metadata of an endpoint as a protected resource (RFC 9728, section 2).
func (c *call) resource() error {
	unknown := tenon.Errorf(tenon.CodeNotFound, "there is no metadata at %s", c.req.URL.Path)
	o := c.oauth()
	if o == nil {
		return unknown
	}
	name := c.req.PathValue("endpoint")
	want, address, ok := c.endpoint(o, name)
	if !ok {
		return unknown
	}
	var issuers []string
	for _, i := range o.Issuers {
		issuers = append(issuers, i.URL)
	}
	return c.answer(http.StatusOK, struct {
		Resource string   `json:"resource"`
		Servers  []string `json:"authorization_servers"`
		Scopes   []string `json:"scopes_supported,omitempty"`
		Methods  []string `json:"bearer_methods_supported"`
		Name     string   `json:"resource_name"`
	}{address, issuers, want.Scopes, []string{"header"}, strings.TrimSpace("tenon " + name)})
}

// untilExpiry ends a stream of notifications when the token of its client expires. Calls under way may end.
func (c *call) untilExpiry() (stop func()) {
	if c.caller.until.IsZero() || c.req.Method != http.MethodGet &&
		c.req.Header.Get("Mcp-Method") != "subscriptions/listen" {
		return func() {}
	}
	ctx, cancel := context.WithDeadline(c.req.Context(), c.caller.until)
	c.req = c.req.WithContext(ctx)
	return cancel
}

// publicHost returns the host name in serve.auth.oauth.url. It returns "" if the key is not set.
func publicHost(o *config.ServeOAuth) string {
	u, err := url.Parse(o.URL)
	if err != nil || !o.IsOn() {
		return ""
	}
	return u.Hostname()
}

// withoutPrefix removes the path of the public URL from a request for metadata. Clients insert this path (RFC 9728,
// section 3.1), and a proxy that removes it from other paths may not remove it here. Other requests are returned
// unchanged.
func (a *api) withoutPrefix(req *http.Request) *http.Request {
	o := &a.h.Service().Info().Config.Serve.Auth.OAuth
	if a.cfg.OAuth == nil || !o.IsOn() || !strings.HasPrefix(req.URL.Path, resourceMetadata) {
		return req
	}
	u, err := url.Parse(o.URL)
	if err != nil || u.Path == "" {
		return req
	}
	rest, ok := strings.CutPrefix(req.URL.Path, resourceMetadata+u.Path+"/")
	if !ok {
		return req
	}
	short := req.Clone(req.Context())
	short.URL.Path, short.URL.RawPath = resourceMetadata+"/"+rest, ""
	return short
}
