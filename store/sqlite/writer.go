package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tenonhq/tenon"
)

const (
	// maxBatch is how many writes share one transaction.
	maxBatch = 256
	// lockPatience is how long a write waits for other processes.
	lockPatience = 30 * time.Second
	// pollEvery is how often the writer looks for changes by other processes while a caller waits for them.
	pollEvery = 20 * time.Millisecond
)

// op is one write. do may run more than once, if a transaction is rolled back.
type op struct {
	do      func(*writer) error
	relaxed bool // it need not be on disk before the next write that is not relaxed
	state   atomic.Int32
	done    chan error
}

func newOp(do func(*writer) error) *op { return &op{do: do, done: make(chan error, 1)} }

// The states of an op. The writer and a caller that gives up compete for it.
const (
	opWaiting = iota
	opTaken
	opAbandoned
)

// submit passes a write to the writer and returns after its commit, when it is on disk.
func (s *Store) submit(ctx context.Context, do func(*writer) error) error {
	return s.pass(ctx, do, false)
}

// submitRelaxed is submit for a write that is of use only with a later one of the same process. It returns after the
// commit, which is visible to all processes and survives their end. It is on disk when the next write is that was
// submitted, because the log is a sequence. So it costs no further sync.
func (s *Store) submitRelaxed(ctx context.Context, do func(*writer) error) error {
	return s.pass(ctx, do, true)
}

func (s *Store) pass(ctx context.Context, do func(*writer) error, relaxed bool) error {
	if err := ctx.Err(); err != nil {
		return cancelled(s, err)
	}
	select {
	case <-s.quit:
		return closedError(s)
	default:
	}
	if s.writer == nil {
		return tenon.Errorf(tenon.CodeStore,
			"store %s: it cannot be written, and was opened to be read; choose another place with --home", s.path)
	}
	if s.turn != nil {
		return s.submitHere(ctx, do)
	}
	o, _ := s.pool.Get().(*op)
	if o == nil {
		o = newOp(nil)
	}
	o.do, o.relaxed = do, relaxed
	o.state.Store(opWaiting)
	if !s.writer.crowd.Load() && len(s.ops) == 0 && s.writer.mu.TryLock() {
		return s.submitNow(o)
	}
	select {
	case s.ops <- o:
	case <-ctx.Done():
		return cancelled(s, ctx.Err())
	case <-s.quit:
		return closedError(s)
	}
	select {
	case err := <-o.done:
		o.do = nil
		s.pool.Put(o) // only this goroutine uses it now
		return err
	case <-ctx.Done():
		if o.state.CompareAndSwap(opWaiting, opAbandoned) {
			return cancelled(s, ctx.Err())
		}
	case <-s.ended:
	}
	select { // the write is running and will end soon
	case err := <-o.done:
		return err
	case <-s.ended:
	}
	select { // the writer has ended; it may have done the write before
	case err := <-o.done:
		return err
	default:
		return closedError(s)
	}
}

// submitNow does a write in the caller's goroutine. If writes come one after another, waking the writer and waiting
// for it would only cost time. The caller holds the writer's mutex, and submitNow releases it.
func (s *Store) submitNow(o *op) error {
	select {
	case <-s.quit:
		s.writer.mu.Unlock()
		return closedError(s)
	default:
	}
	batch := append(s.writer.batch, o) // begin with this op only: the writer also does the ops that arrive now
	s.writer.commit(batch)
	clear(batch)
	s.writer.mu.Unlock()
	err := <-o.done
	o.do = nil
	s.pool.Put(o) // only this goroutine uses it now
	return err
}

// submitHere does a write of a brief store in the caller's goroutine, because passing it to another one would only
// cost time.
func (s *Store) submitHere(ctx context.Context, do func(*writer) error) error {
	if err := s.takeTurn(ctx); err != nil {
		return err
	}
	defer func() { <-s.turn }()
	o := newOp(do)
	s.writeSoon(o)
	return <-o.done
}

func cancelled(s *Store, err error) error {
	return tenon.Errorf(tenon.CodeCancelled, "store %s: not written: %w", s.path, err)
}

func closedError(s *Store) error {
	return tenon.Errorf(tenon.CodeStore, "store %s: it was closed", s.path)
}

// writer owns the connection that writes. Only the holder of its mutex may use it, or, in a brief store, the holder
// of the turn.
type writer struct {
	s     *Store
	mu    sync.Mutex
	conn  *sql.Conn
	stmts statements
	batch []*op
	crowd atomic.Bool // the last transaction had several writes
	// version is SQLite's data_version: it changes when another process writes.
	version int64
	// runs caches the ends of journals until another process writes.
	runs   map[string]*position
	writes int // since the last checkpoint
	// chapter is the number of the next chapter, until another process writes; 0 if it is not known.
	chapter int64
	// there contains digests of blobs that are known to exist, until the end of the transaction or a deletion.
	there map[string]bool
	// indexed says that the tables of the index of texts exist.
	indexed bool
	// lax says that the connection commits without a sync.
	lax bool
	// unmarked says that the store does not have the user's mark yet.
	unmarked bool
	// moved is the error of writes to a store that takes part in a copy, or nil for any other.
	moved error
}

// maxPositions is the maximum number of cached ends of journals.
const maxPositions = 20_000

func newWriter(s *Store, conn *sql.Conn) *writer {
	return &writer{s: s, conn: conn, stmts: newStatements(conn), runs: map[string]*position{},
		there: map[string]bool{},
		batch: make([]*op, 0, maxBatch)}
}

