package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/store/forms"
)

// The bounds of one transaction of DeleteSessions. Between two transactions, other writes of this process and of
// others can run.
const (
	deleteAtOnce = 256                   // sessions
	deleteFor    = 50 * time.Millisecond // after this time, no further session is deleted
	// The pause between two transactions is the last one's duration, divided by deletePause. SQLite gives the lock to
	// another process only if that process looks while the lock is free.
	deletePause = 4
	// deleteLog is the number of transactions after which the log is copied into the store's file.
	deleteLog = 32
)

// DeleteSession implements [store.Sessions]. It overwrites the deleted rows, in the index of texts too, and empties
// the log, which contains the old pages.
func (s *Store) DeleteSession(ctx context.Context, id string) error {
	err := s.submit(ctx, func(w *writer) error {
		runs, err := w.deleteSession(id)
		if err != nil {
			return err
		}
		return w.deleteTexts(runs)
	})
	if err != nil {
		return err
	}
	s.clean(ctx)
	return nil
}

// DeleteSessions implements [store.Sessions]. It wipes unused parts of the file and empties the log only once, at the
// end, because both take time in proportion to the size of the file.
func (s *Store) DeleteSessions(ctx context.Context, list []tenon.Session, progress func(deleted int)) (
	gone []tenon.Session, err error) {
	defer func() {
		if len(gone) > 0 {
			s.clean(ctx)
		}
	}()
	for batch := 1; len(list) > 0; batch++ {
		var done []tenon.Session
		var looked int
		begun := time.Now()
		err := s.submit(ctx, func(w *writer) (err error) {
			done, looked, err = w.deleteStale(list)
			return err
		})
		if err != nil {
			return gone, err
		}
		took := time.Since(begun)
		gone, list = append(gone, done...), list[looked:]
		if progress != nil {
			progress(len(gone))
		}
		if batch%deleteLog == 0 {
			s.copyLog(ctx)
		}
		if len(list) == 0 {
			break
		}
		select {
		case <-time.After(took / deletePause):
		case <-ctx.Done():
			return gone, cancelled(s, ctx.Err())
		}
	}
	return gone, nil
}

// deleteStale deletes sessions from the beginning of a list until the transaction is large enough. It returns the
// deleted sessions, and the number of sessions that it looked at.
func (w *writer) deleteStale(list []tenon.Session) (gone []tenon.Session, looked int, err error) {
	begun := time.Now()
	var runs []int64
	for looked < min(len(list), deleteAtOnce) && (looked == 0 || time.Since(begun) < deleteFor) {
		v := list[looked]
		looked++
		var updated int64
		err := w.row("SELECT updated FROM sessions WHERE id = ?", []any{v.ID}, &updated)
		if errors.Is(err, sql.ErrNoRows) || err == nil && updated > forms.Nanos(v.Updated) {
			continue
		} else if err != nil {
			return nil, 0, err
		}
		var r refused
		switch some, err := w.deleteSession(v.ID); {
		case err == nil:
			gone, runs = append(gone, v), append(runs, some...)
		case !errors.As(err, &r): // a refused session is in use again, and stays
			return nil, 0, err
		}
	}
	return gone, looked, w.deleteTexts(runs)
}

// clean removes the remains of deleted sessions from the files.
func (s *Store) clean(ctx context.Context) {
	ctx = context.WithoutCancel(ctx) // the sessions are gone, so their remains must go, however long that takes
	if err := s.wipe(ctx); err != nil {
		s.log.Warn("what was deleted may stay in unused parts of the store's file", "path", s.path, "error", err)
	}
	s.emptyLog(ctx)
}

// copyLog copies the log into the store's file as far as nobody reads it, so that the log does not grow.
func (s *Store) copyLog(ctx context.Context) {
	if s.turn == nil {
		select {
		case s.full <- struct{}{}:
		default:
		}
		return
	}
	if s.takeTurn(ctx) != nil {
		return // the next write returns the error
	}
	defer func() { <-s.turn }()
	if _, err := s.conn.ExecContext(ctx, "PRAGMA wal_checkpoint(PASSIVE)"); err != nil {
		s.log.Warn("the store's -wal file could not be copied", "path", s.path, "error", err)
	}
}

// doomed is a run that is to be deleted.
type doomed struct {
	n  int64
	id string
}

