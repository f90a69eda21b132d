// Package authserver is an OAuth authorization server together with the MCP resource that it protects, for
// tests of the sign-in. It checks the requests of a client, records them, and misbehaves on demand.
//
// Like internal/testserver, it is not part of the product: it is the other side of servers/oauth. A user
// signs in by following a redirect, so tests need no browser. Tokens are only valid in its maps. Each fault
// is a field, so that a test reads like the sentence "a server whose metadata names another issuer". Set the
// fields before the first request.
//
// Access to the server is safe from any goroutine. It listens on the loopback interface and uses plain HTTP,
// with the authorization server and the resource on one port.
//
// Nothing in the product imports it.
package authserver

import (
	"cmp"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
)

// Server is the authorization server and the resource on one loopback port.
type Server struct {
	URL      string       // MCP endpoint
	Issuer   string       // authorization server
	Protects http.Handler // handles requests with a valid token; if nil, the response is 200 and {}

	// Faults and options. The zero value is a correct server.
	Metadata    map[string]any   // changes to the metadata of the authorization server; nil values remove a key
	Resource    map[string]any   // changes to the metadata of the protected resource
	NoResource  bool             // there is no protected resource metadata
	NoPointer   bool             // the challenge does not contain the URL of the metadata
	Pointer     string           // the challenge contains this URL instead
	Answer      func(url.Values) // changes the query of the redirect
	Token       func(form url.Values, answer map[string]any) (status int)
	Scope       string // scope in the first challenge
	Demand      string // required scope; without it, the response is 403
	AlwaysStep  bool   // respond 403 insufficient_scope to every token
	ExpiresIn   int    // seconds; 0 to omit
	KeepRefresh bool   // refresh tokens are not rotated
	NoRefresh   bool
	Exchanges   bool // tokens of others are exchanged (RFC 8693)
	// ExchangeAt, if set, is where requests for an exchange are sent on with status 307.
	ExchangeAt string
	NoMetadata bool // there is no metadata of the authorization server
	Appended   bool // behind a base path, the metadata are below it and not at the root

	base string
	http *httptest.Server
	mu   sync.Mutex
	seen []string
	// forms holds the forms posted to the token endpoint, in order, with the Authorization header as "_auth".
	forms    []url.Values
	register []map[string]any
	codes    map[string]url.Values
	tokens   map[string]string // access token → scope
	refresh  map[string]string // refresh token → scope
	owners   map[string]string // refresh token → id of the client to which it was given
	n        int
}

// Start starts the server. The caller must call Close.
func Start() *Server {
	s := &Server{codes: map[string]url.Values{}, tokens: map[string]string{}, refresh: map[string]string{},
		owners: map[string]string{}}
	s.http = httptest.NewServer(s)
	s.Issuer, s.URL = s.http.URL, s.http.URL+"/mcp"
	return s
}

// Mount moves all endpoints behind a path prefix such as "/base", as a reverse proxy does. The metadata of the
// authorization server are at /.well-known/oauth-authorization-server/base (RFC 8414, section 3.1).
func (s *Server) Mount(base string) {
	s.base = base
	s.Issuer = s.http.URL + base
	s.URL = s.Issuer + "/mcp"
}

// path returns the path of a request without the prefix, or "" if the endpoint is elsewhere.
func (s *Server) path(r *http.Request) string {
	const metadata = "/.well-known/oauth-authorization-server"
	path, ok := strings.CutPrefix(r.URL.Path, s.base)
	switch {
	case s.base == "":
		return path
	case r.URL.Path == metadata+s.base:
		return map[bool]string{false: metadata}[s.Appended]
	case !ok, path == metadata && !s.Appended:
		return ""
	}
	return path
}

// Close stops the server.
func (s *Server) Close() { s.http.Close() }

// Seen returns the requests as "METHOD PATH", in order.
func (s *Server) Seen() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.seen)
}

// Forms returns the forms posted to the token endpoint.
func (s *Server) Forms() []url.Values {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.forms)
}

// Registrations returns the client metadata of all registrations.
func (s *Server) Registrations() []map[string]any {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.register)
}

// Revoke invalidates all access tokens and, if all is true, all refresh tokens.
func (s *Server) Revoke(all bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.tokens)
	if all {
		clear(s.refresh)
	}
}

// Require sets Demand while the server is in use.
func (s *Server) Require(scope string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.Demand = scope
}

// ServeHTTP implements [http.Handler] for all endpoints.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.seen = append(s.seen, r.Method+" "+r.URL.Path)
	switch s.path(r) {
	case "/.well-known/oauth-protected-resource/mcp":
		if s.NoResource {
			http.NotFound(w, r)
			return
		}
		reply(w, 200, changed(map[string]any{"resource": s.URL, "authorization_servers": []string{s.Issuer}},
			s.Resource))
	case "/.well-known/oauth-authorization-server":
		if s.NoMetadata {
			http.NotFound(w, r)
			return
		}
		reply(w, 200, changed(map[string]any{"issuer": s.Issuer,
			"authorization_endpoint": s.Issuer + "/authorize", "token_endpoint": s.Issuer + "/token",
			"registration_endpoint": s.Issuer + "/register", "revocation_endpoint": s.Issuer + "/revoke",
			"code_challenge_methods_supported": []string{"S256"}}, s.Metadata))
	case "/register":
		var m map[string]any
		_ = json.NewDecoder(r.Body).Decode(&m)
		s.register = append(s.register, m)
		reply(w, 201, map[string]any{"client_id": fmt.Sprintf("client-%d", len(s.register)),
			"token_endpoint_auth_method": m["token_endpoint_auth_method"]})
	case "/authorize":
		s.authorize(w, r)
	case "/token":
		s.grant(w, r)
	case "/revoke":
		_ = r.ParseForm()
		delete(s.tokens, r.Form.Get("token"))
		delete(s.refresh, r.Form.Get("token"))
	case "/mcp":
		s.protect(w, r)
	default:
		http.NotFound(w, r)
	}
}

