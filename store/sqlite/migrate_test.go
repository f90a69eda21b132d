package sqlite

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/store"
	"github.com/tenonhq/tenon/store/forms"
)

// TestMigrate migrates a store to a schema that does not exist yet.
func TestMigrate(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tenon.db")
	now := len(migrations)
	next := append(migrations[:now:now], "ALTER TABLE sessions ADD COLUMN colour TEXT NOT NULL DEFAULT 'red'")
	backup := backupPath(path, now)
	old := mustOpen(t, path, migrations)
	if err := old.PutSession(t.Context(), tenon.Session{ID: "s", Title: "kept"}); err != nil {
		t.Fatal(err)
	}
	if err := old.Close(); err != nil {
		t.Fatal(err)
	}

	t.Run("fails_whole", func(t *testing.T) {
		broken := append(next[:now+1:now+1], "ALTER TABLE nothing RENAME TO something")
		if _, err := open(t.Context(), Config{Path: path}, broken, false); tenon.ErrorCode(err) != tenon.CodeStore {
			t.Fatalf("a broken migration: %v", err)
		}
		s := mustOpen(t, path, migrations) // still the old one
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	})
	t.Run("older", func(t *testing.T) {
		s := mustOpen(t, path, next)
		var colour string
		if err := s.read.QueryRow("SELECT colour FROM sessions WHERE title = 'kept'").Scan(&colour); err != nil || colour != "red" {
			t.Errorf("colour %q, %v", colour, err)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		kept := mustOpen(t, backup, migrations)
		if v, err := kept.Session(t.Context(), "s"); err != nil || v.Title != "kept" {
			t.Errorf("backup: %+v, %v", v, err)
		}
		if info, err := os.Stat(backup); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("backup: %v, %v", info, err)
		}
	})
	t.Run("newer", func(t *testing.T) {
		_, err := open(t.Context(), Config{Path: path}, migrations, false)
		want := fmt.Sprint("version ", now+1)
		if tenon.ErrorCode(err) != tenon.CodeStore || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "use a newer tenon") {
			t.Errorf("a newer store: %v", err)
		}
	})
}

// oldStores are stores that earlier releases have made, by schema version. They contain the data that checkOld expects.
var oldStores = map[int]string{1: "testdata/v1.db", 2: "testdata/v2.db", 3: "testdata/v3.db", 4: "testdata/v4.db", 5: "testdata/v5.db",
	6: "testdata/v6.db", 7: "testdata/v7.db", 8: "testdata/v8.db", 9: "testdata/v9.db",
	10: "testdata/v10.db"}

// copyOld copies an old store into a new directory.
func copyOld(t *testing.T, version int) (path string) {
	t.Helper()
	b, err := os.ReadFile(oldStores[version])
	if err != nil {
		t.Fatal(err)
	}
	path = filepath.Join(t.TempDir(), "tenon.db")
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestOldStores opens the stores of all earlier schema versions.
func TestOldStores(t *testing.T) {
	t.Parallel()
	for version := 1; version < len(migrations); version++ {
		t.Run(fmt.Sprint("v", version), func(t *testing.T) {
			path := copyOld(t, version)
			if r, err := Check(t.Context(), CheckConfig{Path: path}); err != nil || !r.OK() {
				t.Errorf("check before the migration: %+v, %v", r, err)
			}
			s, err := Open(t.Context(), Config{Path: path})
			if err != nil {
				t.Fatal(err)
			}
			checkOld(t, s)
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			again, err := Open(t.Context(), Config{Path: path})
			if err != nil {
				t.Fatal(err)
			}
			checkOld(t, again)
			if diff := cmp.Diff(schemaOf(t, filepath.Join(t.TempDir(), "new.db")), schemaOf(t, path)); diff != "" {
				t.Errorf("a migrated store is not like a new one (-new +migrated):\n%s", diff)
			}
			if err := again.Close(); err != nil {
				t.Fatal(err)
			}
		})
	}
}

// checkOld checks that an old store still has its contents after the migration: three runs in two sessions, of which
// one waits, signals, large values, and tool snapshots that the first events of the runs name.
func checkOld(t *testing.T, s *Store) {
	t.Helper()
	ctx := t.Context()
	at := func(n int) time.Time { return time.Date(2026, 1, 2, 3, 4, n, 5, time.UTC) }
	runs, err := s.Runs(ctx, store.RunFilter{Principal: tenon.PrincipalLocal, Top: true})
	if err != nil || len(runs) != 3 {
		t.Fatalf("runs %+v, %v", runs, err)
	}
	want := tenon.Run{ID: "run_2", Session: "ses_a", Principal: tenon.PrincipalLocal, Parent: "run_1", Core: "agent@1", Agent: "default",
		Model: "script", Title: "question of run_2", State: tenon.RunInputRequired, Seq: 4, Created: at(1), Updated: runs[1].Updated,
		Waiting: []tenon.Waiting{{Step: "1.0", Since: at(3), Data: []byte(`{"name":"x"}`)}}}
	if diff := cmp.Diff(want, runs[1]); diff != "" {
		t.Errorf("row (-want +got):\n%s", diff)
	}
	large := []byte(`"` + string(bytes.Repeat([]byte("large "), 6000)) + `"`)
	for _, r := range runs {
		events, err := s.Events(ctx, r.ID, 0, 0)
		if err != nil || len(events) < 3 || !bytes.Equal(events[2].Data, large) {
			t.Errorf("run %s has %d events, %v", r.ID, len(events), err)
		}
	}
	sessions, err := s.Sessions(ctx, store.SessionFilter{Principal: tenon.PrincipalLocal})
	wantSession := tenon.Session{ID: "ses_a", Title: "question of run_1", Agent: "default", Principal: tenon.PrincipalLocal,
		Head: "run_2", Runs: 2, Created: at(0), Updated: at(9)}
	if err != nil || len(sessions) != 2 || !cmp.Equal(sessions[0], wantSession) {
		t.Errorf("sessions %+v, %v", sessions, err)
	}
	signals, err := s.Signals(ctx, "")
	if err != nil || len(signals) != 1 || signals[0].ID != "sig_2" || !signals[0].Time.Equal(at(4)) {
		t.Errorf("signals %+v, %v", signals, err)
	}
	if g, err := s.Settled(ctx, "run_2", "1.0", "decision"); err != nil || g.ID != "sig_1" {
		t.Errorf("settled %+v, %v", g, err)
	}
	for text, owners := range map[string]string{"the tools of two sessions": "run_1 run_3", "the tools of one session": "run_2", "nobody's": ""} {
		b := blobOf([]byte(text))
		if got, err := s.Blob(ctx, forms.DigestName(b.digest)); err != nil || string(got) != text {
			t.Errorf("blob %q: %q, %v", text, got, err)
		}
		var got string
		err := s.read.QueryRow(`SELECT coalesce(group_concat(r.id, ' ' ORDER BY r.id), '') FROM run_blobs b JOIN runs r ON r.n = b.run
			WHERE b.blob = ?`, b.digest).Scan(&got)
		if err != nil || got != owners {
			t.Errorf("blob %q belongs to %q, %v; want %q", text, got, err, owners)
		}
	}
}
