package storetest

import (
	"strings"
	"testing"
	"time"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/store"
)

func testSessions(t *testing.T, open func() store.Store) {
	s, ctx := open(), t.Context()
	create(t, s, "r1", "s1", 1)
	got, err := s.Session(ctx, "s1")
	must(t, err)
	equal(t, "inserted", got, tenon.Session{ID: "s1", Title: "t r1", Agent: "a", Principal: "local", Head: "r1", Runs: 1, Created: start, Updated: start})
	got.Title, got.Updated, got.Principal, got.Parent, got.HeadSeq = "mine", at(50), "anna", "s0", 1
	must(t, s.PutSession(ctx, got))
	again, err := s.Session(ctx, "s1")
	must(t, err)
	equal(t, "replaced", again, got)

	must(t, s.PutSession(ctx, tenon.Session{ID: "s2", Created: at(3), Updated: at(3)}))
	later := row("r2", "s2")
	later.Created, later.Updated = at(60), at(60)
	must(t, s.Append(ctx, store.Append{Create: later, Run: "r2", Events: events(1, 1)}))
	got, err = s.Session(ctx, "s2")
	must(t, err)
	equal(t, "head of a prepared one", got, tenon.Session{ID: "s2", Title: "t r2", Agent: "a", Principal: "local", Head: "r2", Runs: 1, Created: at(3), Updated: at(60)})

	// A forked one begins in the middle of another's run, until it has its own.
	fork := tenon.Session{ID: "s3", Parent: "s2", Head: "r2", HeadSeq: 1, Created: at(61), Updated: at(61)}
	must(t, s.PutSession(ctx, fork))
	got, err = s.Session(ctx, "s3")
	must(t, err)
	equal(t, "forked", got, fork)
	create(t, s, "r3", "s3", 1)
	got, err = s.Session(ctx, "s3")
	must(t, err)
	equal(t, "its own head", []any{got.Head, got.HeadSeq, got.Parent, got.Runs, got.Updated.Equal(at(61))}, []any{"r3", uint64(0), "s2", 1, true})
	_, err = s.Session(ctx, "none")
	wantCode(t, err, tenon.CodeNotFound)
}

func testExclusive(t *testing.T, open func() store.Store) {
	s, ctx := open(), t.Context()
	excl := func(id string) store.Append {
		return store.Append{Create: row(id, "s"), Exclusive: true, Run: id, Events: events(1, 1)}
	}
	must(t, s.Append(ctx, excl("r1")))
	wantCode(t, s.Append(ctx, excl("r2")), tenon.CodeConflict)
	must(t, s.Append(ctx, store.Append{Run: "r1", State: tenon.RunInputRequired}))
	wantCode(t, s.Append(ctx, excl("r2")), tenon.CodeConflict)
	must(t, s.Append(ctx, store.Append{Run: "r1", State: tenon.RunFailed, Stop: tenon.StopError}))
	must(t, s.Append(ctx, excl("r2")))
}

func testSessionList(t *testing.T, open func() store.Store) {
	s, ctx := open(), t.Context()
	for i, id := range []string{"s_a", "s_b", "s_c", "s_d", "t_e"} {
		v := tenon.Session{ID: id, Principal: "anna", Created: start, Updated: at(i)}
		if i%2 == 1 {
			v.Principal, v.Parent = "ben", "s_a"
		}
		if id == "s_d" {
			v.Updated = at(2) // as s_c: the id decides
		}
		must(t, s.PutSession(ctx, v))
	}
	for name, c := range map[string]struct {
		f    store.SessionFilter
		want string
	}{
		"all":       {store.SessionFilter{}, "t_e s_d s_c s_b s_a"},
		"limit":     {store.SessionFilter{Limit: 2}, "t_e s_d"},
		"page":      {store.SessionFilter{Limit: 2, Before: "s_d"}, "s_c s_b"},
		"end":       {store.SessionFilter{Before: "s_a"}, ""},
		"principal": {store.SessionFilter{Principal: "ben"}, "s_d s_b"},
		"parent":    {store.SessionFilter{Parent: "s_a", Limit: 1}, "s_d"},
		"prefix":    {store.SessionFilter{Prefix: "s_"}, "s_d s_c s_b s_a"},
		"unused":    {store.SessionFilter{UpdatedBefore: at(2)}, "s_b s_a"},
		"all of it": {store.SessionFilter{UpdatedBefore: at(9), Principal: "anna", Before: "t_e"}, "s_c s_a"},
		"nobody":    {store.SessionFilter{Principal: "o'x"}, ""},
	} {
		t.Run(strings.ReplaceAll(name, " ", "_"), func(t *testing.T) {
			list, err := s.Sessions(ctx, c.f)
			must(t, err)
			var ids []string
			for _, v := range list {
				ids = append(ids, v.ID)
			}
			equal(t, "ids", strings.Join(ids, " "), c.want)
		})
	}
	_, err := s.Sessions(ctx, store.SessionFilter{Before: "none"})
	wantCode(t, err, tenon.CodeNotFound)
}

