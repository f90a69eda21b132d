package local

import (
	"context"
	"encoding/json"
	"sync/atomic"
	"time"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/engine"
	"github.com/tenonhq/tenon/internal/deepstack"
)

// driver works on one run. Only its own goroutine uses it, except for the fields marked below.
type driver struct {
	e      *Engine
	clock  runClock
	id     string
	alone  bool // the driver was started only to settle signals
	handed bool // began while the engine handed over, so another engine drives the run
	topic  *topic

	ready   chan struct{} // closed when Start may return
	failed  error         // valid once ready is closed
	gone    chan struct{} // closed when the driver is dropped
	leaving bool          // it has worked, and is being dropped; guarded by e.mu
	stopped error         // why it stopped before the run was at rest; valid once gone is closed
	poke    chan struct{} // wakes the driver to read the inbox
	letters []letter      // senders that wait; guarded by e.mu
	mailed  atomic.Bool   // letters is not empty
	release func()        // releases the lease

	who     tenon.Principal // principal of the run, if counted; guarded by e.mu
	counted bool            // included in e.atWork

	core    tenon.Core
	create  *tenon.Run // the row of a new run until it is stored
	blobs   [][]byte   // blobs to store with create
	uses    []string   // digests of blobs that are already stored
	early   bool       // the run is stored before its first step
	row     tenon.Run  // the current row
	stored  rowState   // the stored row
	seq     uint64     // number of the last applied event
	pending []tenon.Event
	taken   map[string]uint64 // signals settled by the next write
	retried bool              // a signal woke a failed run
	steps   map[string]*step
	starts  map[tenon.StartedData]json.RawMessage // encoded starts
	waits   []tenon.Waiting

	flights  map[string]*flight // by step
	attempts []engine.Attempt   // reused buffer of launch
	results  chan result
	tasks    chan task // to idle goroutines
	idle     int       // number of idle goroutines

	notes     chan note                   // from commands in flight
	noted     []chan error                // senders to notify after the next write
	questions map[string]chan tenon.Event // receivers of the end of a question, by step
	asked     int                         // number of open questions

	unstored  []unstored // results since the last write
	reclaimed bool       // the results of the previous driver are recorded, but not stored

	do     context.Context // context of the commands in flight
	stop   context.CancelFunc
	halted error // error of the previous driver in this process
	ending bool  // the run was cancelled or has ended: an error now means an unknown outcome
	timer  <-chan time.Time
	due    time.Time
}

// step is the state of a step of the journal.
type step struct {
	attempts int
	last     time.Time
	seq      uint64
	open     bool            // an attempt is in flight
	data     json.RawMessage // tenon.StartedData of the start
	asked    bool            // the step is an open question
}

type flight struct {
	step    string
	attempt int
	over    chan struct{} // closed when the attempt has ended
}

type result struct {
	*flight
	events []tenon.Event
	err    error
}

func newDriver(e *Engine, id string, alone bool) *driver {
	return &driver{
		e: e, clock: newRunClock(e.c.Clock), id: id, alone: alone, topic: e.hub.join(id),
		ready: make(chan struct{}), gone: make(chan struct{}), poke: make(chan struct{}, 1),
		steps: map[string]*step{}, starts: map[tenon.StartedData]json.RawMessage{},
		flights: map[string]*flight{}, taken: map[string]uint64{},
		results: make(chan result, e.c.Parallel), tasks: make(chan task), notes: make(chan note),
		questions: map[string]chan tenon.Event{},
	}
}

// look wakes the driver to read its inbox. It is safe for concurrent use.
func (d *driver) look() {
	select {
	case d.poke <- struct{}{}:
	default:
	}
}

// drive works on the run until it ends, waits, or fails.
func (d *driver) drive() {
	deepstack.Work()
	defer func() {
		close(d.tasks)
		if d.stop != nil {
			d.stop()
		}
	}()
	if err := d.loop(); err != nil {
		d.halt(err)
	}
}

