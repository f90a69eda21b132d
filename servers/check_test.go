package servers_test

import (
	"strings"
	"testing"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/servers"
)

// TestNewRefusesAWrongEntry checks that a Go program cannot use a server whose entry is invalid.
func TestNewRefusesAWrongEntry(t *testing.T) {
	url := "http://127.0.0.1:1/mcp"
	for name, tc := range map[string]struct {
		cfg  servers.Config
		want string
	}{
		"RP-16_elicitation": {servers.Config{Command: "x", Elicitation: "Deny"}, "servers.s.elicitation: no such value 'Deny'"},
		"RP-16_lifecycle":   {servers.Config{Command: "x", Lifecycle: "bogus"}, "servers.s.lifecycle: no such value"},
		"RP-16_per call":    {servers.Config{Command: "x", Lifecycle: "per_call", Sampling: "yes"}, "servers.s.sampling: no such value"},
		"RP-16_transport":   {servers.Config{URL: url, Transport: "pigeon"}, "servers.s.transport: no such value"},
		"RP-16_timeout":     {servers.Config{URL: url, RequestTimeout: -1}, "servers.s.request_timeout: must be positive"},
		"RP-16_ftp":         {servers.Config{URL: "ftp://h/"}, "servers.s.url: 'url' must begin with https:// or http://"},
		"RP-16_auth type":   {servers.Config{URL: url, Auth: servers.Auth{Secret: tenon.NewSecret("x")}}, "servers.s.auth: 'type' is required"},
		"RP-16_auth Bearer": {servers.Config{URL: url, Auth: servers.Auth{Type: "Bearer"}}, "servers.s.auth.type: no such value"},
		"RP-16_auth secret": {servers.Config{URL: url, Auth: servers.Auth{Type: "bearer"}}, "servers.s.auth: 'secret' is required"},
		"RP-16_neither":     {servers.Config{}, "servers.s: 'command' or 'url' is required"},
	} {
		t.Run(name, func(t *testing.T) {
			s := servers.New("s", tc.cfg, servers.Options{})
			defer s.Close()
			_, err := s.Tools(t.Context())
			if tenon.ErrorCode(err) != tenon.CodeConfig || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("Tools: %v, want %q", err, tc.want)
			}
			if _, err := s.Call(t.Context(), tenon.Call{Tool: "t"}); tenon.ErrorCode(err) != tenon.CodeConfig {
				t.Errorf("Call: %v", err)
			}
		})
	}
}
