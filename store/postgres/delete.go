package postgres

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/store/forms"
)

// DeleteSession implements [store.Sessions]. PostgreSQL keeps the deleted rows until the next VACUUM. The WAL and
// backups contain them until they are deleted themselves.
func (s *Store) DeleteSession(ctx context.Context, id string) error {
	return s.single(ctx, func(t *tx) error { return t.deleteSession(id) })
}

// errChanged means that DeleteSessions has to keep a session, because it has changed since it was listed.
var errChanged = tenon.Errorf(tenon.CodeConflict, "the session has changed")

// DeleteSessions implements [store.Sessions].
func (s *Store) DeleteSessions(ctx context.Context, list []tenon.Session, progress func(deleted int)) (
	gone []tenon.Session, err error) {
	for _, v := range list {
		err := s.single(ctx, func(t *tx) error {
			var updated int64
			err := t.row("SELECT updated FROM @sessions WHERE id = $1 FOR UPDATE", []any{v.ID}, &updated)
			if isNone(err) || err == nil && updated > forms.Nanos(v.Updated) {
				return refused{errChanged}
			} else if err != nil {
				return err
			}
			return t.deleteSession(v.ID)
		})
		switch code := tenon.ErrorCode(err); {
		case err == nil:
			gone = append(gone, v)
			if progress != nil {
				progress(len(gone))
			}
		case code != tenon.CodeConflict && code != tenon.CodeNotFound: // a refused session is in use again, and stays
			return gone, err
		}
	}
	return gone, nil
}

// namedForks is the number of sessions that a refusal names.
const namedForks = 5

// deleteSession deletes a session and its runs. It takes the leases of the runs, so that no replica can begin to work
// on them.
func (t *tx) deleteSession(id string) error {
	if ok, err := t.s.settled(t.ctx); err != nil {
		return err
	} else if !ok {
		return refuse(tenon.CodeConflict, "session %s cannot be deleted yet: an append got no answer, and the "+
			"database may still be storing it; try again later", id)
	}
	var there int
	err := t.row("SELECT 1 FROM @sessions WHERE id = $1 FOR UPDATE", []any{id}, &there)
	if isNone(err) {
		return refuse(tenon.CodeNotFound, "no session %s", id)
	} else if err != nil {
		return err
	}
	var runs, free []string
	var numbers []int64
	err = t.query("SELECT n, id FROM @runs WHERE session = $1 ORDER BY id FOR UPDATE", []any{id},
		func(rows pgx.Rows) error {
			var n int64
			var run string
			err := scan(rows, &n, &run)
			runs, numbers = append(runs, run), append(numbers, n)
			return err
		})
	if err != nil {
		return err
	}
	err = t.query(`INSERT INTO @leases AS l (run, owner, epoch)
		SELECT run, $1, nextval('@epochs') FROM unnest($2::text[]) AS u (run) ORDER BY run
		ON CONFLICT (run) DO UPDATE SET owner = excluded.owner, epoch = excluded.epoch WHERE NOT `+live+`
		RETURNING run`, []any{t.s.replica, runs}, scanID(&free))
	if err != nil {
		return err
	}
	is := map[string]bool{}
	for _, run := range free {
		is[run] = true
	}
	t.s.mu.Lock()
	for _, run := range runs {
		if _, held := t.s.leases[run]; held { // expired, but in use in this process
			delete(is, run)
		}
	}
	t.s.mu.Unlock()
	if len(is) < len(runs) {
		for _, run := range runs {
			if !is[run] {
				return refuse(tenon.CodeConflict,
					"session %s cannot be deleted: run %s is worked on; wait for its end, or cancel it: tenon runs "+
						"cancel %s", id, run, run)
			}
		}
	}
	if err := t.checkForks(id); err != nil {
		return err
	}
	return t.deleteRuns(id, runs, numbers)
}

// checkForks refuses to delete a session if another session needs its journals.
func (t *tx) checkForks(id string) error {
	var forks []string
	err := t.query(`SELECT id FROM @sessions WHERE parent = $1 AND parent <> '' AND id <> $1
		UNION SELECT s.id FROM @runs p JOIN @sessions s ON s.head = p.id WHERE p.session = $1 AND s.id <> $1
		UNION SELECT r.session FROM @runs p JOIN @runs r ON r.parent = p.id AND r.parent <> '' WHERE p.session = $1
			AND r.session <> $1
		ORDER BY 1`, []any{id}, scanID(&forks))
	if err != nil || len(forks) == 0 {
		return err
	}
	names := strings.Join(forks[:min(len(forks), namedForks)], ", ")
	if more := len(forks) - namedForks; more > 0 {
		names += fmt.Sprintf(" and %d more", more)
	}
	return refuse(tenon.CodeConflict, "session %s cannot be deleted: %s continue from it; delete them first", id, names)
}

// deleteRuns deletes all rows of runs, and then the rows of their session.
func (t *tx) deleteRuns(id string, runs []string, numbers []int64) error {
	var blobs [][]byte
	err := t.query(`SELECT blob FROM @run_blobs WHERE run = ANY ($1::bigint[]) UNION
		SELECT blob FROM @events WHERE run = ANY ($1::bigint[]) AND blob IS NOT NULL`, []any{numbers},
		func(rows pgx.Rows) error {
			var digest []byte
			err := rows.Scan(&digest)
			blobs = append(blobs, digest)
			return err
		})
	if err != nil {
		return err
	}
	for _, table := range []string{"events", "run_blobs", "tallies", "pending", "texts", "texts_upto"} {
		t.queue("DELETE FROM @"+table+" WHERE run = ANY ($1::bigint[])", numbers)
	}
	t.queue("SELECT set_config('"+ownerSetting+"', $1, true)", t.s.replica)
	for _, table := range []string{"signals", "reservations", "results", "leases"} {
		t.queue("DELETE FROM @"+table+" WHERE run = ANY ($1::text[])", runs)
	}
	t.queue("DELETE FROM @runs WHERE n = ANY ($1::bigint[])", numbers)
	// Lock the blobs first, because another transaction may be about to use one of them.
	t.queue("SELECT 1 FROM @blobs WHERE digest = ANY ($1::bytea[]) ORDER BY digest FOR UPDATE", blobs)
	t.queue(`DELETE FROM @blobs b WHERE digest = ANY ($1::bytea[])
		AND NOT EXISTS (SELECT 1 FROM @run_blobs r WHERE r.blob = b.digest)
		AND NOT EXISTS (SELECT 1 FROM @events e WHERE e.blob = b.digest)`, blobs)
	// '0' follows '/'.
	t.queue("DELETE FROM @budgets WHERE key >= $1 AND key < $2", "session/"+id+"/", "session/"+id+"0")
	t.queue("DELETE FROM @session_grants WHERE session = $1", id)
	t.queue("DELETE FROM @sessions WHERE id = $1", id)
	return nil
}

// called is an error that a function of the caller returned. It is passed on unchanged.
type called struct{ err error }

func (c called) Error() string { return c.err.Error() }
func (c called) Unwrap() error { return c.err }

func callerError(err error) error {
	if err == nil {
		return nil
	}
	return called{err}
}

// isCalled returns the error of a function of the caller. ok is false for other errors.
func isCalled(err error) (error, bool) {
	var c called
	ok := errors.As(err, &c)
	return c.err, ok
}
