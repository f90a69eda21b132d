package storetest

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"math"
	"strings"
	"sync"
	"testing"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/store"
)

func testBlobs(t *testing.T, open func() store.Store) {
	s, ctx := open(), t.Context()
	create(t, s, "r", "s", 1)
	for _, data := range [][]byte{nil, []byte("a"), []byte("\x00\xff"), bytes.Repeat([]byte("z"), 1<<20)} {
		digest, err := s.PutBlob(ctx, "r", data)
		must(t, err)
		again, err := s.PutBlob(ctx, "r", data)
		must(t, err)
		equal(t, "digest", again, digest)
		got, err := s.Blob(ctx, digest)
		must(t, err)
		if !bytes.Equal(got, data) {
			t.Errorf("blob %s came back as %.40q", digest, got)
		}
	}
	data := []byte("kept with its run")
	sum := sha256.Sum256(data)
	kept := store.Append{Create: &tenon.Run{ID: "kept"}, Run: "kept", Blobs: [][]byte{data}}
	must(t, s.Append(ctx, kept))
	got, err := s.Blob(ctx, "sha256:"+hex.EncodeToString(sum[:]))
	must(t, err)
	equal(t, "blob of an append", string(got), string(data))
	uses := store.Append{Create: &tenon.Run{ID: "uses"}, Run: "uses",
		Uses: []string{"sha256:" + hex.EncodeToString(sum[:])}}
	must(t, s.Append(ctx, uses))
	_, err = s.PutBlob(ctx, "none", data)
	wantCode(t, err, tenon.CodeNotFound)
	for _, digest := range []string{"", "sha256:zz", "sha256:" + strings.Repeat("0", 64), "md5:00"} {
		_, err := s.Blob(ctx, digest)
		wantCode(t, err, tenon.CodeNotFound)
		wantCode(t, s.Append(ctx, store.Append{Create: row("new", "s"), Run: "new", Uses: []string{digest}}),
			tenon.CodeNotFound)
	}
	_, err = s.Run(ctx, "new")
	wantCode(t, err, tenon.CodeNotFound)
}

// own acquires the lease of a run until the end of the test.
func own(t *testing.T, s store.Store, run string) (release func()) {
	t.Helper()
	release, ok, err := s.Acquire(run)
	must(t, err)
	if !ok {
		t.Fatalf("the lease of run %s is taken", run)
	}
	release = sync.OnceFunc(release)
	t.Cleanup(release)
	return release
}

func testBudgets(t *testing.T, open func() store.Store) {
	s, ctx := open(), t.Context()
	own(t, s, "r")
	own(t, s, "q")
	charge := func(amount, limit int64) []store.Charge {
		return []store.Charge{{Key: "day/tokens", Amount: amount, Limit: limit}, {Key: "day/calls", Amount: 1}}
	}
	reserve := func(run, id string, charges []store.Charge, want ...store.Balance) {
		t.Helper()
		got, err := s.Reserve(ctx, run, id, charges)
		must(t, err)
		equal(t, "reserve "+run+" "+id, got, want)
	}
	tokens := func(used, reserved int64, refused bool) store.Balance {
		return store.Balance{Key: "day/tokens", Used: used, Reserved: reserved, Limit: 100, Refused: refused}
	}
	calls := func(used, reserved int64) store.Balance {
		return store.Balance{Key: "day/calls", Used: used, Reserved: reserved}
	}
	reserve("r", "1", charge(60, 100), tokens(0, 60, false), calls(0, 1))
	reserve("r", "1", charge(60, 100), tokens(0, 60, false), calls(0, 1)) // again
	reserve("q", "1", charge(41, 100), tokens(0, 60, true), calls(0, 1))  // over the limit: all or nothing
	reserve("q", "1", charge(40, 100), tokens(0, 100, false), calls(0, 2))
	reserve("q", "2", charge(0, 100), tokens(0, 100, true), calls(0, 2)) // nothing is left
	must(t, s.Settle(ctx, "r", "1", []int64{20, 1}))
	must(t, s.Settle(ctx, "r", "1", []int64{90, 1}))                       // only the first settlement counts
	reserve("r", "1", charge(60, 100), tokens(20, 40, false), calls(1, 1)) // already settled: no effect
	reserve("r", "2", charge(41, 100), tokens(20, 40, true), calls(1, 1))
	must(t, s.Settle(ctx, "q", "1", []int64{75, 2}))                             // more than reserved
	reserve("r", "2", charge(5_000, 100), tokens(95, 5_000, false), calls(3, 1)) // the last step reserves alone
	reserve("q", "3", charge(1, 100), tokens(95, 5_000, true), calls(3, 1))
	must(t, s.Settle(ctx, "r", "2", []int64{math.MaxInt64, 1}))
	reserve("q", "3", charge(0, 100), tokens(math.MaxInt64, 0, true), calls(4, 0))
	reserve("q", "4", charge(7, 0)[:1], store.Balance{Key: "day/tokens", Used: math.MaxInt64,
		Reserved: 7}) // counted without a limit
	made := []store.Charge{{Key: "made", Amount: 3, Limit: 5, Made: true}}
	reserve("r", "made", made, store.Balance{Key: "made", Used: 3, Limit: 5})
	reserve("r", "made", made, store.Balance{Key: "made", Used: 3, Limit: 5}) // again: not charged twice
	must(t, s.Settle(ctx, "r", "made", []int64{1}))                           // it is settled
	reserve("q", "made", made, store.Balance{Key: "made", Used: 6, Limit: 5}) // the last step is charged alone
	reserve("q", "made 2", made, store.Balance{Key: "made", Used: 6, Limit: 5, Refused: true})
	old := []store.Charge{{Key: "old", Amount: 3, Limit: 9}} // an older version ended before it settled them
	reserve("r", "old", old, store.Balance{Key: "old", Reserved: 3, Limit: 9})
	old[0].Made = true
	reserve("r", "old", old, store.Balance{Key: "old", Used: 3, Limit: 9})
	reserve("r", "old", old, store.Balance{Key: "old", Used: 3, Limit: 9})
	must(t, s.Release(ctx, "q"))
	must(t, s.Release(ctx, "none"))

	got, err := open().Balances(ctx, "day/")
	must(t, err)
	equal(t, "balances", got, []store.Balance{calls(4, 0), {Key: "day/tokens", Used: math.MaxInt64}})
	got, err = s.Balances(ctx, "day/t")
	must(t, err)
	equal(t, "by prefix", len(got), 1)

	wantCode(t, s.Settle(ctx, "q", "4", []int64{1}), tenon.CodeNotFound) // released
	wantCode(t, s.Settle(ctx, "r", "1", []int64{1}), tenon.CodeInvalid)
	wantCode(t, s.Settle(ctx, "r", "1", []int64{1, -1}), tenon.CodeInvalid)
	for name, c := range map[string][]store.Charge{
		"none": {}, "no key": {{Amount: 1}}, "negative": {{Key: "k", Amount: -1}},
		"negative limit": {{Key: "k", Limit: -1}}, "twice": {{Key: "k"}, {Key: "k"}},
	} {
		_, err := s.Reserve(ctx, "r", "9", c)
		if tenon.ErrorCode(err) != tenon.CodeInvalid {
			t.Errorf("%s: %v", name, err)
		}
	}
	_, err = s.Reserve(ctx, "", "9", charge(1, 1))
	wantCode(t, err, tenon.CodeInvalid)
}

