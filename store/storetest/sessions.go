package storetest

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"slices"
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
	equal(t, "inserted", got, tenon.Session{ID: "s1", Title: "t r1", Agent: "a", Principal: "local", Head: "r1",
		Runs: 1, Created: start, Updated: start})
	got.Title, got.Updated, got.Principal, got.Parent, got.HeadSeq = "mine", at(50), "anna", "s0", 1
	must(t, s.PutSession(ctx, got))
	got.HeadSeq = 0 // the head stays: a run may have begun since the row was read
	again, err := s.Session(ctx, "s1")
	must(t, err)
	equal(t, "replaced", again, got)
	create(t, s, "r1b", "s1", 1)
	must(t, s.PutSession(ctx, got)) // of before that run
	again, err = s.Session(ctx, "s1")
	must(t, err)
	equal(t, "the head after a stale row", []any{again.Head, again.Runs}, []any{"r1b", 2})

	must(t, s.PutSession(ctx, tenon.Session{ID: "s2", Created: at(3), Updated: at(3)}))
	later := row("r2", "s2")
	later.Created, later.Updated = at(60), at(60)
	must(t, s.Append(ctx, store.Append{Create: later, Run: "r2", Events: events(1, 1)}))
	got, err = s.Session(ctx, "s2")
	must(t, err)
	equal(t, "head of a prepared one", got, tenon.Session{ID: "s2", Title: "t r2", Agent: "a", Principal: "local",
		Head: "r2", Runs: 1, Created: at(3), Updated: at(60)})

	// A forked session starts within another session's run, until it has its own run.
	fork := tenon.Session{ID: "s3", Parent: "s2", Head: "r2", HeadSeq: 1, Created: at(61), Updated: at(61)}
	must(t, s.PutSession(ctx, fork))
	got, err = s.Session(ctx, "s3")
	must(t, err)
	equal(t, "forked", got, fork)
	create(t, s, "r3", "s3", 1)
	got, err = s.Session(ctx, "s3")
	must(t, err)
	equal(t, "its own head", []any{got.Head, got.HeadSeq, got.Parent, got.Runs, got.Updated.Equal(at(61))},
		[]any{"r3", uint64(0), "s2", 1, true})
	_, err = s.Session(ctx, "none")
	wantCode(t, err, tenon.CodeNotFound)
}

func testExclusive(t *testing.T, open func() store.Store) {
	s, ctx := open(), t.Context()
	excl := func(id, parent string, seq uint64) store.Append {
		r := row(id, "s")
		r.Parent, r.ParentSeq = parent, seq
		return store.Append{Create: r, Exclusive: true, Run: id, Events: events(1, 1)}
	}
	must(t, s.Append(ctx, excl("r1", "", 0)))
	wantCode(t, s.Append(ctx, excl("r2", "r1", 1)), tenon.CodeConflict)
	must(t, s.Append(ctx, store.Append{Run: "r1", State: tenon.RunInputRequired}))
	wantCode(t, s.Append(ctx, excl("r2", "r1", 1)), tenon.CodeConflict)
	must(t, s.Append(ctx, store.Append{Run: "r1", State: tenon.RunFailed, Stop: tenon.StopError}))
	must(t, s.Append(ctx, excl("r2", "r1", 1)))
}

// testContinued begins runs whose position in the session was read too early. Each would cut off what the session got
// since.
func testContinued(t *testing.T, open func() store.Store) {
	s, ctx := open(), t.Context()
	begin := func(id, session, parent string, seq uint64) error {
		r := row(id, session)
		r.Parent, r.ParentSeq = parent, seq
		return s.Append(ctx, store.Append{Create: r, Exclusive: true, Run: id, Events: events(1, 2)})
	}
	end := func(id string, from int) {
		t.Helper()
		must(t, s.Append(ctx, store.Append{Run: id, Events: events(from, 2), State: tenon.RunCompleted}))
	}
	stale := func(what string, err error) {
		t.Helper()
		if tenon.ErrorCode(err) != tenon.CodeConflict || !errors.Is(err, store.ErrContinued) {
			t.Errorf("%s: %v", what, err)
		}
	}
	must(t, begin("r1", "s", "", 0))
	if err := begin("r2", "s", "r1", 2); !errors.Is(err, store.ErrAtWork) {
		t.Errorf("a session at work: %v", err)
	}
	end("r1", 3)
	stale("read before the last events", begin("r2", "s", "r1", 2))
	stale("read before the first run", begin("r2", "s", "", 0))
	must(t, begin("r2", "s", "r1", 4))
	end("r2", 3)
	stale("read before another run", begin("r3", "s", "r1", 4))
	must(t, open().Append(ctx, store.Append{Run: "r2", Events: events(5, 1)})) // another process resumes it
	stale("read before its resumption", begin("r3", "s", "r2", 4))
	must(t, begin("r3", "s", "r2", 5))

	// The head of a fork is a run of another session, up to an event.
	fork := tenon.Session{ID: "f", Parent: "s", Head: "r2", HeadSeq: 3, Created: at(1), Updated: at(1)}
	must(t, s.PutSession(ctx, fork))
	stale("behind the place of the fork", begin("r4", "f", "r2", 5))
	must(t, begin("r4", "f", "r2", 3))
	child := row("r4/1", "f")
	child.Caller, child.Parent, child.ParentSeq = "r4", "", 0
	must(t, s.Append(ctx, store.Append{Create: child, Exclusive: true, Run: child.ID, Events: events(1, 1)}))
}

