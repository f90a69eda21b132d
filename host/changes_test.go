package host_test

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tenonhq/tenon/config"
	"github.com/tenonhq/tenon/host"
	"github.com/tenonhq/tenon/internal/testserver"
	"github.com/tenonhq/tenon/servers"
)

// overHTTP runs the test server over HTTP until the test ends, and returns its URL.
func overHTTP(t *testing.T, args ...string) string {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	r, w := io.Pipe()
	done := make(chan error, 1)
	go func() {
		done <- testserver.Run(ctx, append([]string{"--http", "127.0.0.1:0"}, args...), strings.NewReader(""), io.Discard, w)
		_ = w.Close() // the reader sees the end of the output
	}()
	line, err := bufio.NewReader(r).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cancel()
		_, _ = io.Copy(io.Discard, r) // the remaining output of the server
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return strings.TrimSpace(line)
}

// TestListsChange checks that an open host gets a tool and a prompt that a server adds, without a new connection, and
// that it reports the names of the changed lists.
func TestListsChange(t *testing.T) {
	for _, protocol := range []string{"2025-11-25", "2026-07-28"} {
		t.Run("HD-US4.4_HD-FR-016_"+protocol, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "stats.json")
			entry := servers.Config{URL: overHTTP(t, "--stats", file), Protocol: protocol}
			h, err := host.Open(t.Context(), host.Config{Home: t.TempDir(), Config: &config.Config{Servers: map[string]servers.Config{"t": entry}},
				LookupEnv: func(string) (string, bool) { return "", false }})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = h.Close() })
			lists := func() (tools, prompts []string) {
				snapshot, problems, err := h.Tools().Snapshot(t.Context())
				if err != nil || problems != nil {
					t.Fatal(err, problems)
				}
				list, problems, err := h.Servers().Context().Prompts(t.Context())
				if err != nil || problems != nil {
					t.Fatal(err, problems)
				}
				for _, p := range list {
					prompts = append(prompts, p.Name)
				}
				return snapshot.Names(), prompts
			}
			if tools, prompts := lists(); slices.Contains(tools, "added") || !slices.Equal(prompts, []string{"greet_user"}) {
				t.Fatal(tools, prompts)
			}
			// In the modern era, the client subscribes after it has connected. A change before that would not be
			// reported.
			eventually(t, "the subscription", func() bool {
				var st testserver.Stats
				b, err := os.ReadFile(file)
				return protocol == "2025-11-25" || err == nil && json.Unmarshal(b, &st) == nil && slices.Contains(st.Methods, "subscriptions/listen")
			})
			if _, _, err := host.CallTool(t.Context(), h, "mutate", json.RawMessage("{}"), nil); err != nil {
				t.Fatal(err)
			}
			eventually(t, "the new tool and the new prompt", func() bool {
				tools, prompts := lists()
				return slices.Contains(tools, "added") && slices.Contains(prompts, "added_prompt")
			})
			if st := h.Service().Connections()["t"].Status(); st.Starts != 1 {
				t.Errorf("connected %d times", st.Starts)
			}
			var told []string
			for _, l := range h.Service().Connections()["t"].Logs(0) {
				if strings.HasPrefix(l.Text, "the list of") {
					told = append(told, l.Text)
				}
			}
			slices.Sort(told) // both lists are requested at the same time
			if want := []string{"the list of prompts changed: added added_prompt", "the list of tools changed: added added"}; !slices.Equal(told, want) {
				t.Errorf("told %q, want %q", told, want)
			}
		})
	}
}
