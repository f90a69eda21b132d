package sqlite

import (
	"context"
	"database/sql"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"time"

	"errors"

	"github.com/tenonhq/tenon"
)

// Rows of the ledger that contain more than an index does have a checksum, like rows of a store (sums.go). The rows of
// the other tables are whole in their unique indexes, which SQLite compares with the tables.
//
// A ledger is shared by all programs of a user, also by older ones, and an older copy of it would forget what was
// revoked. So its format only grows, and an older tenon can use it: a new row of an older tenon gets the checksum
// unsummedRow, and triggers give the same to a row that it changes. The next tenon of this release computes the
// checksums of these rows. It finds them by an index, so a damaged row cannot pass for one of them.
//
// Because an older tenon works with the new format, there is no copy of the ledger before the migration, which is a
// single transaction.

// ledgerVersion is the version of the format. Version 0 has no checksums.
const ledgerVersion = 1

// unsummedRow is the checksum of a row that a release without checksums wrote. No checksum has this value.
const unsummedRow = -1

// ledgerSums are the tables of the ledger whose rows have checksums.
func ledgerSums() []summed {
	return []summed{
		{"spent", []string{"store", "key", "used"}, "key || ' of ' || store"},
		{"rates", []string{"store", "key", "turns", "past"}, "key || ' of ' || store"},
		{"calls", []string{"step", "attempt"}, "step"},
	}
}

// ledgerSum returns the summed table of the ledger with a name.
func ledgerSum(table string) summed {
	for _, t := range ledgerSums() {
		if t.table == table {
			return t
		}
	}
	return summed{}
}

// sound returns SQL that is true for a row of the ledger whose checksum matches, or that an older release wrote.
func (t summed) sound() string {
	return fmt.Sprintf("%[1]s.sum IN (%[2]d, %[3]s)", t.table, unsummedRow, t.qualified())
}

// qualified returns SQL for the checksum of the stored row, for statements that also see the row to be inserted.
func (t summed) qualified() string {
	set := map[string]string{}
	for _, c := range t.cols {
		set[c] = t.table + "." + c
	}
	return t.sumWith(set)
}

// migrateLedger1 returns the statements that add checksums to a ledger.
func migrateLedger1() []string {
	var list []string
	for _, t := range ledgerSums() {
		list = append(list,
			fmt.Sprintf("ALTER TABLE %s ADD COLUMN sum INTEGER NOT NULL DEFAULT %d", t.table, unsummedRow),
			fmt.Sprintf("CREATE INDEX %[1]s_unsummed ON %[1]s(sum) WHERE sum = %[2]d", t.table, unsummedRow))
		changed := make([]string, len(t.cols))
		for i, c := range t.cols {
			changed[i] = fmt.Sprintf("NEW.%[1]s IS NOT OLD.%[1]s", c)
		}
		list = append(list, fmt.Sprintf("CREATE TRIGGER %[1]s_older AFTER UPDATE ON %[1]s "+
			"WHEN NEW.sum IS OLD.sum AND (%[2]s) BEGIN UPDATE %[1]s SET sum = %[3]d WHERE rowid = NEW.rowid; END",
			t.table, strings.Join(changed, " OR "), unsummedRow))
	}
	return list
}

// ledgerSteps returns the statements that make a ledger of a version.
func ledgerSteps(version int) []string {
	steps := []string{ledgerSchema}
	if version > 0 {
		steps = append(steps, migrateLedger1()...)
	}
	return steps
}

// prepareLedger creates the tables, migrates an older ledger, and adds the checksums that an older tenon left out. It
// refuses the ledger of a newer tenon, and returns errors of SQLite.
func prepareLedger(ctx context.Context, conn *sql.Conn) (err error) {
	var version int
	if err := conn.QueryRowContext(ctx, "PRAGMA user_version").Scan(&version); err != nil {
		return err
	}
	if version == ledgerVersion {
		return fillLedger(ctx, conn)
	}
	if _, err := conn.ExecContext(ctx, "BEGIN IMMEDIATE"); err != nil {
		return err
	}
	defer func() { // it does nothing after COMMIT
		_, _ = conn.ExecContext(context.WithoutCancel(ctx), "ROLLBACK")
	}()
	// Another process may have migrated it meanwhile.
	if err := conn.QueryRowContext(ctx, "PRAGMA user_version").Scan(&version); err != nil {
		return err
	}
	switch {
	case version > ledgerVersion:
		return fmt.Errorf("its format has version %d, and this tenon knows versions up to %d: use a newer tenon",
			version, ledgerVersion)
	case version < ledgerVersion:
		for _, q := range append(ledgerSteps(ledgerVersion), fmt.Sprint("PRAGMA user_version = ", ledgerVersion)) {
			if _, err := conn.ExecContext(ctx, q); err != nil {
				return err
			}
		}
	}
	if err := fillLedger(ctx, conn); err != nil {
		return err
	}
	_, err = conn.ExecContext(ctx, "COMMIT")
	return err
}