// halt stops working on the run after an error. Commands that end within the grace period are still recorded. If the
// store cannot be written, their results are kept in memory.
func (d *driver) halt(err error) {
	d.stopped = err
	if d.create != nil { // nothing is stored; Start returns the error
		d.failed = err
		d.e.drop(d)
		return
	}
	d.ending = false
	d.dismiss(err)
	d.settleFlights(func(r result) {
		if r.err == nil {
			_ = d.absorb(r) // err is the more important error
		}
	})
	if tenon.ErrorCode(err) != tenon.CodeStore {
		if ferr := d.flush(context.WithoutCancel(d.e.ctx)); ferr != nil && d.e.ctx.Err() == nil {
			err = ferr
		}
	}
	switch {
	case d.e.ctx.Err() != nil:
		err = errClosed(d.id)
	case d.e.draining.Load(): // the caller knows the reason
	default:
		d.e.c.Logger.Error("run stopped after an error; it can be resumed", "run", d.id, "error", err,
			"results_in_memory", d.keep())
	}
	if !d.handed { // otherwise the followers wait for the other engine
		d.e.mu.Lock()
		d.stopped = err
		d.e.halted.put(d.id, err) // kept for followers, because the next owner may already be working
		d.e.mu.Unlock()
	}
	d.e.drop(d)
}

// loop returns nil after the run has ended or was put to rest.
func (d *driver) loop() error {
	switch {
	case d.create == nil:
		if err := d.readInbox(d.e.ctx); err != nil {
			return err
		}
	case d.early:
		if err := d.flush(d.e.ctx); err != nil {
			return err
		}
	}
	for {
		p, err := d.plan()
		if err != nil {
			return err
		}
		switch {
		case p.done != nil && len(d.flights) > 0:
			if err := d.abandonFlights(); err != nil {
				return err
			}
			continue
		case p.done != nil:
			return d.finish(p.done)
		}
		d.waits = p.waits
		if d.e.draining.Load() && (len(p.starts) > 0 || !p.due.IsZero()) {
			if len(d.flights) == 0 {
				return d.leave()
			}
			p.starts, p.due = nil, time.Time{}
		}
		if len(p.starts) > 0 {
			if d.e.ctx.Err() != nil { // a command ended because the engine is closing; do not repeat it
				return errClosed(d.id)
			}
			if err := d.launch(p.starts); err != nil {
				return err
			}
		}
		rested, err := d.await(p)
		if err != nil || rested {
			return err
		}
	}
}

// leave stops driving a run while the engine drains. If another engine takes over a new run, leave stores the run
// first.
func (d *driver) leave() error {
	if d.create != nil && d.handed {
		d.row.State = tenon.RunWorking
		if err := d.flush(d.e.ctx); err != nil {
			return err
		}
	}
	return errClosed(d.id)
}

// plan lists the commands that the core returned.
type plan struct {
	done   *tenon.Command
	starts []tenon.Command
	waits  []tenon.Waiting
	due    time.Time // earliest time of a delayed command or of the end of a wait
}

// plan asks the core for commands and executes at once the commands that need no executor.
func (d *driver) plan() (*plan, error) {
	for {
		p := &plan{}
		again := false
		for _, c := range d.core.Next() {
			switch c.Kind {
			case tenon.CommandDone:
				done := c // a separate variable: c would escape to the heap in each iteration
				p.done = &done
			case tenon.CommandWait:
				w := d.waitingFor(c)
				if d.expired(w) {
					if err := d.expire(w.Step); err != nil {
						return nil, err
					}
					again = true
					continue
				}
				p.waits = append(p.waits, w)
			case engine.CommandDecide:
				if err := d.decide(c); err != nil {
					return nil, err
				}
				again = true
			default:
				d.consider(p, c)
			}
		}
		if !again {
			return p, nil
		}
	}
}

// dueAt makes the driver plan again at the time t, unless t is zero.
func (p *plan) dueAt(t time.Time) {
	if !t.IsZero() && (p.due.IsZero() || t.Before(p.due)) {
		p.due = t
	}
}

func (d *driver) consider(p *plan, c tenon.Command) {
	if d.flights[c.Step] != nil {
		return
	}
	if s := d.steps[c.Step]; c.After > 0 && s != nil {
		now := d.clock.Now()
		if due := s.last.Add(c.After); due.After(now) {
			if most := now.Add(c.After); due.After(most) { // the clock was set back after the event
				s.last, due = now, most
			}
			p.dueAt(due)
			return
		}
	}
	if len(d.flights)+len(p.starts) < d.e.c.Parallel {
		p.starts = append(p.starts, c)
	}
}