// deleteSession deletes a session and its runs, and returns their numbers. It does not delete their texts: changing
// the index once for many runs takes no longer than for one, so the caller does that.
func (w *writer) deleteSession(id string) (runs []int64, err error) {
	var count int
	if err := w.row("SELECT runs FROM sessions WHERE id = ?", []any{id}, &count); errors.Is(err, sql.ErrNoRows) {
		return nil, refuse(tenon.CodeNotFound, "no session %s", id)
	} else if err != nil {
		return nil, err
	}
	var list []doomed
	err = w.query(runsOf, []any{id}, func(rows *sql.Rows) error {
		var d doomed
		err := rows.Scan(&d.n, &d.id)
		list = append(list, d)
		return err
	})
	if err != nil {
		return nil, err
	}
	// A process that takes a run's lease from here on appends before it does anything else, and then finds that the
	// run is gone.
	for _, d := range list {
		if held, err := w.s.Held(d.id); err != nil {
			return nil, err
		} else if held {
			return nil, refuse(tenon.CodeConflict,
				"session %s cannot be deleted: run %s is worked on; wait for its end, or cancel it: tenon runs "+
					"cancel %s", id, d.id, d.id)
		}
	}
	if err := w.checkForks(id); err != nil {
		return nil, err
	}
	for _, d := range list {
		if err := w.deleteRun(d); err != nil {
			return nil, err
		}
		runs = append(runs, d.n)
	}
	// '0' is the character after '/'.
	if _, err := w.exec(deleteBudgets, "session/"+id+"/", "session/"+id+"0"); err != nil {
		return nil, err
	}
	if _, err := w.exec("DELETE FROM session_grants WHERE session = ?", id); err != nil {
		return nil, err
	}
	_, err = w.exec("DELETE FROM sessions WHERE id = ?", id)
	return runs, err
}

// namedForks is how many sessions a refusal names.
const namedForks = 5

// The statements of a deletion that select rows by other columns than their key. Each uses an index, because it runs
// once for every deleted session or run.
const (
	deleteBudgets = "DELETE FROM budgets WHERE key >= ? AND key < ?"
	runsOf        = "SELECT n, id FROM runs WHERE session = ? ORDER BY id"
	selectForks   = `SELECT id FROM sessions WHERE parent = ?1 AND parent <> '' AND id <> ?1
		UNION SELECT s.id FROM runs p JOIN sessions s ON s.head = p.id WHERE p.session = ?1 AND s.id <> ?1
		UNION SELECT r.session FROM runs p JOIN runs r ON r.parent = p.id AND r.parent <> '' WHERE p.session = ?1
			AND r.session <> ?1
		ORDER BY 1`
	selectRunBlobs = `SELECT blob FROM run_blobs WHERE run = ?1 UNION
		SELECT blob FROM events WHERE chapter IN (SELECT n FROM chapters WHERE run = ?1) AND blob IS NOT NULL`
	deleteBlob = `DELETE FROM blobs WHERE digest = ?1 AND NOT EXISTS (SELECT 1 FROM run_blobs WHERE blob = ?1)
		AND NOT EXISTS (SELECT 1 FROM events WHERE blob = ?1)`
)

// deleteRows are the statements that delete the rows of a run by its number ("n") or its id.
var deleteRows = []struct{ sql, by string }{
	{"DELETE FROM events WHERE chapter IN (SELECT n FROM chapters WHERE run = ?)", "n"},
	{"DELETE FROM chapters WHERE run = ?", "n"},
	{"DELETE FROM run_blobs WHERE run = ?", "n"},
	{"DELETE FROM tallies WHERE run = ?", "n"},
	{"DELETE FROM pending WHERE run = ?", "n"},
	{"DELETE FROM signals WHERE run = ?", "id"},
	{"DELETE FROM reservations WHERE run = ?", "id"},
	{"DELETE FROM results WHERE run = ?", "id"},
	{"DELETE FROM runs WHERE n = ?", "n"},
}

// checkForks returns an error if another session needs the journals of this one.
func (w *writer) checkForks(id string) error {
	var forks []string
	err := w.query(selectForks, []any{id}, func(rows *sql.Rows) error {
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

// deleteRun deletes a run with all its rows, except for its texts.
func (w *writer) deleteRun(d doomed) error {
	var blobs [][]byte
	err := w.query(selectRunBlobs, []any{d.n}, func(rows *sql.Rows) error {
		var digest []byte
		err := rows.Scan(&digest)
		blobs = append(blobs, digest)
		return err
	})
	if err != nil {
		return err
	}
	for _, q := range deleteRows {
		var arg any = d.n
		if q.by == "id" {
			arg = d.id
		}
		if _, err := w.exec(q.sql, arg); err != nil {
			return err
		}
	}
	delete(w.runs, d.id)
	for _, digest := range blobs {
		delete(w.there, string(digest))
		_, err := w.exec(deleteBlob, digest)
		if err != nil {
			return err
		}
	}
	return nil
}

// logPatience is how long emptyLog waits for other connections that read the log.
const logPatience = 5 * time.Second

// emptyLog copies the log into the store's file and truncates the log.
func (s *Store) emptyLog(ctx context.Context) {
	var busy, pages, copied int
	var err error
	for deadline := time.Now().Add(logPatience); ; {
		if s.turn == nil {
			err = s.read.QueryRowContext(ctx, "PRAGMA wal_checkpoint(TRUNCATE)").Scan(&busy, &pages, &copied)
		} else if err = s.takeTurn(ctx); err == nil { // fails if the store is being closed
			err = s.conn.QueryRowContext(ctx, "PRAGMA wal_checkpoint(TRUNCATE)").Scan(&busy, &pages, &copied)
			<-s.turn
		}
		switch {
		case err == nil && busy == 0:
			return
		case err != nil && !isBusy(err) || time.Now().After(deadline):
			s.log.Warn("what was deleted may stay in the store's -wal file until the next checkpoint", "path", s.path,
				"busy", busy != 0, "error", err)
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
}
