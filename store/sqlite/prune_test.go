package sqlite

import (
	"context"
	"database/sql"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/internal/longtest"
	"github.com/tenonhq/tenon/store"
)

// TestDeletePlans checks that the statements of a deletion find their rows through an index. With a scan, deleting many
// sessions would take quadratic time.
func TestDeletePlans(t *testing.T) {
	s := mustOpen(t, filepath.Join(t.TempDir(), "tenon.db"), migrations)
	t.Cleanup(func() { _ = s.Close() })
	random := rand.New(rand.NewPCG(1, 2))
	plant(t, s, random, 1, map[string]uint64{}) // makes the tables of texts
	statements := []string{deleteBudgets, runsOf, selectForks, selectRunBlobs, deleteBlob,
		"SELECT updated FROM sessions WHERE id = ?", "DELETE FROM sessions WHERE id = ?",
		selectSessions() + " WHERE parent = ? AND parent <> '' ORDER BY updated DESC, id DESC LIMIT ?",
		"SELECT id FROM sessions WHERE id = ? AND " + noOpenRun}
	for _, d := range deleteRows {
		statements = append(statements, d.sql)
	}
	statements = append(statements, deleteTextRows...)
	for _, q := range statements {
		t.Run("RP-23_"+q, func(t *testing.T) {
			args := make([]any, strings.Count(q, "?"))
			for i := range args {
				args[i] = "1"
			}
			if strings.Contains(q, "?1") {
				args = args[:1]
			}
			var plan []string
			err := s.each(t.Context(), "EXPLAIN QUERY PLAN "+q, args, func(rows *sql.Rows) error {
				var id, parent, unused int
				var step string
				err := rows.Scan(&id, &parent, &unused, &step)
				plan = append(plan, step)
				return err
			})
			if err != nil || len(plan) == 0 {
				t.Fatal(plan, err)
			}
			for _, step := range plan {
				if strings.HasPrefix(step, "SCAN") && !strings.HasPrefix(step, "SCAN json_each") {
					t.Errorf("%s\n\t%s", step, strings.Join(plan, "\n\t"))
				}
			}
		})
	}
}

// TestPrune deletes many sessions at once.
func TestPrune(t *testing.T) {
	t.Parallel()
	longtest.Skip(t)
	const sessions = deleteAtOnce + 44
	setup := func(t *testing.T, c Config) (*Store, []tenon.Session) {
		s, err := Open(t.Context(), c)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			_ = s.Close()
			_ = s.closeDBs() // with a short-lived store, the process would end here
		})
		random := rand.New(rand.NewPCG(1, 2))
		var list []tenon.Session
		for i := range sessions {
			plant(t, s, random, i, map[string]uint64{})
			v, err := s.Session(t.Context(), fmt.Sprint("ses_", i))
			if err != nil {
				t.Fatal(err)
			}
			list = append(list, v)
		}
		return s, list
	}
	for _, brief := range []bool{false, true} {
		t.Run(fmt.Sprintf("RP-23_all_brief_%v", brief), func(t *testing.T) {
			dir := t.TempDir()
			s, list := setup(t, Config{Path: filepath.Join(dir, "tenon.db"), ShortLived: brief})
			last, calls := 0, 0
			gone, err := s.DeleteSessions(t.Context(), list, func(n int) {
				if n < last {
					t.Errorf("progress went from %d to %d", last, n)
				}
				last = n
				calls++
				// Another write gets its turn.
				if err := s.PutSession(t.Context(), tenon.Session{ID: "other"}); err != nil {
					t.Error(err)
				}
			})
			if err != nil || len(gone) != sessions || last != sessions || calls < 2 {
				t.Errorf("%d deleted, %d and %d calls of progress, %v", len(gone), last, calls, err)
			}
			if got := inFiles(t, dir, "canary<"); len(got) > 0 {
				t.Fatalf("sessions are still in %v", got)
			}
			left, err := s.Sessions(t.Context(), store.SessionFilter{})
			if err != nil || len(left) != 1 || left[0].ID != "other" {
				t.Errorf("%v, %v", left, err)
			}
		})
	}
	t.Run("RP-23_cancelled", func(t *testing.T) {
		dir := t.TempDir()
		s, list := setup(t, Config{Path: filepath.Join(dir, "tenon.db")})
		ctx, stop := context.WithCancel(t.Context())
		gone, err := s.DeleteSessions(ctx, list, func(int) { stop() })
		if tenon.ErrorCode(err) != tenon.CodeCancelled || len(gone) == 0 || len(gone) == sessions {
			t.Errorf("%d deleted, %v", len(gone), err)
		}
		var words []string
		for i := range gone {
			words = append(words, canary(i))
		}
		if got := inFiles(t, dir, words...); len(got) > 0 {
			t.Fatalf("deleted sessions are still in %v", got)
		}
	})
}
