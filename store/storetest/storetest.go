// Package storetest is the test suite for implementations of [store.Store]. It checks the contract of package
// store. An implementation for another database is complete when it passes. Package engine/local relies only
// on behaviour that this suite checks.
//
//	func TestStore(t *testing.T) {
//		storetest.Run(t, func(t *testing.T) func() store.Store { … })
//	}
//
// The given function creates an empty place for each test. The returned function opens that place. It may be
// called several times, as by several processes.
package storetest

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/store"
)

// Place creates an empty place for stores and returns a function that opens it. Each opened store is closed
// by the test's cleanup, unless the test closes it before.
type Place func(t *testing.T) (open func() store.Store)

// Run runs the suite against an implementation.
func Run(t *testing.T, place Place) {
	for name, test := range map[string]func(*testing.T, func() store.Store){
		"append":          testAppend,
		"append_conflict": testConflict,
		"group":           testGroup,
		"second_writer":   testSecondWriter,
		"data":            testData,
		"rows":            testRows,
		"sessions":        testSessions,
		"session_list":    testSessionList,
		"exclusive":       testExclusive,
		"continued":       testContinued,
		"called_runs":     testCalled,
		"import":          testImport,
		"inbox":           testInbox,
		"expired":         testExpired,
		"unheld":          testUnheld,
		"blobs":           testBlobs,
		"grants":          testGrants,
		"session_grants":  testSessionGrants,
		"grant_uses":      testGrantUses,
		"budgets":         testBudgets,
		"budget_clients":  testBudgetClients,
		"dead_budgets":    testDeadBudgets,
		"results":         testResults,
		"rates":           testRates,
		"pins":            testPins,
		"search":          testSearch,
		"search_pending":  testPendingTexts,
		"tallies":         testTallies,
		"delete":          testDelete,
		"delete_many":     testDeleteMany,
		"leases":          testLeases,
		"changed":         testChanged,
		"cancelled":       testCancelled,
	} {
		t.Run(name, func(t *testing.T) { test(t, place(t)) })
	}
}

var start = time.Date(2026, 1, 2, 3, 4, 5, 6, time.UTC)

func at(n int) time.Time { return start.Add(time.Duration(n) * time.Second) }

func row(id, session string) *tenon.Run {
	return &tenon.Run{ID: id, Session: session, Core: "test@1", Agent: "a", Model: "m", Title: "t " + id,
		Principal: tenon.PrincipalLocal,
		Parent:    "p", ParentSeq: 7, State: tenon.RunWorking, Created: start, Updated: start}
}

func events(from, n int) []tenon.Event {
	var list []tenon.Event
	for i := range n {
		list = append(list, tenon.Event{Seq: uint64(from + i), Time: at(from + i), Step: "1", Kind: "k", Attempt: i,
			Data: json.RawMessage(fmt.Sprintf(`{"n":%d}`, from+i))})
	}
	return list
}

