package postgres

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/tenonhq/tenon"
)

// patience is how long a write is tried again while the database cannot be reached or is busy.
const patience = 30 * time.Second

// slot is the row of a connection that writes. Only one transaction uses a slot at a time. Each transaction writes its
// number into the row, so the row contains the number if and only if the transaction was committed.
type slot struct {
	id   int
	n    int64
	last int64 // number of the last transaction that was committed
}

// tx is a transaction under way.
type tx struct {
	s      *Store
	ctx    context.Context
	conn   *pgxpool.Conn
	batch  pgconn.Batch // statements that are sent together with the next one
	queued int          // number of statements in batch
	broken error        // a statement could not be encoded
	runs   map[string]*position
	lost   map[string]bool // runs whose lease this store has lost
	// epochs are the leases of runs that the transaction has locked, or that it relies on in the era.
	epochs map[string]int64
	era    int64 // see era.go; 0 if it is not known
	guess  bool  // nothing is sent before the end, and nothing is read

	inserts eventRows         // rows of events that are not sent yet
	begun   []*begun          // new runs that are not sent yet
	states  [][]any           // arguments of set_state that are not sent yet
	keys    map[int]*position // new runs by the statement of batch that returns their primary keys
}

// errUnknown means that a COMMIT got no answer, and that the look-up did not get one, either.
var errUnknown = errors.New("the connection ended during the commit, and the database could not be asked since: " +
	"it is not known whether the write was stored")

// single makes a write in a separate transaction. It returns after the commit. do may be called more than once, each
// time in a new transaction after the previous one was rolled back.
func (s *Store) single(ctx context.Context, do func(*tx) error) error {
	if err := ctx.Err(); err != nil {
		return s.cancelled(err)
	}
	select {
	case <-s.quit:
		return s.closedError()
	default:
	}
	var sl *slot
	select {
	case sl = <-s.slots:
	case <-ctx.Done():
		return s.cancelled(ctx.Err())
	case <-s.quit:
		return s.closedError()
	}
	defer func() { s.slots <- sl }()
	err := s.transact(sl, targets{}, do)
	s.watch.notify()
	if r, ok := errors.AsType[refused](err); ok {
		return r.err
	}
	if err != nil {
		s.failed.Add(1)
		return s.storeError("write", err)
	}
	s.hintOthers()
	return nil
}

// transact makes a write in a transaction. If the transaction was not committed for a temporary reason, it is made
// again. on are the runs whose positions do needs; their leases are locked. If the leases of this replica have
// expired, transact waits for a heartbeat. The results of calls are therefore not lost if the database could not be
// reached for longer than a lease.
func (s *Store) transact(sl *slot, on targets, do func(*tx) error) error {
	ctx, stop := context.WithTimeout(context.WithoutCancel(s.ctx), s.patience)
	defer stop()
	var since time.Time // time of the first attempt that found expired leases
	for wait := 5 * time.Millisecond; ; wait = min(2*wait, time.Second) {
		err := s.try(ctx, sl, on, !since.IsZero() && time.Since(since) > s.lease, do)
		if err == nil || !passes(err) || ctx.Err() != nil {
			return err
		}
		if errors.Is(err, errExpired) && since.IsZero() {
			since = time.Now()
			select {
			case s.renew <- struct{}{}:
			default:
			}
		}
		s.log.Debug("a write is made again", "store", s.name, "error", err.Error())
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return err
		}
	}
}

// try makes one attempt of a transaction. If the positions of all runs are known, all statements are sent together. If
// the last one fails because a position may be different, the transaction is made again with a look at the positions.
func (s *Store) try(ctx context.Context, sl *slot, on targets, expiredIsLost bool, do func(*tx) error) error {
	if !expiredIsLost && s.knows(on) {
		err := s.attempt(ctx, sl, on, false, true, do)
		switch {
		case isWrongGuess(err):
			s.forgetAll()
		case !isNotAlone(err):
			return err
		}
	}
	return s.attempt(ctx, sl, on, expiredIsLost, false, do)
}

func (s *Store) attempt(ctx context.Context, sl *slot, on targets, expiredIsLost, guess bool,
	do func(*tx) error) (err error) {
	conn, err := s.pool.Acquire(ctx)
	if err != nil {
		return err
	}
	defer conn.Release()
	t := &tx{s: s, ctx: ctx, conn: conn, runs: map[string]*position{}, epochs: map[string]int64{}, guess: guess}
	sl.n++
	mine := sl.n
	defer func() {
		if err == nil {
			sl.last = mine
			s.inLimbo(sl, 0)
		}
		t.remember(on.runs, err)
	}()
	if guess {
		if err = t.recall(on); err == nil {
			err = do(t)
		}
		if err == nil {
			err = t.queueBegun()
		}
		if err == nil {
			err = t.queueStates()
		}
		if err == nil {
			err = t.appendRows(sl)
		}
		if err != nil {
			return err
		}
		return t.finish(sl, "SELECT 1")
	}
	t.queue("BEGIN")
	// If a process is stopped within a transaction, the transaction must not hold its locks for longer than the lease.
	t.queue("SELECT set_config('idle_in_transaction_session_timeout', $1, true)", s.idle())
	begin := beginWrite
	if s.moving {
		begin = beginAnyWrite
	}
	t.queue(begin, s.replica, sl.id, sl.n, sl.last)
	if len(on.runs) > 0 {
		if t.lost, err = t.hold(on.runs, expiredIsLost); err == nil {
			err = t.positions(on.runs)
		}
	}
	if err == nil {
		err = do(t)
	}
	if err == nil {
		err = t.queueStates()
	}
	if err != nil {
		t.rollback()
		return err
	}
	t.insertEvents()
	t.queue("COMMIT")
	return t.finish(sl, "COMMIT")
}

