package host

import (
	"fmt"
	"testing"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/config"
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
