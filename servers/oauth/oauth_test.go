package oauth

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/internal/authserver"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// person plays a person who signs in. It follows the redirect, as a browser would.
type person struct {
	mu    sync.Mutex
	asked []url.Values
}

func (*person) RedirectURI() string { return "http://127.0.0.1:9/callback" }

func (p *person) Sign(ctx context.Context, address string) (url.Values, error) {
	u, err := url.Parse(address)
	if err != nil {
		return nil, err
	}
	p.mu.Lock()
	p.asked = append(p.asked, u.Query())
	p.mu.Unlock()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, err
	}
	resp, err := (&http.Transport{DisableKeepAlives: true}).RoundTrip(req)
	if err != nil {
		return nil, err
	}
	_ = resp.Body.Close()
	to, err := resp.Location()
	if err != nil {
		return nil, err
	}
	return to.Query(), nil
}

func start(t *testing.T, change func(*authserver.Server)) *authserver.Server {
	t.Helper()
	s := authserver.Start()
	t.Cleanup(s.Close)
	if change != nil {
		change(s)
	}
	return s
}

func source(t *testing.T, s *authserver.Server, change func(*Config)) (*Source, http.RoundTripper) {
	t.Helper()
	cfg := Config{Server: "s", URL: s.URL}
	if change != nil {
		change(&cfg)
	}
	src, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return src, src.Wrap(&http.Transport{DisableKeepAlives: true})
}

// request sends a request and returns the status.
func request(t *testing.T, rt http.RoundTripper, to string) (int, error) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, to, strings.NewReader("{}"))
	if err != nil {
		t.Fatal(err)
	}
	resp, err := rt.RoundTrip(req)
	if err != nil {
		return 0, err
	}
	defer func() { _ = resp.Body.Close() }()
	_, _ = io.Copy(io.Discard, resp.Body)
	return resp.StatusCode, nil
}

func TestSignIn(t *testing.T) {
	s := start(t, func(s *authserver.Server) { s.Scope = "read" })
	p := &person{}
	_, rt := source(t, s, func(c *Config) { c.Sign = p })
	for range 3 {
		if status, err := request(t, rt, s.URL); err != nil || status != 200 {
			t.Fatal(status, err)
		}
	}
	q := p.asked[0]
	if len(p.asked) != 1 || q.Get("resource") != s.URL || q.Get("code_challenge_method") != "S256" || q.Get("scope") != "read" || len(q.Get("state")) < 40 {
		t.Errorf("%d sign-ins, %v", len(p.asked), q)
	}
	reg := s.Registrations()
	if len(reg) != 1 || reg[0]["application_type"] != "native" || !slices.Contains(reg[0]["grant_types"].([]any), any("refresh_token")) {
		t.Errorf("registered with %v", reg)
	}
}

