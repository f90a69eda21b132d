package local

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/engine"
	"github.com/tenonhq/tenon/store"
)

// Store lists the parts of a store that the engine needs.
type Store interface {
	store.Journal
	store.Inbox
	store.Leases
}

// Config configures an [Engine]. Store, NewCore and Do are required.
type Config struct {
	Store   Store
	NewCore engine.NewCore
	Do      engine.Do
	Clock   engine.Clock // if nil, the system clock
	Logger  *slog.Logger // if nil, nothing is logged
	// Observe is called with the stored events of a run, in order, and with the run's row at that time. It
	// must neither block nor modify them. It may be nil.
	Observe func(tenon.Run, []tenon.Event)
	// Parallel bounds the concurrent commands of one run. 0 means 4.
	Parallel int
	// Grace is how long commands may take to end after their context has ended, on Close or when a run ends
	// before them. 0 means 3 s.
	Grace time.Duration
	// Dispatcher, if set, chooses the process that works on a run; see [Dispatcher]. If nil, it is this process.
	Dispatcher Dispatcher
}

// Engine drives runs in this process. It implements [engine.Engine]. It acts only on journals that the store recognizes
// as written by the user; see [store.OwnOnly].
type Engine struct {
	c      Config
	ctx    context.Context // ends with Close
	cancel context.CancelCauseFunc
	wg     sync.WaitGroup // drivers and the watcher
	doing  sync.WaitGroup // commands
	hub    hub
	feeds  feeds

	mu       sync.Mutex
	closed   bool
	draining atomic.Bool // no new work is started
	handing  atomic.Bool // new runs are stored for another engine
	owned    map[string]*driver
	atWork   map[tenon.Principal]int // number of working runs by principal
	working  int                     // number of all working runs
	halted   halts
	unstored unstoredRuns
	refused  map[string]error // signals that the core refused, by id; see refuse
	kick     chan struct{}    // wakes the watcher when a run is claimed
}

// New returns an engine. It works until Close. Errors: invalid.
func New(c Config) (*Engine, error) {
	if c.Store == nil || c.NewCore == nil || c.Do == nil {
		return nil, tenon.Errorf(tenon.CodeInvalid, "engine/local: Store, NewCore and Do are required")
	}
	if c.Clock == nil {
		c.Clock = realClock{time.Now()}
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if c.Parallel <= 0 {
		c.Parallel = 4
	}
	if c.Grace <= 0 {
		c.Grace = 3 * time.Second
	}
	e := &Engine{c: c, owned: map[string]*driver{}, atWork: map[tenon.Principal]int{}, kick: make(chan struct{}, 1)}
	e.ctx, e.cancel = context.WithCancelCause(store.OwnOnly(context.Background()))
	e.wg.Go(e.watchInbox)
	if l := e.liveStore(); l != nil {
		e.wg.Go(func() { e.relay(l) })
	}
	return e, nil
}

// Start implements [engine.Engine].
func (e *Engine) Start(ctx context.Context, spec engine.Spec) error {
	ctx = store.OwnOnly(ctx) // the engine acts on the journals that it reads
	id := spec.Run.ID
	if id == "" {
		return tenon.Errorf(tenon.CodeInvalid, "a run needs an id")
	}
	for {
		d, mine, err := e.claim(id, false)
		switch {
		case err != nil:
			return err
		case mine && !e.here(spec.Run):
			return e.startElsewhere(ctx, d, spec)
		case mine:
			return e.start(ctx, d, spec)
		}
		// Another goroutine of this process owns the run.
		select {
		case <-d.ready:
		case <-ctx.Done():
			return cancelled(ctx, id)
		}
		switch {
		case d.alone:
		case !e.isLeaving(d):
			return d.failed
		default: // it does not work any more, so the run needs another driver
			select {
			case <-d.gone:
			case <-ctx.Done():
				return cancelled(ctx, id)
			}
		}
	}
}

func (e *Engine) isLeaving(d *driver) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return d.leaving
}

func (e *Engine) start(ctx context.Context, d *driver, spec engine.Spec) error {
	ok, err := d.acquire(ctx, patience)
	if err == nil && ok {
		err = d.open(ctx, &spec)
	}
	if err != nil || !ok || d.row.State.Ended() {
		d.failed = err
		e.drop(d)
		return err
	}
	if d.create == nil {
		close(d.ready)
	}
	go d.drive()
	select {
	case <-d.ready:
		return d.failed
	case <-ctx.Done():
		return cancelled(ctx, d.id)
	}
}

// patience is how long Start waits for a lease. A process that only settles a signal holds the lease briefly.
const patience = 50 * time.Millisecond

