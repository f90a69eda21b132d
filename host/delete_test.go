package host_test

import (
	"path/filepath"
	"testing"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/host"
	"github.com/tenonhq/tenon/store/sqlite"
)

// TestSnapshotOfADeletedSession deletes the only session that uses a snapshot of the tools, from another process. The
// next run must store the snapshot again.
func TestSnapshotOfADeletedSession(t *testing.T) {
	home := t.TempDir()
	h := open(t, home, `steps: [{calls: [{name: price, arguments: {thing: tea}}]}, {expect: 3 EUR, text: three}]`, &shop{})
	other, err := sqlite.Open(t.Context(), sqlite.Config{Path: filepath.Join(home, "tenon.db")})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = other.Close() })
	for range 3 {
		report, _ := ask(t, h, host.Question{Text: "What does it cost?"})
		if report.State != tenon.RunCompleted || report.Answer != "three" {
			t.Fatalf("report %+v", report)
		}
		if err := other.DeleteSession(t.Context(), report.Session); err != nil {
			t.Fatal(err)
		}
	}
}