// TestRefused checks that the sign-in ends with an error if the metadata of a server is unsafe or contradictory.
func TestRefused(t *testing.T) {
	tests := map[string]struct {
		server func(*authserver.Server)
		config func(*Config)
		want   string
	}{
		"no PKCE": {server: func(s *authserver.Server) { s.Metadata = map[string]any{"code_challenge_methods_supported": nil} }, want: "PKCE"},
		"PKCE plain": {server: func(s *authserver.Server) {
			s.Metadata = map[string]any{"code_challenge_methods_supported": []string{"plain"}}
		}, want: "PKCE"},
		"another issuer":       {server: func(s *authserver.Server) { s.Metadata = map[string]any{"issuer": "https://evil.example"} }, want: "evil.example"},
		"another resource":     {server: func(s *authserver.Server) { s.Resource = map[string]any{"resource": "https://evil.example/mcp"} }, want: "another server"},
		"a sibling's resource": {server: func(s *authserver.Server) { s.Resource = map[string]any{"resource": s.URL + "x"} }, want: "another server"},
		"no server named":      {server: func(s *authserver.Server) { s.Resource = map[string]any{"authorization_servers": []string{}} }, want: "no authorization server"},
		"script as address": {server: func(s *authserver.Server) {
			s.Metadata = map[string]any{"authorization_endpoint": "javascript:alert(1)"}
		}, want: "authorization_endpoint"},
		"file as address": {server: func(s *authserver.Server) {
			s.Metadata = map[string]any{"authorization_endpoint": "file:///etc/passwd"}
		}, want: "authorization_endpoint"},
		"token without TLS":     {server: func(s *authserver.Server) { s.Metadata = map[string]any{"token_endpoint": "http://evil.example/token"} }, want: "https"},
		"metadata of the cloud": {server: func(s *authserver.Server) { s.Pointer = "https://169.254.169.254/latest" }, want: "link-local"},
		"mapped address":        {server: func(s *authserver.Server) { s.Pointer = "https://[::ffff:a9fe:a9fe]/latest" }, want: "link-local"},
		"private address":       {server: func(s *authserver.Server) { s.Pointer = "https://10.0.0.1/x" }, want: "private"},
		"metadata not JSON":     {server: func(s *authserver.Server) { s.Pointer = s.Issuer + "/authorize?redirect_uri=file:///etc/passwd" }, want: "file"},
		"another state":         {server: func(s *authserver.Server) { s.Answer = func(q url.Values) { q.Set("state", "x") } }, want: "another state"},
		"no state":              {server: func(s *authserver.Server) { s.Answer = func(q url.Values) { q.Del("state") } }, want: "another state"},
		"unexpected iss":        {server: func(s *authserver.Server) { s.Answer = func(q url.Values) { q.Set("iss", "https://evil.example") } }, want: "evil.example"},
		"iss with a slash":      {server: func(s *authserver.Server) { s.Answer = func(q url.Values) { q.Set("iss", s.Issuer+"/") } }, want: "in place of"},
		"empty iss":             {server: func(s *authserver.Server) { s.Answer = func(q url.Values) { q.Set("iss", "") } }, want: "in place of"},
		"iss promised": {server: func(s *authserver.Server) {
			s.Metadata = map[string]any{"authorization_response_iss_parameter_supported": true}
		}, want: "without the name"},
		"the person says no": {server: func(s *authserver.Server) {
			s.Answer = func(q url.Values) { q.Del("code"); q.Set("error", "access_denied") }
		}, want: "access_denied"},
		"no code":         {server: func(s *authserver.Server) { s.Answer = func(q url.Values) { q.Del("code") } }, want: "without a code"},
		"no registration": {server: func(s *authserver.Server) { s.Metadata = map[string]any{"registration_endpoint": nil} }, want: "auth.client_id"},
		"other token type": {server: func(s *authserver.Server) {
			s.Token = func(_ url.Values, a map[string]any) int { a["token_type"] = "DPoP"; return 200 }
		}, want: "DPoP"},
		"token with a break": {server: func(s *authserver.Server) {
			s.Token = func(_ url.Values, a map[string]any) int { a["access_token"] = "a\r\nX: y"; return 200 }
		}, want: "usable"},
		"token endpoint down": {server: func(s *authserver.Server) { s.Token = func(url.Values, map[string]any) int { return 503 } }, want: "503"},
		"too large": {server: func(s *authserver.Server) {
			s.Token = func(_ url.Values, a map[string]any) int { a["x"] = strings.Repeat("x", 1<<20); return 200 }
		}, want: "over"},
		"pinned elsewhere": {config: func(c *Config) { c.Issuer = "https://as.example" }, want: "auth.issuer"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			s := start(t, tt.server)
			src, rt := source(t, s, func(c *Config) {
				c.Sign = &person{}
				if tt.config != nil {
					tt.config(c)
				}
			})
			status, err := request(t, rt, s.URL)
			if err == nil || !strings.Contains(err.Error(), tt.want) || tenon.ErrorCode(err) == tenon.CodeInternal {
				t.Fatalf("%d, %v; want %q", status, err, tt.want)
			}
			if st := src.state.Load(); st.Access != "" {
				t.Error("a token is kept")
			}
		})
	}
}

