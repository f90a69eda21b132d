package httpapi

import (
	"net/http"
	"slices"
	"strings"
)

// Cross-origin requests (Fetch standard, "CORS protocol"). Pages of the origins in [Config.Origins] may read answers.
// Requests from all other origins get 403. There is no "*" and no Access-Control-Allow-Credentials: a page sets the
// header with the token itself, so a browser never adds credentials that the page does not know.

const (
	// corsHeaders are the request headers that a page of a configured origin may set.
	corsHeaders = "Accept, Authorization, Content-Type, Idempotency-Key, If-None-Match, Last-Event-ID, " +
		"Mcp-Method, Mcp-Name, MCP-Protocol-Version, Mcp-Session-Id, " + CredentialsHeader
	// corsExposed are the headers of an answer that such a page may read.
	corsExposed = "Content-Disposition, ETag, Idempotency-Replayed, Location, Mcp-Session-Id, Retry-After, " +
		"Tenon-Run, " +
		BehindHeader + ", " + MissingHeader + ", " + IgnoredHeader + ", WWW-Authenticate, X-Should-Retry"
	// corsMaxAge is how long a browser keeps the answer to a preflight, in seconds.
	corsMaxAge = "600"
)

// isPreflight reports whether a request is a CORS preflight: a browser asks whether a page may send another request.
// The unix socket answers none, because browsers cannot reach it.
func (a *api) isPreflight(req *http.Request) bool {
	return a.cfg.Guarded && req.Method == http.MethodOptions && req.Header.Get("Origin") != "" &&
		req.Header.Get("Access-Control-Request-Method") != ""
}

// allowOrigin sets the headers that let a page of a configured origin read the answer. checkOrigin has already refused
// other origins. Our own pages are of the same origin and need no headers.
func (c *call) allowOrigin() {
	if o := c.req.Header.Get("Origin"); slices.Contains(c.cfg.Origins, o) {
		c.w.Header().Set("Access-Control-Allow-Origin", o)
		c.w.Header().Set("Access-Control-Expose-Headers", corsExposed)
	}
}

// preflightRoute returns the route that answers preflights for a path with these methods. It needs no token, because
// browsers send none with a preflight. Its answer contains only facts that openapi.json publishes anyway.
func preflightRoute(api string, methods []string) *route {
	return &route{api: api, traits: public | noBody, serve: func(c *call) error {
		head := c.w.Header()
		head.Add("Vary", "Access-Control-Request-Method, Access-Control-Request-Headers, "+
			"Access-Control-Request-Private-Network")
		head.Set("Allow", strings.Join(methods, ", "))
		if head.Get("Access-Control-Allow-Origin") != "" {
			head.Set("Access-Control-Allow-Methods", strings.Join(methods, ", "))
			head.Set("Access-Control-Allow-Headers", corsHeaders)
			head.Set("Access-Control-Max-Age", corsMaxAge)
			if c.req.Header.Get("Access-Control-Request-Private-Network") == "true" {
				head.Set("Access-Control-Allow-Private-Network", "true") // the owner named the origin
			}
		}
		head.Del("Connection")
		c.w.WriteHeader(http.StatusNoContent)
		return nil
	}}
}
