package sqlite

import (
	"bytes"
	"database/sql"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/internal/longtest"
	"github.com/tenonhq/tenon/store"
	"github.com/tenonhq/tenon/store/signed"
)

// kept is a store whose ledger is a separate file, outside of the store. The ledger remembers revoked and used grants,
// so that restoring old rows has no effect.
type kept struct {
	t      *testing.T
	path   string
	ledger string
	key    *signed.Key
	s      *Store
}

func newKept(t *testing.T) *kept {
	t.Helper()
	key, err := signed.NewKey(bytes.Repeat([]byte("k"), signed.MinSecret))
	if err != nil {
		t.Fatal(err)
	}
	k := &kept{t: t, path: filepath.Join(t.TempDir(), "tenon.db"), ledger: filepath.Join(t.TempDir(), "ledger.db"), key: key}
	k.open()
	t.Cleanup(func() { _ = k.s.Close() })
	return k
}

func (k *kept) open() {
	k.t.Helper()
	s, err := Open(k.t.Context(), Config{Path: k.path, Key: k.key, Ledger: NewLedger(k.ledger, nil)})
	if err != nil {
		k.t.Fatal(err)
	}
	k.s = s
}

// sql changes the store with plain SQL, without its checks.
func (k *kept) sql(statements ...string) {
	k.t.Helper()
	db, err := sql.Open("sqlite", k.path)
	if err != nil {
		k.t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	for _, s := range statements {
		if _, err := db.Exec(s); err != nil {
			k.t.Fatalf("%s: %v", s, err)
		}
	}
}

// copied saves the current store. The returned function restores it.
func (k *kept) copied() (back func()) {
	k.t.Helper()
	must(k.t, k.s.Close())
	image, err := os.ReadFile(k.path)
	must(k.t, err)
	k.open()
	return func() {
		k.t.Helper()
		must(k.t, k.s.Close())
		for _, end := range []string{"-wal", "-shm"} {
			_ = os.Remove(k.path + end)
		}
		must(k.t, os.WriteFile(k.path, image, 0o600))
		k.open()
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func (k *kept) use(id, step string, at time.Time, want bool) {
	k.t.Helper()
	ok, err := k.s.UseGrant(k.t.Context(), id, "run", step, at)
	must(k.t, err)
	if ok != want {
		k.t.Errorf("use of %s for step %s: %t", id, step, ok)
	}
}

func (k *kept) grant(id, condition string, uses int, expires time.Time) {
	k.t.Helper()
	must(k.t, k.s.PutGrant(k.t.Context(), store.Grant{ID: id, Principal: "local", Server: "user:s", Name: "s", Remote: "x", Condition: condition, Uses: uses, Expires: expires}))
}

// TestRollback restores old rows of the user, or old copies of the whole store (SEC-F4).
func TestRollback(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	for name, attack := range map[string]func(k *kept){
		"a revoked grant": func(k *kept) {
			k.grant("g", "", 0, time.Time{})
			k.use("g", "1", now, true)
			k.sql("CREATE TABLE old AS SELECT * FROM grants")
			must(k.t, k.s.DeleteGrant(k.t.Context(), "", "g"))
			k.sql("INSERT INTO grants SELECT * FROM old", "DROP TABLE old")
			k.use("g", "2", now, false)
			if list, err := k.s.Grants(k.t.Context(), ""); err != nil || len(list) != 0 {
				k.t.Errorf("grants %+v, %v", list, err)
			}
		},
		"a replaced grant": func(k *kept) {
			k.grant("wide", "", 0, time.Time{})
			k.sql("CREATE TABLE old AS SELECT * FROM grants")
			k.grant("narrow", "", 1, time.Time{})
			k.sql("INSERT INTO grants SELECT * FROM old", "DROP TABLE old")
			k.use("wide", "1", now, false)
			k.use("narrow", "1", now, true)
		},
		"a store with a revoked grant": func(k *kept) {
			k.grant("g", "", 0, time.Time{})
			back := k.copied()
			must(k.t, k.s.DeleteGrant(k.t.Context(), "", "g"))
			back()
			k.use("g", "1", now, false)
		},
		"a store with uses left": func(k *kept) {
			k.grant("g", "", 2, time.Time{})
			back := k.copied()
			k.use("g", "1", now, true)
			back()
			k.use("g", "2", now, true)
			back()
			k.use("g", "3", now, false)
			k.use("g", "2", now, true) // a repeated use by the same step does not count again
		},
		"a planted use": func(k *kept) {
			k.grant("g", "", 1, time.Time{})
			k.use("g", "1", now, true)
			k.sql("INSERT INTO grant_uses (grant_id, run, step) VALUES ('g', 'run', '2')")
			k.use("g", "2", now, false)
		},
		"a clock that is set back": func(k *kept) {
			k.grant("g", "", 0, now)
			k.use("g", "1", now.Add(-time.Nanosecond), true)
			k.use("g", "2", now, false)
			k.use("g", "3", now.Add(-time.Hour), false)
			list, err := k.s.Grants(k.t.Context(), "")
			if must(k.t, err); len(list) != 1 || !list[0].Expired {
				k.t.Errorf("grants %+v", list)
			}
		},
		"an allowed call": func(k *kept) {
			for i, want := range []bool{true, false, true, false} {
				if fresh, err := k.s.Attempt(k.t.Context(), "run", "1.0", 1+i/2); err != nil || fresh != want {
					k.t.Errorf("attempt %d: %t, %v", 1+i/2, fresh, err)
				}
			}
			if fresh, err := k.s.Attempt(k.t.Context(), "run", "1.0", 1); err != nil || fresh {
				k.t.Errorf("an earlier attempt: %t, %v", fresh, err)
			}
		},
	} {
		t.Run("SEC-F4_"+name, func(t *testing.T) { attack(newKept(t)) })
	}
}

// TestSetBack resets the spent amounts of budgets and the used turns of rate limits (SEC-F4).
func TestSetBack(t *testing.T) {
	charge := []store.Charge{{Key: "day/2026-01-01/turns", Amount: 1, Limit: 2}}
	step := func(k *kept, id string, want bool) {
		k.t.Helper()
		b, err := k.s.Reserve(k.t.Context(), "run", id, charge)
		must(k.t, err)
		if b[0].Refused == want {
			k.t.Errorf("step %s: %+v", id, b)
		}
		if want {
			must(k.t, k.s.Settle(k.t.Context(), "run", id, []int64{1}))
		}
	}
	for name, reset := range map[string]string{
		"lower":    "UPDATE budgets SET used = 0",
		"negative": "UPDATE budgets SET used = -100",
		"deleted":  "DELETE FROM budgets",
		"both":     "DELETE FROM budgets; DELETE FROM reservations",
		"planted":  "INSERT OR REPLACE INTO reservations (run, id, n, key, amount, open) VALUES ('run', '3', 0, 'day/2026-01-01/turns', 1, 0)",
		"renamed":  "UPDATE budgets SET key = key || random()",
	} {
		t.Run("SEC-F4_budget_"+name, func(t *testing.T) {
			k := newKept(t)
			step(k, "1", true)
			k.sql(reset)
			step(k, "2", true)
			k.sql(reset)
			step(k, "3", false)
		})
	}
	t.Run("SEC-F4_budget_settled_behind_its_back", func(t *testing.T) {
		k := newKept(t)
		_, err := k.s.Reserve(t.Context(), "run", "1", charge)
		must(t, err)
		k.sql("UPDATE reservations SET open = 0")
		if err := k.s.Settle(t.Context(), "run", "1", []int64{1}); tenon.ErrorCode(err) != tenon.CodeNotFound {
			t.Errorf("settled: %v", err) // the caller then charges the amount again
		}
	})
	admit := func(k *kept, want bool) {
		k.t.Helper()
		_, ok, err := k.s.Admit(k.t.Context(), "rate/s/x", 1, time.Hour, time.Minute, time.Unix(1_800_000_000, 0))
		must(k.t, err)
		if ok != want {
			k.t.Errorf("admitted: %t", ok)
		}
	}
	for name, reset := range map[string]string{
		"deleted": "DELETE FROM rates",
		"emptied": "UPDATE rates SET turns = x''",
		"renamed": "UPDATE rates SET key = 'x'",
	} {
		t.Run("SEC-F4_rate_"+name, func(t *testing.T) {
			k := newKept(t)
			admit(k, true)
			k.sql(reset)
			admit(k, false)
		})
	}
}

// TestSessionOwner gives a session to another owner (SEC-F4).
func TestSessionOwner(t *testing.T) {
	list := func(k *kept, who tenon.Principal) int {
		k.t.Helper()
		got, err := k.s.Sessions(k.t.Context(), store.SessionFilter{Principal: who})
		must(k.t, err)
		return len(got)
	}
	for name, attack := range map[string]string{
		"moved":   "UPDATE sessions SET principal = 'bob', sum = NULL",
		"planted": "INSERT INTO sessions (id, title, agent, head, runs, created, updated, principal) SELECT 'ses_x', 'x', '', head, 1, 1, 1, 'bob' FROM sessions",
		"copied":  "INSERT INTO sessions (id, title, agent, head, runs, created, updated, principal, mac) SELECT 'ses_x', 'x', '', head, 1, 1, 1, 'bob', mac FROM sessions",
	} {
		t.Run("SEC-F4_"+name, func(t *testing.T) {
			k := newKept(t)
			must(t, k.s.Append(t.Context(), store.Append{Create: &tenon.Run{ID: "r", Session: "ses", Principal: "alice"}, Run: "r"}))
			if list(k, "alice") != 1 {
				t.Error("the owner does not see the session")
			}
			k.sql(attack)
			if list(k, "bob") != 0 {
				t.Error("bob sees the session")
			}
			f, err := k.s.Foreign(t.Context())
			if must(t, err); f.Sessions != 1 {
				t.Errorf("foreign sessions: %d", f.Sessions)
			}
			if v, err := k.s.Session(t.Context(), map[string]string{"moved": "ses"}[name]); name == "moved" {
				must(t, err)
				must(t, k.s.PutSession(t.Context(), v)) // as to rename it
				if list(k, "bob") != 0 {
					t.Error("a rename gave bob the session")
				}
			}
		})
	}
}

// TestLedgerFails checks that grants are refused if the ledger is damaged. If the ledger cannot be created, they still
// work.
func TestLedgerFails(t *testing.T) {
	k := newKept(t)
	k.grant("g", "", 1, time.Time{})
	must(t, k.s.Close())
	for _, end := range []string{"-wal", "-shm"} {
		_ = os.Remove(k.ledger + end)
	}
	must(t, os.WriteFile(k.ledger, bytes.Repeat([]byte("damaged "), 1000), 0o600))
	k.open()
	if ok, err := k.s.UseGrant(t.Context(), "g", "run", "1", time.Now()); ok || tenon.ErrorCode(err) != tenon.CodeStore {
		t.Errorf("a damaged ledger: %t, %v", ok, err)
	}
	if err := k.s.DeleteGrant(t.Context(), "", "g"); tenon.ErrorCode(err) != tenon.CodeStore {
		t.Errorf("a damaged ledger: %v", err)
	}
	must(t, k.s.Close())
	k.ledger = filepath.Join(t.TempDir(), "missing", "ledger.db")
	k.open()
	k.use("g", "1", time.Now(), true)
	must(t, k.s.DeleteGrant(t.Context(), "", "g"))
}

// TestLedgerBounds checks that old rows of the ledger are removed, and that a grant whose recorded uses were removed is
// never valid again.
func TestLedgerBounds(t *testing.T) {
	t.Parallel()
	longtest.Skip(t)
	l := NewLedger(filepath.Join(t.TempDir(), "ledger.db"), nil)
	t.Cleanup(func() { must(t, l.Close()) })
	must(t, l.exec("WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n WHERE i < ?) INSERT INTO uses (rowid, id, step) SELECT i, 'old' || i, '1' FROM n", maxGrantUses+pruneEvery-1))
	ok, err := l.use("new", "1", 5)
	if must(t, err); !ok {
		t.Error("the new use is refused")
	}
	why, _, err := l.grant("old1")
	if must(t, err); why != whyRevoked {
		t.Errorf("the oldest grant: %q", why)
	}
	var n int
	_, err = l.row("SELECT count(*) FROM uses", nil, &n)
	if must(t, err); n != maxGrantUses {
		t.Errorf("%d uses", n)
	}
}