func TestStepUp(t *testing.T) {
	s := start(t, func(s *authserver.Server) { s.Scope, s.Demand = "read", "write" })
	p := &person{}
	_, rt := source(t, s, func(c *Config) { c.Sign = p })
	if status, err := request(t, rt, s.URL); err != nil || status != 200 {
		t.Fatal(status, err)
	}
	if len(p.asked) != 2 || p.asked[1].Get("scope") != "read write" {
		t.Errorf("asked %v", p.asked)
	}
	t.Run("without end", func(t *testing.T) {
		s := start(t, func(s *authserver.Server) { s.AlwaysStep, s.Demand = true, "more" })
		p := &person{}
		_, rt := source(t, s, func(c *Config) { c.Sign = p })
		for range 3 {
			if _, err := request(t, rt, s.URL); tenon.ErrorCode(err) != tenon.CodeAuth && err != nil {
				t.Error(err)
			}
		}
		if len(p.asked) > maxSigns {
			t.Errorf("asked %d times", len(p.asked))
		}
	})
	t.Run("nobody there", func(t *testing.T) {
		dir := t.TempDir()
		s := start(t, nil)
		config := func(c *Config) { c.Vault = NewVault(dir, nil) }
		src, rt := source(t, s, config)
		if _, err := src.Login(t.Context(), http.DefaultTransport, &person{}); err != nil {
			t.Fatal(err)
		}
		s.Demand = "write"
		if _, err := request(t, rt, s.URL); tenon.ErrorCode(err) != tenon.CodeAuth || !strings.Contains(err.Error(), "write") {
			t.Fatal(err)
		}
		p := &person{}
		src, rt = source(t, s, config)
		if _, err := src.Login(t.Context(), &http.Transport{DisableKeepAlives: true}, p); err != nil {
			t.Fatal(err)
		}
		if status, err := request(t, rt, s.URL); status != 200 || p.asked[0].Get("scope") != "write" {
			t.Error(status, err, p.asked)
		}
		http.DefaultTransport.(*http.Transport).CloseIdleConnections()
	})
}

func TestRefresh(t *testing.T) {
	now := time.Now()
	s := start(t, func(s *authserver.Server) { s.ExpiresIn = 100 })
	dir := t.TempDir()
	config := func(c *Config) { c.Vault, c.Now = NewVault(dir, nil), func() time.Time { return now } }
	src, _ := source(t, s, config)
	if _, err := src.Login(t.Context(), &http.Transport{DisableKeepAlives: true}, &person{}); err != nil {
		t.Fatal(err)
	}
	count := func() (n int) {
		for _, f := range s.Forms() {
			if f.Get("grant_type") == "refresh_token" {
				n++
				if f.Get("resource") != s.URL {
					t.Errorf("refreshed without resource: %v", f)
				}
			}
		}
		return n
	}
	// Eight processes need a new token at once. The refresh token is valid for one use, so only one process may use it.
	now = now.Add(95 * time.Second)
	var wg sync.WaitGroup
	for range 8 {
		_, rt := source(t, s, config)
		wg.Go(func() {
			if status, err := request(t, rt, s.URL); err != nil || status != 200 {
				t.Error(status, err)
			}
		})
	}
	if wg.Wait(); count() != 1 {
		t.Errorf("%d refreshes", count())
	}
	s.Revoke(false) // the server refuses the token before it expires
	_, rt := source(t, s, config)
	if status, err := request(t, rt, s.URL); err != nil || status != 200 || count() != 2 {
		t.Error(status, err, count())
	}
	s.Revoke(true)
	if _, err := request(t, rt, s.URL); tenon.ErrorCode(err) != tenon.CodeAuth || !strings.Contains(err.Error(), "new one") {
		t.Error(err)
	}
}

