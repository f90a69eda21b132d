package storetest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/store"
)

// Populate writes rows of every kind into an empty store: working, waiting and ended runs, journals with large values,
// NUL bytes and invalid UTF-8, blobs, sessions, signals, grants, budgets, kept results, rates, pins and summaries. runs
// is the number of runs.
func Populate(t testing.TB, s store.Store, runs int) {
	t.Helper()
	ctx := t.Context()
	check := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	for i := range runs {
		id, session := fmt.Sprintf("run_%04d", i), fmt.Sprintf("ses_%d", i/3)
		r := row(id, session)
		r.Title = "title \x00 \xff " + id
		list := events(1, 3+i%40)
		list[1].Data = json.RawMessage(bytes.Repeat([]byte("x"), 1+i*997%20000)) // some become blobs
		list[2].Data = json.RawMessage("\x00\xff 9007199254740993 \u2028")
		check(s.Append(ctx, store.Append{Create: r, Run: id, Events: list,
			Blobs: [][]byte{[]byte("snapshot"), {0, byte(i)}}}))
		last := len(list)
		for j := range i % 5 { // several rows of events
			check(s.Append(ctx, store.Append{Run: id, Events: events(last+1+j, 1)}))
		}
		last += i % 5
		switch i % 3 {
		case 0:
			check(s.Append(ctx, store.Append{Run: id, Events: events(last+1, 1), State: tenon.RunCompleted,
				Stop: tenon.StopEnd}))
			check(s.PutTallies(ctx, []store.Tally{{Run: id, Seq: uint64(last + 1), Data: []byte(id)}}))
		case 1:
			check(s.Append(ctx, store.Append{Run: id, Events: events(last+1, 1), State: tenon.RunInputRequired,
				Waiting: []tenon.Waiting{{Step: "1.0", Since: at(i),
					Data: json.RawMessage(`{"n":9007199254740993}`)}}}))
		}
		_, err := s.PutSignal(ctx, store.Signal{ID: "sig_" + id, Run: id, Kind: "decision", Step: "1.0", By: "b\x00",
			Data: json.RawMessage(`{"allow":true}`), Time: at(i)})
		check(err)
	}
	check(s.SettleSignal(ctx, "sig_run_0000", 2))
	check(s.PutSession(ctx, tenon.Session{ID: "ses_fork", Title: "fork", Parent: "ses_0", Head: "run_0000", HeadSeq: 2,
		Principal: tenon.PrincipalLocal, Created: at(1), Updated: at(2)}))
	check(s.PutSessionGrant(ctx, sessionGrant("gs_1", "ses_0", "key", tenon.PrincipalLocal, 4)))
	check(s.PutGrant(ctx, store.Grant{ID: "gr_1", Principal: tenon.PrincipalLocal, Server: "project:a", Name: "a",
		Remote: "add", Target: "t", Definition: "d", Condition: "args.a > 1", Uses: 3, By: "me", Created: at(3)}))
	_, err := s.UseGrant(ctx, "gr_1", "run_0000", "1.0", at(4))
	check(err)
	charges := []store.Charge{{Key: "day/2026/tokens", Amount: 100, Limit: 1000},
		{Key: "session/ses_0/cost", Amount: 7}}
	_, err = s.Reserve(ctx, "run_0000", "1", charges)
	check(err)
	check(s.Settle(ctx, "run_0000", "1", []int64{60, 5}))
	release, ok, err := s.Acquire("run_0001")
	check(err)
	if !ok {
		t.Fatal("the lease of run_0001 is taken")
	}
	_, err = s.Reserve(ctx, "run_0001", "1", charges)
	check(err)
	release()
	check(s.PutResult(ctx, store.KeptResult{Key: "key", Run: "run_0000", Step: "1.0", Expires: far,
		Data: json.RawMessage(`{"kept": 1}`)}))
	_, _, err = s.Admit(ctx, "rate", 2, time.Hour, time.Hour, far.Add(-time.Minute))
	check(err)
	check(s.PutPins(ctx, []store.Pin{{Server: "project:a", Remote: "add", Raw: "r", Digest: "d",
		Definition: json.RawMessage(`{"name":"add"}`), By: "me", Created: at(5)}}, false))
}

// far is a time before which nothing in a test expires.
var far = time.Date(2100, 1, 1, 0, 0, 0, 0, time.UTC)

// Contents contains the results of a store's methods, to compare the rows of two stores.
type Contents struct {
	Runs      []tenon.Run
	Events    map[string][]string // by run; data as digests
	Signals   []store.Signal
	Sessions  []tenon.Session
	Grants    []store.Grant
	InSession []store.SessionGrant
	Balances  []store.Balance
	Result    store.KeptResult
	Pins      []store.Pin
	Tallies   map[string]string
	Uncounted int
	Blobs     []string
	Wait      time.Duration // of the next call of the rate; it takes the turn
}

// Read returns the contents of a store that Populate filled.
func Read(t testing.TB, s store.Store) (c Contents) {
	t.Helper()
	ctx := t.Context()
	var err error
	check := func() {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	c.Runs, err = s.Runs(ctx, store.RunFilter{Limit: 1 << 20})
	check()
	c.Events = map[string][]string{}
	for _, r := range c.Runs {
		list, lerr := s.Events(ctx, r.ID, 0, 0)
		err = lerr
		check()
		for _, e := range list {
			c.Events[r.ID] = append(c.Events[r.ID], fmt.Sprint(e.Run, e.Seq, e.Time.UnixNano(), e.Step, e.Kind,
				e.Attempt, len(e.Data), store.Digest(e.Data)))
		}
	}
	c.Signals, err = s.Signals(ctx, "")
	check()
	c.Sessions, err = s.Sessions(ctx, store.SessionFilter{Limit: 1 << 20})
	check()
	c.InSession, err = s.SessionGrants(ctx, "")
	check()
	c.Grants, err = s.Grants(ctx, "")
	check()
	c.Balances, err = s.Balances(ctx, "")
	check()
	c.Result, err = s.Result(ctx, "key", far.Add(-time.Hour))
	check()
	c.Pins, err = s.Pins(ctx, "")
	check()
	c.Tallies = map[string]string{}
	err = s.Tallies(ctx, func(t store.Tally) error {
		c.Tallies[t.Run] = fmt.Sprint(t.Seq, " ", string(t.Data))
		return nil
	})
	check()
	_, c.Uncounted, err = s.Uncounted(ctx, false, -1)
	check()
	for _, data := range [][]byte{[]byte("snapshot"), {0, 0}} {
		blob, berr := s.Blob(ctx, store.Digest(data))
		c.Blobs, err = append(c.Blobs, string(blob)), berr
		check()
	}
	return c
}

// Turn takes a turn of the rate of Populate.
func (c *Contents) Turn(t testing.TB, s store.Store) {
	t.Helper()
	var err error
	if c.Wait, _, err = s.Admit(t.Context(), "rate", 2, time.Hour, 24*time.Hour, far.Add(-time.Minute)); err != nil {
		t.Fatal(err)
	}
}