func (w *writer) loop() {
	defer close(w.s.ended)
	defer w.end()
	ticker := time.NewTicker(pollEvery)
	defer ticker.Stop()
	for {
		var tick <-chan time.Time
		if w.s.watch.waiting() {
			tick = ticker.C
		}
		select {
		case o := <-w.s.ops:
			w.mu.Lock()
			w.write(o)
			w.mu.Unlock()
		case <-tick:
			changed, err := w.look()
			if err == nil && changed {
				w.s.watch.notify()
			}
		case <-w.s.watch.wake:
		case <-w.s.quit:
			w.drain()
			return
		}
	}
}

// write does a write together with the waiting ones.
func (w *writer) write(o *op) {
	batch := w.collect(append(w.batch, o))
	w.crowd.Store(len(batch) > 1)
	w.commit(batch)
	clear(batch)
}

// end gives the connection back to the pool, which reports errors itself.
func (w *writer) end() {
	if w.s.turn == nil {
		w.mu.Lock() // a caller may still use the op
		defer w.mu.Unlock()
		w.stmts.close()
		_ = w.conn.Close()
	}
}

// look calls foreign while it holds the mutex or the turn.
func (w *writer) look() (changed bool, err error) {
	if w.s.turn != nil {
		w.s.turn <- struct{}{}
		defer func() { <-w.s.turn }()
	} else {
		w.mu.Lock()
		defer w.mu.Unlock()
	}
	return w.foreign()
}

// collect returns a batch with the waiting ops. Callers whose writes were just committed need a moment to submit
// their next ones, so collect lets them run first.
func (w *writer) collect(batch []*op) []*op {
	for idle := 0; len(batch) < maxBatch && idle < 2; {
		select {
		case o := <-w.s.ops:
			batch = append(batch, o)
			idle = 0
		default:
			idle++
			runtime.Gosched()
		}
	}
	return batch
}

// drain does the writes that were submitted before Close.
func (w *writer) drain() {
	for {
		select {
		case o := <-w.s.ops:
			w.mu.Lock()
			w.write(o)
			w.mu.Unlock()
		default:
			return
		}
	}
}

// commit writes a batch in one transaction. If one of its writes fails, each write is repeated in a separate
// transaction, so that only the faulty one fails.
func (w *writer) commit(batch []*op) {
	n := 0
	for _, o := range batch {
		if o.state.CompareAndSwap(opWaiting, opTaken) {
			batch[n] = o
			n++
		}
	}
	batch = batch[:n]
	if n == 0 {
		return
	}
	errs := make([]error, n)
	failed, err := w.transact(batch, errs)
	if failed && n > 1 {
		for i, o := range batch {
			if _, err := w.transact([]*op{o}, errs[i:i+1]); err != nil {
				errs[i] = err
			}
		}
	} else if err != nil {
		for i := range errs {
			errs[i] = err
		}
	}
	if w.writes += n; w.writes >= checkpointEvery {
		w.writes = 0
		select {
		case w.s.full <- struct{}{}:
		default:
		}
	}
	w.s.watch.notify()
	for i, o := range batch {
		var r refused
		if errors.As(errs[i], &r) {
			errs[i] = r.err
		} else if errs[i] != nil {
			w.s.probe.failed.Add(1)
		}
		o.done <- errs[i]
	}
}

// transact does the writes in one transaction. It stores the errors of refused writes in errs. failed says that a
// single write caused err.
func (w *writer) transact(batch []*op, errs []error) (failed bool, err error) {
	if err := w.relax(!slices.ContainsFunc(batch, func(o *op) bool { return !o.relaxed })); err != nil {
		return false, storeError(w.s.path, "write", err)
	}
	if err := w.begin(); err != nil {
		return false, storeError(w.s.path, "write", err)
	}
	defer func() {
		if err != nil {
			_, _ = w.stmts.rollback.exec() // SQLite may already have rolled back by itself
			clear(w.runs)
			w.chapter = 0
		}
	}()
	if w.moved != nil {
		return false, w.moved
	}
	clear(w.there)
	if w.unmarked {
		if err := w.mark(); err != nil {
			return false, storeError(w.s.path, "write", err)
		}
	}
	for i, o := range batch {
		errs[i] = nil
		if err := o.do(w); err != nil {
			var r refused
			if !errors.As(err, &r) {
				return true, storeError(w.s.path, "write", err)
			}
			errs[i] = err
		}
	}
	if err := w.stmts.commit.exec(); err != nil {
		return false, storeError(w.s.path, "commit", err)
	}
	w.unmarked = false
	return false, nil
}

// relax chooses whether the next transactions are committed without a sync.
func (w *writer) relax(lax bool) error {
	if lax == w.lax {
		return nil
	}
	pragma := "PRAGMA synchronous = FULL"
	if lax {
		pragma = "PRAGMA synchronous = NORMAL"
	}
	_, err := w.conn.ExecContext(context.Background(), pragma)
	if err == nil {
		w.lax = lax
	}
	return err
}

// begin starts a transaction. It waits if another process is writing.
func (w *writer) begin() error {
	for deadline := time.Now().Add(lockPatience); ; {
		err := w.stmts.begin.exec()
		if err == nil {
			break
		}
		if !isBusy(err) || time.Now().After(deadline) {
			return err
		}
	}
	if _, err := w.foreign(); err != nil {
		_, _ = w.stmts.rollback.exec() // err says more
		return err
	}
	return nil
}

// foreign reports whether another process has written since the last call. If so, it discards the cached ends of
// journals.
func (w *writer) foreign() (bool, error) {
	v, err := w.stmts.version.number()
	if err != nil || v == w.version {
		return false, err
	}
	clear(w.runs)
	w.chapter = 0
	if err := w.checkMove(); err != nil {
		return false, err
	}
	w.version = v
	return true, nil
}
