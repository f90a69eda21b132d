package storetest

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/store"
)

// grant makes a grant whose fields are all set.
func grant(id string, principal tenon.Principal, remote, condition string, n int) store.Grant {
	return store.Grant{ID: id, Principal: principal, Server: "user:s", Name: "s", Remote: remote, Target: "sha256:t",
		Definition: "sha256:d",
		Condition:  condition, By: "somebody", Created: at(n)}
}

func testGrants(t *testing.T, open func() store.Store) {
	s, other, ctx := open(), open(), t.Context()
	for _, g := range []store.Grant{grant("g1", "b", "x", "", 1), grant("g2", "a", "y", "", 2),
		grant("g3", "a", "x", "", 3), grant("g4", "a", "x", "args.n == 1", 4)} {
		must(t, s.PutGrant(ctx, g))
	}
	got, err := other.Grants(ctx, "a")
	must(t, err)
	equal(t, "a's", got, []store.Grant{grant("g3", "a", "x", "", 3), grant("g4", "a", "x", "args.n == 1", 4),
		grant("g2", "a", "y", "", 2)})
	must(t, other.PutGrant(ctx, grant("g5", "a", "x", "", 9))) // replaces the grant with the same condition
	got, err = s.Grants(ctx, "")
	must(t, err)
	equal(t, "everybody's", got, []store.Grant{grant("g4", "a", "x", "args.n == 1", 4), grant("g5", "a", "x", "", 9),
		grant("g2", "a", "y", "", 2), grant("g1", "b", "x", "", 1)})

	wantCode(t, s.DeleteGrant(ctx, "b", "g5"), tenon.CodeNotFound)
	must(t, s.DeleteGrant(ctx, "a", "g5"))
	must(t, s.DeleteGrant(ctx, "", "g1"))
	wantCode(t, s.DeleteGrant(ctx, "", "g1"), tenon.CodeNotFound)
	got, err = other.Grants(ctx, "")
	must(t, err)
	equal(t, "what is left", len(got), 2)

	for name, change := range map[string]func(*store.Grant){
		"id":        func(g *store.Grant) { g.ID = "" },
		"principal": func(g *store.Grant) { g.Principal = "" },
		"server":    func(g *store.Grant) { g.Server = "" },
		"tool":      func(g *store.Grant) { g.Remote = "" },
		"uses":      func(g *store.Grant) { g.Uses = -1 },
		"used":      func(g *store.Grant) { g.Used = -1 },
	} {
		g := grant("g", "a", "x", "", 1)
		change(&g)
		if err := s.PutGrant(ctx, g); tenon.ErrorCode(err) != tenon.CodeInvalid {
			t.Errorf("%s: %v", name, err)
		}
	}
	for i := range store.MaxGrants {
		must(t, s.PutGrant(ctx, grant(fmt.Sprint("many", i), "c", "x", fmt.Sprint("args.n == ", i), i)))
	}
	wantCode(t, s.PutGrant(ctx, grant("more", "c", "x", "args.n == -1", 1)), tenon.CodeLimit)
	must(t, s.PutGrant(ctx, grant("again", "c", "x", "args.n == 7", 1)))
}

