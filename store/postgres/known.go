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

// isNotAlone reports whether something may refuse a new run. The positions of other runs are as expected.
func isNotAlone(err error) bool {
	pg, ok := errors.AsType[*pgconn.PgError](err)
	return ok && pg.Code == notAlone
}

// errGuess means that the write cannot be made on the basis of a guess.
var errGuess = errors.New("the positions of the runs are not known")

// targets are the runs of a write. A new run has no position; begin_run looks at its lease.
type targets struct {
	runs []string
	new  []bool
}

// knows reports whether the positions of all runs are known.
func (s *Store) knows(on targets) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range on.runs {
		if !s.expects(on, i) {
			return false
		}
	}
	return len(on.runs) > 0 && !s.moving
}

// expects reports whether a run is new and has a lease, or has a known position. The caller holds s.mu.
func (s *Store) expects(on targets, i int) bool {
	run := on.runs[i]
	epoch := s.leases[run]
	if s.era == 0 || epoch == 0 || s.releasing[run] {
		return false
	}
	if on.new != nil && on.new[i] {
		return true
	}
	k, ok := s.known[run]
	return ok && k.epoch == epoch && k.era == s.era
}

// recall sets the known positions. Until [tx.remember], no lease of these runs is released.
func (t *tx) recall(on targets) error {
	t.s.mu.Lock()
	defer t.s.mu.Unlock()
	guessed := map[string]bool{}
	for i, run := range on.runs {
		if !t.s.expects(on, i) {
			return errGuess
		}
		t.epochs[run], guessed[run] = t.s.leases[run], true
		if t.runs[run] != nil || on.new != nil && on.new[i] {
			continue // two appends to one run, or a new run
		}
		k := t.s.known[run]
		t.runs[run] = &k.pos
	}
	t.era = t.s.era
	t.s.guessed, t.s.guessing = guessed, make(chan struct{})
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
		placed := pos != nil && pos.n != 0 // a new run whose commit was looked up has no primary key
		if err != nil || !placed || epoch == 0 || t.s.releasing[run] || epoch != t.s.leases[run] || t.era == 0 {
			delete(t.s.known, run)
			continue
		}
		t.s.known[run] = known{epoch: epoch, pos: *pos, era: t.era}
		t.s.era = t.era
	}
}

// forgetAll makes the next write to each run look at its lease and position. After a wrong guess, all others are in
// doubt, too.
func (s *Store) forgetAll() {
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.known)
	s.era = 0
}

// forget makes all writes to a run lock its lease, until [Store.forgotten]. It waits for a write that is under way
// without that lock.
func (s *Store) forget(run string) {
	s.mu.Lock()
	s.releasing[run] = true
	delete(s.known, run)
	var under chan struct{}
	if s.guessed[run] {
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
