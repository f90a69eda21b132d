package postgres

import (
	"errors"

	"github.com/jackc/pgx/v5/pgconn"
)

// known is the position of a run after the last write of this store. While the store has the lease, nobody else
// appends to the run, so that the next write need not read the position first: it guesses it, and a statement of the
// same transaction compares it with the database. A write then takes one round trip in place of four:
//
//	BEGIN ─► number of the transaction ─► check (locks leases, compares positions) ─► rows ─► COMMIT
type known struct {
	epoch int64
	pos   position
}

// check fails with a division by zero unless all leases and positions are as expected. It locks the leases like
// [tx.hold] does, so that nobody can take them before the transaction ends. It also finds leases that have expired.
const check = `SELECT 1 / (count(*) = $6)::int FROM (SELECT l.run FROM @leases l
	JOIN unnest($1::text[], $2::bigint[], $3::bigint[], $4::bigint[]) AS u (run, epoch, n, seq)
	ON l.run = u.run AND l.epoch = u.epoch AND l.owner = $5
	JOIN @runs AS runs ON runs.n = u.n AND runs.id = u.run
	WHERE EXISTS (SELECT 1 FROM @replicas r WHERE r.id = $5 AND r.expires > clock_timestamp())
	AND ` + lastEvent + ` = u.seq ORDER BY l.run FOR SHARE OF l) AS held`

// isWrongGuess reports whether check failed.
func isWrongGuess(err error) bool {
	pg, ok := errors.AsType[*pgconn.PgError](err)
	return ok && pg.Code == "22012" || errors.Is(err, errGuess)
}

// errGuess means that the positions were forgotten since [Store.knows].
var errGuess = errors.New("a position is not known any more")

// knows reports whether the positions of all runs are known.
func (s *Store) knows(runs []string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, run := range runs {
		k, ok := s.known[run]
		if !ok || k.epoch != s.leases[run] {
			return false
		}
	}
	return len(runs) > 0
}

// recall sets the known positions and queues the statement that compares them.
func (t *tx) recall(runs []string) error {
	var names []string
	var epochs, ns, seqs []int64
	t.s.mu.Lock()
	defer t.s.mu.Unlock()
	for _, run := range runs {
		if t.runs[run] != nil {
			continue // two appends to one run
		}
		k, ok := t.s.known[run]
		if !ok || k.epoch != t.s.leases[run] {
			return errGuess
		}
		t.runs[run], t.epochs[run] = &k.pos, k.epoch
		names, epochs = append(names, run), append(epochs, k.epoch)
		ns, seqs = append(ns, k.pos.n), append(seqs, int64(k.pos.seq))
	}
	t.queue(check, names, epochs, ns, seqs, t.s.replica, len(names))
	return nil
}

// remember keeps the positions after a commit. After an error, the next write reads them.
func (t *tx) remember(runs []string, err error) {
	t.s.mu.Lock()
	defer t.s.mu.Unlock()
	for _, run := range runs {
		pos, epoch := t.runs[run], t.epochs[run]
		if err != nil || pos == nil || epoch == 0 || epoch != t.s.leases[run] {
			delete(t.s.known, run)
			continue
		}
		t.s.known[run] = known{epoch: epoch, pos: *pos}
	}
}