// TestRefreshThatNobodyRefused answers a refresh with an error that does not come from the authorization server, such
// as an error of a gateway. The sign-in must survive.
func TestRefreshThatNobodyRefused(t *testing.T) {
	for _, status := range []int{302, 403, 404, 408, 503} {
		now := time.Now()
		s := start(t, func(s *authserver.Server) { s.ExpiresIn, s.KeepRefresh = 100, true })
		src, rt := source(t, s, func(c *Config) { c.Now = func() time.Time { return now } })
		if _, err := src.Login(t.Context(), &http.Transport{DisableKeepAlives: true}, &person{}); err != nil {
			t.Fatal(err)
		}
		now = now.Add(200 * time.Second)
		s.Token = func(_ url.Values, answer map[string]any) int { clear(answer); return status }
		if _, err := request(t, rt, s.URL); tenon.ErrorCode(err) != tenon.CodeUnreachable {
			t.Errorf("HTTP %d: %v", status, err)
		}
		s.Token = nil
		if got, err := request(t, rt, s.URL); err != nil || got != 200 {
			t.Errorf("after HTTP %d: %d, %v", status, got, err)
		}
	}
}

// TestPostRedirects checks that a redirect of a POST is not followed, and that a redirect of a GET is.
func TestPostRedirects(t *testing.T) {
	for _, status := range []int{301, 302, 303, 307, 308} {
		followed := 0
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/moved" {
				followed++
				return
			}
			http.Redirect(w, r, "/moved", status)
		}))
		at, err := url.Parse(s.URL)
		if err != nil {
			t.Fatal(err)
		}
		g := newGuard(at, []string{s.URL}, func() netip.Addr { return netip.Addr{} })
		for _, tt := range []struct {
			method       string
			want, visits int
		}{{http.MethodPost, status, 0}, {http.MethodGet, 200, 1}} {
			followed = 0
			req, err := http.NewRequestWithContext(t.Context(), tt.method, s.URL, strings.NewReader("a=b"))
			if err != nil {
				t.Fatal(err)
			}
			got, _, _, err := g.do(req)
			if err != nil || got != tt.want || followed != tt.visits {
				t.Errorf("RP-14_redirect: %s and HTTP %d: %d, %v, followed %d times", tt.method, status, got, err, followed)
			}
		}
		s.Close()
	}
}

// TestMoved checks that a client id or token of one authorization server is never sent to another.
func TestMoved(t *testing.T) {
	old, fresh := start(t, nil), start(t, nil)
	_, rt := source(t, old, func(c *Config) { c.Sign = &person{} })
	if status, err := request(t, rt, old.URL); err != nil || status != 200 {
		t.Fatal(status, err)
	}
	old.Revoke(false)
	old.Resource = map[string]any{"authorization_servers": []string{fresh.Issuer}}
	_, _ = request(t, rt, old.URL) // this test is not about the tokens that the old server accepts
	if len(fresh.Registrations()) != 1 || len(fresh.Forms()) == 0 {
		t.Fatal("nobody signed in at the new server")
	}
	for _, f := range fresh.Forms() {
		if f.Get("grant_type") != "authorization_code" || f.Get("client_id") != "client-1" || f.Get("refresh_token") != "" {
			t.Errorf("sent %v", f)
		}
	}
}

func TestClientCredentials(t *testing.T) {
	for method, want := range map[string]string{"client_secret_basic": "Basic bWU6YSUyNmI=", "client_secret_post": ""} {
		s := start(t, func(s *authserver.Server) {
			s.Metadata = map[string]any{"token_endpoint_auth_methods_supported": []string{method}, "code_challenge_methods_supported": nil, "authorization_endpoint": nil}
		})
		_, rt := source(t, s, func(c *Config) {
			c.Grant, c.ClientID, c.ClientSecret, c.Scopes = GrantClientCredentials, "me", tenon.NewSecret("a&b"), []string{"x"}
		})
		if status, err := request(t, rt, s.URL); err != nil || status != 200 {
			t.Fatal(method, status, err)
		}
		f := s.Forms()[0]
		if f.Get("_auth") != want || (want == "") != (f.Get("client_secret") == "a&b") || f.Get("scope") != "x" || f.Get("resource") != s.URL {
			t.Errorf("%s: %v", method, f)
		}
	}
}

