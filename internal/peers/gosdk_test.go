package peers

import (
	"bufio"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/tenonhq/tenon/internal/clitest"
)

// testGoSDK calls servers made with the official Go SDK, in both protocol eras and over both transports. The servers
// are in the module internal/rivals, which `make figures` uses too.
func (p *peers) testGoSDK(t *testing.T) {
	rivals := clitest.Build(t, filepath.Join("..", "rivals"), ".")
	for _, tt := range []struct {
		server, era string
		http        bool
		asked       []string // flags; if nil, tenon detects the era
	}{
		{"go-sdk-stdio", "2026-07-28", false, nil},
		{"go-sdk-stdio", "2026-07-28", false, []string{"--protocol", "2026-07-28"}},
		{"go-sdk-stdio", "2025-11-25", false, []string{"--protocol", "2025-11-25"}},
		{"go-sdk-http-2026", "2026-07-28", true, nil},
		{"go-sdk-http-2026", "2026-07-28", true, []string{"--protocol", "2026-07-28"}},
		{"go-sdk-http", "2025-11-25", true, []string{"--protocol", "2025-11-25"}},
	} {
		name := tt.server + " asked for its newest"
		if tt.asked != nil {
			name = tt.server + " asked for " + tt.era
		}
		t.Run(name, func(t *testing.T) {
			s := p.shell(t)
			server := append([]string{}, tt.asked...)
			if tt.http {
				server = append(server, "--url", serveHTTP(t, rivals, tt.server))
			} else {
				server = append(server, "--", rivals, "server", tt.server)
			}
			s.offers(t, []string{"echo", "stat"}, server...)
			if o := s.OK(t, append([]string{"tools", "call", "echo", "text=grüezi"},
				server...)...); o.Out != "grüezi\n" {
				t.Errorf("not the echo\n%s", o)
			}
			o := s.OK(t, append([]string{"servers", "test", "-o", "json"}, server...)...)
			if got := clitest.Decode[struct{ Protocol string }](t, o).Protocol; got != tt.era {
				t.Errorf("the protocol is %s, want %s", got, tt.era)
			}
		})
	}
}

// serveHTTP starts a server that prints its URL as a JSON string and serves until its stdin ends.
func serveHTTP(t *testing.T, program, server string) string {
	t.Helper()
	cmd := exec.Command(program, "server", server)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = in.Close()
		if err := cmd.Wait(); err != nil {
			t.Errorf("%s: %v", server, err)
		}
	})
	var url string
	if err := json.NewDecoder(bufio.NewReader(out)).Decode(&url); err != nil {
		t.Fatalf("%s did not print its URL: %v", server, err)
	}
	return url
}
