package httpapi_test

import (
	"cmp"
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/host"
	"github.com/tenonhq/tenon/httpapi"
)

const (
	ownToken  = "own-token-0123456789"
	annaToken = "anna-token-0123456789"
)

// guarded returns the configuration that tenon serve uses over TCP.
func guarded() httpapi.Config {
	return httpapi.Config{Guarded: true, Gateway: noGateway{}, Hosts: []string{"tenon"}, Origins: []string{"https://tools.example.com"},
		Authenticate: httpapi.Tokens(tenon.NewSecret(ownToken), map[tenon.Principal]tenon.Secret{"anna": tenon.NewSecret(annaToken)})}
}

// noGateway answers MCP clients with an empty response. The routes are tested in package gateway.
type noGateway struct{}

func (noGateway) ServeMCP(w http.ResponseWriter, _ *http.Request, _ []byte, _ tenon.Principal, _ host.Credentials) {
	w.WriteHeader(http.StatusAccepted)
}

func (noGateway) Clients() []host.GatewayClient { return nil }

func (noGateway) SignIn(string) (host.SignInLink, error) { return host.SignInLink{}, errNoLink }

func (noGateway) BeginSignIn(context.Context, string, tenon.Principal) (address, browser string, err error) {
	return "", "", errNoLink
}

func (noGateway) EndSignIn(context.Context, url.Values, func(host.SignInLink) string) (host.SignInLink, error) {
	return host.SignInLink{}, errNoLink
}

var errNoLink = tenon.Errorf(tenon.CodeNotFound, "no link")

// fill replaces the placeholders in the pattern of a route by ids.
func fill(pattern string) string {
	return strings.NewReplacer("{id}", "run_none", "{name}", "none", "{artifact}", "none", "{model}", "none", "{endpoint}", "none", "{ticket}", "none").Replace(pattern)
}

// guardRequest is a request that a route accepts or refuses.
type guardRequest struct {
	header map[string]string
	host   string
	body   string
	length int64 // Content-Length; 0: the length of the body, -1: unknown
}

// asOwner returns headers with the owner's token and additional headers.
func asOwner(kv ...string) map[string]string {
	h := map[string]string{"Authorization": "Bearer " + ownToken}
	for i := 0; i < len(kv); i += 2 {
		h[kv[i]] = kv[i+1]
	}
	return h
}

// onlyWithBody returns status if the route takes a body, otherwise the other status. A route that reads no body accepts
// every request.
func onlyWithBody(r httpapi.Route, status, otherwise int) int {
	if r.Bodiless {
		return 200
	}
	if r.Method == http.MethodGet {
		return otherwise
	}
	return status
}

// onlyJSON returns status, or 415 if the route takes a body that is no JSON.
func onlyJSON(r httpapi.Route, status int) int {
	if r.Bodiless {
		return 200
	}
	if r.Raw {
		return http.StatusUnsupportedMediaType
	}
	return status
}