// TestOtherOrigin checks that a token is sent only to the server's own origin, and that no sign-in starts for a server
// that asks for none.
func TestOtherOrigin(t *testing.T) {
	s, other := start(t, nil), start(t, nil)
	_, rt := source(t, s, func(c *Config) { c.Sign = &person{} })
	if status, err := request(t, rt, s.URL); err != nil || status != 200 {
		t.Fatal(status, err)
	}
	if status, err := request(t, rt, other.URL); err != nil || status != 401 {
		t.Error(status, err)
	}
	_, rt = source(t, s, func(c *Config) { c.Passive, c.Vault = true, NewVault(t.TempDir(), nil) })
	if status, err := request(t, rt, s.URL); err != nil || status != 401 {
		t.Error(status, err)
	}
}

// ring is a keyring in memory.
type ring struct {
	m   map[string]string
	err error
}

func (r *ring) Get(s, u string) (string, error) { return r.m[s+u], r.err }
func (r *ring) Set(s, u, v string) error        { r.m[s+u] = v; return r.err }

func TestVault(t *testing.T) {
	ctx := context.Background()
	for name, r := range map[string]Keyring{"file": nil, "keyring": &ring{m: map[string]string{}}, "broken keyring": &ring{m: map[string]string{}, err: os.ErrPermission}} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "auth")
			if err := NewVault(dir, r).save(ctx, "a", &saved{Access: "canary-token"}); err != nil {
				t.Fatal(err)
			}
			var got saved
			if err := NewVault(dir, r).load(ctx, "a", &got); err != nil || got.Access != "canary-token" {
				t.Fatal(got, err)
			}
			files, err := os.ReadDir(dir)
			if err != nil || (len(files) == 1) != (name == "keyring") {
				t.Errorf("%v %v", files, err)
			}
			for _, f := range files {
				st, _ := f.Info()
				b, err := os.ReadFile(filepath.Join(dir, f.Name()))
				if err != nil || strings.Contains(string(b), "canary") || st.Mode().Perm() != 0o600 {
					t.Errorf("%s %s: %s", f.Name(), st.Mode(), b)
				}
			}
			v := NewVault(dir, r)
			if err := os.Rename(v.path("a"), v.path("b")); err != nil {
				t.Fatal(err)
			}
			if err := v.load(ctx, "b", &got); tenon.ErrorCode(err) != tenon.CodeAuth { // of another server
				t.Error(err)
			}
		})
	}
}

func TestReach(t *testing.T) {
	for text, want := range map[string]reach{"8.8.8.8": public, "127.8.9.1": loopback, "::1": loopback, "::ffff:127.0.0.1": loopback, "10.1.2.3": private,
		"192.168.0.1": private, "172.31.0.1": private, "100.64.1.1": private, "fd00::1": private, "169.254.169.254": linkLocal, "::ffff:a9fe:a9fe": linkLocal,
		"fe80::1%eth0": linkLocal, "64:ff9b::a9fe:a9fe": linkLocal, "2002:a9fe:a9fe::1": linkLocal, "0.0.0.0": never, "::": never, "224.0.0.1": never,
		"255.255.255.255": never, "2606:4700::1": public, "::7f00:1": never} {
		if got := reachOf(netip.MustParseAddr(text)); got != want {
			t.Errorf("%s is %s, want %s", text, got, want)
		}
	}
}