func testSessionList(t *testing.T, open func() store.Store) {
	s, ctx := open(), t.Context()
	for i, id := range []string{"s_a", "s_b", "s_c", "s_d", "t_e"} {
		v := tenon.Session{ID: id, Principal: "anna", Created: start, Updated: at(i)}
		if i%2 == 1 {
			v.Principal, v.Parent = "ben", "s_a"
		}
		if id == "s_d" {
			v.Updated = at(2) // same time as s_c: the id decides
		}
		must(t, s.PutSession(ctx, v))
	}
	must(t, s.Append(ctx, store.Append{Create: row("r_open", "s_b"), Run: "r_open"}))
	busy, err := s.Session(ctx, "s_b")
	must(t, err)
	busy.Updated = at(1)
	must(t, s.PutSession(ctx, busy))
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
		"deleted":   {store.SessionFilter{Before: "s_dd", BeforeAt: at(4)}, "s_d s_c s_b s_a"},
		"changed":   {store.SessionFilter{Before: "t_e", BeforeAt: at(2)}, "s_d s_c s_b s_a"},
		"ended":     {store.SessionFilter{Ended: true}, "t_e s_d s_c s_a"},
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
	_, err = s.Sessions(ctx, store.SessionFilter{Before: "none"})
	wantCode(t, err, tenon.CodeNotFound)
}

// testCalled creates runs called by a run. They belong to its session, but they are never its head and never
// block another run.
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
	next := row("r2", "s")
	next.Parent, next.ParentSeq = "r1", 1
	must(t, s.Append(ctx, store.Append{Create: next, Exclusive: true, Run: "r2", Events: events(1, 1)}))
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

type badImport struct {
	code   tenon.Code
	change func(*store.Import)
}

// badImports are changes that make the import of conversation invalid.
var badImports = map[string]badImport{
	"session_exists": {tenon.CodeConflict, func(i *store.Import) { i.Sessions[1].ID = "ses_here" }},
	"run_exists":     {tenon.CodeConflict, func(i *store.Import) { i.Runs[2].Run.ID = "run_here" }},
	"session_twice":  {tenon.CodeConflict, func(i *store.Import) { i.Sessions[0].ID = "ses_old" }},
	"run_twice":      {tenon.CodeConflict, func(i *store.Import) { i.Runs[2].Run.ID = "run_old" }},
	"no_mark":        {tenon.CodeInvalid, func(i *store.Import) { i.Runs[2].Run.Imported = nil }},
	"no_end":         {tenon.CodeInvalid, func(i *store.Import) { i.Runs[2].Run.State = tenon.RunWorking }},
	"waits": {tenon.CodeInvalid,
		func(i *store.Import) { i.Runs[2].Run.Waiting = i.Runs[0].Run.Imported.Waiting }},
	"no_session":      {tenon.CodeInvalid, func(i *store.Import) { i.Runs[2].Run.Session = "" }},
	"another_session": {tenon.CodeInvalid, func(i *store.Import) { i.Runs[2].Run.Session = "ses_here" }},
	"gap":             {tenon.CodeInvalid, func(i *store.Import) { i.Runs[2].Events = events(2, 3) }},
	"no_blob": {tenon.CodeInvalid,
		func(i *store.Import) { i.Runs[2].Uses = []string{sum([]byte("other"))} }},
}

