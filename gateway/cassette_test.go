package gateway_test

import (
	"os"
	"path/filepath"
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
