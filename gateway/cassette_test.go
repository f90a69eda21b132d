package gateway_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/gateway"
	"github.com/tenonhq/tenon/mcp"
)

// TestGW_33_RecordedTraffic checks that the traffic of clients of any era is recorded in cassettes, and that a replay
// answers the same calls without the server.
func TestGW_33_RecordedTraffic(t *testing.T) {
	for era, version := range eras {
		t.Run(era, func(t *testing.T) {
			u := serveUpstream(t, mcp.ServerConfig{})
			text, dir := upstreamConfig(u, ""), filepath.Join(t.TempDir(), "cassette")
			calls := func(w *world) string {
				t.Helper()
				c := w.client(t, version, annaToken)
				tools, err := c.Tools(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				all := named(tools)
				for _, name := range []string{"echo", "broken"} {
					r, err := c.Call(t.Context(), tenon.Call{Tool: name})
					if err != nil {
						t.Fatal(err)
					}
					all += "\n" + string(r.Raw)
				}
				return all
			}
			w := &world{home: filepath.Join(t.TempDir(), "home"), record: dir}
			stop := w.start(t, text, gateway.Config{})
			want := calls(w)
			stop()
			files, err := os.ReadDir(filepath.Join(dir, "mcp", "up"))
			if err != nil || len(files) < 2 {
				t.Fatalf("%d exchanges with the server, %v", len(files), err)
			}
			u.web.Close()

			w = &world{home: filepath.Join(t.TempDir(), "home"), replay: dir}
			w.start(t, text, gateway.Config{})
			if got := calls(w); got != want {
				t.Errorf("replayed\n%s\nwant\n%s", got, want)
			}
		})
	}
}

// TestGW_33_RecordedOffers checks that prompts, resources, templates and completions of clients of both eras over HTTP
// are recorded, also the questions that a server asks before it gives a prompt. A replay answers the same requests
// without the servers, and refuses others.
func TestGW_33_RecordedOffers(t *testing.T) {
	for upstreamEra, cfg := range upstreams {
		for clientEra, version := range eras {
			t.Run("client "+clientEra+", server "+upstreamEra, func(t *testing.T) {
				cfg.Offers = curiousPrompt()
				u := serveUpstream(t, cfg)
				cfg.Offers, cfg.Completions = libraryOffers("ann"), true
				lib := serveUpstream(t, cfg)
				text := "servers: {up: {url: '" + u.url + "', " + asksClients + "}, ann: {url: '" + lib.url + "'}}\n" +
					"gateway: {endpoints: {asks: {servers: [up]}}}\n"
				dir := filepath.Join(t.TempDir(), "cassette")
				uses := func(w *world) string {
					t.Helper()
					c := w.client(t, version, annaToken, declares)
					prompts, err := c.Prompts(t.Context())
					resources, err2 := c.Resources(t.Context())
					contents, err3 := c.Read(t.Context(), "ann://some/day")
					found, err4 := c.Complete(t.Context(), mcp.CompletionRequest{Template: "ann://{path}", Argument: "path", Value: "s"})
					more, err5 := c.Complete(t.Context(), mcp.CompletionRequest{Prompt: "only_ann", Argument: "whom"})
					plain, err6 := c.Prompt(t.Context(), "only_ann", map[string]string{"whom": "you"})
					there := world{url: w.url + "/asks"}
					asked, err7 := promptAnswered(t, there.client(t, version, annaToken, declares), func(*mcp.Caller) {})
					if err := errors.Join(err, err2, err3, err4, err5, err6, err7); err != nil {
						t.Fatal(err)
					}
					all := fmt.Sprint(found, more, "\n", string(plain), "\n", string(asked))
					for _, p := range prompts {
						all += "\n" + string(p.Raw)
					}
					for _, r := range resources {
						all += "\n" + string(r.Raw)
					}
					for _, r := range contents {
						all += "\n" + string(r.Raw)
					}
					return all
				}
				w := &world{home: filepath.Join(t.TempDir(), "home"), record: dir}
				stop := w.start(t, text, gateway.Config{})
				want := uses(w)
				stop()
				for _, part := range []string{`"Ann"`, "ann greets you", "of ann", "ann://{path}", "[ann]"} {
					if !strings.Contains(want, part) {
						t.Errorf("no %s in %s", part, want)
					}
				}
				u.web.Close()
				lib.web.Close()

				w = &world{home: filepath.Join(t.TempDir(), "home"), replay: dir}
				w.start(t, text, gateway.Config{})
				if got := uses(w); got != want {
					t.Errorf("replayed\n%s\nwant\n%s", got, want)
				}
				c := w.client(t, version, annaToken)
				if _, err := c.Read(t.Context(), "ann://another/day"); err == nil || !strings.Contains(err.Error(), "no matching recording") {
					t.Errorf("a resource that was not read: %v", err)
				}
				if clientEra != "legacy" {
					return
				}
				if err := c.Watch(t.Context(), "mem://ann", func() {}, func(string) {}); err == nil || !strings.Contains(err.Error(), "a replay has no servers") {
					t.Errorf("a resource is watched: %v", err)
				}
			})
		}
	}
}

// TestGW_33_RecordedReload checks that a reload of the configuration continues a cassette.
func TestGW_33_RecordedReload(t *testing.T) {
	u := serveUpstream(t, mcp.ServerConfig{})
	dir := filepath.Join(t.TempDir(), "cassette")
	w := &world{home: filepath.Join(t.TempDir(), "home"), record: dir}
	stop := w.start(t, upstreamConfig(u, ""), gateway.Config{})
	c := w.client(t, mcp.Modern, annaToken)
	call := func() {
		t.Helper()
		if _, err := c.Call(t.Context(), tenon.Call{Tool: "echo"}); err != nil {
			t.Fatal(err)
		}
	}
	files := func() int {
		t.Helper()
		list, err := os.ReadDir(filepath.Join(dir, "mcp", "up"))
		if err != nil {
			t.Fatal(err)
		}
		return len(list)
	}
	call()
	before := files()
	next, err := w.host.Reopen(w.host.Service().Info().Config)
	if err != nil {
		t.Fatal(err)
	}
	w.gate.Use(next)
	call()
	if n := files(); n <= before {
		t.Errorf("%d exchanges after the reload, %d before", n, before)
	}
	stop()
	if err := next.Close(); err != nil {
		t.Error(err)
	}
}
