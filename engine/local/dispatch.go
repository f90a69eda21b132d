package local

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/engine"
	"github.com/tenonhq/tenon/store"
)

// Dispatcher chooses the process that works on a run. An engine with one stores a run, and its signals, like any other
// engine. Then it leaves the run to the dispatcher, which lets a process call [Engine.Drive]:
//
//	Start ─► first event stored ─► Dispatch ─► (a queue) ─► Drive in some process ─► at rest or ended
//
// The dispatcher decides only which process tries. The lease of the store decides which process may write.
type Dispatcher interface {
	// Ready reports whether runs can be dispatched. Start asks before it stores a new run, and returns the error.
	Ready(ctx context.Context) error
	// Keeps reports that only this process can work on a run, for example because it has the credentials of the
	// caller. Such a run is not dispatched.
	Keeps(run tenon.Run) bool
	// Dispatch lets a process call Drive for the run, now or later, and returns when that is certain to happen. Row is
	// the run's current row. If the run has ended, a process that waits for it is not needed any more. Calls for
	// a run that is dispatched already are harmless. Errors: unreachable.
	Dispatch(ctx context.Context, row tenon.Run) error
}

// Driver works on runs for a dispatcher. An [Engine] is one.
type Driver interface {
	Drive(ctx context.Context, run string) (Rest, error)
	Cancel(ctx context.Context, run, reason string) error
}

// Rest is the outcome of [Engine.Drive].
type Rest struct {
	Run tenon.Run // its row: the state is ended or input_required, unless Elsewhere is set
	// Wake is the time until a wait of the run expires and the run must be driven again. 0 means never.
	Wake time.Duration
	// Elsewhere reports that another process has the lease of the run, so that this engine did nothing.
	Elsewhere bool
}

// Drive works on a stored run in this process until it ends or is at rest. If this engine works on the run already,
// Drive waits with it. If ctx ends before, Drive returns and the engine continues. Errors: not_found, store, cancelled
// (ctx ended, or the engine is closing: another process must drive the run), and the error of Do that stopped the run.
func (e *Engine) Drive(ctx context.Context, run string) (Rest, error) {
	own := store.OwnOnly(ctx)
	for driven := false; !driven; {
		d, mine, err := e.claim(run, false)
		if err != nil {
			return Rest{}, err
		}
		driven = mine
		if mine {
			ok, err := d.acquire(own, patience)
			if err == nil && ok {
				err = d.open(own, &engine.Spec{Run: tenon.Run{ID: run}})
			}
			row := d.row
			if err != nil || !ok || row.State.Ended() {
				d.failed = err
				e.drop(d)
				return Rest{Run: row, Elsewhere: !ok}, err
			}
			close(d.ready)
			go d.drive()
		}
		select {
		case <-d.gone:
		case <-ctx.Done():
			return Rest{}, cancelled(ctx, run)
		}
		if d.stopped != nil {
			return Rest{}, e.whyStopped(run, d.stopped)
		}
	}
	return e.restOf(own, run)
}

// restOf returns the outcome of a run that this engine has just put to rest.
func (e *Engine) restOf(ctx context.Context, run string) (Rest, error) {
	row, err := e.c.Store.Run(ctx, run)
	if err != nil {
		return Rest{}, err
	}
	rest := Rest{Run: row, Elsewhere: row.State == tenon.RunWorking}
	for _, w := range row.Waiting {
		if w.Expires.IsZero() || row.State.Ended() {
			continue
		}
		if left := max(w.Expires.Sub(e.c.Clock.Now()), time.Millisecond); rest.Wake == 0 || left < rest.Wake {
			rest.Wake = left
		}
	}
	return rest, nil
}

// whyStopped marks the error of a driver that stopped because the engine is closing.
func (e *Engine) whyStopped(run string, err error) error {
	if (e.ctx.Err() != nil || e.draining.Load()) && !errors.Is(err, tenon.ErrClosing) {
		return errShut(run)
	}
	return err
}

// here reports whether this process works on a run without asking the dispatcher. It keeps the runs that were called
// by a run which it works on, because they end before that run.
func (e *Engine) here(r tenon.Run) bool {
	return e.c.Dispatcher == nil || r.Caller != "" && e.owner(r.Caller) != nil || e.c.Dispatcher.Keeps(r)
}

