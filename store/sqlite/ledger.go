package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"sync"
	"time"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/store/forms"
)

// Ledger records effects that must not happen again, outside of all stores: revoked grants, uses of grants, spent
// budgets, turns of rates, and allowed calls that were made. If somebody puts back an old row, or an old copy of a
// whole store, its MAC is still valid. The ledger detects this, because it is in the user's state folder and its
// records are never undone.
//
// All stores of a user share one ledger. Ids of grants and calls are unique in all stores; budgets and rates are
// recorded with the path of their store. The file is opened at its first use. A nil ledger records nothing and
// refuses nothing.
type Ledger struct {
	path string
	log  *slog.Logger
	mu   sync.Mutex
	db   *sql.DB
	none bool  // there is no file, and none can be created
	err  error // error of the first attempt to open it
	// stmts are the prepared statements, by text. They end with the file.
	stmts map[string]*sql.Stmt
}

// The bounds of the ledger, in rows. The oldest rows are deleted first.
const (
	maxRevoked   = 200_000
	maxGrantUses = 500_000
	maxSpent     = 50_000
	maxCalls     = 200_000
	// pruneEvery is the number of writes after which the bounds are checked.
	pruneEvery = 1000
)

const ledgerSchema = `
CREATE TABLE IF NOT EXISTS revoked (id TEXT PRIMARY KEY, why TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS uses    (id TEXT NOT NULL, step TEXT NOT NULL, UNIQUE (id, step));
CREATE TABLE IF NOT EXISTS spent   (store TEXT NOT NULL, key TEXT NOT NULL, used INTEGER NOT NULL, UNIQUE (store, key));
CREATE TABLE IF NOT EXISTS rates   (store TEXT NOT NULL, key TEXT NOT NULL, turns BLOB NOT NULL, past INTEGER NOT NULL,
	UNIQUE (store, key));
CREATE TABLE IF NOT EXISTS calls   (step TEXT PRIMARY KEY, attempt INTEGER NOT NULL);
`

// NewLedger returns the ledger at a path. It opens nothing yet. If there is no file and none can be created, as in a
// container without a state folder, the ledger logs that once, and records and refuses nothing. If the file exists
// but cannot be used, every use returns an error. log may be nil.
func NewLedger(path string, log *slog.Logger) *Ledger {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	return &Ledger{path: path, log: log}
}

// open opens or creates the file. It returns nil for a ledger without a file. Errors: store.
func (l *Ledger) open() (*sql.DB, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.db != nil || l.err != nil || l.none {
		return l.db, l.err
	}
	l.db, l.err = l.connect()
	switch {
	case l.none:
		l.log.Warn("revoked and used permissions cannot be recorded outside of the store, so an old copy of it would "+
			"not be noticed; make the folder writable", "path", l.path)
	case l.err != nil:
		l.err = tenon.Errorf(tenon.CodeStore,
			"the record of revoked and used permissions cannot be used: %s: %w; make its folder writable, or put a "+
				"backup of it back", l.path, l.err)
	}
	return l.db, l.err
}

func (l *Ledger) connect() (*sql.DB, error) {
	f, err := os.OpenFile(l.path, os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600)
	switch {
	case err == nil:
		if err := f.Close(); err != nil {
			return nil, err
		}
	case !errors.Is(err, fs.ErrExist):
		l.none = true
		return nil, nil
	}
	// A crash of the machine may lose the latest counts, but no revocation: see revoke.
	db, err := connect(l.path, 1, "synchronous(NORMAL)", "journal_mode(WAL)")
	if err != nil {
		return nil, err
	}
	if err := l.prepare(db); err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return db, nil
}