func testGrantUses(t *testing.T, open func() store.Store) {
	s, other, ctx := open(), open(), t.Context()
	use := func(s store.Store, id, run, step string, n int, want bool) {
		t.Helper()
		got, err := s.UseGrant(ctx, id, run, step, at(n))
		must(t, err)
		equal(t, fmt.Sprintf("use %s for %s/%s at %d", id, run, step, n), got, want)
	}
	twice := grant("twice", "a", "x", "", 0)
	twice.Uses = 2
	must(t, s.PutGrant(ctx, twice))
	use(s, "twice", "r", "1.0", 1, true)
	use(other, "twice", "r", "1.0", 2, true) // the same step
	use(other, "twice", "r", "1.1", 3, true)
	use(s, "twice", "r", "2.0", 4, false)
	use(s, "twice", "r", "1.1", 5, true)
	list, err := s.Grants(ctx, "a")
	must(t, err)
	equal(t, "used", list[0].Used, 2)
	equal(t, "foreign", list[0].Foreign, false)

	soon := grant("soon", "a", "y", "", 0)
	soon.Expires = at(10)
	must(t, s.PutGrant(ctx, soon))
	use(other, "soon", "r", "1.0", 9, true)
	use(other, "soon", "r", "1.0", 10, false)

	must(t, s.PutGrant(ctx, grant("ever", "a", "z", "", 0)))
	use(other, "ever", "r", "1.0", 1000, true)
	must(t, s.DeleteGrant(ctx, "a", "ever"))
	use(other, "ever", "r", "1.0", 1000, false)
	use(other, "nothing", "r", "1.0", 1, false)
	must(t, s.DeleteGrant(ctx, "a", "twice"))
	must(t, s.PutGrant(ctx, twice)) // its uses are counted separately
	use(s, "twice", "r", "1.0", 1, true)
	use(s, "twice", "r", "2.0", 1, true)
	use(s, "twice", "r", "3.0", 1, false)

	// Many concurrent uses do not exceed the limit.
	few := grant("few", "b", "x", "", 0)
	few.Uses, few.Expires = 5, at(0).Add(time.Hour)
	must(t, s.PutGrant(ctx, few))
	var mu sync.Mutex
	var wg sync.WaitGroup
	used := 0
	for i := range 20 {
		wg.Go(func() {
			ok, err := []store.Store{s, other}[i%2].UseGrant(ctx, "few", "r", fmt.Sprint(i), at(1))
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				t.Error(err)
			}
			if ok {
				used++
			}
		})
	}
	wg.Wait()
	equal(t, "used at once", used, 5)
}

// sessionGrant makes an approval of a session whose fields are all set.
func sessionGrant(id, session, key string, principal tenon.Principal, n int) store.SessionGrant {
	return store.SessionGrant{ID: id, Session: session, Key: key, Principal: principal, Server: "s", Remote: "x",
		By: "somebody", Created: at(n)}
}

func testSessionGrants(t *testing.T, open func() store.Store) {
	s, other, ctx := open(), open(), t.Context()
	holds := func(session, key string, want bool) {
		t.Helper()
		got, err := other.SessionGranted(ctx, session, key)
		must(t, err)
		if got != want {
			t.Errorf("%s in %s: %v", key, session, got)
		}
	}
	must(t, s.PutSession(ctx, tenon.Session{ID: "ses_1", Principal: "a"}))
	for _, g := range []store.SessionGrant{sessionGrant("gs_1", "ses_1", "k1", "a", 1),
		sessionGrant("gs_2", "ses_1", "k2", "a", 2), sessionGrant("gs_3", "ses_2", "k1", "b", 3)} {
		must(t, s.PutSessionGrant(ctx, g))
	}
	holds("ses_1", "k1", true)
	holds("ses_2", "k2", false)
	got, err := other.SessionGrants(ctx, "a")
	must(t, err)
	equal(t, "a's", got, []store.SessionGrant{sessionGrant("gs_2", "ses_1", "k2", "a", 2), sessionGrant("gs_1", "ses_1",
		"k1", "a", 1)})
	wantCode(t, s.DeleteSessionGrant(ctx, "b", "gs_1"), tenon.CodeNotFound)
	must(t, s.DeleteSessionGrant(ctx, "a", "gs_1"))
	wantCode(t, s.DeleteSessionGrant(ctx, "", "gs_1"), tenon.CodeNotFound)
	holds("ses_1", "k1", false)
	must(t, other.PutSessionGrant(ctx, sessionGrant("gs_4", "ses_1", "k2", "a", 4))) // replaces gs_2
	wantCode(t, s.DeleteSessionGrant(ctx, "", "gs_2"), tenon.CodeNotFound)
	holds("ses_1", "k2", true)
	must(t, s.DeleteSession(ctx, "ses_1"))
	holds("ses_1", "k2", false)
	got, err = s.SessionGrants(ctx, "")
	must(t, err)
	equal(t, "what is left", got, []store.SessionGrant{sessionGrant("gs_3", "ses_2", "k1", "b", 3)})
	for name, change := range map[string]func(*store.SessionGrant){
		"id":        func(g *store.SessionGrant) { g.ID = "" },
		"session":   func(g *store.SessionGrant) { g.Session = "" },
		"key":       func(g *store.SessionGrant) { g.Key = "" },
		"principal": func(g *store.SessionGrant) { g.Principal = "" },
	} {
		g := sessionGrant("gs_9", "ses_2", "k1", "b", 1)
		change(&g)
		if err := s.PutSessionGrant(ctx, g); tenon.ErrorCode(err) != tenon.CodeInvalid {
			t.Errorf("%s: %v", name, err)
		}
	}
}
