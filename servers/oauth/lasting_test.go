package oauth

import (
	"context"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/internal/authserver"
)

// TestClientCredentialsThatLiveShortly uses tokens that expire every minute. The client must get new ones as often as
// needed, without asking a person. If the server refuses new tokens, the client must stop asking for more.
func TestClientCredentialsThatLiveShortly(t *testing.T) {
	now := time.Now()
	s := start(t, func(s *authserver.Server) { s.ExpiresIn = 60 })
	_, rt := source(t, s, func(c *Config) {
		c.Grant, c.ClientID, c.ClientSecret = GrantClientCredentials, "me", tenon.NewSecret("secret-of-me")
		c.Now = func() time.Time { return now }
	})
	for n := range 10 {
		if status, err := request(t, rt, s.URL); err != nil || status != 200 {
			t.Fatalf("request %d: HTTP %d, %v", n+1, status, err)
		}
		now = now.Add(time.Minute)
	}
	s.AlwaysStep, s.Demand = true, "more"
	before := len(s.Forms())
	for range 3 {
		_, _ = request(t, rt, s.URL)
	}
	if n := len(s.Forms()) - before; n > maxSigns+1 {
		t.Errorf("%d tokens were asked for, and each was refused", n)
	}
}

// TestKeyThatChanged changes the key of the vault, so that stored tokens cannot be decrypted. The error advises to log
// out and to sign in again, and this must work.
func TestKeyThatChanged(t *testing.T) {
	s := start(t, nil)
	direct := &http.Transport{DisableKeepAlives: true}
	dir := t.TempDir()
	first := &ring{m: map[string]string{}}
	src, _ := source(t, s, func(c *Config) { c.Vault = NewVault(dir, first) })
	if _, err := src.Login(t.Context(), direct, &person{}); err != nil {
		t.Fatal(err)
	}
	second := &ring{m: map[string]string{}} // the keyring of another machine, or one that was reset
	second.m[keyService+keyUser] = strings.Repeat("ab", 32)
	config := func(c *Config) { c.Vault = NewVault(dir, second) }
	src, rt := source(t, s, config)
	if _, err := request(t, rt, s.URL); tenon.ErrorCode(err) != tenon.CodeAuth || !strings.Contains(err.Error(), "log out and sign in again") {
		t.Fatalf("a request: %v", err)
	}
	had, untold, err := src.Logout(t.Context())
	if err != nil || !had || untold == nil {
		t.Fatalf("logout: %t, %v, %v", had, untold, err)
	}
	src, rt = source(t, s, config)
	if _, err := src.Login(t.Context(), direct, &person{}); err != nil {
		t.Fatalf("login: %v", err)
	}
	if status, err := request(t, rt, s.URL); err != nil || status != 200 {
		t.Errorf("HTTP %d, %v", status, err)
	}
	if files, err := os.ReadDir(dir); err != nil || len(files) == 0 {
		t.Error(files, err)
	}
}

// slowRing is a keyring that all of its first readers see empty, because each Get waits until the others have read.
type slowRing struct {
	mu      sync.Mutex
	value   string
	readers int
	all     chan struct{}
}

func (r *slowRing) Get(string, string) (string, error) {
	r.mu.Lock()
	value := r.value
	if r.readers--; r.readers == 0 {
		close(r.all)
	}
	wait := r.readers >= 0
	r.mu.Unlock()
	if wait {
		select {
		case <-r.all:
		case <-time.After(100 * time.Millisecond): // the other readers are blocked by a lock
		}
	}
	return value, nil
}

func (r *slowRing) Set(_, _, value string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.value = value
	return nil
}

// TestOneKey has two processes need the key of the vault for the first time. Only one may create it; the other one uses
// the same key.
func TestOneKey(t *testing.T) {
	dir := t.TempDir()
	r := &slowRing{readers: 2, all: make(chan struct{})}
	var wg sync.WaitGroup
	var sealed [2][]byte
	for i := range sealed {
		wg.Go(func() {
			var err error
			if sealed[i], err = NewVault(dir, r).Seal([]byte("text"), "place"); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	for i, b := range sealed {
		if text, err := NewVault(dir, r).Open(b, "place"); err != nil || string(text) != "text" {
			t.Errorf("what process %d encrypted: %q, %v", i, text, err)
		}
	}
}

// TestGuardBehindProxy checks that an address from the configuration is allowed with a proxy as it is without one.
func TestGuardBehindProxy(t *testing.T) {
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) }))
	defer proxy.Close()
	server, _ := url.Parse("http://10.1.2.3/mcp")
	g := newGuard(server, []string{"http://10.1.2.3"}, func() netip.Addr { return netip.Addr{} })
	g.proxy = func(*http.Request) (*url.URL, error) { return url.Parse(proxy.URL) }
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://10.1.2.3/.well-known/x", nil)
	if err != nil {
		t.Fatal(err)
	}
	if status, _, _, err := g.do(req); err != nil || status != http.StatusNoContent {
		t.Errorf("HTTP %d, %v", status, err)
	}
}

// slowPerson is a person who takes time to sign in.
type slowPerson struct {
	person
	came, goes chan struct{}
}

func (p *slowPerson) Sign(ctx context.Context, address string) (url.Values, error) {
	close(p.came)
	select {
	case <-p.goes:
		return p.person.Sign(ctx, address)
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// TestSlowPerson checks that requests with the sign-in so far go on while a person signs in again, in the same process
// and in another one, although its token has to be refreshed. The new sign-in counts at its end.
func TestSlowPerson(t *testing.T) {
	now := time.Now()
	s := start(t, func(s *authserver.Server) { s.ExpiresIn = 100 })
	dir := t.TempDir()
	config := func(c *Config) { c.Vault, c.Now = NewVault(dir, nil), func() time.Time { return now } }
	src, rt := source(t, s, config)
	if _, err := src.Login(t.Context(), &http.Transport{DisableKeepAlives: true}, &person{}); err != nil {
		t.Fatal(err)
	}
	now = now.Add(95 * time.Second)
	p := &slowPerson{came: make(chan struct{}), goes: make(chan struct{})}
	ended := make(chan error, 1)
	go func() {
		_, err := src.Login(t.Context(), &http.Transport{DisableKeepAlives: true}, p)
		ended <- err
	}()
	<-p.came
	_, other := source(t, s, config)
	for name, rt := range map[string]http.RoundTripper{"the same process": rt, "another process": other} {
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.URL, strings.NewReader("{}"))
		if err != nil {
			t.Fatal(err)
		}
		resp, err := rt.RoundTrip(req)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if _ = resp.Body.Close(); resp.StatusCode != http.StatusOK {
			t.Errorf("%s: %d", name, resp.StatusCode)
		}
		cancel()
	}
	close(p.goes)
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	grants := map[string]int{}
	for _, f := range s.Forms() {
		grants[f.Get("grant_type")]++
	}
	if grants["authorization_code"] != 2 || grants["refresh_token"] != 1 {
		t.Errorf("tokens were obtained with %v", grants)
	}
	s.Revoke(false)
	if status, err := request(t, rt, s.URL); err != nil || status != http.StatusOK {
		t.Errorf("after the sign-in: %d, %v", status, err)
	}
}
