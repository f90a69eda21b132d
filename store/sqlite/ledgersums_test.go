package sqlite

import (
	"context"
	"database/sql"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tenonhq/tenon/internal/longtest"
	"github.com/tenonhq/tenon/store/forms"
)

// olderStatements are the statements with which a tenon without checksums writes to a ledger.
var olderStatements = []string{
	`INSERT INTO spent (store, key, used) VALUES ('s','k',7) ON CONFLICT DO UPDATE SET used = max(used, excluded.used)`,
	`INSERT INTO spent (store, key, used) VALUES ('s','kept',9) ON CONFLICT DO UPDATE SET used = max(used, excluded.used)`,
	`INSERT INTO rates (store, key, turns, past) VALUES ('s','k',x'0102030405060708',9) ON CONFLICT DO UPDATE
		SET turns = excluded.turns, past = excluded.past`,
	`INSERT INTO calls (step, attempt) VALUES ('run/1',2) ON CONFLICT DO UPDATE SET attempt = excluded.attempt
		WHERE excluded.attempt > attempt RETURNING rowid`,
	`INSERT INTO revoked (id, why) VALUES ('gr_1','revoked') ON CONFLICT DO NOTHING`,
	`INSERT INTO uses (id, step) SELECT 'gr_2', 'run/1' WHERE (SELECT count(*) FROM uses WHERE id = 'gr_2') < 3
		ON CONFLICT DO NOTHING`,
}

func ledgerSQL(t *testing.T, path string, statements ...string) {
	t.Helper()
	db, err := connect(path, 1)
	must(t, err)
	defer db.Close()
	for _, q := range statements {
		_, err := db.ExecContext(t.Context(), q)
		must(t, err)
	}
}

// checkedLedger checks a ledger next to a store without damage.
func checkedLedger(t *testing.T, path string) *Report {
	t.Helper()
	store := filepath.Join(t.TempDir(), "tenon.db")
	s, err := Open(t.Context(), Config{Path: store})
	must(t, err)
	must(t, s.Close())
	r, err := Check(t.Context(), CheckConfig{Path: store, Ledger: path})
	must(t, err)
	return r
}

// TestLedgerOlder shares a ledger with a tenon whose ledger has no checksums: it migrates such a ledger, adds checksums
// to what the older one writes later, and says before that it will.
func TestLedgerOlder(t *testing.T) {
	t.Parallel()
	t.Run("RP-25", func(t *testing.T) {
		ctx, path := t.Context(), filepath.Join(t.TempDir(), "ledger.db")
		if migrates, err := PlanLedger(ctx, path); err != nil || migrates {
			t.Errorf("without a ledger: %v, %v", migrates, err)
		}
		ledgerSQL(t, path, append([]string{"PRAGMA journal_mode(WAL)", ledgerSchema}, olderStatements...)...)
		if migrates, err := PlanLedger(ctx, path); err != nil || !migrates {
			t.Errorf("an older ledger: %v, %v", migrates, err)
		}
		if r := checkedLedger(t, path); !r.OK() || r.Ledger != 6 || r.LedgerUnsummed != 4 {
			t.Errorf("an older ledger: %+v", r)
		}
		for round, used := range []int64{7, 20} { // the older tenon works with it again after the first round
			if round == 1 {
				ledgerSQL(t, path, strings.Replace(olderStatements[0], "7", "20", 1),
					strings.Replace(olderStatements[2], ",9)", ",10)", 1), strings.Replace(olderStatements[3], ",2)", ",3)", 1),
					strings.Replace(olderStatements[3], "run/1", "run/new", 1))
				if r := checkedLedger(t, path); !r.OK() || r.LedgerUnsummed != 4 {
					t.Errorf("after an older tenon: %+v", r)
				}
			}
			l := NewLedger(path, nil)
			got, err := l.spent("s", "k")
			if err != nil || got != used {
				t.Errorf("round %d: %d, %v", round, got, err)
			}
			if fresh, err := l.attempt("run/1", 2+round); err != nil || fresh {
				t.Errorf("round %d: an old attempt is new: %v", round, err)
			}
			must(t, l.Close())
			if r := checkedLedger(t, path); !r.OK() || r.LedgerUnsummed != 0 {
				t.Errorf("round %d: %+v", round, r)
			}
		}
		if migrates, err := PlanLedger(ctx, path); err != nil || migrates {
			t.Errorf("a migrated ledger: %v, %v", migrates, err)
		}
		ledgerSQL(t, path, "PRAGMA user_version = 2")
		if _, err := PlanLedger(ctx, path); err == nil {
			t.Error("a newer ledger is accepted")
		}
		if _, err := NewLedger(path, nil).spent("s", "k"); err == nil || !strings.Contains(err.Error(), "use a newer tenon") {
			t.Error(err)
		}
	})
}