// fillLedger computes the checksums of rows that an older tenon wrote. Usually there are none.
func fillLedger(ctx context.Context, conn *sql.Conn) error {
	for _, t := range ledgerSums() {
		cond := fmt.Sprintf(" WHERE sum = %d", unsummedRow)
		var some bool
		query := "SELECT EXISTS (SELECT 1 FROM " + t.table + cond + ")"
		if err := conn.QueryRowContext(ctx, query).Scan(&some); err != nil {
			return err
		}
		if !some {
			continue
		}
		if _, err := conn.ExecContext(ctx, "UPDATE "+t.table+" SET sum = "+t.sum()+cond); err != nil {
			return err
		}
	}
	return nil
}

// PlanLedger reports whether this program would migrate the ledger at a path at its first use, which is a change that
// older programs do not notice. Without a file there is nothing to migrate. Errors: store (it cannot be read, or a
// newer tenon made it).
func PlanLedger(ctx context.Context, path string) (migrates bool, err error) {
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	version := 0
	err = withLedger(ctx, path, true, func(conn *sql.Conn) error {
		return conn.QueryRowContext(ctx, "PRAGMA user_version").Scan(&version)
	})
	if err != nil {
		return false, err
	}
	if version > ledgerVersion {
		return false, tenon.Errorf(tenon.CodeStore, "ledger %s: its format has version %d, this tenon knows versions "+
			"up to %d; use a newer tenon", path, version, ledgerVersion)
	}
	return version < ledgerVersion, nil
}

// withLedger opens a ledger that exists, for one task.
func withLedger(ctx context.Context, path string, reading bool, do func(*sql.Conn) error) error {
	pragmas := []string{"synchronous(FULL)"}
	if reading {
		pragmas = []string{"query_only(1)"}
	}
	db, err := connect(path, 1, pragmas...)
	if err != nil {
		return storeError(path, "open", err)
	}
	defer func() { _ = db.Close() }() // the statements have reported their errors
	conn, err := db.Conn(ctx)
	if err != nil {
		return storeError(path, "open", err)
	}
	defer func() { _ = conn.Close() }() // as above
	if err := do(conn); err != nil {
		return storeError(path, "use", err)
	}
	return nil
}

// neverAgain is the attempt of a call whose real number is not known: no later attempt is new.
const neverAgain = int64(1) << 62

// RepairLedger corrects the damaged rows of a ledger in its file, in one transaction, and returns what it did. Other
// processes may use the ledger meanwhile. A row never allows more than it did: a call whose attempt is damaged is not
// made again. From then on, only the store knows the spending of a damaged budget and the turns of a damaged rate.
// Errors: not_found, store (such as a damaged page, which only a backup can replace).
func RepairLedger(ctx context.Context, path string) (done []string, err error) {
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return nil, tenon.Errorf(tenon.CodeNotFound, "there is no ledger %s", path)
	}
	err = withLedger(ctx, path, false, func(conn *sql.Conn) error {
		if err := prepareLedger(ctx, conn); err != nil {
			return err
		}
		if _, err := conn.ExecContext(ctx, "BEGIN IMMEDIATE"); err != nil {
			return err
		}
		defer func() { // it does nothing after COMMIT
			_, _ = conn.ExecContext(context.WithoutCancel(ctx), "ROLLBACK")
		}()
		for _, t := range ledgerSums() {
			list, err := repairLedgerTable(ctx, conn, t)
			if err != nil {
				return err
			}
			done = append(done, list...)
		}
		_, err := conn.ExecContext(ctx, "COMMIT")
		return err
	})
	if err != nil {
		return nil, err
	}
	return done, nil
}

func repairLedgerTable(ctx context.Context, conn *sql.Conn, t summed) (done []string, err error) {
	damaged := " NOT INDEXED WHERE NOT coalesce(" + t.sound() + ", 0)"
	text, fix := "the store's own amount counts", "DELETE FROM "+t.table+damaged
	if t.table == "calls" {
		text = "it is not made again"
		set := fmt.Sprintf("SET attempt = %d, sum = %s WHERE", neverAgain,
			t.sumWith(map[string]string{"attempt": fmt.Sprint(neverAgain)}))
		fix = "UPDATE calls" + strings.Replace(damaged, "WHERE", set, 1)
	}
	err = eachOf(ctx, conn, "SELECT coalesce("+t.key+", '?') FROM "+t.table+damaged, func(rows *sql.Rows) error {
		var key string
		err := rows.Scan(&key)
		done = append(done, fmt.Sprintf("%s %s: %s", t.table, key, text))
		return err
	})
	if err == nil && len(done) > 0 {
		_, err = conn.ExecContext(ctx, fix)
	}
	return done, err
}

// prepare is prepareLedger with patience: turning on WAL does not wait for other processes by itself.
func (l *Ledger) prepare(db *sql.DB) error {
	ctx := context.Background()
	for deadline := time.Now().Add(lockPatience); ; {
		conn, err := db.Conn(ctx)
		if err == nil {
			err = errors.Join(prepareLedger(ctx, conn), conn.Close())
		}
		if err == nil || !isBusy(err) || time.Now().After(deadline) {
			return err
		}
		time.Sleep(10 * time.Millisecond)
	}
}
