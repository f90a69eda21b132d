package storetest

import (
	"fmt"
	"testing"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/store"
)

// testUnheld pages through the runs without a lease, as a search does. A store may leave out none of them. It may also
// return runs with a lease.
func testUnheld(t *testing.T, open func() store.Store) {
	s, other, ctx := open(), open(), t.Context()
	for i := range 9 {
		create(t, s, fmt.Sprint("run_", i), fmt.Sprint("s", i), 1)
	}
	must(t, s.Append(ctx, store.Append{Run: "run_4", Events: events(2, 1), State: tenon.RunInputRequired}))
	must(t, s.Append(ctx, store.Append{Run: "run_5", Events: events(2, 1), State: tenon.RunCompleted}))
	release := map[string]func(){}
	for run, by := range map[string]store.Store{"run_1": other, "run_2": other, "run_3": s, "run_4": other,
		"run_8": other} {
		free, ok, err := by.Acquire(run)
		must(t, err)
		if !ok {
			t.Fatal(run + " is held")
		}
		release[run] = free
	}
	search := func(what string, from store.Store, most int, free ...string) {
		t.Helper()
		left := map[string]bool{}
		for _, run := range free {
			left[run] = true
		}
		f := store.RunFilter{State: tenon.RunWorking, Unheld: true, Limit: most,
			Except: func(id string) bool { return id == "run_7" }}
		for {
			rows, err := from.Runs(ctx, f)
			must(t, err)
			if len(rows) > most {
				t.Fatalf("%s: %d runs, want at most %d", what, len(rows), most)
			}
			for _, r := range rows {
				held, err := from.Held(r.ID)
				must(t, err)
				ordered := f.Before == "" || r.ID < f.Before
				if !ordered || r.State != tenon.RunWorking || r.ID == "run_7" || held == left[r.ID] {
					t.Errorf("%s: after %q, found %s (%s, held: %t)", what, f.Before, r.ID, r.State, held)
				}
				delete(left, r.ID)
				f.Before = r.ID
			}
			if len(rows) == 0 {
				break
			}
		}
		if len(left) > 0 {
			t.Errorf("%s: not found: %v", what, left)
		}
	}
	for _, most := range []int{1, 2, 100} {
		search("without a lease", s, most, "run_0", "run_6")
		search("without a lease, by another", other, most, "run_0", "run_6")
	}
	for run := range release {
		release[run]()
	}
	search("after the releases", s, 1, "run_0", "run_1", "run_2", "run_3", "run_6", "run_8")
	if _, ok, err := s.Acquire("run_8"); err != nil || !ok {
		t.Fatal(ok, err)
	}
	search("after another lease", other, 1, "run_0", "run_1", "run_2", "run_3", "run_6")
}
