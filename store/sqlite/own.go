package sqlite

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/store/signed"
)

// checkRow reads the row of a run before a write to it, and records in p whether the row is the user's own.
func (w *writer) checkRow(run string, p *position) error {
	var r tenon.Run
	var mac []byte
	err := w.query(selectRuns()+" WHERE id = ?", []any{run}, func(rows *sql.Rows) (err error) {
		r, mac, err = w.s.scanRun(rows)
		return err
	})
	if err != nil {
		return err
	}
	if p.foreign = r.Foreign; !p.foreign {
		p.base = mac[:signed.Size]
	}
	return nil
}

// markSize is the length of a store's name in its marks.
const markSize = 16

// greet looks for the user's mark in a store. If there is none, greet adds it, and warns the user once if somebody
// else has written to the store.
func (s *Store) greet(ctx context.Context, conn *sql.Conn) error {
	if s.key == nil {
		return nil
	}
	ctx = context.WithoutCancel(ctx) // as with identify
	rows, err := conn.QueryContext(ctx, "SELECT name, mac FROM marks LIMIT ?", maxMarks)
	if err != nil {
		return storeError(s.path, "read", err)
	}
	known := false
	for !known && rows.Next() {
		var name, mac []byte
		if err = rows.Scan(&name, &mac); err != nil {
			break
		}
		known = s.key.OwnMark(name, mac)
	}
	if err = errors.Join(err, rows.Err(), rows.Close()); err != nil {
		return storeError(s.path, "read", err)
	}
	if known {
		return nil
	}
	var used bool
	err = conn.QueryRowContext(ctx,
		`SELECT EXISTS (SELECT 1 FROM runs) OR EXISTS (SELECT 1 FROM grants) OR EXISTS (SELECT 1
			FROM pins)`).Scan(&used)
	if err != nil {
		return storeError(s.path, "read", err)
	}
	if used {
		s.log.Warn("the store was written by somebody else, or by an older tenon: what it holds is shown, and counts "+
			"for nothing; "+
			"to look at it and adopt it: tenon store show, tenon store adopt", "path", s.path)
	}
	switch {
	case s.writer == nil:
	case used:
		// Mark at once, so that only this process warns. If that fails, the next process warns again.
		if err := s.writer.mark(); err != nil {
			s.log.Debug("the store is not marked as known", "path", s.path, "error", err.Error())
		}
	default:
		s.writer.unmarked = true // with the next write
	}
	return nil
}

// maxMarks is the maximum number of marks in a store, and so of users who know it.
const maxMarks = 64

// mark writes the user's mark.
func (w *writer) mark() error {
	name := make([]byte, markSize)
	_, _ = rand.Read(name) // never fails
	if _, err := w.exec(sumsOf("marks").insert(), name, w.s.key.Mark(name)); err != nil {
		return err
	}
	_, err := w.exec("DELETE FROM marks WHERE rowid NOT IN (SELECT rowid FROM marks ORDER BY rowid DESC LIMIT ?)",
		maxMarks)
	return err
}
