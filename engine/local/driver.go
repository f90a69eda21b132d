package local

import (
	"context"
	"encoding/json"
	"sync/atomic"
	"time"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/engine"
)

// driver works on one run. Its own goroutine uses it, except for the fields
// that are marked.
type driver struct {
	e     *Engine
	id    string
	alone bool // settles a signal and no more
	topic *topic

	ready   chan struct{} // closed when Start may return
	failed  error         // valid when ready is closed
	gone    chan struct{} // closed when the run was given up
	poke    chan struct{} // look into the inbox
	letters []letter      // guarded by e.mu
	mailed  atomic.Bool   // there are letters
	release func()        // of the lease

	who     tenon.Principal // whose run it is, where that is counted; guarded by e.mu
	counted bool            // in e.atWork

	core    tenon.Core
	create  *tenon.Run // the row, until it is stored
	blobs   [][]byte   // to store with it
	uses    []string   // of the blobs that are stored already
	row     tenon.Run  // as it is to be
	stored  rowState   // and as it is in the store
	seq     uint64     // of the last event applied
	pending []tenon.Event
	taken   map[string]uint64 // signals settled by the next write
	refused map[string]error  // signals that the core did not want
	retried bool              // a signal woke a run that had failed
	steps   map[string]*step
	starts  map[tenon.StartedData]json.RawMessage // encoded
	waits   []tenon.Waiting

	flights  map[string]*flight // by step
	attempts []engine.Attempt   // the room for those that are launched together
	results  chan result
	tasks    chan task // for goroutines that are free
	idle     int       // how many are

	notes     chan note                   // of commands in flight
	noted     []chan error                // who is told after the next write
	questions map[string]chan tenon.Event // who waits for the end of a question, by step
	asked     int                         // questions that are open

	do     context.Context // of the commands in flight
	stop   context.CancelFunc
	ending bool // the run was cancelled or has ended: who fails now is in doubt
	timer  <-chan time.Time
	due    time.Time
}

// step is what the driver knows about a step of the journal.
type step struct {
	attempts int
	last     time.Time
	seq      uint64
	open     bool            // an attempt has not ended
	data     json.RawMessage // of its start: tenon.StartedData
	asked    bool            // it is a question that is open
}

type flight struct {
	step    string
	attempt int
	over    chan struct{} // closed when it has ended
}

type result struct {
	*flight
	events []tenon.Event
	err    error
}

func newDriver(e *Engine, id string, alone bool) *driver {
	d := &driver{
		e: e, id: id, alone: alone, topic: e.hub.join(id),
		ready: make(chan struct{}), gone: make(chan struct{}), poke: make(chan struct{}, 1),
		steps: map[string]*step{}, starts: map[tenon.StartedData]json.RawMessage{}, flights: map[string]*flight{}, taken: map[string]uint64{},
		results: make(chan result, e.c.Parallel), tasks: make(chan task), notes: make(chan note), questions: map[string]chan tenon.Event{},
	}
	return d
}

// look has the driver read its inbox. Safe for concurrent use.
func (d *driver) look() {
	select {
	case d.poke <- struct{}{}:
	default:
	}
}