func (t *tx) rollback() {
	if t.guess {
		return // without BEGIN, an error has rolled it back
	}
	// If ROLLBACK fails, the connection is closed, which ends its transaction.
	if _, err := t.conn.Exec(t.ctx, "ROLLBACK"); err != nil {
		_ = t.conn.Conn().Close(t.ctx)
	}
}

// finish sends the queued statements, of which the last one ends the transaction. want is its answer. If the connection
// ends before the answer, finish looks up whether the transaction was committed.
func (t *tx) finish(sl *slot, want string) error {
	tag, err := t.send()
	switch pg, ok := errors.AsType[*pgconn.PgError](err); {
	case err == nil && tag.String() == want:
		return nil
	case err == nil:
		t.rollback()
		return errors.New("the database rolled the write back")
	case ok && pg.Severity == "ERROR": // the server refused a statement and did not commit
		t.rollback()
		return t.s.withoutName(err)
	}
	_ = t.conn.Conn().Close(t.ctx) // ends the transaction if it is still under way
	return t.s.lookUp(sl, err)
}

// lookUp finds out whether the transaction of a slot was committed. If so, it returns nil, otherwise an error with the
// cause why. The transaction locks the row of its slot, so the look-up waits as long as the transaction is under way.
// If the server has not read the transaction yet, the look-up stores a later number, and the transaction will fail; see
// beginWrite.
func (s *Store) lookUp(sl *slot, why error) error {
	ctx, stop := context.WithTimeout(context.WithoutCancel(s.ctx), s.patience)
	defer stop()
	mine := sl.n
	sl.n++ // the number that the look-up may store
	for wait := 5 * time.Millisecond; ; wait = min(2*wait, time.Second) {
		var n int64
		err := s.pool.QueryRow(ctx, s.sql(fence), s.replica, sl.id, mine, sl.last).Scan(&n)
		switch {
		case err == nil && n == mine:
			return nil
		case err == nil:
			s.inLimbo(sl, 0)
			return notCommitted{why}
		}
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			s.inLimbo(sl, mine)
			return errors.Join(errUnknown, why)
		}
	}
}

// fence returns the number of the last transaction of a slot. If it is not $3, it is at least $3 + 1 from now on, and
// the transaction $3 can no longer be made. A loss of commits begins a new era, as in [numbered].
const fence = `INSERT INTO @writers AS w (replica, slot, n) VALUES ($1, $2, $3::bigint + 1)
	ON CONFLICT (replica, slot) DO UPDATE SET n = CASE WHEN w.n = $3 THEN w.n ELSE greatest(w.n, excluded.n) END,
		era = CASE WHEN w.era <> 0 AND w.n < $4 THEN ` + newEra + ` ELSE w.era END
	RETURNING n`

// notCommitted is the error of a transaction whose look-up showed that it was not committed.
type notCommitted struct{ err error }

func (n notCommitted) Error() string { return n.err.Error() }
func (n notCommitted) Unwrap() error { return n.err }

// query reads rows.
func (t *tx) query(query string, args []any, row func(pgx.Rows) error) error {
	if t.guess {
		return errGuess
	}
	if err := t.flush(); err != nil {
		return err
	}
	rows, err := t.conn.Query(t.ctx, t.s.sql(query), encode(args)...)
	if err != nil {
		return err
	}
	return eachRow(rows, row)
}

// row reads one row. Errors: pgx.ErrNoRows.
func (t *tx) row(query string, args []any, dest ...any) error {
	there := false
	err := t.query(query, args, func(rows pgx.Rows) error {
		if there {
			return nil
		}
		there = true
		return scan(rows, dest...)
	})
	if err == nil && !there {
		err = pgx.ErrNoRows
	}
	return err
}

func eachRow(rows pgx.Rows, row func(pgx.Rows) error) error {
	defer rows.Close()
	for rows.Next() {
		if err := row(rows); err != nil {
			return err
		}
	}
	return rows.Err()
}

// errEnough ends the reading of rows early. It is not reported as an error.
var errEnough = errors.New("enough")

// each reads rows outside of a transaction. It calls row for each row until row returns an error.
func (s *Store) each(ctx context.Context, query string, args []any, row func(pgx.Rows) error) error {
	if err := ctx.Err(); err != nil {
		return s.readError(ctx, err)
	}
	for tries := 0; ; tries++ {
		seen := false
		rows, err := s.pool.Query(ctx, s.sql(query), encode(args)...)
		if err == nil {
			err = eachRow(rows, func(r pgx.Rows) error {
				seen = true
				return row(r)
			})
		}
		switch {
		case err == nil || errors.Is(err, errEnough):
			return nil
		case tries <= int(s.pool.Config().MaxConns) && !seen && readsAgain(err) && ctx.Err() == nil:
			if _, connecting := errors.AsType[*pgconn.ConnectError](err); !connecting || tries == 0 {
				continue // the connection has ended since its last use, and each one in the pool may have
			}
		}
		if own, ok := isCalled(err); ok {
			return own
		}
		if _, ok := errors.AsType[*tenon.Error](err); ok {
			return err
		}
		return s.readError(ctx, err)
	}
}
