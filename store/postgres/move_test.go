package postgres

import (
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/store"
	"github.com/tenonhq/tenon/store/copying"
	"github.com/tenonhq/tenon/store/signed"
	"github.com/tenonhq/tenon/store/sqlite"
	"github.com/tenonhq/tenon/store/storetest"
)

// openFile opens a store in a file.
func openFile(t *testing.T, path string, key *signed.Key, moving bool) *sqlite.Store {
	t.Helper()
	s, err := sqlite.Open(t.Context(), sqlite.Config{Path: path, Key: key, Moving: moving})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func moveKey(t *testing.T) *signed.Key {
	t.Helper()
	key, err := signed.NewKey([]byte(strings.Repeat("k", 32)))
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// TestStoreCopy_BothWays copies a SQLite file into a database and back into another file. The contents and digests of
// all tables stay the same, and each copy can be used.
func TestStoreCopy_BothWays(t *testing.T) {
	conf, dir, key := place(t), t.TempDir(), moveKey(t)
	first, second := filepath.Join(dir, "a.db"), filepath.Join(dir, "b.db")
	s := openFile(t, first, key, false)
	storetest.Populate(t, s, 60)
	want := storetest.Read(t, s)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	equal := func(what string, s store.Store) {
		t.Helper()
		if d := cmp.Diff(want, storetest.Read(t, s), cmpopts.EquateEmpty()); d != "" {
			t.Fatalf("%s differs (-source +target):\n%s", what, d)
		}
	}
	conf.Key, conf.Moving = key, true
	there := mustOpen(t, conf)
	copyTo := func(from, to copying.Side) copying.Report {
		t.Helper()
		r, err := copying.Copy(t.Context(), copying.Config{From: from, To: to})
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	one := copyTo(copying.Side{Name: first, Store: openFile(t, first, key, true)}, copying.Side{Name: "pg", Store: there})
	if err := there.Close(); err != nil {
		t.Fatal(err)
	}
	conf.Moving = false
	used := mustOpen(t, conf)
	equal("the database", used)
	if err := used.Append(t.Context(), store.Append{Run: "run_0001", Events: []tenon.Event{{
		Seq: want.Runs[len(want.Runs)-2].Seq + 1, Kind: "k", Time: time.Unix(9, 0).UTC()}}}); err != nil {
		t.Fatal(err)
	}
	if err := used.PutGrant(t.Context(), store.Grant{ID: "gr_2", Principal: tenon.PrincipalLocal, Server: "s", Name: "s",
		Remote: "r", Created: time.Unix(9, 0).UTC()}); err != nil {
		t.Fatal(err)
	}
	want = storetest.Read(t, used)
	conf.Moving = true
	two := copyTo(copying.Side{Name: "pg", Store: mustOpen(t, conf)},
		copying.Side{Name: second, Store: openFile(t, second, key, true)})
	equal("the second file", openFile(t, second, key, false))
	for i, table := range one.Tables {
		same := table.Digest == two.Tables[i].Digest
		if changed := table.Name == "runs" || table.Name == "events" || table.Name == "grants" ||
			table.Name == "pending"; !same && !changed {
			t.Errorf("table %s has another digest after the way back", table.Name)
		}
	}
	// The replica that is still open cannot write any more.
	err := used.Append(t.Context(), store.Append{Run: "run_0001", Events: []tenon.Event{{Seq: 1 << 20}}})
	if tenon.ErrorCode(err) != tenon.CodeStore || !strings.Contains(err.Error(), "it was moved to "+second) {
		t.Errorf("an append to the moved database: %v", err)
	}
	err = used.PutSession(t.Context(), tenon.Session{ID: "new"})
	if tenon.ErrorCode(err) != tenon.CodeStore || !strings.Contains(err.Error(), "it was moved to "+second) {
		t.Errorf("a session of the moved database: %v", err)
	}
	if c, err := used.Foreign(t.Context()); err != nil || !c.IsEmpty() {
		t.Errorf("foreign rows after two copies: %+v, %v", c, err)
	}
}

// TestStoreCopy_Filling checks that a database that is still being filled cannot be opened.
func TestStoreCopy_Filling(t *testing.T) {
	conf := place(t)
	conf.Moving = true
	s := mustOpen(t, conf)
	if err := s.SetMove(t.Context(), store.Move{State: store.Filling, Store: "a.db"}); err != nil {
		t.Fatal(err)
	}
	conf.Moving = false
	if _, err := Open(t.Context(), conf); tenon.ErrorCode(err) != tenon.CodeStore ||
		!strings.Contains(err.Error(), "a copy of a.db that is not complete") {
		t.Errorf("an incomplete copy is opened: %v", err)
	}
	if err := s.SetMove(t.Context(), store.Move{}); err != nil {
		t.Fatal(err)
	}
	mustOpen(t, conf)
}

// TestStoreCopy_UnderLoad marks a database as being copied while three replicas append. Every append that was confirmed
// is in the copy, and no append is confirmed after the mark.
func TestStoreCopy_UnderLoad(t *testing.T) {
	conf, path := place(t), filepath.Join(t.TempDir(), "b.db")
	var work sync.WaitGroup
	var mu sync.Mutex
	confirmed := map[string]uint64{}
	begun := make(chan struct{}, 100)
	for r := range 3 {
		s := mustOpen(t, conf)
		for i := range 8 {
			id := fmt.Sprintf("run_%d_%d", r, i)
			work.Go(func() {
				if err := s.Append(t.Context(), store.Append{Run: id, Create: &tenon.Run{ID: id},
					Events: []tenon.Event{{Seq: 1, Time: time.Unix(1, 0)}}}); err != nil {
					t.Error(err)
					return
				}
				begun <- struct{}{}
				for seq := uint64(2); ; seq++ {
					err := s.Append(t.Context(), store.Append{Run: id, Events: []tenon.Event{{Seq: seq,
						Time: time.Unix(1, 0)}}})
					if err != nil {
						if !strings.Contains(err.Error(), "it was moved to "+path) {
							t.Errorf("run %s: %v", id, err)
						}
						mu.Lock()
						confirmed[id] = seq - 1
						mu.Unlock()
						return
					}
				}
			})
		}
	}
	for range 24 {
		<-begun
	}
	conf.Moving = true
	if _, err := copying.Copy(t.Context(), copying.Config{From: copying.Side{Name: "pg", Store: mustOpen(t, conf)},
		To: copying.Side{Name: path, Store: openFile(t, path, nil, true)}}); err != nil {
		t.Error(err)
	}
	work.Wait()
	s := openFile(t, path, nil, false)
	for id, last := range confirmed {
		if r, err := s.Run(t.Context(), id); err != nil || r.Seq != last {
			t.Errorf("run %s ends with event %d in the copy, and %d is confirmed: %v", id, r.Seq, last, err)
		}
	}
}