func (d *driver) waitingFor(c tenon.Command) tenon.Waiting {
	w := tenon.Waiting{Step: c.Step, Since: d.clock.Now().UTC(), Data: c.Data}
	for _, o := range d.waits {
		if o.Step == c.Step {
			w.Since = o.Since
		}
	}
	if c.After > 0 {
		w.Expires = w.Since.Add(c.After)
	}
	return w
}

// expired reports whether the time of a wait is over.
func (d *driver) expired(w tenon.Waiting) bool {
	return !w.Expires.IsZero() && !d.clock.Now().Before(w.Expires)
}

// expire records that a wait was not answered in time.
func (d *driver) expire(step string) error {
	return d.record(tenon.Event{Step: step, Kind: tenon.EventExpired})
}

func (d *driver) decide(c tenon.Command) error {
	events, err := d.e.c.Do(d.e.ctx, d.id, engine.Attempt{Command: c, Attempt: 1, Row: d.row}, d.emit(c.Step, 0))
	if err != nil {
		return err
	}
	if err := d.checkEvents(c.Step, events); err != nil {
		return err
	}
	return d.record(events...)
}

// await waits until there is something to plan. It reports rested if the run was put to rest because only a
// signal can continue it.
func (d *driver) await(p *plan) (rested bool, err error) {
	if len(d.flights) == 0 && p.due.IsZero() {
		if len(p.waits) == 0 {
			return false, tenon.Errorf(tenon.CodeInternal,
				"run %s: the core returned no command after event %d; "+
					"this is a defect of tenon, please report it with the journal", d.id, d.seq)
		}
		return d.rest()
	}
	select { // an available result saves a write
	case r := <-d.results:
		return false, d.absorb(d.landed(r))
	default:
	}
	d.row.State = tenon.RunWorking
	if err := d.flush(d.e.ctx); err != nil {
		return false, err
	}
	for _, w := range p.waits {
		p.dueAt(w.Expires)
	}
	if !p.due.Equal(d.due) {
		d.due, d.timer = p.due, nil
		if !p.due.IsZero() {
			d.timer = d.clock.After(p.due.Sub(d.clock.Now()))
		}
	}
	select {
	case r := <-d.results:
		return false, d.absorb(d.landed(r))
	case n := <-d.notes:
		d.jot(n)
		return false, nil
	case <-d.timer:
		d.due, d.timer = time.Time{}, nil
		return false, nil
	case <-d.poke:
		return false, d.readInbox(d.e.ctx)
	case <-d.e.ctx.Done():
		return false, errClosed(d.id)
	}
}

// rest puts a run that waits for a signal to rest.
func (d *driver) rest() (bool, error) {
	d.row.State = tenon.RunInputRequired
	if err := d.flush(d.e.ctx); err != nil {
		return false, err
	}
	select {
	case <-d.poke: // a signal arrived in the meantime
		return false, d.readInbox(d.e.ctx)
	default:
	}
	d.e.drop(d, waitingEvent(d.id, d.clock.Now(), d.waits))
	return true, nil
}

func waitingEvent(run string, now time.Time, waits []tenon.Waiting) tenon.Event {
	data, err := json.Marshal(waits)
	if err != nil {
		data = []byte("[]") // unreachable: it was stored as JSON
	}
	return tenon.Event{Run: run, Time: now.UTC(), Kind: engine.EventWaiting, Data: data}
}

func (d *driver) finish(c *tenon.Command) error {
	var done tenon.DoneData
	if err := json.Unmarshal(c.Data, &done); err != nil {
		return tenon.Errorf(tenon.CodeInternal, "run %s: the done command of the core is malformed: %w", d.id, err)
	}
	if !done.State.Ended() {
		return tenon.Errorf(tenon.CodeInternal, "run %s: the done command of the core has state %q", d.id, done.State)
	}
	if err := d.record(tenon.Event{Step: c.Step, Kind: tenon.EventDone, Data: c.Data}); err != nil {
		return err
	}
	d.row.State, d.row.Stop, d.waits = done.State, done.Stop, nil
	events, err := d.store(d.e.ctx)
	if err != nil {
		return err
	}
	d.e.drop(d, events...)
	return nil
}
