package servers

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tenonhq/tenon/mcp"
)

// TestListsChanged checks that tools, prompts and resources are listed again after a notification about a change, in
// both eras and over each transport that carries notifications. The server's log must name the changes.
func TestListsChanged(t *testing.T) {
	for _, tt := range []struct{ kind, era string }{
		{"stdio", "legacy"}, {"stdio", "modern"}, {"http", "legacy"}, {"http", "modern"}, {"sse", "legacy"}, {"ws", "legacy"}, {"ws", "modern"},
	} {
		t.Run(tt.kind+" "+tt.era, func(t *testing.T) {
			t.Parallel()
			cfg := process("--stdio", "--prompts", "--era", tt.era)
			if tt.kind != "stdio" {
				cfg = Config{URL: listening(t, "--"+tt.kind, "127.0.0.1:0", "--prompts", "--era", tt.era)}
				if tt.kind == "sse" {
					cfg.Transport = TransportSSE
				}
			}
			s := started(t, cfg, Options{Logs: t.TempDir()})
			if got := offersAdded(t, s); got != [3]bool{} {
				t.Fatalf("there before they are added: %v", got)
			}
			// Every second call of mutate undoes the change. A notification may be lost while the stream of
			// notifications opens. A change that is not seen within ten seconds is therefore undone and made again.
			var got [3]bool
			for try := 1; got != [3]bool{true, true, true}; try++ {
				if try > 7 {
					t.Fatalf("tools, prompts, resources are up to date: %v", got)
				}
				text(t, s, "mutate", "")
				wanted := [3]bool{true, true, true}
				if try%2 == 0 {
					wanted = [3]bool{}
				}
				for end := time.Now().Add(10 * time.Second); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
					if got = offersAdded(t, s); got == wanted {
						break
					}
				}
			}
			// A list that becomes stale while it is requested is not kept. Its changes are logged with the next list.
			for end := time.Now().Add(30 * time.Second); ; time.Sleep(50 * time.Millisecond) {
				var log strings.Builder
				for _, l := range s.Logs(0) {
					log.WriteString(l.Text + "\n")
				}
				var unsaid []string
				for _, want := range []string{"the list of tools changed: added added", "the list of prompts changed: added added_prompt", "the list of resources changed: added test://added"} {
					if !strings.Contains(log.String(), want) {
						unsaid = append(unsaid, want)
					}
				}
				if len(unsaid) == 0 {
					break
				}
				if time.Now().After(end) {
					t.Fatalf("the log does not say %q:\n%s", unsaid, log.String())
				}
				if got := offersAdded(t, s); got != [3]bool{true, true, true} {
					t.Fatalf("gone again: %v", got)
				}
			}
		})
	}
}

// offersAdded reports for a tool, a prompt and a resource whether the server lists the one that mutate adds.
func offersAdded(t *testing.T, s *Server) (found [3]bool) {
	t.Helper()
	tools, err := s.List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, tool := range tools {
		found[0] = found[0] || tool.Remote == "added"
	}
	prompts, err := s.Prompts(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	found[1] = slices.ContainsFunc(prompts, func(p mcp.Prompt) bool { return p.Name == "added_prompt" })
	resources, err := s.Resources(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	found[2] = slices.ContainsFunc(resources, func(r mcp.Resource) bool { return r.URI == "test://added" })
	return found
}
