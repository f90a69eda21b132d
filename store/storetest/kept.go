package storetest

import (
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/store"
)

func testResults(t *testing.T, open func() store.Store) {
	s, other, ctx := open(), open(), t.Context()
	must(t, s.Append(ctx, store.Append{Create: &tenon.Run{ID: "r", Session: "ses", State: tenon.RunCompleted},
		Run: "r"}))
	soon := time.Now().Add(time.Hour).Truncate(time.Second).UTC()
	kept := store.KeptResult{Key: "k", Run: "r", Step: "1.0", Expires: soon, Data: json.RawMessage(`{"a":1}`)}
	must(t, s.PutResult(ctx, kept))
	got, err := other.Result(ctx, "k", soon.Add(-time.Second))
	must(t, err)
	equal(t, "kept", got, kept)
	_, err = other.Result(ctx, "k", soon)
	wantCode(t, err, tenon.CodeNotFound)
	_, err = other.Result(ctx, "other", soon.Add(-time.Second))
	wantCode(t, err, tenon.CodeNotFound)
	for _, key := range []string{"p/a", "p/b", "p0", "P/c"} {
		k := kept
		k.Key = key
		must(t, s.PutResult(ctx, k))
	}
	keys := func(prefix string, now time.Time, limit int) string {
		t.Helper()
		list, err := other.ResultKeys(ctx, prefix, now, limit)
		must(t, err)
		slices.Sort(list)
		return fmt.Sprint(list)
	}
	equal(t, "keys with a prefix", keys("p/", soon.Add(-time.Second), 10), "[p/a p/b]")
	equal(t, "at most one", len(keys("p/", soon.Add(-time.Second), 1)), len("[p/a]"))
	equal(t, "expired", keys("p/", soon, 10), "[]")
	kept.Data, kept.Step = json.RawMessage(`{"a":2}`), "2.0"
	must(t, other.PutResult(ctx, kept))
	got, err = s.Result(ctx, "k", soon.Add(-time.Second))
	must(t, err)
	equal(t, "in place of the first", got, kept)
	wantCode(t, s.PutResult(ctx, store.KeptResult{Key: "x", Expires: soon}), tenon.CodeInvalid)
	wantCode(t, s.PutResult(ctx, store.KeptResult{Key: "x", Run: "nobody", Expires: soon}), tenon.CodeNotFound)
	wantCode(t, s.PutResult(ctx, store.KeptResult{Key: "x", Run: "r", Expires: soon, Data: make([]byte, 2<<20)}),
		tenon.CodeTooLarge)

	// The size is bounded: the results that expire first are removed.
	big := make([]byte, 1<<20)
	for i := range 70 {
		must(t, s.PutResult(ctx, store.KeptResult{Key: fmt.Sprint("big", i), Run: "r",
			Expires: soon.Add(time.Duration(i) * time.Minute), Data: big}))
	}
	_, err = s.Result(ctx, "big0", soon.Add(-time.Second))
	wantCode(t, err, tenon.CodeNotFound)
	_, err = s.Result(ctx, "big69", soon.Add(-time.Second))
	must(t, err)

	// The results of a deleted run are deleted.
	must(t, s.DeleteSession(ctx, "ses"))
	_, err = other.Result(ctx, "big69", soon.Add(-time.Second))
	wantCode(t, err, tenon.CodeNotFound)
}

