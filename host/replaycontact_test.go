package host

import (
	"context"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/config"
	"github.com/tenonhq/tenon/servers"
)

// TestReplayContactsNothing checks that a host whose cassette answers for the servers contacts none: not an eager one,
// not to restart it, and not for credentials. Nor is it opened again with another configuration.
func TestReplayContactsNothing(t *testing.T) {
	var contacts atomic.Int32
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		contacts.Add(1)
		w.WriteHeader(http.StatusTeapot)
	}))
	defer web.Close()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "cassette.json"), []byte(`{"version":2}`), 0o600); err != nil {
		t.Fatal(err)
	}
	entry := servers.Config{URL: web.URL, Lifecycle: servers.LifecycleEager}
	entry.CallerCredentials.SignIn = true
	h, err := Open(t.Context(), Config{Home: t.TempDir(), Replay: dir, LookupEnv: func(string) (string, bool) { return "", false },
		Config: &config.Config{Servers: map[string]servers.Config{"s": entry}},
		Overlay: func(context.Context, tenon.Principal, string) (servers.Overlay, error) {
			contacts.Add(1)
			return servers.Overlay{}, nil
		}})
	if err != nil {
		t.Fatal(err)
	}
	h.Service().Connect(t.Context())
	if _, err := h.Servers().Restart(t.Context(), "s"); tenon.ErrorCode(err) != tenon.CodeInvalid {
		t.Errorf("restarted: %v", err)
	}
	if _, err := h.Servers().Login(t.Context(), "s"); tenon.ErrorCode(err) != tenon.CodeInvalid {
		t.Errorf("signed in: %v", err)
	}
	if _, err := SignIn(t.Context(), h, "ann", "s", "http://127.0.0.1:1/", nil); tenon.ErrorCode(err) != tenon.CodeInvalid {
		t.Errorf("ann signed in: %v", err)
	}
	if _, _, err := SignOut(t.Context(), h, "ann", "s"); tenon.ErrorCode(err) != tenon.CodeInvalid {
		t.Errorf("ann signed out: %v", err)
	}
	subject := Credentials{"s": {Subject: tenon.NewSecret("a-token-of-ann")}}
	for _, c := range []Credentials{nil, subject} {
		if _, err := h.Service().Callers().Context(t.Context(), "ann", c, "s"); err != nil {
			t.Error(err)
		}
	}
	h.brought.hold("run_ann", "ann", subject)
	for _, run := range []string{"run_ann", "run_none"} {
		if o, err := h.overlay(t.Context(), tenon.Run{ID: run, Principal: "ann"}, "s"); err != nil || o.Owner != "ann" {
			t.Errorf("%s: %+v, %v", run, o.Owner, err)
		}
	}
	if _, err := h.Reopen(h.config); tenon.ErrorCode(err) != tenon.CodeInvalid {
		t.Errorf("opened again: %v", err)
	}
	if err := h.Close(); err != nil {
		t.Error(err)
	}
	if n := contacts.Load(); n > 0 {
		t.Errorf("%d contacts", n)
	}
}
