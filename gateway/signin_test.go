package gateway_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/gateway"
	"github.com/tenonhq/tenon/internal/authserver"
	"github.com/tenonhq/tenon/internal/rawjson"
	"github.com/tenonhq/tenon/mcp"
)

// accounts is an MCP server with OAuth behind the gateway. It records the tokens with which tools are called.
type accounts struct {
	*authserver.Server
	mu     sync.Mutex
	tokens []string
}

// serveAccounts starts the server. Its own listing uses the grant client_credentials.
func serveAccounts(t *testing.T) *accounts {
	t.Helper()
	s, err := mcp.NewServer(mcp.ServerConfig{Name: "accounts", Tools: []mcp.ServerTool{echoTool}, Completions: true,
		Offers: libraryOffers("acc")})
	if err != nil {
		t.Fatal(err)
	}
	a := &accounts{Server: authserver.Start()}
	t.Cleanup(a.Close)
	protected := s.HTTP(mcp.HTTPConfig{})
	a.Protects = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		if rawjson.String(rawjson.Field(b, "method")) == "tools/call" {
			a.mu.Lock()
			a.tokens = append(a.tokens, strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer "))
			a.mu.Unlock()
		}
		r.Body = io.NopCloser(bytes.NewReader(b))
		protected.ServeHTTP(w, r)
	})
	return a
}

// called returns the tokens of the calls of tools so far.
func (a *accounts) called() []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return append([]string{}, a.tokens...)
}

// openAccounts opens a gateway in front of the server.
func openAccounts(t *testing.T, a *accounts, auth, callers, more string) *world {
	t.Helper()
	return openWith(t, accountsConfig(a, auth, callers, more),
		map[string]string{"secret.txt": "secret-of-tenon-0123456789"})
}

func accountsConfig(a *accounts, auth, callers, more string) string {
	return "servers: {up: {url: '" + a.URL + "', auth: {type: oauth, grant: client_credentials, client_id: tenon, " +
		"client_secret: {file: secret.txt}, " + auth + "}, caller_credentials: {" + callers + "}}}\n" + more
}

// browser is a person's browser, which follows no redirect by itself.
type browser struct{ *http.Client }

func newBrowser(t *testing.T) browser {
	t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	return browser{&http.Client{Jar: jar, CheckRedirect: func(*http.Request, []*http.Request) error {
		return http.ErrUseLastResponse
	}}}
}

// visit sends a request and returns the status, the address of a redirect, and the body.
func (b browser) visit(t *testing.T, method, address, token string) (status int, to, body string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, address, nil)
	if err != nil {
		t.Fatal(err)
	}
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	res, err := b.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res.StatusCode, res.Header.Get("Location"), string(text)
}

// begin uses a link, and returns the address at which the authorization server sends the browser back.
func (b browser) begin(t *testing.T, link, token string) (callback string) {
	t.Helper()
	status, _, body := b.visit(t, http.MethodPost, link, token)
	var to struct{ Address string }
	if err := json.Unmarshal([]byte(body), &to); err != nil || status != http.StatusOK {
		t.Fatalf("%d %s", status, body)
	}
	status, callback, body = b.visit(t, http.MethodGet, to.Address, "")
	if status != http.StatusFound {
		t.Fatalf("the authorization server: %d %s", status, body)
	}
	return callback
}

// linkOf returns the link that a call gives to a client that visits URLs.
func linkOf(t *testing.T, c *mcp.Client) string {
	t.Helper()
	r, err := c.Call(t.Context(), tenon.Call{Tool: "echo"})
	if err != nil || r.Input == nil {
		t.Fatalf("the client is not asked to sign in: %v, %v", r, err)
	}
	for _, request := range rawjson.Members(r.Input.Requests) {
		params := rawjson.Field(request, "params")
		if rawjson.String(rawjson.Field(params, "mode")) == "url" {
			return rawjson.String(rawjson.Field(params, "url"))
		}
	}
	t.Fatalf("no address: %s", r.Input.Requests)
	return ""
}

func visitsURLs(c *mcp.ClientConfig) { c.Answers = mcp.Answers{URL: true} }

