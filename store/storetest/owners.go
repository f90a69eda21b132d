package storetest

import (
	"bytes"
	"encoding/json"
	"testing"
	"time"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/store"
	"github.com/tenonhq/tenon/store/signed"
)

// SignedPlace creates an empty place for a store. It returns a function that opens the store with a key.
type SignedPlace func(t *testing.T) (open func(*signed.Key) store.Store)

// RunSigned checks how an implementation handles the MACs of its rows.
func RunSigned(t *testing.T, place SignedPlace) {
	for name, test := range map[string]func(*testing.T, func(*signed.Key) store.Store){
		"own":     testOwn,
		"foreign": testForeign,
		"replace": testReplace,
		"adopt":   testAdopt,
	} {
		t.Run(name, func(t *testing.T) { test(t, place(t)) })
	}
	t.Run("unsigned", func(t *testing.T) {
		open := place(t)
		Run(t, func(t *testing.T) func() store.Store {
			open := place(t)
			return func() store.Store { return open(Key(t, "a")) }
		})
		fillAll(t, open(nil))
		checkForeign(t, open(Key(t, "a")))
	})
}

// Key returns a key that depends on a name.
func Key(t *testing.T, name string) *signed.Key {
	t.Helper()
	k, err := signed.NewKey(bytes.Repeat([]byte(name), 40))
	must(t, err)
	return k
}

// soon is the time at which kept results expire.
var soon = time.Now().Add(time.Hour).Truncate(time.Second).UTC()

// fillAll writes a row of each kind.
func fillAll(t *testing.T, s store.Store) {
	t.Helper()
	ctx := t.Context()
	create(t, s, "r1", "s", 2)
	must(t, s.Append(ctx,
		store.Append{Run: "r1", Events: []tenon.Event{{Seq: 3, Time: at(3), Step: "1", Kind: "large", Data: large()}}}))
	must(t, s.Append(ctx, store.Append{Run: "r1", State: tenon.RunInputRequired,
		Waiting: []tenon.Waiting{{Step: "1", Since: start}}}))
	create(t, s, "r2", "s2", 1)
	must(t, s.Append(ctx, store.Append{Run: "r2", Events: events(2, 1), State: tenon.RunCompleted,
		Stop: tenon.StopReason("done")}))
	_, err := s.PutSignal(ctx, store.Signal{ID: "sig1", Run: "r1", Kind: "decision", Step: "1", By: "me",
		Data: json.RawMessage(`{"v":1}`), Time: start})
	must(t, err)
	must(t, s.PutResult(ctx, store.KeptResult{Key: "k", Run: "r2", Step: "1", Expires: soon,
		Data: json.RawMessage(`1`)}))
	must(t, s.PutPins(ctx,
		[]store.Pin{{Server: "s", Remote: "x", Raw: "raw", Digest: "d", Definition: json.RawMessage(`{}`), By: "me",
			Created: start}}, false))
	must(t, s.PutGrant(ctx, grant("g", "a", "x", "", 1)))
}

func large() json.RawMessage {
	return json.RawMessage(`"` + string(bytes.Repeat([]byte("x"), 100_000)) + `"`)
}

// checkOwn checks that all rows of fillAll are treated as the user's own.
func checkOwn(t *testing.T, s store.Store) {
	t.Helper()
	ctx := store.OwnOnly(t.Context())
	for run, n := range map[string]int{"r1": 3, "r2": 2} {
		r, err := s.Run(ctx, run)
		must(t, err)
		equal(t, "foreign", r.Foreign, false)
		list, err := s.Events(ctx, run, 0, 0)
		must(t, err)
		equal(t, "events of "+run, len(list), n)
		list, err = s.Events(ctx, run, 1, 1)
		must(t, err)
		equal(t, "one event of "+run, len(list), 1)
	}
	signals, err := s.Signals(ctx, "")
	must(t, err)
	equal(t, "signals", len(signals), 1)
	_, err = s.Signal(ctx, "sig1")
	must(t, err)
	_, err = s.Result(ctx, "k", soon.Add(-time.Second))
	must(t, err)
	_, err = s.Pin(ctx, "s", "x")
	must(t, err)
	pins, err := s.Pins(ctx, "")
	must(t, err)
	equal(t, "pins", len(pins), 1)
	grants, err := s.Grants(ctx, "a")
	must(t, err)
	equal(t, "grants", grants, []store.Grant{grant("g", "a", "x", "", 1)})
	ok, err := s.UseGrant(ctx, "g", "r1", "1", at(1))
	must(t, err)
	equal(t, "use", ok, true)
	f, err := s.Foreign(ctx)
	must(t, err)
	equal(t, "foreign rows", f, store.Foreign{})
}