// Close closes the file.
func (l *Ledger) Close() error {
	if l == nil {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.db == nil {
		return nil
	}
	err := l.db.Close()
	l.db, l.err = nil, fs.ErrClosed
	return err
}

// isNone reports whether the ledger has no file.
func (l *Ledger) isNone() bool {
	if l == nil {
		return true
	}
	db, err := l.open()
	return db == nil && err == nil
}

// exec writes. Errors: store.
func (l *Ledger) exec(query string, args ...any) error {
	db, err := l.open()
	if err != nil || db == nil {
		return err
	}
	if _, err := db.ExecContext(context.Background(), query, args...); err != nil {
		return storeError(l.path, "write", err)
	}
	return nil
}

// prepared returns the prepared statement of a query. The texts of the queries are constant.
func (l *Ledger) prepared(db *sql.DB, query string) (*sql.Stmt, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if stmt := l.stmts[query]; stmt != nil {
		return stmt, nil
	}
	stmt, err := db.PrepareContext(context.Background(), query)
	if err == nil {
		if l.stmts == nil {
			l.stmts = map[string]*sql.Stmt{}
		}
		l.stmts[query] = stmt
	}
	return stmt, err
}

// row reads one row. found is false if there is none.
func (l *Ledger) row(query string, args []any, dest ...any) (found bool, err error) {
	db, err := l.open()
	if err != nil || db == nil {
		return false, err
	}
	stmt, err := l.prepared(db, query)
	if err == nil {
		err = stmt.QueryRowContext(context.Background(), args...).Scan(dest...)
	}
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return false, nil
	case err != nil:
		return false, storeError(l.path, "read", err)
	}
	return true, nil
}

// prune deletes the oldest rows of a table beyond its bound. It acts only after every pruneEvery rows.
func (l *Ledger) prune(table string, most int) error {
	return l.exec(fmt.Sprintf(`DELETE FROM %[1]s WHERE (SELECT max(rowid) FROM %[1]s) %% %[2]d = 0
		AND rowid <= (SELECT rowid FROM %[1]s ORDER BY rowid DESC LIMIT 1 OFFSET %[3]d)`, table, pruneEvery, most))
}

// The reasons why a grant never applies again.
const (
	whyRevoked = "revoked"
	whyExpired = "expired"
)

// revoke records that grants never apply again. It returns when the record is on disk.
func (l *Ledger) revoke(why string, ids ...string) error {
	if l == nil || len(ids) == 0 {
		return nil
	}
	for _, id := range ids {
		if err := l.exec("INSERT INTO revoked (id, why) VALUES (?,?) ON CONFLICT DO NOTHING", id, why); err != nil {
			return err
		}
		if err := l.exec("DELETE FROM uses WHERE id = ?", id); err != nil {
			return err
		}
	}
	if err := l.prune("revoked", maxRevoked); err != nil {
		return err
	}
	var busy, pages, copied int
	_, err := l.row("PRAGMA wal_checkpoint(FULL)", nil, &busy, &pages, &copied) // syncs the log
	return err
}

// grant returns the record of a grant: the reason why it does not apply, or "" if it does, and how often it was used.
func (l *Ledger) grant(id string) (why string, used int, err error) {
	if l == nil {
		return "", 0, nil
	}
	if _, err := l.row("SELECT why FROM revoked WHERE id = ?", []any{id}, &why); err != nil || why != "" {
		return why, 0, err
	}
	_, err = l.row("SELECT count(*) FROM uses WHERE id = ?", []any{id}, &used)
	return "", used, err
}

// use uses up one of the uses of a grant for a step, and reports whether there was one. Further calls for the same
// step use up nothing.
func (l *Ledger) use(id, step string, uses int) (ok bool, err error) {
	if l.isNone() {
		return true, nil
	}
	// A single statement, so that only one of two processes gets the last use.
	err = l.exec(`INSERT INTO uses (id, step) SELECT ?1, ?2 WHERE (SELECT count(*) FROM uses WHERE id = ?1) < ?3
		ON CONFLICT DO NOTHING`, id, step, uses)
	if err == nil {
		ok, err = l.row("SELECT 1 FROM uses WHERE id = ? AND step = ?", []any{id, step}, new(int))
	}
	if err == nil {
		err = l.pruneUses()
	}
	return ok && err == nil, err
}