// startElsewhere stores a new run and leaves it, or an existing run that needs work, to the dispatcher. It drops the
// driver.
func (e *Engine) startElsewhere(ctx context.Context, d *driver, spec engine.Spec) error {
	row, needed, err := e.store(ctx, d, &spec)
	if err != nil { // otherwise others may be reading it
		d.failed = err
	}
	e.drop(d)
	if err != nil || !needed {
		return err
	}
	if err := e.c.Dispatcher.Dispatch(ctx, row); err != nil {
		return tenon.Errorf(tenon.ErrorCode(err), "run %s is stored, but no process was asked to work on it: %w",
			row.ID, err)
	}
	return nil
}

// store stores the first event of a new run. It returns the run's row, and whether a process must work on the run.
func (e *Engine) store(ctx context.Context, d *driver, spec *engine.Spec) (row tenon.Run, needed bool, err error) {
	if !spec.Fresh {
		row, err = e.c.Store.Run(ctx, d.id)
		if err == nil {
			return e.needs(ctx, d, row)
		}
		if tenon.ErrorCode(err) != tenon.CodeNotFound || len(spec.Data) == 0 {
			return row, false, err
		}
	}
	if err := e.c.Dispatcher.Ready(ctx); err != nil {
		return row, false, err
	}
	ok, err := d.acquire(ctx, patience)
	if err != nil || !ok { // another process begins the same run
		return row, false, err
	}
	if err := d.open(ctx, spec); err != nil {
		return row, false, err
	}
	if d.create == nil { // stored in the meantime
		return d.row, d.row.State == tenon.RunWorking, nil
	}
	d.row.State = tenon.RunWorking
	if err := d.flush(e.ctx); err != nil {
		return row, false, err
	}
	row = d.row
	row.Seq = d.seq
	return row, true, nil
}

// needs reports whether a process must work on a stored run. A process that holds the lease for long works on it.
func (e *Engine) needs(ctx context.Context, d *driver, row tenon.Run) (tenon.Run, bool, error) {
	switch {
	case row.State.Ended():
		return row, false, nil
	case row.State == tenon.RunInputRequired:
		return e.awaken(ctx, d, row)
	}
	for deadline := time.Now().Add(patience); ; {
		held, err := e.c.Store.Held(row.ID)
		if err != nil || !held {
			return row, !held, err
		}
		if !time.Now().Before(deadline) {
			return row, false, nil
		}
		select {
		case <-time.After(patience / 10):
		case <-ctx.Done():
			return row, false, cancelled(ctx, row.ID)
		}
	}
}

// awaken settles the signals and the expired waits of a run at rest. If there are any, the run is in state working
// afterwards, so that followers wait for the process that is to work on it.
func (e *Engine) awaken(ctx context.Context, d *driver, row tenon.Run) (tenon.Run, bool, error) {
	signals, err := e.c.Store.Signals(ctx, row.ID)
	if err != nil {
		return row, false, err
	}
	if len(signals) == 0 && !slices.ContainsFunc(row.Waiting, d.expired) {
		return row, false, nil
	}
	if ok, err := d.acquire(ctx, patience); err != nil || !ok { // another process does this
		return row, false, err
	}
	if row, err = e.c.Store.Run(ctx, row.ID); err != nil || row.State.Ended() {
		return row, false, err
	}
	if err := d.load(ctx, row); err != nil {
		return row, false, err
	}
	if err := d.readInbox(e.ctx); err != nil {
		return row, false, err
	}
	for _, c := range d.core.Next() {
		if w := d.waitingFor(c); c.Kind == tenon.CommandWait && d.expired(w) {
			if err := d.expire(w.Step); err != nil {
				return row, false, err
			}
		}
	}
	if err := d.storeRest(e.ctx); err != nil {
		return row, false, err
	}
	row = d.row
	row.Seq = d.seq
	return row, row.State == tenon.RunWorking, nil
}

// release tells the dispatcher that a cancelled run needs no process any more.
func (e *Engine) release(ctx context.Context, run string) {
	row, err := e.c.Store.Run(ctx, run)
	if err == nil && row.State.Ended() {
		err = e.c.Dispatcher.Dispatch(ctx, row)
	}
	if err != nil {
		e.c.Logger.Warn("the dispatcher was not told that a run has ended", "run", run, "error", err)
	}
}

var _ Driver = (*Engine)(nil)