// checkForeign checks that no row of fillAll has an effect, and that journals can still be read.
func checkForeign(t *testing.T, s store.Store) {
	t.Helper()
	ctx, own := t.Context(), store.OwnOnly(t.Context())
	for run, n := range map[string]int{"r1": 3, "r2": 2} {
		r, err := s.Run(ctx, run)
		must(t, err)
		equal(t, "foreign", r.Foreign, true)
		list, err := s.Events(ctx, run, 0, 0)
		must(t, err)
		equal(t, "events of "+run, len(list), n)
		_, err = s.Run(own, run)
		wantCode(t, err, tenon.CodeWaiting)
		for _, after := range []uint64{0, 1} {
			_, err = s.Events(own, run, after, 0)
			wantCode(t, err, tenon.CodeWaiting)
		}
		wantCode(t, s.Append(ctx, store.Append{Run: run, Events: events(n+1, 1)}), tenon.CodeWaiting)
		wantCode(t, s.Append(ctx, store.Append{Run: run, State: tenon.RunWorking}), tenon.CodeWaiting)
		_, err = s.PutSignal(ctx, store.Signal{ID: "new", Run: run, Kind: "k"})
		wantCode(t, err, tenon.CodeWaiting)
	}
	runs, err := s.Runs(ctx, store.RunFilter{})
	must(t, err)
	sessions, err := s.Sessions(ctx, store.SessionFilter{})
	must(t, err)
	for _, v := range sessions {
		equal(t, "foreign session "+v.ID, v.Foreign, true)
	}
	for _, r := range runs {
		equal(t, "foreign", r.Foreign, true)
	}
	signals, err := s.Signals(ctx, "")
	must(t, err)
	equal(t, "signals", len(signals), 0)
	signals, err = s.Signals(ctx, "r1")
	must(t, err)
	equal(t, "signals of r1", len(signals), 0)
	_, err = s.Signal(ctx, "sig1")
	wantCode(t, err, tenon.CodeNotFound)
	_, err = s.Result(ctx, "k", soon.Add(-time.Second))
	wantCode(t, err, tenon.CodeNotFound)
	_, err = s.Pin(ctx, "s", "x")
	wantCode(t, err, tenon.CodeNotFound)
	pins, err := s.Pins(ctx, "")
	must(t, err)
	equal(t, "pins", len(pins), 0)
	grants, err := s.Grants(ctx, "a")
	must(t, err)
	if len(grants) != 1 || !grants[0].Foreign {
		t.Errorf("grants: %+v", grants)
	}
	ok, err := s.UseGrant(ctx, "g", "r1", "1", at(1))
	must(t, err)
	equal(t, "use", ok, false)
}

func testOwn(t *testing.T, open func(*signed.Key) store.Store) {
	fillAll(t, open(Key(t, "a")))
	checkOwn(t, open(Key(t, "a")))
}

func testForeign(t *testing.T, open func(*signed.Key) store.Store) {
	a := open(Key(t, "a"))
	fillAll(t, a)
	b := open(Key(t, "b"))
	checkForeign(t, b)
	checkOwn(t, a)
	f, err := b.Foreign(t.Context())
	must(t, err)
	equal(t, "counts", []int{f.Runs, f.Signals, f.Results, f.Pins, f.Grants, f.Sessions, len(f.Unended), len(f.Open),
		len(f.Granted), f.Pinned["s"]}, []int{2, 1, 1, 1, 1, 2, 1, 1, 1, 1})
	if f.Events == 0 || f.Digest == "" || f.IsEmpty() || f.TooMany {
		t.Errorf("%+v", f)
	}
	// Foreign rows can be deleted.
	must(t, b.DeleteSession(t.Context(), "s"))
	must(t, b.DeleteGrant(t.Context(), "a", "g"))
}

// testReplace replaces planted rows by the user's own rows.
func testReplace(t *testing.T, open func(*signed.Key) store.Store) {
	fillAll(t, open(Key(t, "a")))
	s, ctx := open(Key(t, "b")), t.Context()
	create(t, s, "own", "s3", 1)
	got, err := s.PutSignal(ctx, store.Signal{ID: "sig1", Run: "own", Kind: "mine", Data: json.RawMessage(`2`)})
	must(t, err)
	equal(t, "signal", got.Kind, "mine")
	must(t, s.PutResult(ctx, store.KeptResult{Key: "k", Run: "own", Step: "1", Expires: soon,
		Data: json.RawMessage(`2`)}))
	r, err := s.Result(ctx, "k", soon.Add(-time.Second))
	must(t, err)
	equal(t, "result", string(r.Data), "2")
	must(t, s.PutPins(ctx,
		[]store.Pin{{Server: "s", Remote: "x", Digest: "mine", Definition: json.RawMessage(`1`), Created: start}},
		true))
	p, err := s.Pin(ctx, "s", "x")
	must(t, err)
	equal(t, "pin", p.Digest, "mine")
	must(t, s.PutGrant(ctx, grant("g2", "a", "x", "", 1)))
	grants, err := s.Grants(ctx, "a")
	must(t, err)
	if len(grants) != 1 || grants[0].Foreign {
		t.Errorf("grants: %+v", grants)
	}
}

func testAdopt(t *testing.T, open func(*signed.Key) store.Store) {
	a := open(Key(t, "a"))
	fillAll(t, a)
	b, ctx := open(Key(t, "b")), t.Context()
	f, err := b.Foreign(ctx)
	must(t, err)
	wantCode(t, b.Adopt(ctx, ""), tenon.CodeConflict)
	checkForeign(t, b)
	must(t, a.Append(ctx, store.Append{Run: "r1", Events: events(4, 1)}))
	wantCode(t, b.Adopt(ctx, f.Digest), tenon.CodeConflict) // the rows differ from the shown ones
	again, err := b.Foreign(ctx)
	must(t, err)
	if f.Digest == again.Digest {
		t.Error("the digest of other rows is the same")
	}
	must(t, b.Adopt(ctx, again.Digest))
	f, err = b.Foreign(ctx)
	must(t, err)
	equal(t, "foreign rows", f, store.Foreign{})
	must(t, b.Append(ctx, store.Append{Run: "r1", Events: events(5, 1), State: tenon.RunWorking}))
	if _, err := b.Events(store.OwnOnly(ctx), "r1", 0, 0); err != nil {
		t.Error(err)
	}
	must(t, b.Adopt(ctx, "")) // nothing is left
	if list, err := a.Signals(ctx, ""); err != nil || len(list) != 0 {
		t.Errorf("signals of the first owner: %+v, %v", list, err)
	}
}