// claim creates a driver for a run, or returns the driver that this engine already has for it. mine reports whether the
// driver is new. If alone is set, the new driver will only settle signals.
func (e *Engine) claim(id string, alone bool) (d *driver, mine bool, err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed {
		return nil, false, errShut(id)
	}
	if d := e.owned[id]; d != nil {
		return d, false, nil
	}
	handed := e.handing.Load()
	if e.draining.Load() && !alone && !handed {
		return nil, false, errShut(id)
	}
	d = newDriver(e, id, alone)
	d.handed = handed
	e.owned[id] = d
	e.wg.Add(1)
	d.halted = e.halted.errs[id]
	if !alone {
		e.halted.forget(id)
	}
	select {
	case e.kick <- struct{}{}:
	default:
	}
	return d, true, nil
}

// drop stops driving a run: it releases the lease and forgets the state. Followers get the events last. If there are
// none, they check the store.
func (e *Engine) drop(d *driver, last ...tenon.Event) {
	e.mu.Lock()
	select {
	case <-d.ready:
		d.leaving = true // a Start from now on waits, and drives the run again
	default:
	}
	e.mu.Unlock()
	if d.release != nil { // without the lock: a store on another machine takes its time
		d.release()
	}
	e.mu.Lock()
	delete(e.owned, d.id)
	e.uncount(d)
	letters := d.letters
	d.letters = nil
	close(d.gone)
	e.mu.Unlock()
	select {
	case <-d.ready:
	default:
		close(d.ready)
	}
	for _, l := range letters {
		l.reply <- outcome{gone: true}
	}
	if len(last) > 0 {
		d.topic.publish(last...)
	} else {
		d.topic.wake()
	}
	e.hub.leave(d.topic)
	e.wg.Done()
}

// works counts a driver as working, unless it was started only to settle signals.
func (e *Engine) works(d *driver, who tenon.Principal) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if d.counted || d.alone {
		return
	}
	d.who, d.counted = who, true
	e.atWork[who]++
	e.working++
}

// uncount undoes works. The caller holds the lock.
func (e *Engine) uncount(d *driver) {
	if !d.counted {
		return
	}
	d.counted = false
	e.working--
	if e.atWork[d.who]--; e.atWork[d.who] == 0 {
		delete(e.atWork, d.who)
	}
}

// AtWork returns how many runs this engine drives. own counts only the runs of the principal who, and all counts all
// runs.
func (e *Engine) AtWork(who tenon.Principal) (own, all int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.atWork[who], e.working
}

// WorksFor returns the principal of a run if this engine drives it.
func (e *Engine) WorksFor(id string) (who tenon.Principal, ok bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if d := e.owned[id]; d != nil && d.counted {
		return d.who, true
	}
	return "", false
}

// owner returns the driver of a run, or nil.
func (e *Engine) owner(id string) *driver {
	e.mu.Lock()
	defer e.mu.Unlock()
	if d := e.owned[id]; d != nil && !d.alone {
		return d
	}
	return nil
}

// List implements [engine.Engine].
func (e *Engine) List(ctx context.Context, f engine.Filter) ([]tenon.Run, error) {
	if f.Limit <= 0 {
		f.Limit = 100
	}
	q := store.RunFilter{Session: f.Session, Principal: f.Principal, State: f.State, Parent: f.Parent, Caller: f.Caller,
		Top: f.Top, Prefix: f.Prefix, Before: f.Before, Limit: f.Limit, Expired: f.Expired}
	if !f.Resumable {
		return e.c.Store.Runs(ctx, q)
	}
	if f.State != "" && f.State != tenon.RunWorking {
		return nil, nil
	}
	q.State, q.Unheld = tenon.RunWorking, true
	q.Except = func(id string) bool { return e.owner(id) != nil }
	var found []tenon.Run
	for {
		page, err := e.c.Store.Runs(ctx, q)
		if err != nil {
			return nil, err
		}
		held, err := heldOf(e.c.Store, page)
		if err != nil {
			return nil, err
		}
		for _, r := range page {
			if held[r.ID] || r.Foreign {
				continue
			}
			if found = append(found, r); len(found) == f.Limit {
				return found, nil
			}
		}
		if len(page) == 0 {
			return found, nil
		}
		q.Before = page[len(page)-1].ID
	}
}

// heldOf reports which of the runs any process works on.
func heldOf(s store.Leases, page []tenon.Run) (map[string]bool, error) {
	ids := make([]string, len(page))
	for i, r := range page {
		ids[i] = r.ID
	}
	return store.HeldOf(s, ids)
}

// Drain starts no new work. It returns when all running commands have ended and are stored, or with ctx. The
// runs can be resumed. Close must still be called.
func (e *Engine) Drain(ctx context.Context) {
	e.draining.Store(true)
	for ctx.Err() == nil {
		e.mu.Lock()
		for _, d := range e.owned {
			d.look()
		}
		left := len(e.owned)
		e.mu.Unlock()
		if left == 0 {
			return
		}
		select {
		case <-time.After(drainPause):
		case <-ctx.Done():
		}
	}
}