// testImport imports conversations from files, atomically.
func testImport(t *testing.T, open func() store.Store) {
	s, ctx := open(), t.Context()
	create(t, s, "run_here", "ses_here", 1)
	before, err := s.Sessions(ctx, store.SessionFilter{})
	must(t, err)
	const n = 2_000
	tools, shared := []byte("tools"), []byte("shared")
	im := conversation(n, tools, shared)

	// A refused import stores nothing.
	for name, c := range badImports {
		refusesImport(t, s, im, name, c)
		got, err := s.Sessions(ctx, store.SessionFilter{})
		must(t, err)
		equal(t, name, got, before)
	}

	must(t, s.ImportSession(ctx, im))
	wantCode(t, s.ImportSession(ctx, im), tenon.CodeConflict)
	s = open() // another process
	for _, x := range im.Runs {
		got, err := s.Run(ctx, x.Run.ID)
		must(t, err)
		want := x.Run
		want.Seq, want.Updated = uint64(len(x.Events)), latest(x.Run.Updated, x.Events[len(x.Events)-1].Time)
		equal(t, "row", got, want)
		journal, err := s.Events(ctx, x.Run.ID, 0, 0)
		must(t, err)
		events := slices.Clone(x.Events)
		for i := range events {
			events[i].Run = x.Run.ID
		}
		equal(t, "journal", journal, events)
		wantCode(t, s.Append(ctx, store.Append{Run: x.Run.ID, Events: events[:0:0]}), tenon.CodeConflict)
		more := tenon.Event{Seq: want.Seq + 1, Time: at(10), Kind: "k"}
		wantCode(t, s.Append(ctx, store.Append{Run: x.Run.ID, Events: []tenon.Event{more}, State: tenon.RunWorking}),
			tenon.CodeConflict)
	}
	page, err := s.Events(ctx, "run_old", 1_000, 5)
	must(t, err)
	equal(t, "a page", len(page), 5)
	for _, want := range im.Sessions {
		got, err := s.Session(ctx, want.ID)
		must(t, err)
		want.Runs = 1 // called runs are not counted
		equal(t, "session", got, want)
	}
	stale, err := s.Sessions(ctx, store.SessionFilter{UpdatedBefore: at(-1)})
	must(t, err)
	equal(t, "an import is a use", len(stale), 0)

	// The conversation continues with new runs, possibly of another principal.
	next := row("run_next", "ses_old")
	next.Parent, next.ParentSeq = "run_old", n
	must(t, s.Append(ctx, store.Append{Create: next, Exclusive: true, Run: "run_next", Events: events(1, 1)}))
	wantCode(t, s.DeleteSession(ctx, "ses_base"), tenon.CodeConflict) // ses_old continues it
	must(t, s.Append(ctx, store.Append{Run: "run_next", State: tenon.RunCompleted}))
	must(t, s.DeleteSession(ctx, "ses_old"))
	must(t, s.DeleteSession(ctx, "ses_base"))
	for _, b := range [][]byte{tools, shared} {
		_, err = s.Blob(ctx, sum(b))
		wantCode(t, err, tenon.CodeNotFound)
	}
}

// conversation returns an import of two sessions with three runs. One has n events and is marked as waiting.
func conversation(n int, tools, shared []byte) store.Import {
	mark := &tenon.Imported{At: at(9), State: tenon.RunInputRequired,
		Waiting: []tenon.Waiting{{Step: "1.0", Since: at(-700), Data: []byte(`{"a":1}`)}}}
	im := store.Import{
		Sessions: []tenon.Session{
			{ID: "ses_base", Head: "run_base", HeadSeq: 1, Created: at(-3000), Updated: at(-2900), Imported: at(9)},
			{ID: "ses_old", Title: "as it was", Principal: "anna", Parent: "ses_base", Head: "run_old",
				Created: at(-2000), Updated: at(-400), Imported: at(9), Runs: 77},
		},
		Blobs: [][]byte{tools, shared, tools},
	}
	for i, id := range []string{"run_old", "run_old/1.0", "run_base"} { // in any order
		r := *row(id, "ses_old")
		r.Created, r.Updated, r.State, r.Stop, r.Imported = at(-1000+i), at(-500), tenon.RunCompleted, tenon.StopEnd,
			&tenon.Imported{At: at(9)}
		x := store.ImportedRun{Run: r, Events: events(1, 3), Uses: []string{sum(shared)}}
		switch id {
		case "run_base":
			x.Run.Session, x.Uses = "ses_base", nil
		case "run_old/1.0":
			x.Run.Caller = "run_old"
		case "run_old":
			x.Run.State, x.Run.Stop, x.Run.Imported = tenon.RunCancelled, tenon.StopImported, mark
			x.Events, x.Uses = events(1, n), []string{sum(tools), sum(shared)}
			x.Events[7].Data = append([]byte{'"'}, append([]byte(strings.Repeat("x", 100<<10)), '"')...)
			for i := range x.Events {
				x.Events[i].Time = at(i - 3000)
			}
		}
		im.Runs = append(im.Runs, x)
	}
	return im
}

// refusesImport checks that a changed import is refused and that none of its runs and blobs is stored.
func refusesImport(t *testing.T, s store.Store, im store.Import, name string, c badImport) {
	t.Helper()
	ctx := t.Context()
	bad := store.Import{Sessions: slices.Clone(im.Sessions), Runs: slices.Clone(im.Runs), Blobs: im.Blobs}
	c.change(&bad)
	if err := s.ImportSession(ctx, bad); tenon.ErrorCode(err) != c.code {
		t.Errorf("%s: %v, want code %s", name, err, c.code)
	}
	_, err := s.Run(ctx, "run_old")
	wantCode(t, err, tenon.CodeNotFound)
	_, err = s.Blob(ctx, sum(im.Blobs[0]))
	wantCode(t, err, tenon.CodeNotFound)
}

func sum(b []byte) string {
	s := sha256.Sum256(b)
	return "sha256:" + hex.EncodeToString(s[:])
}

func latest(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
