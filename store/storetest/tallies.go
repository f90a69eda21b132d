package storetest

import (
	"fmt"
	"strings"
	"testing"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/store"
)

// finish ends a run with an event.
func finish(t *testing.T, s store.Store, run string, seq int) {
	t.Helper()
	must(t, s.Append(t.Context(), store.Append{Run: run, Events: events(seq, 1), State: tenon.RunCompleted,
		Stop: tenon.StopEnd}))
}

// tallied returns the stored summaries, newest first.
func tallied(t *testing.T, s store.Store) string {
	t.Helper()
	var list []string
	must(t, s.Tallies(t.Context(), func(y store.Tally) error {
		list = append(list, fmt.Sprintf("%s/%d:%s", y.Run, y.Seq, y.Data))
		return nil
	}))
	return strings.Join(list, " ")
}

// uncounted returns the ids of the runs without an up-to-date summary, and their number.
func uncounted(t *testing.T, s store.Store, ended bool, limit int) string {
	t.Helper()
	runs, total, err := s.Uncounted(t.Context(), ended, limit)
	must(t, err)
	var list []string
	for _, r := range runs {
		list = append(list, fmt.Sprintf("%s/%d", r.ID, r.Seq))
	}
	return fmt.Sprint(total, " ", list)
}

func tally(run string, seq uint64, data string) store.Tally {
	return store.Tally{Run: run, Seq: seq, Data: []byte(data)}
}

// testTallies keeps summaries of runs.
func testTallies(t *testing.T, open func() store.Store) {
	s, other, ctx := open(), open(), t.Context()
	equal(t, "of an empty store", tallied(t, s)+uncounted(t, s, false, 0), "0 []")
	must(t, s.PutTallies(ctx, nil))
	for _, run := range []string{"r1", "r2", "r3"} {
		create(t, s, run, "s_"+run, 2)
	}
	finish(t, s, "r1", 3)
	finish(t, other, "r2", 3)
	equal(t, "all", uncounted(t, s, false, 0), "3 [r3/2 r2/3 r1/3]")
	equal(t, "ended", uncounted(t, s, true, 0), "2 [r2/3 r1/3]")
	equal(t, "one", uncounted(t, s, false, 1), "3 [r3/2]")
	equal(t, "the number only", uncounted(t, s, false, -1), "3 []")

	must(t, other.PutTallies(ctx, []store.Tally{tally("r1", 3, "one"), tally("gone", 1, "none"),
		tally("r3", 2, "three"), tally("r2", 2, "old")}))
	equal(t, "working, and behind", uncounted(t, s, false, 0), "2 [r3/2 r2/3]")
	equal(t, "summaries", tallied(t, s), "r3/2:three r2/2:old r1/3:one")
	must(t, s.PutTallies(ctx, []store.Tally{tally("r2", 3, "two"), tally("r3", 1, "older")}))
	equal(t, "an older summary replaces none", tallied(t, s), "r3/2:three r2/3:two r1/3:one")
	equal(t, "behind", uncounted(t, s, false, 0), "1 [r3/2]")

	// A run that is resumed is behind again.
	must(t, s.Append(ctx, store.Append{Run: "r1", Events: events(4, 1), State: tenon.RunWorking}))
	equal(t, "resumed", uncounted(t, other, false, 0), "2 [r3/2 r1/4]")
	finish(t, s, "r1", 5)
	finish(t, s, "r3", 3)
	must(t, s.PutTallies(ctx, []store.Tally{tally("r1", 5, "ONE"), tally("r3", 3, "")}))
	equal(t, "without data", tallied(t, s), "r2/3:two r1/5:ONE")
	equal(t, "nothing", uncounted(t, s, false, 0), "0 []")
	stop := fmt.Errorf("stop")
	if err := s.Tallies(ctx, func(store.Tally) error { return stop }); err != stop {
		t.Errorf("the error of the callback became %v", err)
	}

	// A run that is stored as a whole brings its summary.
	must(t, s.Append(ctx, store.Append{Create: &tenon.Run{ID: "r6", Core: "test@1"}, Run: "r6", Events: events(1, 2),
		State: tenon.RunCompleted, Stop: tenon.StopEnd, Tally: []byte("six")}))
	equal(t, "with its run", tallied(t, other), "r6/2:six r2/3:two r1/5:ONE")
	equal(t, "counted", uncounted(t, s, false, 0), "0 []")
	gaps, total, err := s.Unindexed(ctx, store.GapFilter{})
	must(t, err)
	if total == 0 || len(gaps) == 0 || gaps[0].Run != "r6" {
		t.Errorf("the texts of the run count as indexed: %v of %d", gaps, total)
	}
	must(t, s.Append(ctx, store.Append{Run: "r6", Events: events(3, 1), State: tenon.RunWorking}))
	equal(t, "continued", uncounted(t, s, false, 0), "1 [r6/3]")
	finish(t, s, "r6", 4)
	must(t, other.PutTallies(ctx, []store.Tally{tally("r6", 4, "")}))

	// Deletions take the summaries along.
	create(t, s, "r4", "s_r1", 1)
	must(t, s.DeleteSession(ctx, "s_r1"))
	equal(t, "after a deletion", tallied(t, other)+" "+uncounted(t, other, false, 0), "r2/3:two 0 []")
	v, err := s.Session(ctx, "s_r2")
	must(t, err)
	_, err = s.DeleteSessions(ctx, []tenon.Session{v}, nil)
	must(t, err)
	equal(t, "after pruning", tallied(t, other), "")
	create(t, s, "r5", "s5", 1) // may have the row of a deleted run
	equal(t, "a new run", tallied(t, s)+uncounted(t, s, false, 0), "1 [r5/1]")
}

// testPendingTexts looks for runs whose texts are not indexed up to their end.
func testPendingTexts(t *testing.T, open func() store.Store) {
	s, ctx := open(), t.Context()
	create(t, s, "r1", "s1", 2)
	pending := func() string {
		t.Helper()
		gaps, total, err := s.Unindexed(ctx, store.GapFilter{})
		must(t, err)
		return strings.TrimSpace(fmt.Sprint(total, " ", gaps))
	}
	must(t, putText(s, "r1", 2, nil))
	equal(t, "working and indexed", pending(), "1 []")
	finish(t, s, "r1", 3)
	equal(t, "ended", pending(), "1 [{r1 2 3}]")
	must(t, putText(s, "r1", 2, nil)) // of a slower indexer
	equal(t, "still not indexed", pending(), "1 [{r1 2 3}]")
	must(t, putText(s, "r1", 3, nil))
	equal(t, "indexed", pending(), "0 []")
	must(t, s.Append(ctx, store.Append{Run: "r1", State: tenon.RunWorking}))
	must(t, s.Append(ctx, store.Append{Run: "r1", State: tenon.RunFailed, Stop: tenon.StopError}))
	equal(t, "ended again", pending(), "1 [{r1 3 3}]")
	must(t, putText(s, "r1", 3, nil))
	equal(t, "put once more", pending(), "0 []")
}