// TestGW_11_SignInByURL checks the sign-in of principals to a server, by clients of both eras: who may use the link, and
// that the tokens are used for calls of that principal only.
func TestGW_11_SignInByURL(t *testing.T) {
	for name, era := range eras {
		t.Run(name, func(t *testing.T) {
			a := serveAccounts(t)
			w := openAccounts(t, a, "", "sign_in: true", "")
			anna := w.client(t, era, annaToken, visitsURLs)
			link := linkOf(t, anna)
			if !strings.HasPrefix(link, strings.TrimSuffix(w.url, "/mcp")+"/sign-in/") || linkOf(t, anna) != link {
				t.Errorf("the link is not of tenon, or not the same for the next call: %s", link)
			}
			hers, foreign := newBrowser(t), newBrowser(t)
			if status, _, body := hers.visit(t, http.MethodGet, link, ""); status != 200 || !strings.Contains(body, "<b>anna</b>") {
				t.Errorf("the page: %d %s", status, body)
			}
			for who, token := range map[string]string{"bert": bertToken, "the owner": ownToken} {
				if status, _, body := foreign.visit(t, http.MethodPost, link, token); status != http.StatusForbidden {
					t.Errorf("the browser of %s: %d %s", who, status, body)
				}
			}
			for _, token := range []string{"", "unknown"} {
				if status, _, _ := foreign.visit(t, http.MethodPost, link, token); status != http.StatusUnauthorized {
					t.Errorf("token '%s': %d", token, status)
				}
			}
			callback := hers.begin(t, link, annaToken)
			if status, _, _ := foreign.visit(t, http.MethodGet, callback, ""); status != http.StatusForbidden {
				t.Errorf("another browser comes back: %d", status)
			}
			if status, _, body := hers.visit(t, http.MethodGet, callback, ""); status != 200 || !strings.Contains(body, "Signed in") {
				t.Fatalf("%d %s", status, body)
			}
			for _, again := range []struct{ method, address, token string }{{http.MethodGet, callback, ""},
				{http.MethodGet, link, ""}, {http.MethodPost, link, annaToken}} {
				if status, _, _ := hers.visit(t, again.method, again.address, again.token); status != http.StatusNotFound {
					t.Errorf("%s %s again: %d", again.method, again.address, status)
				}
			}
			call := func(c *mcp.Client) {
				t.Helper()
				if r, err := c.Call(t.Context(), tenon.Call{Tool: "echo"}); err != nil || r.IsError || r.Input != nil {
					t.Fatalf("after the sign-in: %+v, %v", r, err)
				}
			}
			call(anna)
			bert := w.client(t, era, bertToken, visitsURLs)
			callback = foreign.begin(t, linkOf(t, bert), bertToken)
			if status, _, body := foreign.visit(t, http.MethodGet, callback, ""); status != 200 {
				t.Fatalf("%d %s", status, body)
			}
			call(bert)
			call(anna)
			call(w.client(t, era, ownToken)) // the owner has the credentials of the entry
			used := a.called()
			if len(used) != 4 || used[0] != used[2] || used[0] == used[1] || used[3] == used[0] || used[3] == used[1] {
				t.Errorf("the calls were made with %q", used)
			}
		})
	}
}

// TestGW_11_OtherClients checks the answers to clients that cannot show a URL, or that declined it.
func TestGW_11_OtherClients(t *testing.T) {
	a := serveAccounts(t)
	w := openAccounts(t, a, "", "sign_in: true", "")
	for name, era := range eras {
		r, err := w.client(t, era, annaToken).Call(t.Context(), tenon.Call{Tool: "echo"})
		if err != nil || !r.IsError || !strings.Contains(r.Content[0].Text, w.url[:len(w.url)-len("/mcp")]+"/sign-in/") {
			t.Errorf("%s: %+v, %v", name, r, err)
		}
	}
	c := w.client(t, mcp.Modern, annaToken, visitsURLs)
	r, err := c.Call(t.Context(), tenon.Call{Tool: "echo", Input: &tenon.InputAnswer{
		Responses: json.RawMessage(`{"tenonhq.github.io/sign-in":{"action":"decline"}}`)}})
	if err != nil || !r.IsError || r.Input != nil {
		t.Errorf("declined: %+v, %v", r, err)
	}
	if len(a.called()) != 0 {
		t.Errorf("the server was called: %q", a.called())
	}
}