func create(t *testing.T, s store.Store, id, session string, n int) {
	t.Helper()
	must(t, s.Append(t.Context(), store.Append{Create: row(id, session), Run: id, Events: events(1, n)}))
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func wantCode(t *testing.T, err error, code tenon.Code) {
	t.Helper()
	if tenon.ErrorCode(err) != code {
		t.Fatalf("error %v has code %q, want %q", err, tenon.ErrorCode(err), code)
	}
}

func equal(t *testing.T, what string, got, want any) {
	t.Helper()
	if d := cmp.Diff(want, got, cmpopts.EquateEmpty()); d != "" {
		t.Errorf("%s (-want +got):\n%s", what, d)
	}
}

func testAppend(t *testing.T, open func() store.Store) {
	s, ctx := open(), t.Context()
	create(t, s, "r1", "s", 2)
	must(t, s.Append(ctx, store.Append{Run: "r1", Events: events(3, 3)}))
	want := append(events(1, 2), events(3, 3)...)
	for i := range want {
		want[i].Run = "r1"
	}
	got, err := s.Events(ctx, "r1", 0, 0)
	must(t, err)
	equal(t, "all events", got, want)
	got, err = s.Events(ctx, "r1", 2, 2)
	must(t, err)
	equal(t, "a page", got, want[2:4])
	got, err = s.Events(ctx, "r1", 5, 0)
	must(t, err)
	equal(t, "nothing after the last", got, []tenon.Event(nil))
	_, err = s.Events(ctx, "r2", 0, 0)
	wantCode(t, err, tenon.CodeNotFound)

	must(t, s.Close())
	wantCode(t, s.Append(ctx, store.Append{Run: "r1", Events: events(6, 1)}), tenon.CodeStore)
	again, err := open().Events(ctx, "r1", 0, 0)
	must(t, err)
	equal(t, "after opening again", again, want)
}

func testConflict(t *testing.T, open func() store.Store) {
	s, ctx := open(), t.Context()
	create(t, s, "r", "s", 2)
	for name, c := range map[string]struct {
		append store.Append
		code   tenon.Code
	}{
		"taken":       {store.Append{Run: "r", Events: events(2, 1)}, tenon.CodeConflict},
		"gap":         {store.Append{Run: "r", Events: events(4, 1)}, tenon.CodeConflict},
		"inner gap":   {store.Append{Run: "r", Events: append(events(3, 1), events(5, 1)...)}, tenon.CodeConflict},
		"exists":      {store.Append{Create: row("r", "s"), Run: "r", Events: events(1, 1)}, tenon.CodeConflict},
		"not found":   {store.Append{Run: "other", Events: events(1, 1)}, tenon.CodeNotFound},
		"no first":    {store.Append{Create: row("new", "s"), Run: "new", Events: events(2, 1)}, tenon.CodeConflict},
		"another row": {store.Append{Create: row("new", "s"), Run: "r", Events: events(3, 1)}, tenon.CodeInvalid},
	} {
		t.Run(strings.ReplaceAll(name, " ", "_"), func(t *testing.T) { wantCode(t, s.Append(ctx, c.append), c.code) })
	}
	if _, err := s.Run(ctx, "new"); tenon.ErrorCode(err) != tenon.CodeNotFound {
		t.Errorf("a refused append left a row: %v", err)
	}
	r, err := s.Run(ctx, "r")
	must(t, err)
	equal(t, "last event", r.Seq, uint64(2))
}

// testGroup runs many concurrent writers. A failing write must not affect the others.
func testGroup(t *testing.T, open func() store.Store) {
	s, ctx := open(), t.Context()
	const runs, steps = 40, 10
	var wg sync.WaitGroup
	errs := make(chan error, runs*steps)
	for r := range runs {
		wg.Go(func() {
			id := fmt.Sprint("r", r)
			if err := s.Append(ctx, store.Append{Create: row(id, id), Run: id, Events: events(1, 1)}); err != nil {
				errs <- err
				return
			}
			for i := range steps {
				if err := s.Append(ctx, store.Append{Run: id, Events: events(i+2, 1)}); err != nil {
					errs <- err
				}
				if err := s.Append(ctx, store.Append{Run: id,
					Events: events(i+1, 1)}); tenon.ErrorCode(err) != tenon.CodeConflict {
					errs <- fmt.Errorf("a second event %d: %v", i+1, err)
				}
			}
		})
	}
	wg.Wait()
	close(errs)
	for err := range errs {
		t.Error(err)
	}
	for r := range runs {
		got, err := s.Events(ctx, fmt.Sprint("r", r), 0, 0)
		must(t, err)
		if len(got) != steps+1 || got[steps].Seq != steps+1 {
			t.Errorf("run %d has %d events, want %d", r, len(got), steps+1)
		}
	}
}

// testSecondWriter appends to one run through two stores, which is forbidden. Only one of each pair may
// succeed, and each store sees the other's events.
func testSecondWriter(t *testing.T, open func() store.Store) {
	a, b, ctx := open(), open(), t.Context()
	create(t, a, "r", "s", 1)
	for i := 2; i < 20; i++ {
		first, second := a, b
		if i%3 == 0 {
			first, second = b, a
		}
		must(t, first.Append(ctx, store.Append{Run: "r", Events: events(i, 1)}))
		wantCode(t, second.Append(ctx, store.Append{Run: "r", Events: events(i, 1)}), tenon.CodeConflict)
	}
}

func testData(t *testing.T, open func() store.Store) {
	s, ctx := open(), t.Context()
	big := json.RawMessage(`"` + strings.Repeat("x", 100<<10) + `"`)
	data := []json.RawMessage{
		nil,
		json.RawMessage(`{}`),
		json.RawMessage("\"nul \x00 and \\u0000\""),
		json.RawMessage("\"not utf-8: \xff\xfe\""),
		json.RawMessage(`9007199254740993.10`),
		bytes.Repeat([]byte("y"), 32<<10),
		bytes.Repeat([]byte("y"), 32<<10+1),
		big, big,
	}
	must(t, s.Append(ctx, store.Append{Create: row("r", ""), Run: "r"}))
	for i, d := range data {
		must(t, s.Append(ctx, store.Append{Run: "r", Events: []tenon.Event{
			{Seq: uint64(i + 1), Time: start, Kind: "kind'\"", Step: "st\u00e9p/\U0001F600", Data: d}}}))
	}
	got, err := s.Events(ctx, "r", 0, 0)
	must(t, err)
	for i, d := range data {
		if !bytes.Equal(got[i].Data, d) {
			t.Errorf("data %d: got %.60q, want %.60q", i, got[i].Data, d)
		}
		if got[i].Kind != "kind'\"" || got[i].Step != "st\u00e9p/\U0001F600" || !got[i].Time.Equal(start) {
			t.Errorf("event %d came back as %+v", i, got[i])
		}
	}
}

func testRows(t *testing.T, open func() store.Store) {
	s, ctx := open(), t.Context()
	create(t, s, "run_1", "s1", 1)
	create(t, s, "run_2", "s1", 1)
	create(t, s, "run_3", "s2", 1)
	want := *row("run_1", "s1")
	want.Seq, want.Updated = 1, at(1)
	got, err := s.Run(ctx, "run_1")
	must(t, err)
	equal(t, "row", got, want)

	waiting := []tenon.Waiting{{Step: "1.0", Since: at(9), Data: json.RawMessage(`{"name":"x"}`)}}
	must(t, s.Append(ctx, store.Append{Run: "run_1", Events: events(2, 1), State: tenon.RunInputRequired,
		Waiting: waiting}))
	want.Seq, want.Updated, want.State, want.Waiting = 2, at(2), tenon.RunInputRequired, waiting
	got, err = s.Run(ctx, "run_1")
	must(t, err)
	equal(t, "waiting row", got, want)
	must(t, s.Append(ctx, store.Append{Run: "run_1", Events: events(3, 1)}))
	got, err = s.Run(ctx, "run_1")
	must(t, err)
	equal(t, "a zero state leaves the row", got.State, tenon.RunInputRequired)
	equal(t, "its waiting", got.Waiting, waiting)
	must(t, s.Append(ctx, store.Append{Run: "run_1", Events: events(4, 1), State: tenon.RunCompleted,
		Stop: tenon.StopEnd}))
	got, err = s.Run(ctx, "run_1")
	must(t, err)
	equal(t, "the end", []any{got.State, got.Stop, got.Waiting, got.Seq},
		[]any{tenon.RunCompleted, tenon.StopEnd, []tenon.Waiting(nil), uint64(4)})

	for name, c := range map[string]struct {
		f    store.RunFilter
		want string
	}{
		"all":     {store.RunFilter{}, "run_3 run_2 run_1"},
		"limit":   {store.RunFilter{Limit: 2}, "run_3 run_2"},
		"before":  {store.RunFilter{Before: "run_3"}, "run_2 run_1"},
		"session": {store.RunFilter{Session: "s1"}, "run_2 run_1"},
		"state":   {store.RunFilter{State: tenon.RunWorking}, "run_3 run_2"},
		"parent":  {store.RunFilter{Parent: "p", Session: "s2"}, "run_3"},
		"prefix":  {store.RunFilter{Prefix: "run_2"}, "run_2"},
		"owner":   {store.RunFilter{Principal: tenon.PrincipalLocal, Limit: 1}, "run_3"},
		"another": {store.RunFilter{Principal: "anna"}, ""},
		"except":  {store.RunFilter{Except: func(id string) bool { return id == "run_2" }}, "run_3 run_1"},
		"working": {store.RunFilter{State: tenon.RunWorking, Limit: 1,
			Except: func(id string) bool { return id == "run_3" }}, "run_2"},
		"nobody": {store.RunFilter{Prefix: "x'"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			rows, err := s.Runs(ctx, c.f)
			must(t, err)
			var ids []string
			for _, r := range rows {
				ids = append(ids, r.ID)
			}
			equal(t, "ids", strings.Join(ids, " "), c.want)
		})
	}
	_, err = s.Run(ctx, "none")
	wantCode(t, err, tenon.CodeNotFound)
}

// testExpired looks for runs with waits that have expired. A store may return more of the runs that wait.
func testExpired(t *testing.T, open func() store.Store) {
	s, ctx := open(), t.Context()
	now := at(3600).Add(time.Hour)
	// The data of a wait is any JSON, and has no say in its expiry.
	odd := json.RawMessage(`{"expires":"never","text":"\u0000 \ud800 \\ ` + "\xff" + ` \"expires\":\"x"}`)
	like := json.RawMessage(`{"since":"","expires":"9999-12-31T23:59:00Z","of":{"since":"x","expires":"never"}}`)
	for run, expires := range map[string]time.Time{"run_no": {}, "run_past": now.Add(-time.Second),
		"run_long": now.AddDate(-1, 0, 0), "run_now": now, "run_later": now.Add(2 * time.Minute),
		"run_far": now.AddDate(200, 0, 0)} {
		create(t, s, run, "s"+run, 1)
		waiting := []tenon.Waiting{{Step: "0", Since: at(1), Data: like}, {Step: "1", Since: at(1), Data: odd},
			{Step: "2", Since: at(1), Expires: expires, Data: like}}
		must(t, s.Append(ctx, store.Append{Run: run, Events: events(2, 1), State: tenon.RunInputRequired,
			Waiting: waiting}))
	}
	create(t, s, "run_working", "w", 1)
	rows, err := s.Runs(ctx, store.RunFilter{Expired: now})
	must(t, err)
	got := map[string]bool{}
	for _, r := range rows {
		got[r.ID] = true
	}
	for _, run := range []string{"run_past", "run_long", "run_now"} {
		if !got[run] {
			t.Errorf("%s has expired and is not found", run)
		}
	}
	if got["run_working"] {
		t.Errorf("a run that does not wait is found: %v", got)
	}
}

func testInbox(t *testing.T, open func() store.Store) {
	s, other, ctx := open(), open(), t.Context()
	create(t, s, "r", "s", 3)
	create(t, s, "q", "s", 1)
	sig := func(id, step string) store.Signal {
		return store.Signal{ID: id, Run: "r", Kind: "decision", Step: step, By: "me",
			Data: json.RawMessage(`{"v":"` + id + `"}`), Time: at(1)}
	}
	got, err := other.PutSignal(ctx, sig("a", "1"))
	must(t, err)
	equal(t, "stored", got, sig("a", "1"))
	changed := sig("a", "2")
	got, err = s.PutSignal(ctx, changed)
	must(t, err)
	equal(t, "the first is kept", got, sig("a", "1"))
	_, err = s.PutSignal(ctx, sig("b", "1"))
	must(t, err)
	_, err = s.PutSignal(ctx, store.Signal{ID: "c", Run: "q", Kind: "message", Time: at(2)})
	must(t, err)
	_, err = s.PutSignal(ctx, store.Signal{ID: "d", Run: "none", Kind: "message"})
	wantCode(t, err, tenon.CodeNotFound)

	list, err := s.Signals(ctx, "r")
	must(t, err)
	equal(t, "of the run", list, []store.Signal{sig("a", "1"), sig("b", "1")})
	list, err = s.Signals(ctx, "")
	must(t, err)
	equal(t, "of all runs", len(list), 3)

	_, err = s.Settled(ctx, "r", "1", "decision")
	wantCode(t, err, tenon.CodeNotFound)
	decision := tenon.Event{Seq: 4, Time: at(4), Step: "1", Kind: "decision"}
	must(t, s.Append(ctx, store.Append{Run: "r", Events: []tenon.Event{decision}, Taken: map[string]uint64{"a": 4}}))
	must(t, s.SettleSignal(ctx, "b", 4))
	must(t, s.SettleSignal(ctx, "b", 2)) // already settled
	for _, id := range []string{"a", "b"} {
		got, err := other.Signal(ctx, id)
		must(t, err)
		equal(t, "settled "+id, got.Seq, uint64(4))
	}
	got, err = other.Settled(ctx, "r", "1", "decision")
	must(t, err)
	equal(t, "winner", got.ID, "a")
	list, err = s.Signals(ctx, "r")
	must(t, err)
	equal(t, "none left", list, []store.Signal(nil))
	wantCode(t, s.SettleSignal(ctx, "none", 1), tenon.CodeNotFound)
	_, err = s.Signal(ctx, "none")
	wantCode(t, err, tenon.CodeNotFound)
}

func testLeases(t *testing.T, open func() store.Store) {
	a, b := open(), open()
	held := func(want bool) {
		t.Helper()
		for _, s := range []store.Store{a, b} {
			got, err := s.Held("run/1")
			must(t, err)
			equal(t, "held", got, want)
			all, err := store.HeldOf(s, []string{"run/none", "run/1"})
			must(t, err)
			equal(t, "held of many", []bool{all["run/1"], all["run/none"]}, []bool{want, false})
		}
	}
	held(false)
	release, ok, err := a.Acquire("run/1")
	must(t, err)
	if !ok {
		t.Fatal("a free lease was refused")
	}
	held(true)
	for name, s := range map[string]store.Store{"same store": a, "other store": b} {
		_, ok, err := s.Acquire("run/1")
		must(t, err)
		if ok {
			t.Errorf("%s: a lease was given twice", name)
		}
	}
	other, ok, err := b.Acquire("run/2")
	must(t, err)
	if !ok {
		t.Error("the lease of another run was refused")
	}
	other()
	release()
	held(false)

	// Many goroutines want the lease; only one at a time has it.
	var wg sync.WaitGroup
	var mu sync.Mutex
	for i := range 8 {
		s := []store.Store{a, b}[i%2]
		wg.Go(func() {
			for n := 0; n < 10; {
				release, ok, err := s.Acquire("run/3")
				if err != nil {
					t.Error(err)
					return
				}
				if !ok {
					continue
				}
				if !mu.TryLock() {
					t.Error("two owners at the same time")
				} else {
					mu.Unlock()
				}
				n++
				release()
			}
		})
	}
	wg.Wait()
}

func testChanged(t *testing.T, open func() store.Store) {
	a, b, ctx := open(), open(), t.Context()
	create(t, a, "r", "s", 1)
	wait := func(name string, ch <-chan struct{}) {
		t.Helper()
		select {
		case <-ch:
		case <-time.After(5 * time.Second):
			t.Fatalf("%s: no notification of a change", name)
		}
	}
	own, others := a.Changed(ctx), b.Changed(ctx)
	select {
	case <-own:
		t.Fatal("a notification arrived before its change")
	case <-time.After(60 * time.Millisecond):
	}
	must(t, a.Append(ctx, store.Append{Run: "r", Events: events(2, 1)}))
	wait("own", own)
	wait("other", others)
	gone, cancel := context.WithCancel(ctx)
	_ = b.Changed(gone)
	cancel()
	ch := b.Changed(ctx)
	must(t, a.Append(ctx, store.Append{Run: "r", Events: events(3, 1)}))
	wait("after one that gave up", ch)
}

func testCancelled(t *testing.T, open func() store.Store) {
	s := open()
	create(t, s, "r", "s", 1)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	wantCode(t, s.Append(ctx, store.Append{Run: "r", Events: events(2, 1)}), tenon.CodeCancelled)
	_, err := s.Events(ctx, "r", 0, 0)
	wantCode(t, err, tenon.CodeCancelled)
	r, err := s.Run(t.Context(), "r")
	must(t, err)
	equal(t, "nothing was stored", r.Seq, uint64(1))
}