// TestLedgerMigrationKilled interrupts the migration after each of its statements. The ledger is whole in either
// format.
func TestLedgerMigrationKilled(t *testing.T) {
	t.Parallel()
	longtest.Skip(t)
	steps := ledgerSteps(ledgerVersion)
	for at := range steps {
		t.Run(fmt.Sprint("RP-25_", at), func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "ledger.db")
			ledgerSQL(t, path, append([]string{ledgerSchema}, olderStatements...)...)
			db, err := connect(path, 1)
			must(t, err)
			conn, err := db.Conn(t.Context())
			must(t, err)
			for _, q := range append([]string{"BEGIN IMMEDIATE"}, steps[:at]...) {
				_, err := conn.ExecContext(t.Context(), q)
				must(t, err)
			}
			must(t, conn.Close()) // without COMMIT
			must(t, db.Close())
			if r := checkedLedger(t, path); !r.OK() || r.LedgerUnsummed != 4 {
				t.Errorf("%+v", r)
			}
			l := NewLedger(path, nil)
			if got, err := l.spent("s", "k"); err != nil || got != 7 {
				t.Error(got, err)
			}
			must(t, l.Close())
			if r := checkedLedger(t, path); !r.OK() || r.LedgerUnsummed != 0 {
				t.Errorf("%+v", r)
			}
		})
	}
}

// TestRepairLedger damages a row of each table with checksums. Reading it is an error, writing does not hide the
// damage, and a repair allows nothing that was not allowed before.
func TestRepairLedger(t *testing.T) {
	t.Parallel()
	t.Run("RP-25", func(t *testing.T) {
		ctx, path := t.Context(), filepath.Join(t.TempDir(), "ledger.db")
		if _, err := RepairLedger(ctx, path); err == nil {
			t.Error("a ledger that does not exist was repaired")
		}
		fullLedger(t, path)
		ledgerSQL(t, path, "UPDATE spent SET used = 1, sum = sum + 1 WHERE key = 'day/gr_007'",
			"UPDATE rates SET turns = x'0000000000000000', sum = sum + 1 WHERE key = 'rate gr_007'",
			"UPDATE calls SET attempt = 1, sum = sum + 1 WHERE step = 'run/gr_007'")
		const store = "/home/x/.tenon/tenon.db"
		l := NewLedger(path, nil)
		t.Cleanup(func() { _ = l.Close() })
		if _, err := l.spent(store, "day/gr_007"); err == nil || !strings.Contains(err.Error(), "store repair --ledger") {
			t.Error(err)
		}
		if _, err := l.turns(store, "rate gr_007"); err == nil {
			t.Error("a damaged rate was read")
		}
		must(t, l.spend(store, "day/gr_007", 3))
		if fresh, err := l.attempt("run/gr_007", 2); err != nil || fresh {
			t.Error("a call with a damaged attempt was new", err)
		}
		if r := checkedLedger(t, path); len(r.Problems) != 3 || !r.LedgerOnly() {
			t.Errorf("%+v", r)
		}
		done, err := RepairLedger(ctx, path)
		if err != nil || len(done) != 3 {
			t.Fatal(done, err)
		}
		if r := checkedLedger(t, path); !r.OK() || r.Ledger != 200*7-2 {
			t.Errorf("%+v", r)
		}
		if used, err := l.spent(store, "day/gr_007"); err != nil || used != 0 {
			t.Error(used, err)
		}
		if fresh, err := l.attempt("run/gr_007", 9); err != nil || fresh {
			t.Error("a call with an unknown attempt was new", err)
		}
		if fresh, err := l.attempt("run/gr_008", 9); err != nil || !fresh {
			t.Error("a whole call is not new", err)
		}
		must(t, l.take(store, "rate gr_007", forms.PackTurns([]time.Time{time.Now()}), time.Now().Add(time.Hour), time.Now()))
		if again, err := RepairLedger(ctx, path); err != nil || len(again) != 0 {
			t.Error(again, err)
		}
	})
}

// TestLedgerCollision makes a change whose checksum equals the old one: it counts as a row of an older tenon.
func TestLedgerCollision(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "ledger.db")
	fullLedger(t, path)
	ledgerSQL(t, path, "UPDATE spent SET used = used + 1 WHERE key = 'day/gr_007'")
	must(t, withLedger(t.Context(), path, true, func(conn *sql.Conn) error {
		var sum int64
		err := conn.QueryRowContext(context.Background(), "SELECT sum FROM spent WHERE key = 'day/gr_007'").Scan(&sum)
		if sum != unsummedRow {
			t.Error(sum)
		}
		return err
	}))
}
