package sqlite

import (
	"bytes"
	"context"
	"database/sql"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/store"
	"github.com/tenonhq/tenon/store/forms"
)

// TestChapters lets several journals grow alternately over many chapters, and reads them from every position. A chapter
// is a part of a journal whose rows have keys close to each other.
func TestChapters(t *testing.T) {
	s := mustOpen(t, filepath.Join(t.TempDir(), "tenon.db"), migrations)
	ctx := t.Context()
	random := rand.New(rand.NewPCG(5, 6))
	want := map[string][]tenon.Event{}
	var ids []string
	for i := range 5 {
		id := fmt.Sprint("run_", i)
		ids = append(ids, id)
		if err := s.Append(ctx, store.Append{Create: &tenon.Run{ID: id, Session: "s_" + id}, Run: id}); err != nil {
			t.Fatal(err)
		}
		want[id] = nil // a run without events has no chapter
	}
	if events, err := s.Events(ctx, ids[0], 0, 0); err != nil || len(events) > 0 {
		t.Errorf("events of a run that has none: %v, %v", events, err)
	}
	for n := range 300 {
		id := ids[random.IntN(len(ids))]
		size := 0
		if random.IntN(60) == 0 {
			size = forms.BlobFrom // an event of this size has a separate row
		}
		events := numbered(len(want[id])+1, 1+random.IntN(4), size)
		if random.IntN(40) == 0 {
			events = numbered(len(want[id])+1, 3*chapterEvents, 0) // a single append in one row, longer than a chapter
		}
		if err := s.Append(ctx, store.Append{Run: id, Events: events}); err != nil {
			t.Fatal(err)
		}
		for i := range events {
			events[i].Run = id
		}
		want[id] = append(want[id], events...)
		if n == 150 { // the remaining appends run without the positions that the writer has remembered
			forget(t, s)
		}
	}
	for id, all := range want {
		row, err := s.Run(ctx, id)
		if err != nil || row.Seq != uint64(len(all)) {
			t.Errorf("run %s has %d events, %v; want %d", id, row.Seq, err, len(all))
		}
		for range 50 {
			after := random.IntN(len(all) + 2)
			for _, limit := range []int{0, 1, chapterEvents} {
				expected := all[min(after, len(all)):]
				if limit > 0 {
					expected = expected[:min(limit, len(expected))]
				}
				got, err := s.Events(ctx, id, uint64(after), limit)
				if err != nil || !slices.EqualFunc(expected, got, sameEvent) {
					t.Fatalf("%d events of run %s after %d: %d, %v; want %d", limit, id, after, len(got), err, len(expected))
				}
			}
		}
		if n := count(t, s, "chapters WHERE run = (SELECT n FROM runs WHERE id = '"+id+"')"); n < 2 {
			t.Errorf("run %s has %d chapters", id, n)
		}
	}
	for _, id := range ids {
		if err := s.DeleteSession(ctx, "s_"+id); err != nil {
			t.Fatal(err)
		}
	}
	for _, table := range []string{"events", "chapters", "blobs"} {
		if n := count(t, s, table); n > 0 {
			t.Errorf("%d rows of %s are left of deleted runs", n, table)
		}
	}
}

// TestLastFence appends after an event that is no longer the last one, as a second process with a lost lease and
// outdated positions would do.
func TestLastFence(t *testing.T) {
	for _, before := range []int{1, chapterEvents - 1, chapterEvents, chapterEvents + 1} {
		for _, more := range []int{1, 2 * chapterEvents} {
			t.Run(fmt.Sprintf("%d_then_%d", before, more), func(t *testing.T) {
				s := mustOpen(t, filepath.Join(t.TempDir(), "tenon.db"), migrations)
				ctx := t.Context()
				if err := s.Append(ctx, store.Append{Create: &tenon.Run{ID: "r"}, Run: "r", Events: numbered(1, before, 0)}); err != nil {
					t.Fatal(err)
				}
				var stale position
				remember(t, s, func(w *writer) { stale = *w.runs["r"] })
				for i := range more {
					if err := s.Append(ctx, store.Append{Run: "r", Events: numbered(before+1+i, 1, 0)}); err != nil {
						t.Fatal(err)
					}
				}
				remember(t, s, func(w *writer) { w.runs["r"] = &stale })
				err := s.Append(ctx, store.Append{Run: "r", Events: numbered(before+1, 1, 0)})
				if err == nil || !strings.Contains(err.Error(), "UNIQUE constraint failed") {
					t.Errorf("a second event %d: %v", before+1, err)
				}
				if got := checkNumbered(t, s, "after it"); got != uint64(before+more) {
					t.Errorf("%d events, want %d", got, before+more)
				}
			})
		}
	}
}

// TestOldJournalGoesOn appends to a run of an older store, whose whole journal is in one chapter.
func TestOldJournalGoesOn(t *testing.T) {
	for version := range oldStores {
		s := mustOpen(t, copyOld(t, version), migrations)
		old, err := s.Events(t.Context(), "run_2", 0, 0)
		if err != nil {
			t.Fatal(err)
		}
		for i := range 2 * chapterEvents {
			if err := s.Append(t.Context(), store.Append{Run: "run_2", Events: numbered(len(old)+1+i, 1, 0)}); err != nil {
				t.Fatal(err)
			}
		}
		events, err := s.Events(t.Context(), "run_2", 0, 0)
		if err != nil || len(events) != len(old)+2*chapterEvents || !slices.EqualFunc(old, events[:len(old)], sameEvent) {
			t.Errorf("version %d: %d events, %v; want %d and %d", version, len(events), err, len(old), 2*chapterEvents)
		}
		if n := count(t, s, "chapters JOIN runs ON runs.n = run WHERE id = 'run_2'"); n != 3 {
			t.Errorf("version %d: %d chapters, want 3", version, n)
		}
	}
}

// TestJournalIsNotSorted checks the plan of the query that reads journals. The rows come in the order of the key
// without sorting, so that the rows after the limit are not read.
func TestJournalIsNotSorted(t *testing.T) {
	s := mustOpen(t, filepath.Join(t.TempDir(), "tenon.db"), migrations)
	err := s.each(t.Context(), "EXPLAIN QUERY PLAN "+selectEvents, []any{"r", 0}, func(rows *sql.Rows) error {
		var id, parent, unused int
		var step string
		err := rows.Scan(&id, &parent, &unused, &step)
		if strings.Contains(step, "TEMP B-TREE") || strings.HasPrefix(step, "SCAN") {
			t.Errorf("step %q", step)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// sameEvent compares large events, for which cmp would take seconds.
func sameEvent(a, b tenon.Event) bool {
	return a.Run == b.Run && a.Seq == b.Seq && a.Kind == b.Kind && a.Step == b.Step && bytes.Equal(a.Data, b.Data)
}

// forget makes the writer forget the positions of the ends of journals.
func forget(t *testing.T, s *Store) {
	remember(t, s, func(w *writer) { clear(w.runs) })
}

// remember changes the positions that the writer has remembered.
func remember(t *testing.T, s *Store, change func(*writer)) {
	t.Helper()
	if err := s.submit(context.Background(), func(w *writer) error {
		change(w)
		return nil
	}); err != nil {
		t.Fatal(err)
	}
}

func count(t *testing.T, s *Store, from string) (n int) {
	t.Helper()
	if err := s.each(t.Context(), "SELECT count(*) FROM "+from, nil, func(rows *sql.Rows) error { return rows.Scan(&n) }); err != nil {
		t.Fatal(err)
	}
	return n
}