func (s *Server) authorize(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	s.n++
	code := fmt.Sprintf("code-%d", s.n)
	s.codes[code] = q
	back := url.Values{"code": {code}, "state": {q.Get("state")}}
	if s.Answer != nil {
		s.Answer(back)
	}
	http.Redirect(w, r, q.Get("redirect_uri")+"?"+back.Encode(), http.StatusFound)
}

func (s *Server) grant(w http.ResponseWriter, r *http.Request) {
	_ = r.ParseForm()
	f := r.PostForm
	if a := r.Header.Get("Authorization"); a != "" {
		f.Set("_auth", a)
	}
	s.forms = append(s.forms, f)
	if s.ExchangeAt != "" && strings.HasSuffix(f.Get("grant_type"), ":token-exchange") {
		http.Redirect(w, r, s.ExchangeAt, http.StatusTemporaryRedirect)
		return
	}
	scope, ok := "", false
	switch f.Get("grant_type") {
	case "authorization_code":
		q := s.codes[f.Get("code")]
		sum := sha256.Sum256([]byte(f.Get("code_verifier")))
		ok = q != nil && q.Get("code_challenge") == base64.RawURLEncoding.EncodeToString(sum[:]) &&
			q.Get("code_challenge_method") == "S256" && q.Get("redirect_uri") == f.Get("redirect_uri") &&
			q.Get("resource") == f.Get("resource") && q.Get("client_id") == clientOf(r)
		scope = q.Get("scope")
		delete(s.codes, f.Get("code"))
	case "refresh_token":
		scope, ok = s.refresh[f.Get("refresh_token")]
		ok = ok && s.owners[f.Get("refresh_token")] == clientOf(r) // RFC 6749, section 6
		if ok && !s.KeepRefresh {
			delete(s.refresh, f.Get("refresh_token"))
		}
	case "client_credentials":
		scope, ok = f.Get("scope"), true
	case "urn:ietf:params:oauth:grant-type:token-exchange":
		scope, ok = f.Get("scope"), s.Exchanges && f.Get("subject_token") != "" &&
			f.Get("subject_token_type") == "urn:ietf:params:oauth:token-type:access_token"
	}
	if !ok {
		reply(w, 400, map[string]any{"error": "invalid_grant", "error_description": "the grant is invalid"})
		return
	}
	s.n++
	answer := map[string]any{"access_token": fmt.Sprintf("access-token-%d", s.n), "token_type": "Bearer"}
	if f.Get("grant_type") != "client_credentials" && !s.NoRefresh &&
		!(s.KeepRefresh && f.Get("grant_type") == "refresh_token") {
		answer["refresh_token"] = fmt.Sprintf("refresh-token-%d", s.n)
		s.refresh[fmt.Sprintf("refresh-token-%d", s.n)] = scope
		s.owners[fmt.Sprintf("refresh-token-%d", s.n)] = clientOf(r)
	}
	if s.ExpiresIn > 0 {
		answer["expires_in"] = s.ExpiresIn
	}
	s.tokens[fmt.Sprintf("access-token-%d", s.n)] = scope
	status := 200
	if s.Token != nil {
		status = s.Token(f, answer)
	}
	reply(w, status, answer)
}

// clientOf returns the id of the client that sends a token request.
func clientOf(r *http.Request) string {
	if id, _, ok := r.BasicAuth(); ok {
		id, _ = url.QueryUnescape(id) // RFC 6749, section 2.3.1
		return id
	}
	return r.PostForm.Get("client_id")
}

func (s *Server) protect(w http.ResponseWriter, r *http.Request) {
	token, _ := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	scope, ok := s.tokens[token]
	challenge := "Bearer"
	if !s.NoPointer {
		at := cmp.Or(s.Pointer, s.Issuer+"/.well-known/oauth-protected-resource/mcp")
		challenge += fmt.Sprintf(` resource_metadata=%q`, at)
	}
	switch {
	case !ok:
		if s.Scope != "" {
			challenge += fmt.Sprintf(`, scope=%q`, s.Scope)
		}
		w.Header().Set("WWW-Authenticate", challenge)
		http.Error(w, "sign in", http.StatusUnauthorized)
	case s.AlwaysStep, s.Demand != "" && !slices.Contains(strings.Fields(scope), s.Demand):
		w.Header().Set("WWW-Authenticate", challenge+fmt.Sprintf(`, error="insufficient_scope", scope=%q`, s.Demand))
		http.Error(w, "more", http.StatusForbidden)
	case s.Protects != nil:
		h := s.Protects
		s.mu.Unlock() // the handler may take long
		defer s.mu.Lock()
		h.ServeHTTP(w, r)
	default:
		reply(w, 200, map[string]any{})
	}
}

func changed(m, by map[string]any) map[string]any {
	for k, v := range by {
		if v == nil {
			delete(m, k)
			continue
		}
		m[k] = v
	}
	return m
}

func reply(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v) // fails if the client has gone
}

var _ http.Handler = (*Server)(nil)
