package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestGW_33_ReplayContactsNothing checks that a replay sends no telemetry, and that a cassette without the traffic of
// servers is refused, because its replay would start them.
func TestGW_33_ReplayContactsNothing(t *testing.T) {
	const file = "telemetry: {otlp: 'http://127.0.0.1:1'}\n"
	a, _ := simulated(t, file)
	folder := t.TempDir()
	const none = "no traffic of servers"
	for _, c := range []struct{ manifest, want string }{{"", none}, {`{"version":1}`, none}, {`{"version":2}`, ""}} {
		want := c.want
		if c.manifest != "" {
			if err := os.WriteFile(filepath.Join(folder, "cassette.json"), []byte(c.manifest), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		err := a.gateway(t.Context(), "", cassette{replay: folder})
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("the replay ended with %v, want %q", err, want)
		}
		if a.collector != nil {
			t.Error("a replay has a collector of telemetry")
		}
	}
	if err := a.gateway(t.Context(), "", cassette{}); err != nil || a.collector == nil {
		t.Errorf("without a replay there is no telemetry: %v", err)
	}
	a.collected()
}
