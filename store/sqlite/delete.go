package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/tenonhq/tenon"
)

// DeleteSession implements [store.Sessions]. What is deleted is overwritten, in
// the index of texts, too, and the log, which holds the pages as they were, is
// emptied.
func (s *Store) DeleteSession(ctx context.Context, id string) error {
	if err := s.submit(ctx, func(w *writer) error { return w.deleteSession(id) }); err != nil {
		return err
	}
	ctx = context.WithoutCancel(ctx) // the session is gone; the rest is short
	if err := s.wipe(ctx); err != nil {
		s.log.Warn("what was deleted may stay in unused parts of the store's file", "path", s.path, "session", id, "error", err)
	}
	s.emptyLog(ctx)
	return nil
}

// doomed is a run that is to be deleted.
type doomed struct {
	n  int64
	id string
}

func (w *writer) deleteSession(id string) error {
	var runs int
	if err := w.row("SELECT runs FROM sessions WHERE id = ?", []any{id}, &runs); errors.Is(err, sql.ErrNoRows) {
		return refuse(tenon.CodeNotFound, "no session %s", id)
	} else if err != nil {
		return err
	}
	var list []doomed
	err := w.query("SELECT n, id FROM runs WHERE session = ? ORDER BY id", []any{id}, func(rows *sql.Rows) error {
		var d doomed
		err := rows.Scan(&d.n, &d.id)
		list = append(list, d)
		return err
	})
	if err != nil {
		return err
	}
	// Whoever takes a run's lease from here on finds the run gone when he appends,
	// and that is before he does anything else.
	for _, d := range list {
		if held, err := w.s.Held(d.id); err != nil {
			return err
		} else if held {
			return refuse(tenon.CodeConflict, "session %s cannot be deleted: run %s is worked on; wait for its end, or cancel it: tenon runs cancel %s", id, d.id, d.id)
		}
	}
	if err := w.checkForks(id); err != nil {
		return err
	}
	texts, err := w.hasTexts()
	if err != nil {
		return err
	}
	for _, d := range list {
		if err := w.deleteRun(d, texts); err != nil {
			return err
		}
	}
	own := "session/" + id + "/"
	if _, err := w.exec("DELETE FROM budgets WHERE key >= ?1 AND instr(key, ?1) = 1", own); err != nil {
		return err
	}
	_, err = w.exec("DELETE FROM sessions WHERE id = ?", id)
	return err
}

// namedForks is how many sessions a refusal names.
const namedForks = 5

// checkForks refuses where another session needs the journals of this one.
func (w *writer) checkForks(id string) error {
	var forks []string
	err := w.query(`SELECT id FROM sessions WHERE id <> ?1 AND (parent = ?1 OR head IN (SELECT id FROM runs WHERE session = ?1))
		UNION SELECT r.session FROM runs p JOIN runs r ON r.parent = p.id AND r.parent <> '' WHERE p.session = ?1 AND r.session <> ?1
		ORDER BY 1`, []any{id}, func(rows *sql.Rows) error {
		var fork string
		err := rows.Scan(&fork)
		forks = append(forks, fork)
		return err
	})
	if err != nil || len(forks) == 0 {
		return err
	}
	names := strings.Join(forks[:min(len(forks), namedForks)], ", ")
	if more := len(forks) - namedForks; more > 0 {
		names += fmt.Sprintf(" and %d more", more)
	}
	return refuse(tenon.CodeConflict, "session %s cannot be deleted: %s continue from it; delete them first", id, names)
}

// deleteRun deletes a run and all that is its own. Texts says that there is an
// index of them.
func (w *writer) deleteRun(d doomed, texts bool) error {
	var blobs [][]byte
	err := w.query(`SELECT blob FROM run_blobs WHERE run = ?1 UNION
		SELECT blob FROM events WHERE chapter IN (SELECT n FROM chapters WHERE run = ?1) AND blob IS NOT NULL`,
		[]any{d.n}, func(rows *sql.Rows) error {
			var digest []byte
			err := rows.Scan(&digest)
			blobs = append(blobs, digest)
			return err
		})
	if err != nil {
		return err
	}
	if texts {
		if err := w.deleteTexts(d.n); err != nil {
			return err
		}
	}
	for _, q := range []struct {
		sql string
		arg any
	}{
		{"DELETE FROM events WHERE chapter IN (SELECT n FROM chapters WHERE run = ?)", d.n},
		{"DELETE FROM chapters WHERE run = ?", d.n},
		{"DELETE FROM run_blobs WHERE run = ?", d.n},
		{"DELETE FROM signals WHERE run = ?", d.id},
		{"DELETE FROM reservations WHERE run = ?", d.id},
		{"DELETE FROM results WHERE run = ?", d.id},
		{"DELETE FROM runs WHERE n = ?", d.n},
	} {
		if _, err := w.exec(q.sql, q.arg); err != nil {
			return err
		}
	}
	delete(w.runs, d.id)
	for _, digest := range blobs {
		_, err := w.exec(`DELETE FROM blobs WHERE digest = ?1 AND NOT EXISTS (SELECT 1 FROM run_blobs WHERE blob = ?1)
			AND NOT EXISTS (SELECT 1 FROM events WHERE blob = ?1)`, digest)
		if err != nil {
			return err
		}
	}
	return nil
}

// logPatience is how long the log is waited for, which somebody may be reading.
const logPatience = 5 * time.Second

// emptyLog copies the log into the store's file and cuts it to nothing.
func (s *Store) emptyLog(ctx context.Context) {
	var busy, pages, copied int
	var err error
	for deadline := time.Now().Add(logPatience); ; {
		if s.turn == nil {
			err = s.read.QueryRowContext(ctx, "PRAGMA wal_checkpoint(TRUNCATE)").Scan(&busy, &pages, &copied)
		} else if err = s.takeTurn(ctx); err == nil { // a store that is being closed gives nobody a turn
			err = s.conn.QueryRowContext(ctx, "PRAGMA wal_checkpoint(TRUNCATE)").Scan(&busy, &pages, &copied)
			<-s.turn
		}
		switch {
		case err == nil && busy == 0:
			return
		case err != nil && !isBusy(err) || time.Now().After(deadline):
			s.log.Warn("what was deleted may stay in the store's -wal file until the next checkpoint", "path", s.path, "busy", busy != 0, "error", err)
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
}
