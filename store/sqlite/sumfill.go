package sqlite

import (
	"context"
	"database/sql"
	"math"
	"slices"
	"time"
)

// The rows of a migrated store get their checksums in batches. In a small store the migration adds them. In a larger
// one, the next process that keeps it open does, such as tenon serve, or tenon store check.
const (
	// fillAtOnce is the number of rows that get their checksums in one transaction.
	fillAtOnce = 500
	// fillPause is the pause between two batches, in which other processes can use the store.
	fillPause = 5 * time.Millisecond
	// fillMigrating is the maximum number of rows for which the migration itself adds the checksums.
	fillMigrating = 20_000
)

// filler adds checksums to rows.
type filler struct {
	query func(query string, args []any, row func(*sql.Rows) error) error
	exec  func(query string, args ...any) (int64, error)
}

// pending returns the tables that may have rows without a checksum.
func (f filler) pending() (list []summed, err error) {
	err = f.query("SELECT name FROM unsummed ORDER BY name", nil, func(rows *sql.Rows) error {
		var name string
		if err := rows.Scan(&name); err != nil {
			return err
		}
		tables := summedTables()
		if i := slices.IndexFunc(tables, func(t summed) bool { return t.table == name }); i >= 0 {
			list = append(list, tables[i])
		}
		return nil
	})
	return list, err
}

// batch adds checksums to the rows of a table after the row with number after, and returns the number of the last
// one. done says that no rows are left.
func (f filler) batch(t summed, after int64) (last int64, done bool, err error) {
	query := "UPDATE " + t.table + " SET sum = " + t.sum() + " WHERE sum IS NULL"
	var args []any
	if !t.withoutRowid() { // the rows of other tables have no numbers: these tables are filled at once
		err := f.query("SELECT coalesce(max(rowid), 0), count(*) FROM (SELECT rowid FROM "+t.table+
			" WHERE rowid > ? ORDER BY rowid LIMIT ?)", []any{after, fillAtOnce}, func(rows *sql.Rows) error {
			var n int
			err := rows.Scan(&last, &n)
			done = n < fillAtOnce
			return err
		})
		if err != nil {
			return 0, false, err
		}
		query += " AND rowid > ? AND rowid <= ?"
		args = []any{after, last}
	}
	if _, err := f.exec(query, args...); err != nil {
		return 0, false, err
	}
	if done = done || t.withoutRowid(); done {
		_, err = f.exec("DELETE FROM unsummed WHERE name = ?", t.table)
	}
	return last, done, err
}

// all adds all missing checksums in the caller's transaction.
func (f filler) all() error {
	list, err := f.pending()
	for _, t := range list {
		after := int64(math.MinInt64)
		for done := false; !done && err == nil; {
			after, done, err = f.batch(t, after)
		}
	}
	return err
}

// fillSums adds the missing checksums in batches, until the store is closed or all are added.
func (s *Store) fillSums(ctx context.Context) error {
	list, err := filler{query: func(query string, args []any, row func(*sql.Rows) error) error {
		return s.each(ctx, query, args, row)
	}}.pending()
	for _, t := range list {
		after := int64(math.MinInt64)
		for done := false; !done && err == nil; {
			last := after
			err = s.submit(ctx, func(w *writer) (err error) { // it may run again, after a rollback
				last, done, err = filler{w.query, w.exec}.batch(t, after)
				return err
			})
			after = last
			select {
			case <-s.quit:
				return nil
			case <-ctx.Done():
				return ctx.Err()
			case <-time.After(fillPause):
			}
		}
	}
	return err
}

// fillLater calls fillSums in a process that keeps the store open.
func (s *Store) fillLater() {
	if err := s.fillSums(context.Background()); err != nil {
		select {
		case <-s.quit: // the next process fills the rest
		default:
			s.log.Warn("not all rows of the store have a checksum yet", "path", s.path, "error", err)
		}
	}
}

// fillMigrated adds the checksums of a small store in the transaction of its migration.
func fillMigrated(ctx context.Context, conn *sql.Conn) error {
	f := filler{
		query: func(query string, args []any, row func(*sql.Rows) error) error {
			return eachOf(ctx, conn, query, row, args...)
		},
		exec: func(query string, args ...any) (int64, error) {
			res, err := conn.ExecContext(ctx, query, args...)
			if err != nil {
				return 0, err
			}
			return res.RowsAffected()
		},
	}
	list, err := f.pending()
	if err != nil {
		return err
	}
	total := 0
	for _, t := range list {
		var n int
		if err := conn.QueryRowContext(ctx, "SELECT count(*) FROM "+t.table).Scan(&n); err != nil {
			return err
		}
		if total += n; total > fillMigrating {
			return nil
		}
	}
	return f.all()
}
