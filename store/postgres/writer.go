package postgres

import (
	"context"
	"errors"
	"runtime"
	"sync/atomic"
)

// maxBatch is how many appends share one transaction.
const maxBatch = 256

// op is one append. Its do may run more than once, in transactions that are rolled back.
type op struct {
	run   string
	do    func(*tx) error
	state atomic.Int32
	done  chan error
}

// The states of an op: the writer and a caller that gives up race for it.
const (
	opWaiting = iota
	opTaken
	opAbandoned
)

// submit has one append done and returns after its commit.
func (s *Store) submit(ctx context.Context, run string, do func(*tx) error) error {
	if err := ctx.Err(); err != nil {
		return s.cancelled(err)
	}
	select {
	case <-s.quit:
		return s.closedError()
	default:
	}
	o := &op{run: run, do: do, done: make(chan error, 1)}
	select {
	case s.ops <- o:
	case <-ctx.Done():
		return s.cancelled(ctx.Err())
	case <-s.quit:
		return s.closedError()
	}
	select {
	case err := <-o.done:
		return err
	case <-ctx.Done():
		if o.state.CompareAndSwap(opWaiting, opAbandoned) {
			return s.cancelled(ctx.Err())
		}
	case <-s.quit:
		if o.state.CompareAndSwap(opWaiting, opAbandoned) {
			return s.closedError()
		}
	}
	return <-o.done // under way, and soon over
}

// write does appends until the store is closed. Appends that wait at the same time share a transaction.
func (s *Store) write() {
	sl := &slot{}
	batch := make([]*op, 0, maxBatch)
	for {
		select {
		case o := <-s.ops:
			batch = s.collect(append(batch[:0], o))
			s.commit(sl, batch)
			clear(batch)
		case <-s.quit:
			return // an op that still waits is abandoned by its caller
		}
	}
}

// collect takes the ops that wait. The callers of the last commit need a moment to come back with their next append, so
// it lets them run first.
func (s *Store) collect(batch []*op) []*op {
	for idle := 0; len(batch) < maxBatch && idle < 2; {
		select {
		case o := <-s.ops:
			batch = append(batch, o)
			idle = 0
		default:
			idle++
			runtime.Gosched()
		}
	}
	return batch
}

// commit does a batch in one transaction. If that fails because of one of its appends, each is done in a separate
// transaction, so that only the faulty one fails.
func (s *Store) commit(sl *slot, batch []*op) {
	taken := batch[:0]
	for _, o := range batch {
		if o.state.CompareAndSwap(opWaiting, opTaken) {
			taken = append(taken, o)
		}
	}
	if len(taken) == 0 {
		return
	}
	errs := make([]error, len(taken))
	err := s.transactAll(sl, taken, errs)
	if err != nil && len(taken) > 1 && !errors.Is(err, errUnknown) && !isNet(err) {
		for i, o := range taken {
			if err := s.transactAll(sl, []*op{o}, errs[i:i+1]); err != nil {
				errs[i] = err
			}
		}
	} else if err != nil {
		for i := range errs {
			errs[i] = err
		}
	}
	s.watch.notify()
	s.hintOthers()
	for i, o := range taken {
		if r, ok := errors.AsType[refused](errs[i]); ok {
			errs[i] = r.err
		} else if errs[i] != nil {
			s.failed.Add(1)
			errs[i] = s.storeError("write", errs[i])
		}
		o.done <- errs[i]
	}
}

// transactAll does appends in one transaction. It puts the errors of refused ones into errs.
func (s *Store) transactAll(sl *slot, batch []*op, errs []error) error {
	runs := make([]string, len(batch))
	for i, o := range batch {
		runs[i] = o.run
	}
	return s.transact(sl, runs, func(t *tx) error {
		for i, o := range batch {
			errs[i] = o.do(t)
			if _, ok := errors.AsType[refused](errs[i]); errs[i] != nil && !ok {
				return errs[i]
			}
		}
		return nil
	})
}