// pruneUses bounds the recorded uses. Grants whose records it deletes never apply again.
func (l *Ledger) pruneUses() error {
	if err := l.exec(`INSERT INTO revoked (id, why) SELECT DISTINCT id, ?1 FROM uses WHERE (SELECT max(rowid)
		FROM uses) % ?2 = 0
		AND rowid <= (SELECT rowid FROM uses ORDER BY rowid DESC LIMIT 1 OFFSET ?3) ON CONFLICT
			DO NOTHING`, whyRevoked, pruneEvery, maxGrantUses); err != nil {
		return err
	}
	return l.prune("uses", maxGrantUses)
}

// spent returns the largest amount that a budget of a store is known to have used. Errors: store (also if the row is
// damaged).
func (l *Ledger) spent(store, key string) (used int64, err error) {
	if l == nil {
		return 0, nil
	}
	ok := true
	_, err = l.row(ledgerSpent(), []any{store, key}, &used, &ok)
	return used, l.whole(err, ok, "budget "+key)
}

// whole returns err, or the error for a damaged row.
func (l *Ledger) whole(err error, ok bool, what string) error {
	if err != nil || ok {
		return err
	}
	return tenon.Errorf(tenon.CodeStore, "ledger %s: its row of %s is damaged; 'tenon store check' says more, and "+
		"'tenon store repair --ledger' lets the store's own amount count", l.path, what)
}

// spend records the amount that a budget of a store has used. It does not change a damaged row.
func (l *Ledger) spend(store, key string, used int64) error {
	if l == nil || used <= 0 {
		return nil
	}
	var row int64
	found, err := l.row(ledgerSpend(), []any{store, key, used}, &row)
	if err != nil || !found || row%pruneEvery != 0 {
		return err
	}
	return l.prune("spent", maxSpent)
}

// ledgerSpend and ledgerSpent are the statements of [Ledger.spend] and [Ledger.spent].
var (
	ledgerSpend = sync.OnceValue(func() string {
		t := ledgerSum("spent")
		return t.insert() + " ON CONFLICT DO UPDATE SET used = excluded.used, sum = excluded.sum " +
			"WHERE excluded.used > used AND " + t.sound() + " RETURNING rowid"
	})
	ledgerSpent = sync.OnceValue(func() string {
		return "SELECT used, " + ledgerSum("spent").sound() + " FROM spent WHERE store = ? AND key = ?"
	})
)

// turns returns the recorded turns of a rate of a store. Errors: store (also if the row is damaged).
func (l *Ledger) turns(store, key string) (packed []byte, err error) {
	if l == nil {
		return nil, nil
	}
	ok := true
	_, err = l.row("SELECT turns, "+ledgerSum("rates").sound()+" FROM rates WHERE store = ? AND key = ?",
		[]any{store, key}, &packed, &ok)
	return packed, l.whole(err, ok, "rate "+key)
}

// take records the turns of a rate of a store, which count until the time past.
func (l *Ledger) take(store, key string, packed []byte, past, now time.Time) error {
	if l == nil {
		return nil
	}
	if err := l.exec(ledgerSum("rates").insert()+" ON CONFLICT DO UPDATE SET turns = excluded.turns, "+
		"past = excluded.past, sum = excluded.sum", store, key, packed, forms.Nanos(past)); err != nil {
		return err
	}
	return l.exec("DELETE FROM rates WHERE past <= ?", forms.Nanos(now))
}

// attempt records an attempt at a call that a person has allowed. It reports whether this attempt was not made
// before.
func (l *Ledger) attempt(step string, n int) (fresh bool, err error) {
	if l.isNone() {
		return true, nil
	}
	var row int64
	t := ledgerSum("calls")
	// If the attempt is not new, or the row is damaged, the conflict changes no row, and the statement returns none.
	fresh, err = l.row(t.insert()+" ON CONFLICT DO UPDATE SET attempt = excluded.attempt, sum = excluded.sum "+
		"WHERE excluded.attempt > attempt AND "+t.sound()+" RETURNING rowid", []any{step, n}, &row)
	if err != nil || row%pruneEvery != 0 {
		return fresh && err == nil, err
	}
	return fresh, l.prune("calls", maxCalls)
}
