package sqlite

import (
	"bytes"
	"database/sql"
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/store"
	"github.com/tenonhq/tenon/store/signed"
	"github.com/tenonhq/tenon/store/storetest"
)

// openAs opens a store with a key and returns the log output.
func openAs(t *testing.T, path string, key *signed.Key) (*Store, string) {
	t.Helper()
	var log bytes.Buffer
	s, err := Open(t.Context(), Config{Path: path, Key: key, Logger: slog.New(slog.NewTextHandler(&log, nil))})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s, log.String()
}

// TestOldStoresAreForeign opens stores of earlier releases, which are not signed, with a key. Their rows are ignored
// until the user adopts them, and the user is warned once.
func TestOldStoresAreForeign(t *testing.T) {
	const warning = "tenon store show, tenon store adopt"
	for version := range oldStores {
		t.Run(fmt.Sprint("SEC-F4_v", version), func(t *testing.T) {
			path, key := copyOld(t, version), storetest.Key(t, "a")
			s, log := openAs(t, path, key)
			if strings.Count(log, warning) != 1 || strings.Count(log, "\n") != 1 {
				t.Errorf("the first time it says %q", log)
			}
			ctx, own := t.Context(), store.OwnOnly(t.Context())
			runs, err := s.Runs(ctx, store.RunFilter{})
			if err != nil || len(runs) != 3 {
				t.Fatalf("%+v, %v", runs, err)
			}
			for _, r := range runs {
				if _, err := s.Events(own, r.ID, 0, 0); !r.Foreign || tenon.ErrorCode(err) != tenon.CodeWaiting {
					t.Errorf("run %s: foreign %t, %v", r.ID, r.Foreign, err)
				}
			}
			grants, err := s.Grants(ctx, "")
			if err != nil || version == 5 && len(grants) != 1 {
				t.Errorf("%+v, %v", grants, err)
			}
			for _, g := range grants {
				if !g.Foreign || g.Server != "" || !strings.HasPrefix(g.ID, "gr_") {
					t.Errorf("%+v", g)
				}
			}
			f, err := s.Foreign(ctx)
			if err != nil || f.Runs != 3 || f.Signals != 2 || len(f.Open) != 1 {
				t.Fatalf("%+v, %v", f, err)
			}
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			s, log = openAs(t, path, key)
			if log != "" {
				t.Errorf("the second time it says %q", log)
			}
			if err := s.Adopt(ctx, f.Digest); err != nil {
				t.Fatal(err)
			}
			checkOld(t, s)
			for _, r := range runs {
				if _, err := s.Events(own, r.ID, 0, 0); err != nil {
					t.Errorf("run %s: %v", r.ID, err)
				}
			}
		})
	}
}

// TestWarnings checks when the user is warned that another user wrote the store.
func TestWarnings(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tenon.db")
	a, b := storetest.Key(t, "a"), storetest.Key(t, "b")
	fill := func(s *Store) {
		t.Helper()
		if err := s.Append(t.Context(), store.Append{Create: &tenon.Run{ID: tenon.NewID("run", s.now())}, Run: ""}); err == nil {
			t.Fatal("an append without a run")
		}
		id := tenon.NewID("run", s.now())
		if err := s.Append(t.Context(), store.Append{Create: &tenon.Run{ID: id}, Run: id}); err != nil {
			t.Fatal(err)
		}
	}
	for i, step := range []struct {
		key   *signed.Key
		warns bool
		fills bool
	}{{a, false, false}, {a, false, true}, {a, false, false}, {b, true, false}, {b, false, true}, {a, false, false}, {b, false, false}} {
		s, log := openAs(t, path, step.key)
		if (log != "") != step.warns {
			t.Errorf("%d: it says %q", i, log)
		}
		if step.fills {
			fill(s)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// TestStrangeSchema checks that a store is refused if its file contains triggers or views, because they would run their
// own SQL statements.
func TestStrangeSchema(t *testing.T) {
	for name, statement := range map[string]string{
		"a trigger":       "CREATE TRIGGER t AFTER INSERT ON grants BEGIN DELETE FROM signals; END",
		"a view":          "CREATE VIEW v AS SELECT 1",
		"a virtual table": "CREATE VIRTUAL TABLE x USING fts5(y)",
		"a table as view": "ALTER TABLE grants RENAME TO g; CREATE VIEW grants AS SELECT * FROM g",
	} {
		t.Run("SEC-F4_"+strings.ReplaceAll(name, " ", "_"), func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "tenon.db")
			if err := mustOpen(t, path, migrations).Close(); err != nil {
				t.Fatal(err)
			}
			db, err := sql.Open("sqlite", path)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := db.Exec(statement); err != nil {
				t.Fatal(err)
			}
			if err := db.Close(); err != nil {
				t.Fatal(err)
			}
			for _, c := range []Config{{Path: path}, {Path: path, ReadOnly: true}} {
				s, err := Open(t.Context(), c)
				if err == nil {
					_ = s.Close()
				}
				if tenon.ErrorCode(err) != tenon.CodeStore || !strings.Contains(err.Error(), "tenon did not make") {
					t.Errorf("%+v: %v", c, err)
				}
			}
		})
	}
	t.Run("the index of texts", func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "tenon.db")
		s := mustOpen(t, path, migrations)
		if err := s.Append(t.Context(), store.Append{Create: &tenon.Run{ID: "r"}, Run: "r", Events: []tenon.Event{{Seq: 1, Kind: "k"}}}); err != nil {
			t.Fatal(err)
		}
		if err := s.PutTexts(t.Context(), []store.RunTexts{{Run: "r", UpTo: 1, Texts: []store.Text{{Seq: 1, Role: "user", Text: "hello"}}}}); err != nil {
			t.Fatal(err)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		s = mustOpen(t, path, migrations)
		if hits, err := s.Search(t.Context(), store.SearchFilter{Query: "hello"}); err != nil || len(hits) != 1 {
			t.Errorf("%+v, %v", hits, err)
		}
	})
}

// TestPlantedBudgets checks that planted negative counters do not increase a budget.
func TestPlantedBudgets(t *testing.T) {
	t.Run("SEC-F4_budget", func(t *testing.T) {
		s := mustOpen(t, filepath.Join(t.TempDir(), "tenon.db"), migrations)
		ctx := t.Context()
		charge := []store.Charge{{Key: "day/x", Amount: 60, Limit: 100}}
		if _, err := s.Reserve(ctx, "r", "1", charge); err != nil {
			t.Fatal(err)
		}
		release, ok, err := s.Acquire("r")
		if err != nil || !ok {
			t.Fatal(err)
		}
		defer release()
		for _, q := range []string{"UPDATE budgets SET used = -1000000", "INSERT INTO reservations (run, id, n, key, amount, open) VALUES ('r', '0', 0, 'day/x', -1000000, 1)"} {
			if err := s.submit(ctx, func(w *writer) error { _, err := w.exec(q); return err }); err != nil {
				t.Fatal(err)
			}
		}
		got, err := s.Reserve(ctx, "r", "2", charge)
		if err != nil || !got[0].Refused {
			t.Errorf("%+v, %v", got, err)
		}
	})
}