func testRates(t *testing.T, open func() store.Store) {
	s, other, ctx := open(), open(), t.Context()
	now := at(0)
	admit := func(s store.Store, after, most time.Duration) (time.Duration, bool) {
		t.Helper()
		wait, ok, err := s.Admit(ctx, "k", 2, time.Minute, most, now.Add(after))
		must(t, err)
		return wait, ok
	}
	for i, step := range []struct {
		s           store.Store
		after, most time.Duration
		wait        time.Duration
		ok          bool
	}{
		{s, 0, time.Minute, 0, true},
		{other, 10 * time.Second, time.Minute, 0, true},
		{s, 20 * time.Second, time.Minute, 40 * time.Second, true},                    // the first window ends
		{other, 20 * time.Second, time.Minute, 50 * time.Second, true},                // the second window
		{s, 20 * time.Second, time.Minute, 100 * time.Second, false},                  // too long: nothing is reserved
		{s, 20 * time.Second, 2 * time.Minute, 100 * time.Second, true},               // the third window
		{s, 5 * time.Minute, time.Minute, 0, true},                                    // all windows are over
		{s, -24 * time.Hour, time.Minute, 0, true},                                    // a clock that was set back
		{other, -24*time.Hour + time.Second, time.Minute, 0, true},                    //
		{other, -24*time.Hour + time.Second, time.Minute, 59 * time.Second, true},     //
		{other, -24*time.Hour + 61*time.Second, time.Millisecond, 0, true},            //
		{other, -24*time.Hour + 62*time.Second, time.Second, 58 * time.Second, false}, //
	} {
		wait, ok := admit(step.s, step.after, step.most)
		if wait != step.wait || ok != step.ok {
			t.Errorf("%d: %s %v, want %s %v", i, wait, ok, step.wait, step.ok)
		}
	}
	for _, bad := range []struct {
		key   string
		calls int
		per   time.Duration
	}{{"", 1, 1}, {"k", 0, 1}, {"k", 1, 0}} {
		_, _, err := s.Admit(ctx, bad.key, bad.calls, bad.per, 0, now)
		wantCode(t, err, tenon.CodeInvalid)
	}
	// Concurrent reservations do not exceed the limit.
	var mu sync.Mutex
	var wg sync.WaitGroup
	free := 0
	for i := range 20 {
		wg.Go(func() {
			from := []store.Store{s, other}[i%2]
			_, ok, err := from.Admit(ctx, "crowd", 5, time.Minute, 0, now)
			if err != nil {
				t.Error(err)
			}
			mu.Lock()
			defer mu.Unlock()
			if ok {
				free++
			}
		})
	}
	wg.Wait()
	equal(t, "admitted at once", free, 5)
}

func testPins(t *testing.T, open func() store.Store) {
	s, other, ctx := open(), open(), t.Context()
	pin := func(server, remote, digest string, n int) store.Pin {
		return store.Pin{Server: server, Remote: remote, Raw: "raw " + digest, Digest: digest,
			Definition: json.RawMessage(`{"v":"` + digest + `"}`), By: "first use", Created: at(n)}
	}
	must(t, s.PutPins(ctx, []store.Pin{pin("s", "b", "1", 1), pin("s", "", "0", 1), pin("s", "a", "1", 1),
		pin("t", "a", "1", 1)}, true))
	must(t, other.PutPins(ctx, []store.Pin{pin("s", "a", "2", 2), pin("s", "c", "2", 2)}, true))
	must(t, other.PutPins(ctx, []store.Pin{pin("s", "b", "3", 3)}, false))
	list, err := s.Pins(ctx, "s")
	must(t, err)
	var want []store.Pin
	for _, p := range []store.Pin{pin("s", "", "0", 1), pin("s", "a", "1", 1), pin("s", "b", "3", 3),
		pin("s", "c", "2", 2)} {
		p.Definition = nil
		want = append(want, p)
	}
	equal(t, "of one server", list, want)
	list, err = s.Pins(ctx, "")
	must(t, err)
	equal(t, "of all", len(list), 5)
	got, err := s.Pin(ctx, "s", "b")
	must(t, err)
	equal(t, "one", got, pin("s", "b", "3", 3))
	_, err = s.Pin(ctx, "s", "nothing")
	wantCode(t, err, tenon.CodeNotFound)
	must(t, other.DeletePins(ctx, "s", "b", "nothing"))
	_, err = s.Pin(ctx, "s", "b")
	wantCode(t, err, tenon.CodeNotFound)
	must(t, other.DeletePins(ctx, "s"))
	wantCode(t, s.DeletePins(ctx, "s"), tenon.CodeNotFound)
	list, err = s.Pins(ctx, "")
	must(t, err)
	equal(t, "what is left", len(list), 1)
	wantCode(t, s.PutPins(ctx, []store.Pin{{Remote: "x", Digest: "1"}}, true), tenon.CodeInvalid)
}