// testBudgetClients lets many clients spend one budget. Spent and reserved amounts never exceed it, and a
// refusal has a reason.
func testBudgetClients(t *testing.T, open func() store.Store) {
	a, b, ctx := open(), open(), t.Context()
	const clients, limit, estimate = 32, 1_000, 30
	var wg sync.WaitGroup
	var mu sync.Mutex
	var spent int64
	for i := range clients {
		s := []store.Store{a, b}[i%2]
		run := fmt.Sprint("r", i)
		own(t, s, run)
		wg.Go(func() {
			for step := 0; ; step++ {
				id := fmt.Sprint(step)
				got, err := s.Reserve(ctx, run, id, []store.Charge{{Key: "k", Amount: estimate, Limit: limit}})
				if err != nil {
					t.Error(err)
					return
				}
				if got[0].Refused {
					if got[0].Used+got[0].Reserved+estimate <= limit {
						t.Errorf("refused with %+v", got[0])
					}
					if got[0].Reserved == 0 {
						return
					}
					continue // others are in flight
				}
				if got[0].Used+got[0].Reserved > limit && got[0].Reserved > estimate {
					t.Errorf("admitted with %+v", got[0])
				}
				used := int64((i*7 + step*11) % (estimate + 1))
				mu.Lock()
				spent += used
				mu.Unlock()
				if err := s.Settle(ctx, run, id, []int64{used}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	got, err := a.Balances(ctx, "k")
	must(t, err)
	equal(t, "balance", got, []store.Balance{{Key: "k", Used: spent, Limit: limit}})
	if spent < limit || spent >= limit+estimate {
		t.Errorf("%d of %d were spent", spent, limit)
	}
}

// testDeadBudgets closes the owner of a reservation.
func testDeadBudgets(t *testing.T, open func() store.Store) {
	s, ctx := open(), t.Context()
	dies := own(t, s, "dead")
	own(t, s, "live")
	charge := []store.Charge{{Key: "k", Amount: 60, Limit: 100}}
	refused := func(run, id string) bool {
		t.Helper()
		got, err := s.Reserve(ctx, run, id, charge)
		must(t, err)
		return got[0].Refused
	}
	equal(t, "the first", refused("dead", "1"), false)
	equal(t, "no room", refused("live", "1"), true)
	dies()
	got, err := s.Balances(ctx, "")
	must(t, err)
	equal(t, "nobody's is left out", got, []store.Balance{{Key: "k", Limit: 100}})
	equal(t, "given back", refused("live", "1"), false)

	own(t, s, "dead") // resumed: it starts again
	equal(t, "no room", refused("dead", "1"), true)
	must(t, s.Settle(ctx, "live", "1", []int64{10}))
	equal(t, "room", refused("dead", "1"), false)
	must(t, s.Settle(ctx, "dead", "1", []int64{20}))
	must(t, s.Release(ctx, "dead"))
	got, err = s.Balances(ctx, "")
	must(t, err)
	equal(t, "what was used stays", got, []store.Balance{{Key: "k", Used: 30, Limit: 100}})
}