// HandOver is Drain for an engine whose runs another engine on the same store takes over. Until Close, Start still
// stores new runs, but it leaves them to the other engine.
func (e *Engine) HandOver(ctx context.Context) {
	e.handing.Store(true)
	e.Drain(ctx)
}

// drainPause is the polling interval of Drain.
const drainPause = 10 * time.Millisecond

// Close implements [engine.Engine].
func (e *Engine) Close() error {
	e.mu.Lock()
	e.closed = true
	e.mu.Unlock()
	e.cancel(tenon.ErrClosing)
	e.wg.Wait()
	ended := make(chan struct{})
	go func() {
		e.doing.Wait()
		close(ended)
	}()
	select {
	case <-ended:
		return nil
	case <-time.After(e.c.Grace):
		return tenon.Errorf(tenon.CodeTimeout,
			"the engine is closed, but some commands have not ended %s after their context", e.c.Grace)
	}
}

// watchInbox wakes drivers when other processes have stored signals for them.
func (e *Engine) watchInbox() {
	for e.ctx.Err() == nil {
		e.mu.Lock()
		idle := len(e.owned) == 0
		e.mu.Unlock()
		if idle {
			select {
			case <-e.kick:
			case <-e.ctx.Done():
			}
			e.pause() // a new driver reads its inbox itself
			continue
		}
		changed := e.c.Store.Changed(e.ctx)
		signals, err := e.c.Store.Signals(e.ctx, "")
		if err != nil && e.ctx.Err() == nil {
			e.c.Logger.Warn("the inbox cannot be read", "error", err)
		}
		for _, s := range signals {
			if d := e.owner(s.Run); d != nil {
				d.look()
			}
		}
		select {
		case <-changed:
		case <-e.ctx.Done():
		}
		e.pause() // combines many changes into one read
	}
}

func (e *Engine) pause() {
	select {
	case <-time.After(inboxPause):
	case <-e.ctx.Done():
	}
}

// inboxPause bounds how often the inbox is read. Working runs change the store thousands of times a second,
// whereas signals of other processes come from people.
const inboxPause = 50 * time.Millisecond

// halts keeps the errors that stopped runs, for followers that join later.
type halts struct {
	errs  map[string]error
	order []string
}

const maxHalts = 1024

func (h *halts) put(id string, err error) {
	if h.errs == nil {
		h.errs = map[string]error{}
	}
	h.forget(id)
	if len(h.order) == maxHalts {
		delete(h.errs, h.order[0])
		h.order = h.order[1:]
	}
	h.errs[id] = err
	h.order = append(h.order, id)
}

func (h *halts) forget(id string) {
	if _, ok := h.errs[id]; ok {
		delete(h.errs, id)
		h.order = slices.DeleteFunc(h.order, func(o string) bool { return o == id })
	}
}

// Leave records the reason why no process resumes a run at present. Followers in this process end with this error until
// the engine drives the run again.
func (e *Engine) Leave(run string, err error) {
	e.mu.Lock()
	if d := e.owned[run]; d == nil || d.alone {
		e.halted.put(run, err)
	}
	e.mu.Unlock()
	t := e.hub.join(run)
	t.wake()
	e.hub.leave(t)
}

func (e *Engine) haltOf(id string) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed {
		return errClosed(id)
	}
	return e.halted.errs[id]
}

// errShut is returned when new work is refused.
func errShut(id string) error {
	return &tenon.Error{Code: tenon.CodeCancelled, Err: tenon.ErrClosing,
		Message: "run " + id + ": the engine is closed or closing; nothing was started"}
}

func errClosed(id string) error {
	return tenon.Errorf(tenon.CodeCancelled, "run %s: the engine was closed; the run can be resumed", id)
}

func cancelled(ctx context.Context, id string) error {
	return tenon.Errorf(tenon.CodeCancelled, "run %s: %w", id, context.Cause(ctx))
}

// realClock is the system's clock.
type realClock struct{ begun time.Time }

func (realClock) Now() time.Time                         { return time.Now() }
func (c realClock) Elapsed() time.Duration               { return time.Since(c.begun) } // monotonic
func (realClock) After(d time.Duration) <-chan time.Time { return time.After(d) }

// runClock is the clock of a run. Its time is the time when the driver began, plus the time elapsed since then. A
// change of the system's clock therefore does not use up the time limit of a run. After such a change, times of events
// can differ from the system's clock until the next driver of the run begins.
type runClock struct {
	engine.Clock
	began time.Time
	from  time.Duration // Elapsed at that time
}

func newRunClock(c engine.Clock) runClock { return runClock{c, c.Now().Round(0), c.Elapsed()} }

func (c runClock) Now() time.Time { return c.began.Add(c.Elapsed() - c.from) }

var _ engine.Engine = (*Engine)(nil)
