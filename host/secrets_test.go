package host_test

import (
	"io"
	"strings"
	"testing"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/config"
	"github.com/tenonhq/tenon/host"
)

// TestExportNeedsSecrets checks that a session is exported without a secret whose variable is not set, and not without
// any other one, even if both are secrets of one server.
func TestExportNeedsSecrets(t *testing.T) {
	none := func(string) (string, bool) { return "", false }
	for name, tc := range map[string]struct {
		server string
		ok     bool
	}{
		"a variable that is not set": {`headers: {X-Key: "${secret:gone}"}`, true},
		"also one that cannot be read": {`headers: {X-Key: "${secret:gone}"},
    auth: {type: bearer, secret: {file: nowhere.txt}}`, false},
		"of a disabled server": {`headers: {X-Key: "${secret:gone}"}, enabled: false,
    auth: {type: bearer, secret: {file: nowhere.txt}}`, true},
	} {
		t.Run(name, func(t *testing.T) {
			cfg, err := config.Parse("tenon.yaml", []byte(`version: 1
secrets: {gone: {env: GONE}}
models: {m: {provider: openai, model: x, api_key: {env: GONE}}}
servers:
  up: {url: "http://127.0.0.1:1/mcp", `+tc.server+"}\n"), config.Options{Dir: t.TempDir(), LookupEnv: none})
			if err != nil {
				t.Fatal(err)
			}
			h, err := host.Open(t.Context(), host.Config{Config: cfg, Home: t.TempDir(), Model: host.DemoModel,
				LookupEnv: none})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = h.Close() })
			r, _ := ask(t, h, host.Question{Text: "Hello"})
			err = h.Sessions().Transcripts().Export(t.Context(), io.Discard, r.Session, host.FormatJSON)
			switch {
			case tc.ok && err != nil:
				t.Error(err)
			case !tc.ok && (tenon.ErrorCode(err) != tenon.CodeAuth || !strings.Contains(err.Error(), "servers.up.auth.secret")):
				t.Errorf("a secret that may not be masked: %v", err)
			}
		})
	}
}
