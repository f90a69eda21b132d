package host

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/config"
	"github.com/tenonhq/tenon/mcp"
	"github.com/tenonhq/tenon/servers"
)

// TestCredentialsOfCalledRuns checks that a called run uses the credentials that the caller supplied for the first run,
// and that no other run uses them. The number of kept credentials is limited; a principal who exceeds the limit loses
// only their own credentials.
func TestCredentialsOfCalledRuns(t *testing.T) {
	h, err := Open(t.Context(), Config{Home: t.TempDir(), LookupEnv: func(string) (string, bool) { return "", false },
		Config: &config.Config{Servers: map[string]servers.Config{"s": {URL: "http://127.0.0.1:1"}}}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = h.Close() })
	own := func(token string) Credentials {
		return Credentials{"s": {Auth: servers.Auth{Type: servers.AuthBearer, Secret: tenon.NewSecret(token)}}}
	}
	at := func(run string, who tenon.Principal) string {
		o, err := h.overlay(t.Context(), tenon.Run{ID: run, Principal: who}, "s")
		if err != nil {
			t.Fatal(err)
		}
		return o.Owner + " " + o.Auth.Secret.Reveal()
	}
	h.brought.hold("run_ann", "ann", own("token-of-ann"))
	for _, run := range []string{"run_ann", "run_ann/1.0", "run_ann/1.0/2.1"} {
		if got := at(run, "ann"); got != "ann token-of-ann" {
			t.Errorf("%s is at the server as %q", run, got)
		}
	}
	if got := at("run_anna", "bob"); got != "bob " {
		t.Errorf("another run is at the server as %q", got)
	}
	for n := range maxCredentials + 100 {
		h.brought.hold(fmt.Sprintf("run_bob%d", n), "bob", own("token-of-bob"))
	}
	if n := len(h.brought.of); n != maxCredentials {
		t.Errorf("those of %d runs are kept", n)
	}
	if got := at("run_ann", "ann"); got != "ann token-of-ann" {
		t.Errorf("bob has taken the place of ann, who is %q", got)
	}
	h.brought.drop("run_ann")
	if got := at("run_ann/1.0", "ann"); got != "ann " {
		t.Errorf("after its end the run is %q", got)
	}
}

// pressing is a clock that calls a function when it is asked for the time.
type pressing struct{ press atomic.Pointer[func()] }

func (p *pressing) Now() time.Time {
	if f := p.press.Load(); f != nil {
		(*f)()
	}
	return time.Now()
}

func (*pressing) Elapsed() time.Duration                 { return time.Duration(time.Now().UnixNano()) }
func (*pressing) After(d time.Duration) <-chan time.Time { return time.After(d) }

// TestCredentialsOfLightCall checks that a call which is sent before it is stored uses the credentials of its request
// even if other runs have taken the place of its credentials in memory, and never those of the entry.
func TestCredentialsOfLightCall(t *testing.T) {
	s, err := mcp.NewServer(mcp.ServerConfig{Name: "up", Version: "1", Tools: []mcp.ServerTool{{
		Definition: json.RawMessage(`{"name":"who","inputSchema":{"type":"object"},"annotations":{"readOnlyHint":true}}`),
		Call: func(context.Context, *mcp.ToolRequest) (json.RawMessage, error) {
			return json.RawMessage(`{"content":[{"type":"text","text":"you"}]}`), nil
		}}}})
	if err != nil {
		t.Fatal(err)
	}
	protected, last := s.HTTP(mcp.HTTPConfig{}), atomic.Value{}
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Mcp-Name") == "who" {
			last.Store(r.Header.Get("Authorization"))
		}
		protected.ServeHTTP(w, r)
	}))
	t.Cleanup(web.Close)
	clock := &pressing{}
	h, err := Open(t.Context(), Config{Home: t.TempDir(), Clock: clock, LookupEnv: func(string) (string, bool) { return "", false },
		Config: &config.Config{Servers: map[string]servers.Config{"up": {URL: web.URL, Protocol: mcp.Modern,
			Auth:              servers.Auth{Type: servers.AuthBearer, Secret: tenon.NewSecret("token-of-the-entry")},
			CallerCredentials: servers.CallerCredentials{Bearer: true}}}}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = h.Close() })
	call := func() {
		t.Helper()
		own := Credentials{"up": {Auth: servers.Auth{Type: servers.AuthBearer, Secret: tenon.NewSecret("token-of-ann")}}}
		c, err := StartClientCall(t.Context(), h, ToolCall{Name: "who", Principal: "ann", Credentials: own}, false, func(tenon.Progress) {})
		if err != nil {
			t.Fatal(err)
		}
		if !c.IsLight() {
			t.Fatal("the call was stored first")
		}
		if r, _, err := c.Wait(t.Context()); err != nil || r == nil || r.Text() != "you" {
			t.Fatalf("%+v, %v", r, err)
		}
		if got := last.Load(); got != "Bearer token-of-ann" {
			t.Errorf("the call was made with %q", got)
		}
	}
	call()
	press := func() { // all credentials are lost
		h.brought.mu.Lock()
		defer h.brought.mu.Unlock()
		clear(h.brought.of)
	}
	clock.press.Store(&press)
	call()
	clock.press.Store(nil)
}