// testCalled has runs that a run calls: a part of its session, but neither its
// head nor in anybody's way.
func testCalled(t *testing.T, open func() store.Store) {
	s, ctx := open(), t.Context()
	create(t, s, "r1", "s", 1)
	for _, step := range []string{"1", "2"} {
		child := row("r1/"+step, "s")
		child.Caller = "r1"
		must(t, s.Append(ctx, store.Append{Create: child, Exclusive: true, Run: child.ID, Events: events(1, 1)}))
	}
	v, err := s.Session(ctx, "s")
	must(t, err)
	equal(t, "head and runs", []any{v.Head, v.Runs}, []any{"r1", 1})
	must(t, s.Append(ctx, store.Append{Run: "r1", State: tenon.RunFailed, Stop: tenon.StopError}))
	must(t, s.Append(ctx, store.Append{Create: row("r2", "s"), Exclusive: true, Run: "r2", Events: events(1, 1)}))
	for name, c := range map[string]struct {
		f    store.RunFilter
		want string
	}{
		"all":    {store.RunFilter{Session: "s"}, "r2 r1/2 r1/1 r1"},
		"caller": {store.RunFilter{Caller: "r1"}, "r1/2 r1/1"},
		"top":    {store.RunFilter{Top: true, Session: "s"}, "r2 r1"},
		"prefix": {store.RunFilter{Top: true, Prefix: "r1"}, "r1"},
	} {
		rows, err := s.Runs(ctx, c.f)
		must(t, err)
		var ids []string
		for _, r := range rows {
			ids = append(ids, r.ID)
		}
		equal(t, name, strings.Join(ids, " "), c.want)
	}
	r, err := s.Run(ctx, "r1/1")
	must(t, err)
	equal(t, "a called run", []any{r.Caller, r.Principal}, []any{"r1", tenon.PrincipalLocal})
}

// testImport writes whole journals with their ids and times, as an import does.
func testImport(t *testing.T, open func() store.Store) {
	s, ctx := open(), t.Context()
	const n = 2_000
	r := row("run_old", "ses_old")
	r.Created, r.Updated = at(-1000), at(-500)
	a := store.Append{Create: r, Run: r.ID, Events: events(1, n), State: tenon.RunCompleted, Stop: tenon.StopEnd, Blobs: [][]byte{[]byte("tools")}}
	a.Events[7].Data = append([]byte{'"'}, append([]byte(strings.Repeat("x", 100<<10)), '"')...)
	for i := range a.Events {
		a.Events[i].Time = at(i - 3000)
	}
	must(t, s.Append(ctx, a))
	want := tenon.Session{ID: "ses_old", Title: "as it was", Principal: "anna", Head: r.ID, Created: at(-2000), Updated: at(-400)}
	must(t, s.PutSession(ctx, want))
	wantCode(t, s.Append(ctx, a), tenon.CodeConflict)

	got, err := s.Run(ctx, r.ID)
	must(t, err)
	wantRow := *r
	wantRow.Seq, wantRow.State, wantRow.Stop = n, tenon.RunCompleted, tenon.StopEnd
	wantRow.Updated = latest(r.Updated, a.Events[n-1].Time)
	equal(t, "row", got, wantRow)
	journal, err := s.Events(ctx, r.ID, 0, 0)
	must(t, err)
	for i := range a.Events {
		a.Events[i].Run = r.ID
	}
	equal(t, "journal", journal, a.Events)
	page, err := s.Events(ctx, r.ID, 1_000, 5)
	must(t, err)
	equal(t, "a page", page, a.Events[1_000:1_005])
	v, err := s.Session(ctx, "ses_old")
	must(t, err)
	want.Runs = 1
	equal(t, "session", v, want)
}

func latest(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