// drive works on the run until it ends, waits, or cannot go on.
func (d *driver) drive() {
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

// halt gives the run up as it is. What ends within the grace is still recorded.
func (d *driver) halt(err error) {
	if d.create != nil { // nothing was stored: the caller of Start is told
		d.failed = err
		d.e.drop(d)
		return
	}
	if tenon.ErrorCode(err) != tenon.CodeStore {
		d.ending = false
		d.settleFlights(func(r result) {
			if r.err == nil {
				_ = d.absorb(r) // err is the reason
			}
		})
		if ferr := d.flush(context.WithoutCancel(d.e.ctx)); ferr != nil && d.e.ctx.Err() == nil {
			err = ferr
		}
	}
	switch {
	case d.e.ctx.Err() != nil:
		err = errClosed(d.id)
	case d.e.draining.Load(): // and err says so
	default:
		d.e.c.Logger.Error("a run was given up; it can be resumed", "run", d.id, "error", err)
	}
	d.e.mu.Lock()
	d.e.halted.put(d.id, err) // followers look there, since the next owner may be at work already
	d.e.mu.Unlock()
	d.e.drop(d)
}

// loop returns nil after the run was put down in good order.
func (d *driver) loop() error {
	if d.create == nil {
		if err := d.readInbox(d.e.ctx); err != nil {
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
				return errClosed(d.id)
			}
			p.starts, p.due = nil, time.Time{}
		}
		if len(p.starts) > 0 {
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

// plan is what the core wants now.
type plan struct {
	done   *tenon.Command
	starts []tenon.Command
	waits  []tenon.Waiting
	due    time.Time // of the first command, or end of a wait, that is to come later
}

// plan asks the core and does at once what can be decided in place.
func (d *driver) plan() (*plan, error) {
	for {
		p := &plan{}
		again := false
		for _, c := range d.core.Next() {
			switch c.Kind {
			case tenon.CommandDone:
				done := c // a variable of its own: c would be on the heap each time
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

// dueAt has the run looked at again at a time, if that is not zero.
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
		if due := s.last.Add(c.After); due.After(d.e.c.Clock.Now()) {
			p.dueAt(due)
			return
		}
	}
	if len(d.flights)+len(p.starts) < d.e.c.Parallel {
		p.starts = append(p.starts, c)
	}
}

func (d *driver) waitingFor(c tenon.Command) tenon.Waiting {
	w := tenon.Waiting{Step: c.Step, Since: d.e.c.Clock.Now().UTC(), Data: c.Data}
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

// expired reports whether a wait has lasted as long as it may.
func (d *driver) expired(w tenon.Waiting) bool {
	return !w.Expires.IsZero() && !d.e.c.Clock.Now().Before(w.Expires)
}

// expire records that nobody answered in time.
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

// await waits until there is something to plan for. Rested says that the run
// was put down, because only a signal can bring it on.
func (d *driver) await(p *plan) (rested bool, err error) {
	if len(d.flights) == 0 && p.due.IsZero() {
		if len(p.waits) == 0 {
			return false, tenon.Errorf(tenon.CodeInternal,
				"run %s: the core names nothing to do after event %d; this is a defect of tenon, please report it with the journal", d.id, d.seq)
		}
		return d.rest()
	}
	select { // what is there already saves a write
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
			d.timer = d.e.c.Clock.After(p.due.Sub(d.e.c.Clock.Now()))
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

// rest puts a run down that waits for a signal.
func (d *driver) rest() (bool, error) {
	d.row.State = tenon.RunInputRequired
	if err := d.flush(d.e.ctx); err != nil {
		return false, err
	}
	select {
	case <-d.poke: // one came in the meantime
		return false, d.readInbox(d.e.ctx)
	default:
	}
	d.e.drop(d, waitingEvent(d.id, d.e.c.Clock.Now(), d.waits))
	return true, nil
}

func waitingEvent(run string, now time.Time, waits []tenon.Waiting) tenon.Event {
	data, err := json.Marshal(waits)
	if err != nil {
		data = []byte("[]") // cannot be: it was stored as JSON
	}
	return tenon.Event{Run: run, Time: now.UTC(), Kind: engine.EventWaiting, Data: data}
}

func (d *driver) finish(c *tenon.Command) error {
	var done tenon.DoneData
	if err := json.Unmarshal(c.Data, &done); err != nil {
		return tenon.Errorf(tenon.CodeInternal, "run %s: the core's end is malformed: %w", d.id, err)
	}
	if !done.State.Ended() {
		return tenon.Errorf(tenon.CodeInternal, "run %s: the core's end has state %q", d.id, done.State)
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