func TestLoopback(t *testing.T) {
	var l *Loopback
	ask := func(method, host, pathQuery string) int {
		req, err := http.NewRequestWithContext(t.Context(), method, "http://"+l.listener.Addr().String()+pathQuery, nil)
		if err != nil {
			t.Fatal(err)
		}
		if host != "" {
			req.Host = host
		}
		resp, err := (&http.Transport{DisableKeepAlives: true}).RoundTrip(req)
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		return resp.StatusCode
	}
	var got []int
	l, err := Listen(0, func(string) {
		got = append(got, ask("GET", "evil.example", "/callback?state=S&code=c"), ask("GET", "", "/callback?state=other&code=c"), ask("GET", "", "/?state=S"),
			ask("POST", "", "/callback?state=S&code=c"), ask("GET", "", "/callback?state=S&code=right"), ask("GET", "", "/callback?state=S&code=late"))
	})
	if err != nil {
		t.Fatal(err)
	}
	q, err := l.Sign(t.Context(), "https://as.example/authorize?state=S")
	if err != nil || q.Get("code") != "right" || !slices.Equal(got, []int{403, 400, 404, 405, 200, 200}) {
		t.Error(q, err, got)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	l.show = func(string) {}
	for len(l.back) > 0 {
		<-l.back
	}
	if _, err := l.Sign(ctx, "https://as.example/authorize?state=S"); tenon.ErrorCode(err) != tenon.CodeAuth {
		t.Error(err)
	}
	if err := l.Close(); err != nil {
		t.Error(err)
	}
}

func TestLogout(t *testing.T) {
	s := start(t, nil)
	src, rt := source(t, s, func(c *Config) { c.Vault = NewVault(t.TempDir(), nil) })
	if _, err := src.Login(t.Context(), &http.Transport{DisableKeepAlives: true}, &person{}); err != nil {
		t.Fatal(err)
	}
	if had, untold, err := src.Logout(t.Context()); !had || untold != nil || err != nil {
		t.Error(had, untold, err)
	}
	if _, err := request(t, rt, s.URL); tenon.ErrorCode(err) != tenon.CodeAuth {
		t.Error(err)
	}
	if had, untold, err := src.Logout(t.Context()); had || untold != nil || err != nil {
		t.Error(had, untold, err)
	}
}

// TestLogoutWithoutRevocation checks that a caller hears that the tokens are not revoked where that is not possible.
func TestLogoutWithoutRevocation(t *testing.T) {
	s := start(t, func(s *authserver.Server) { s.Metadata = map[string]any{"revocation_endpoint": nil} })
	src, _ := source(t, s, func(c *Config) { c.Vault = NewVault(t.TempDir(), nil) })
	if had, untold, err := src.Logout(t.Context()); had || untold != nil || err != nil {
		t.Errorf("without a sign-in: %t, %v, %v", had, untold, err)
	}
	if _, err := src.Login(t.Context(), &http.Transport{DisableKeepAlives: true}, &person{}); err != nil {
		t.Fatal(err)
	}
	had, untold, err := src.Logout(t.Context())
	if !had || untold == nil || !strings.Contains(untold.Error(), "has no endpoint for it") || err != nil {
		t.Errorf("with a sign-in: %t, %v, %v", had, untold, err)
	}
	if _, signedIn, err := src.Scopes(t.Context()); signedIn || err != nil {
		t.Errorf("afterwards: %t, %v", signedIn, err)
	}
}

func TestChallenges(t *testing.T) {
	tests := map[string]challenge{
		`Bearer`: {},
		`Bearer resource_metadata="https://x/y", scope="a b", error="e"`: {"https://x/y", []string{"a", "b"}, "e"},
		`Basic realm="a, Bearer scope=x", bearer scope=a`:                {"", []string{"a"}, ""},
		`Bearer realm="q\"q" , SCOPE = "x"`:                              {"", []string{"x"}, ""},
		`Negotiate abc==, Bearer error=invalid_token`:                    {"", nil, "invalid_token"},
	}
	for text, want := range tests {
		got, ok := bearer(http.Header{"Www-Authenticate": {text}})
		if diff := cmp.Diff(want, got); !ok || diff != "" {
			t.Error(text, ok, diff)
		}
	}
}

func FuzzChallenges(f *testing.F) {
	for _, s := range []string{`Bearer a="b"`, `,,=`, `x "`, `a b=c, d e="f\`, ""} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		for _, c := range parseChallenges(s) {
			if c.scheme == "" || len(fmt.Sprint(c.params)) > 10*len(s)+100 {
				t.Errorf("%q gave %v", s, c)
			}
		}
	})
}
