package accesstoken

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/internal/authserver"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// clock is a time that tests move.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) pass(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

// lasting is a token that stays valid while the clock moves.
func lasting(i *authserver.Issuer) string {
	return i.Token("anna", audience, map[string]any{"exp": time.Now().Add(24 * time.Hour).Unix()})
}

func TestKeyFlood(t *testing.T) {
	i, issuers := start(t)
	c := &clock{now: time.Now()}
	keys := Keys{Now: c.Now}
	good := lasting(i)
	var all sync.WaitGroup
	for n := range 50 {
		all.Go(func() {
			bad := i.Sign("ES256", i.Claims("x", audience, nil), map[string]any{"kid": fmt.Sprint("invented-", n)})
			if _, err := keys.Check(t.Context(), issuers, bad, audience); tenon.ErrorCode(err) != tenon.CodeAuth {
				t.Errorf("got %v", err)
			}
			if _, err := keys.Check(t.Context(), issuers, good, audience); err != nil {
				t.Errorf("a good token during the flood: %v", err)
			}
		})
	}
	all.Wait()
	if n := i.Fetched(); n != 1 {
		t.Fatalf("GW-9: the keys were fetched %d times in the first minute", n)
	}
	c.pass(fetchEvery)
	bad := i.Sign("ES256", i.Claims("x", audience, nil), map[string]any{"kid": "invented"})
	for range 3 {
		_, _ = keys.Check(t.Context(), issuers, bad, audience)
	}
	if n := i.Fetched(); n != 2 {
		t.Fatalf("GW-9: the keys were fetched %d times in two minutes", n)
	}
}

func TestKeyRotation(t *testing.T) {
	i, issuers := start(t)
	c := &clock{now: time.Now()}
	keys := Keys{Now: c.Now}
	check := func(token string, want tenon.Code) {
		t.Helper()
		_, err := keys.Check(t.Context(), issuers, token, audience)
		if (err == nil) != (want == "") || err != nil && tenon.ErrorCode(err) != want {
			t.Fatalf("GW-9: got %v, want code %q", err, want)
		}
	}
	old := lasting(i)
	check(old, "")
	i.Rotate()
	fresh := lasting(i)
	check(fresh, tenon.CodeAuth) // within the minute
	c.pass(fetchEvery)
	check(fresh, "")
	check(old, tenon.CodeAuth) // a withdrawn key has no effect after the fetch

	i.Rotate()
	check(fresh, "")
	c.pass(keysFresh)
	check(fresh, tenon.CodeAuth) // withdrawn keys are noticed without a new key id
	fresh = lasting(i)
	c.pass(fetchEvery)
	check(fresh, "")

	i.Set(func(i *authserver.Issuer) { i.Down = true })
	c.pass(keysFresh)
	check(fresh, "") // an issuer that is down for a while
	c.pass(keysValid)
	check(fresh, tenon.CodeUnreachable)
	i.Set(func(i *authserver.Issuer) { i.Down = false })
	check(fresh, tenon.CodeUnreachable) // still within the minute of the last fetch
	c.pass(fetchEvery)
	check(fresh, "")
}

func TestKeep(t *testing.T) {
	i, issuers := start(t)
	var keys Keys
	for range 2 {
		if _, err := keys.Check(t.Context(), issuers, lasting(i), audience); err != nil {
			t.Fatal(err)
		}
		keys.Keep(issuers)
	}
	if i.Fetched() != 1 {
		t.Errorf("kept keys were fetched %d times", i.Fetched())
	}
	keys.Keep(nil)
	if len(keys.sets) != 0 {
		t.Error("the keys of an issuer that was removed stay")
	}
}

func TestFetch(t *testing.T) {
	elsewhere := authserver.StartIssuer()
	defer elsewhere.Close()
	tests := []struct {
		name   string
		change func(*authserver.Issuer)
		ok     bool
	}{
		{"GW-9_metadata of another issuer", func(i *authserver.Issuer) {
			i.Metadata = map[string]any{"issuer": "https://evil.example.com"}
		}, false},
		{"GW-9_metadata without keys", func(i *authserver.Issuer) { i.Metadata = map[string]any{"jwks_uri": nil} }, false},
		{"GW-9_keys at http elsewhere", func(i *authserver.Issuer) {
			i.Metadata = map[string]any{"jwks_uri": "http://keys.example.com/"}
		}, false},
		{"GW-9_keys in a file", func(i *authserver.Issuer) {
			i.Metadata = map[string]any{"jwks_uri": "file:///etc/passwd"}
		}, false},
		{"GW-9_redirect to another origin", func(i *authserver.Issuer) { i.Redirect = elsewhere.URL + "/keys" }, false},
		{"GW-9_redirect without end", func(i *authserver.Issuer) { i.Redirect = i.URL + "/keys" }, false},
		{"GW-9_keys that are no JSON", func(i *authserver.Issuer) { i.JWKS = "<html>" }, false},
		{"GW-9_keys too large", func(i *authserver.Issuer) {
			i.JWKS = `{"keys": [], "x": "` + strings.Repeat("a", maxDocument) + `"}`
		}, false},
		{"GW-9_correct", func(*authserver.Issuer) {}, true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			i, issuers := start(t)
			i.Set(tt.change)
			var keys Keys
			_, err := keys.Check(t.Context(), issuers, lasting(i), audience)
			if (err == nil) != tt.ok || err != nil && tenon.ErrorCode(err) != tenon.CodeUnreachable {
				t.Fatalf("got %v", err)
			}
		})
	}
	if elsewhere.Fetched() != 0 {
		t.Error("a redirect to another origin was followed")
	}
}

func TestOpenID(t *testing.T) {
	i, _ := start(t)
	for _, place := range []string{"/realm/.well-known/openid-configuration", "/.well-known/openid-configuration/realm",
		"/.well-known/oauth-authorization-server/realm"} {
		t.Run("GW-9_"+place, func(t *testing.T) {
			var base string
			s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path != place {
					http.NotFound(w, r)
					return
				}
				fmt.Fprintf(w, `{"issuer": "%s/realm", "jwks_uri": "%s/keys"}`, base, i.URL)
			}))
			defer s.Close()
			base = s.URL
			var keys Keys
			token := i.Token("anna", audience, map[string]any{"iss": base + "/realm"})
			if _, err := keys.Check(t.Context(), []Issuer{{URL: base + "/realm"}}, token, audience); err != nil {
				t.Fatal(err)
			}
		})
	}
}

func TestCheckURL(t *testing.T) {
	tests := map[string]bool{"https://login.example.com": true, "https://login.example.com/realms/x": true,
		"http://127.0.0.1:8080": true, "http://localhost:1/x": true, "http://[::1]:1": true,
		"http://login.example.com": false, "http://localhost.example.com": false, "ftp://x": false, "": false,
		"https://u:p@x": false, "https://x?y": false, "https://x?": false, "https://x#": false, "https:x": false}
	for text, ok := range tests {
		if why := CheckURL(text); (why == "") != ok {
			t.Errorf("GW-9: %q: %q", text, why)
		}
	}
}
