package postgres

import (
	"context"
	"errors"
	"runtime"
	"sync/atomic"
)

// maxBatch is the maximum number of appends in one transaction.
const maxBatch = 256

// op is one append. do may be called more than once, each time in a new transaction after the previous one was rolled
// back.
type op struct {
	run   string
	new   bool // the append creates the run
	do    func(*tx) error
	state atomic.Int32
	done  chan error
}

// The states of an op. The writer takes the op, unless a caller that gives up abandons it first.
const (
	opWaiting = iota
	opTaken
	opAbandoned
)

// submit gives an append to the writer and returns after its commit.
func (s *Store) submit(ctx context.Context, run string, isNew bool, do func(*tx) error) error {
	if err := ctx.Err(); err != nil {
		return s.cancelled(err)
	}
	select {
	case <-s.quit:
		return s.closedError()
	default:
	}
	o := &op{run: run, new: isNew, do: do, done: make(chan error, 1)}
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
	return <-o.done // the append is under way and will end soon
}

// write makes appends until the store is closed. All appends that wait at the same time share a transaction.
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
			return // the callers abandon the ops that still wait
		}
	}
}

// collect adds waiting ops to the batch. It yields the processor first, because the callers of the last commit need a
// moment to submit their next append.
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

// commit makes the appends of a batch in one transaction. If the transaction fails because of one of them, commit makes
// each append in a separate transaction, so that only the faulty append fails.
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

// transactAll makes appends in one transaction. It stores the errors of refused appends in errs.
func (s *Store) transactAll(sl *slot, batch []*op, errs []error) error {
	on := targets{runs: make([]string, len(batch)), new: make([]bool, len(batch))}
	for i, o := range batch {
		on.runs[i], on.new[i] = o.run, o.new
	}
	return s.transact(sl, on, func(t *tx) error {
		for i, o := range batch {
			errs[i] = o.do(t)
			if _, ok := errors.AsType[refused](errs[i]); errs[i] != nil && !ok {
				return errs[i]
			}
		}
		return nil
	})
}