// TestGW_11_ExpiredLink checks that links and sign-ins end after ten minutes, and that a new link ends the sign-in of an
// older one.
func TestGW_11_ExpiredLink(t *testing.T) {
	a := serveAccounts(t)
	w := openAccounts(t, a, "", "sign_in: true", "")
	var mu sync.Mutex
	now := time.Now()
	gateway.SetSignInTime(w.gate, func() time.Time { mu.Lock(); defer mu.Unlock(); return now })
	pass := func(d time.Duration) { mu.Lock(); defer mu.Unlock(); now = now.Add(d) }
	anna, hers := w.client(t, mcp.Modern, annaToken, visitsURLs), newBrowser(t)
	old := linkOf(t, anna)
	pass(10 * time.Minute)
	for _, method := range []string{http.MethodGet, http.MethodPost} {
		if status, _, body := hers.visit(t, method, old, annaToken); status != http.StatusNotFound {
			t.Errorf("%s after ten minutes: %d %s", method, status, body)
		}
	}
	callback := hers.begin(t, linkOf(t, anna), annaToken)
	pass(10 * time.Minute)
	if status, _, _ := hers.visit(t, http.MethodGet, callback, ""); status != http.StatusNotFound {
		t.Errorf("a sign-in after ten minutes: %d", status)
	}
	first := hers.begin(t, linkOf(t, anna), annaToken)
	second := hers.begin(t, linkOf(t, anna), annaToken)
	if status, _, _ := hers.visit(t, http.MethodGet, first, ""); status != http.StatusNotFound {
		t.Errorf("the first of two sign-ins: %d", status)
	}
	if status, _, body := hers.visit(t, http.MethodGet, second, ""); status != http.StatusOK {
		t.Errorf("the second of two sign-ins: %d %s", status, body)
	}
}

// TestGW_11_RefusedSignIn checks that nothing is kept if the person or the authorization server refuses.
func TestGW_11_RefusedSignIn(t *testing.T) {
	a := serveAccounts(t)
	w := openAccounts(t, a, "", "sign_in: true", "")
	anna, hers := w.client(t, mcp.Modern, annaToken, visitsURLs), newBrowser(t)
	callback, err := url.Parse(hers.begin(t, linkOf(t, anna), annaToken))
	if err != nil {
		t.Fatal(err)
	}
	q := callback.Query()
	q.Del("code")
	q.Set("error", "access_denied")
	callback.RawQuery = q.Encode()
	if status, _, body := hers.visit(t, http.MethodGet, callback.String(), ""); status < 400 || !strings.Contains(body, "access_denied") {
		t.Errorf("%d %s", status, body)
	}
	linkOf(t, anna) // she is asked again
}

// TestGW_11_CallDuringSignIn checks that a call of a principal is answered while a new sign-in of the same principal is
// open in a browser, although the token of the sign-in so far has to be refreshed.
func TestGW_11_CallDuringSignIn(t *testing.T) {
	a := serveAccounts(t)
	a.ExpiresIn = 1
	w := openAccounts(t, a, "", "sign_in: true", "")
	var later atomic.Int64
	gateway.SetSignInTime(w.gate, func() time.Time { return time.Now().Add(time.Duration(later.Load())) })
	anna, hers := w.client(t, mcp.Modern, annaToken, visitsURLs), newBrowser(t)
	first := linkOf(t, anna)
	later.Store(int64(6 * time.Minute))
	second := linkOf(t, anna)
	if first == second {
		t.Fatal("there is no second link")
	}
	if status, _, body := hers.visit(t, http.MethodGet, hers.begin(t, first, annaToken), ""); status != http.StatusOK {
		t.Fatalf("%d %s", status, body)
	}
	callback := hers.begin(t, second, annaToken)
	time.Sleep(1100 * time.Millisecond) // the token expires
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	if r, err := anna.Call(ctx, tenon.Call{Tool: "echo"}); err != nil || r.IsError || r.Input != nil {
		t.Fatalf("%+v, %v", r, err)
	}
	if status, _, body := hers.visit(t, http.MethodGet, callback, ""); status != http.StatusOK {
		t.Errorf("%d %s", status, body)
	}
}
