package postgres

import (
	"errors"

	"github.com/jackc/pgx/v5/pgconn"
)

// known is the position of a run after the last write of this store. While the store has the lease, nobody else
// appends to the run, so that the next write need not read the position first. It guesses it, and the last statement of
// the write fails if the guess may be wrong; see append_rows in era.go. Such a write is a single round trip, and
// a transaction without BEGIN and COMMIT:
//
//	rows of runs, blobs and signals, if they change ─► append_rows (locks, compares, adds the events)
type known struct {
	epoch int64
	pos   position
	era   int64 // era in which the store had the lease
}

// isWrongGuess reports whether a guess may be wrong.
func isWrongGuess(err error) bool {
	pg, ok := errors.AsType[*pgconn.PgError](err)
	return ok && pg.Code == wrongGuess || errors.Is(err, errGuess)
}

// errGuess means that the write cannot be made on the basis of a guess.
var errGuess = errors.New("the positions of the runs are not known")

// knows reports whether the positions of all runs are known.
func (s *Store) knows(runs []string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, run := range runs {
		k, ok := s.known[run]
		if !ok || s.releasing[run] || k.epoch != s.leases[run] || k.era != s.known[runs[0]].era {
			return false
		}
	}
	return len(runs) > 0 && !s.moving
}

// recall sets the known positions. Until [tx.remember], no lease of these runs is released.
func (t *tx) recall(runs []string) error {
	t.s.mu.Lock()
	defer t.s.mu.Unlock()
	for _, run := range runs {
		if t.runs[run] != nil {
			continue // two appends to one run
		}
		k, ok := t.s.known[run]
		if !ok || t.s.releasing[run] || k.epoch != t.s.leases[run] || t.era != 0 && t.era != k.era {
			return errGuess
		}
		t.runs[run], t.epochs[run], t.era = &k.pos, k.epoch, k.era
	}
	t.s.guessed, t.s.guessing = t.runs, make(chan struct{})
	return nil
}

// remember keeps the positions after a commit. After an error, the next write reads them.
func (t *tx) remember(runs []string, err error) {
	t.s.mu.Lock()
	defer t.s.mu.Unlock()
	if t.guess && t.s.guessing != nil {
		close(t.s.guessing)
		t.s.guessed, t.s.guessing = nil, nil
	}
	for _, run := range runs {
		pos, epoch := t.runs[run], t.epochs[run]
		if err != nil || pos == nil || epoch == 0 || t.s.releasing[run] || epoch != t.s.leases[run] || t.era == 0 {
			delete(t.s.known, run)
			continue
		}
		t.s.known[run] = known{epoch: epoch, pos: *pos, era: t.era}
	}
}

// forgetAll makes the next write to each run look at its lease and position. After a wrong guess, all others are in
// doubt, too.
func (s *Store) forgetAll() {
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.known)
}

// forget makes all writes to a run lock its lease, until [Store.forgotten]. It waits for a write that is under way
// without that lock.
func (s *Store) forget(run string) {
	s.mu.Lock()
	s.releasing[run] = true
	delete(s.known, run)
	var under chan struct{}
	if s.guessed[run] != nil {
		under = s.guessing
	}
	s.mu.Unlock()
	if under != nil {
		<-under
	}
}

// forgotten removes a lease that was given back.
func (s *Store) forgotten(run string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.leases, run)
	delete(s.known, run)
	delete(s.releasing, run)
}