// guardCases are requests with the status that a route must return.
var guardCases = map[string]struct {
	guardRequest
	want func(httpapi.Route) int
}{
	"no token":            {guardRequest{}, func(httpapi.Route) int { return 401 }},
	"wrong token":         {guardRequest{header: map[string]string{"Authorization": "Bearer wrong-token-0123456789"}}, func(httpapi.Route) int { return 401 }},
	"empty token":         {guardRequest{header: map[string]string{"Authorization": "Bearer "}}, func(httpapi.Route) int { return 401 }},
	"basic":               {guardRequest{header: map[string]string{"Authorization": "Basic " + ownToken}}, func(httpapi.Route) int { return 401 }},
	"two schemes":         {guardRequest{header: map[string]string{"Authorization": "Bearer, Bearer " + ownToken}}, func(httpapi.Route) int { return 401 }},
	"bad Host":            {guardRequest{header: asOwner(), host: "evil.example"}, func(httpapi.Route) int { return 403 }},
	"our name in a Host":  {guardRequest{header: asOwner(), host: "127.0.0.1.evil.example"}, func(httpapi.Route) int { return 403 }},
	"another's address":   {guardRequest{header: asOwner(), host: "10.1.2.3:8420"}, func(httpapi.Route) int { return 403 }},
	"bad Origin":          {guardRequest{header: asOwner("Origin", "http://evil.example")}, func(httpapi.Route) int { return 403 }},
	"null Origin":         {guardRequest{header: asOwner("Origin", "null")}, func(httpapi.Route) int { return 403 }},
	"another port":        {guardRequest{header: asOwner("Origin", "http://127.0.0.1:9999")}, func(httpapi.Route) int { return 403 }},
	"another scheme":      {guardRequest{header: asOwner("Origin", "ftp://127.0.0.1:8420")}, func(httpapi.Route) int { return 403 }},
	"cross-site no-cors":  {guardRequest{header: asOwner("Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "no-cors")}, func(httpapi.Route) int { return 403 }},
	"plain text":          {guardRequest{header: asOwner("Content-Type", "text/plain"), body: `{"a":1}`}, func(r httpapi.Route) int { return onlyWithBody(r, 415, 400) }},
	"a form":              {guardRequest{header: asOwner("Content-Type", "application/x-www-form-urlencoded"), body: "a=1"}, func(r httpapi.Route) int { return onlyWithBody(r, 415, 400) }},
	"no type":             {guardRequest{header: asOwner(), body: `{"a":1}`}, func(r httpapi.Route) int { return onlyWithBody(r, 415, 400) }},
	"an empty form":       {guardRequest{header: asOwner("Content-Type", "multipart/form-data; boundary=x")}, func(r httpapi.Route) int { return onlyWithBody(r, 415, 200) }},
	"oversized":           {guardRequest{header: asOwner("Content-Type", "application/json"), body: "{}", length: 17 << 20}, func(r httpapi.Route) int { return onlyJSON(r, 413) }},
	"oversized in chunks": {guardRequest{header: asOwner("Content-Type", "application/json"), body: `"` + strings.Repeat("x", 16<<20) + `"`, length: -1}, func(r httpapi.Route) int { return onlyJSON(r, onlyWithBody(r, 413, 400)) }},
	"malformed":           {guardRequest{header: asOwner("Content-Type", "application/json"), body: `{"a":`}, func(r httpapi.Route) int { return onlyJSON(r, 400) }},
	"two values":          {guardRequest{header: asOwner("Content-Type", "application/json"), body: `{}{}`}, func(r httpapi.Route) int { return onlyJSON(r, 400) }},
	"deep":                {guardRequest{header: asOwner("Content-Type", "application/json"), body: strings.Repeat(`{"a":[`, 200) + strings.Repeat("]}", 200)}, func(r httpapi.Route) int { return onlyJSON(r, 400) }},
	"not UTF-8":           {guardRequest{header: asOwner("Content-Type", "application/json"), body: "{\"a\":\"\xff\"}"}, func(r httpapi.Route) int { return onlyJSON(r, 400) }},
}

// guardedRoutes are all routes of a host. It counts the requests that reach a handler.
type guardedRoutes struct {
	handler http.Handler
	reached int
}

func (g *guardedRoutes) ask(t *testing.T, method, path string, r guardRequest) (int, http.Header) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, "http://127.0.0.1:8420"+path, strings.NewReader(r.body))
	if err != nil {
		t.Fatal(err)
	}
	req.ContentLength = cmp.Or(r.length, req.ContentLength)
	for k, v := range r.header {
		req.Header.Set(k, v)
	}
	req.Host = cmp.Or(r.host, req.Host)
	w := httptest.NewRecorder()
	g.handler.ServeHTTP(w, req)
	return w.Code, w.Header()
}

// TestEveryRouteIsGuarded sends to every route requests that must be refused before they reach a handler, and then
// requests that must be accepted.
func TestEveryRouteIsGuarded(t *testing.T) {
	h, _, _ := serve(t)
	g := &guardedRoutes{}
	g.handler = httpapi.Counted(h, guarded(), func() { g.reached++ })
	for _, r := range httpapi.Routes() {
		t.Run(r.Method+r.Pattern, func(t *testing.T) { g.check(t, r) })
	}
}

// check sends all requests to a route.
func (g *guardedRoutes) check(t *testing.T, r httpapi.Route) {
	for name, tt := range guardCases {
		want := tt.want(r)
		if want == 401 && r.Open {
			want = 200
		}
		g.reached = 0
		status, header := g.ask(t, r.Method, fill(r.Pattern), tt.guardRequest)
		if status != want || (g.reached > 0) != (want == 200) {
			t.Errorf("%s: status %d, want %d; %d handlers reached", name, status, want, g.reached)
		}
		if status == 401 && header.Get("WWW-Authenticate") == "" {
			t.Errorf("%s: a 401 without WWW-Authenticate", name)
		}
	}
	if r.Owner {
		g.reached = 0
		if status, _ := g.ask(t, r.Method, fill(r.Pattern), guardRequest{header: map[string]string{"Authorization": "Bearer " + annaToken}}); status != 403 || g.reached > 0 {
			t.Errorf("a route of the owner: status %d for another", status)
		}
	}
	for name, header := range map[string]map[string]string{"own page": asOwner("Origin", "http://127.0.0.1:8420"), "page that is allowed": asOwner("Origin", "https://tools.example.com"), "no page": asOwner()} {
		g.reached = 0
		if status, _ := g.ask(t, r.Method, fill(r.Pattern), guardRequest{header: header}); status != onlyJSON(r, 200) || (g.reached == 1) != (status == 200) {
			t.Errorf("%s: status %d", name, status)
		}
	}
	g.reached = 0
	status, _ := g.ask(t, r.Method, fill(r.Pattern)+"?access_token="+ownToken, guardRequest{header: map[string]string{"Content-Type": "application/json"}})
	if ok := r.Stream && r.Method == http.MethodGet && r.API != httpapi.MCP || r.Open; (status == 200) != ok || (g.reached == 1) != ok {
		t.Errorf("a token in the address: status %d", status)
	}
}

// TestOthersIDs checks every route with an id. The id of another user's object must get the same response, byte for
// byte, as an unknown id.
func TestOthersIDs(t *testing.T) {
	h, d, _ := serve(t)
	close(d.open)
	handler := httpapi.New(h, guarded())
	const js = "application/json"
	own := []string{"Authorization", "Bearer " + ownToken}
	anna := []string{"Authorization", "Bearer " + annaToken}
	_, _, body := request(t, handler, "POST", "/api/v1/runs", js, `{"question":"open","yes":"me"}`, own...)
	run := between(t, body, `"run":{"id":"`, `"`)
	session := between(t, body, `"session":"`, `"`)
	for _, err := range h.Runs().Events(t.Context(), run, 0) {
		if err != nil {
			t.Fatal(err)
		}
	}
	bodies := map[string]string{"/steer": `{"text":"x"}`, "/decide": `{"step":"1.0","verdict":"allow"}`, "PATCH": `{"title":"x"}`}
	tried := 0
	for _, r := range httpapi.Routes() {
		if !strings.Contains(r.Pattern, "{id}") || r.API == httpapi.ResearchAI { // there, the id names a server, which all users share
			continue
		}
		if r.Owner { // nobody else may use it, whatever the id
			continue
		}
		mine := run
		if strings.Contains(r.Pattern, "/sessions/") {
			mine = session
		}
		if strings.Contains(r.Pattern, "/approvals/") {
			mine += "%2F1.0"
		}
		body := ""
		for part, b := range bodies {
			if strings.HasSuffix(r.Pattern, part) || r.Method == part {
				body = b
			}
		}
		kind := ""
		if body != "" {
			kind = js
		}
		path := func(id string) string { return strings.NewReplacer("{id}", id, "{artifact}", "x").Replace(r.Pattern) }
		unknown := mine[:4] + "00000000000000000000" + mine[min(len(mine), 24):]
		status, _, got := request(t, handler, r.Method, path(mine), kind, body, anna...)
		status2, _, want := request(t, handler, r.Method, path(unknown), kind, body, anna...)
		if status != 404 || status2 != 404 || strings.ReplaceAll(got, mine[:24], "ID") != strings.ReplaceAll(want, unknown[:24], "ID") {
			t.Errorf("%s %s: %d %s, and of one that does not exist %d %s", r.Method, r.Pattern, status, got, status2, want)
		}
		tried++
	}
	if tried < 15 {
		t.Errorf("%d routes with ids", tried)
	}
	for path, what := range map[string]string{"/api/v1/runs": run, "/api/v1/sessions": session, "/api/v1/search?q=open": run} {
		if status, _, body := request(t, handler, "GET", path, "", "", anna...); status != 200 || strings.Contains(body, what) {
			t.Errorf("%s shows what is of another: %d %s", path, status, body)
		}
		if status, _, body := request(t, handler, "GET", path, "", "", own...); status != 200 || !strings.Contains(body, what) {
			t.Errorf("%s does not show what is one's own: %d %s", path, status, body)
		}
	}
	for _, q := range []string{`{"question":"x","session":"` + session + `"}`, `{"question":"x","session":"-1"}`, `{"question":"x","session":"` + session[:8] + `"}`} {
		if status, _, body := request(t, handler, "POST", "/api/v1/runs", js, q, anna...); status != 404 {
			t.Errorf("%s continues the session of another: %d %s", q, status, body)
		}
	}
	if status, _, body := request(t, handler, "POST", "/api/v1/runs", js, `{"question":"x","model":"script:/etc/passwd"}`, anna...); status != 403 {
		t.Errorf("a principal names a file: %d %s", status, body)
	}
}

func between(t *testing.T, s, from, to string) string {
	t.Helper()
	_, s, ok := strings.Cut(s, from)
	s, _, ok2 := strings.Cut(s, to)
	if !ok || !ok2 {
		t.Fatalf("%q has no %q", s, from)
	}
	return s
}

// TestSlowBody checks that a request ends if its body does not arrive, on a real connection.
func TestSlowBody(t *testing.T) {
	h, _, _ := serve(t)
	cfg := guarded()
	cfg.BodyTime = 50 * time.Millisecond
	s := httptest.NewServer(httpapi.New(h, cfg))
	defer s.Close()
	conn, err := net.Dial("tcp", s.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := io.WriteString(conn, "POST /api/v1/runs HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer "+ownToken+"\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{"); err != nil {
		t.Fatal(err)
	}
	if err := conn.SetDeadline(time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	b, err := io.ReadAll(conn) // returns when the server closes the connection
	if err != nil || !strings.HasPrefix(string(b), "HTTP/1.1 408 ") || !strings.Contains(string(b), "did not arrive") {
		t.Errorf("%s: %v", b, err)
	}
}

// TestGW_11_UnreadBody checks that the page of a sign-in cannot be sent a body before its user is known.
func TestGW_11_UnreadBody(t *testing.T) {
	h, _, _ := serve(t)
	read, body := io.Pipe() // a read from it would never end
	defer body.Close()
	req := httptest.NewRequest(http.MethodPost, "http://127.0.0.1:8420/sign-in/none", read)
	req.Header.Set("Content-Type", "application/json")
	w := httptest.NewRecorder()
	httpapi.New(h, guarded()).ServeHTTP(w, req)
	if w.Code != http.StatusNotFound {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}

// TestGW_11_MaskedPage checks that the page about a failed sign-in has no configured secret.
func TestGW_11_MaskedPage(t *testing.T) {
	h, _, _ := serve(t)
	h.Service().Callers().RegisterSecret(tenon.NewSecret("secret<&>0123456789"))
	cfg := guarded()
	cfg.Gateway = tellingGateway{}
	w := httptest.NewRecorder()
	httpapi.New(h, cfg).ServeHTTP(w, httptest.NewRequest(http.MethodGet, "http://127.0.0.1:8420/sign-in/callback", nil))
	if body := w.Body.String(); w.Code != http.StatusForbidden || !strings.Contains(body, "it says") ||
		strings.Contains(body, "0123456789") {
		t.Errorf("%d %s", w.Code, body)
	}
}

// tellingGateway fails sign-ins with a secret in the error.
type tellingGateway struct{ noGateway }

func (tellingGateway) EndSignIn(context.Context, url.Values, func(host.SignInLink) string) (host.SignInLink, error) {
	return host.SignInLink{}, tenon.Errorf(tenon.CodeAuth, "it says secret<&>0123456789")
}

// TestCallerWithoutPrincipal checks that a caller without a name is refused, whatever it may do.
func TestCallerWithoutPrincipal(t *testing.T) {
	h, err := host.Open(t.Context(), host.Config{Home: t.TempDir(), Model: host.DemoModel})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = h.Close() })
	for name, caller := range map[string]httpapi.Caller{"nobody": {}, "an owner": {Owner: true}, "all runs": {Any: true}} {
		t.Run(name, func(t *testing.T) {
			s := httpapi.New(h, httpapi.Config{Gateway: noGateway{},
				Authenticate: func(*http.Request) (httpapi.Caller, error) { return caller, nil }})
			for _, path := range []string{"/api/v1/runs", "/api/v1/sessions", "/mcp"} {
				w := httptest.NewRecorder()
				s.ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
				if w.Code != http.StatusUnauthorized {
					t.Errorf("%s: %d %s", path, w.Code, w.Body)
				}
			}
		})
	}
}
