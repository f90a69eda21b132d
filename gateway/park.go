package gateway

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/policy"
)

const (
	// tellEvery is the interval of progress while a call is parked.
	tellEvery = 10 * time.Second
	// lookEvery is the interval at which the state of a parked run is read even if the store reports no change.
	lookEvery = 2 * time.Second
	// maxParked bounds the parked calls that equal calls can join. The oldest is forgotten; its run stays in the store.
	maxParked = 4096
	// keptFor is how long the result of a parked call waits for the equal call that fetches it.
	keptFor = time.Hour
)

// callKey returns the key of equal calls of one principal. It is the same at all endpoints.
func callKey(who tenon.Principal, name string, args json.RawMessage) (string, error) {
	if len(args) == 0 {
		args = json.RawMessage("{}")
	}
	same := policy.SameCall{Scope: "gateway", Principal: string(who), Remote: name, Arguments: args}
	return same.Key()
}

// parkedRun returns the run of an equal call that is parked, or "" if there is none. It reads the store, which also has
// the calls that other processes parked, including processes that have ended.
func (d *door) parkedRun(ctx context.Context, key string, mine *place) (string, error) {
	d.recovered.Do(func() { d.recover(ctx) })
	if run := d.g.parked.join(key, mine); run != "" {
		return run, nil
	}
	h := d.g.current()
	row, err := h.Service().Storage().State().Parked().Parked(ctx, key, keptFor)
	if err != nil || row.ID == "" {
		return "", err
	}
	if row.State == tenon.RunWorking {
		_ = h.Runs().Resume(ctx, row.ID) // another process may work on it already
	}
	d.g.parked.add(key, row.ID, true)
	return row.ID, nil
}

// recover parks the waiting calls of the principal whose process ended before it could park them.
func (d *door) recover(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), changeTime) // the next call needs the result too
	defer cancel()
	h := d.g.current()
	err := h.Service().Storage().State().Parked().Waiting(ctx, d.key.who, func(run, name string, args json.RawMessage) {
		key, err := callKey(d.key.who, name, args)
		if err == nil {
			_, err = h.Service().Storage().State().Parked().Park(ctx, key, run)
		}
		if err != nil {
			h.Service().Info().Logger.Warn("a waiting call cannot be joined by an equal one", "run", run, "error", err)
		}
	})
	if err != nil {
		h.Service().Info().Logger.Warn("waiting calls of clients cannot be read", "error", err)
	}
}

// parked contains the calls that wait for a person, and the calls that ended after their client was advised to call
// again.
type parked struct {
	mu    sync.Mutex
	list  map[string]*parkedCall
	turns map[string]*turn // by key, for calls that are not decided yet
}

// turn lets equal calls begin one after the other. A call begins when the previous one is decided or parked.
type turn struct {
	free  chan struct{} // has one element if no call is being decided
	users int
	wait  map[*place]bool // places of calls that have joined no run yet
}

// place is the place of a call in a turn.
type place struct {
	decided func() // must be called when the call is decided; further calls do nothing
	run     string // a parked run whose result was delivered while the call was in the turn
}

// parkedCall is a call in [parked].
type parkedCall struct {
	run       string
	since     time.Time
	followers int
	advised   bool // a client was advised to call again, so the run stays even if all clients leave
}

// turn waits until no equal call is being decided. Errors: cancelled.
func (p *parked) turn(ctx context.Context, key string) (*place, error) {
	p.mu.Lock()
	if p.turns == nil {
		p.turns = map[string]*turn{}
	}
	t := p.turns[key]
	if t == nil {
		t = &turn{free: make(chan struct{}, 1), wait: map[*place]bool{}}
		t.free <- struct{}{}
		p.turns[key] = t
	}
	mine := &place{}
	t.users++
	t.wait[mine] = true
	p.mu.Unlock()
	leave := func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		delete(t.wait, mine)
		if t.users--; t.users == 0 {
			delete(p.turns, key)
		}
	}
	select {
	case <-t.free:
		mine.decided = sync.OnceFunc(func() { t.free <- struct{}{}; leave() })
		return mine, nil
	case <-ctx.Done():
		leave()
		return nil, tenon.Errorf(tenon.CodeCancelled, "the call was cancelled: %w", context.Cause(ctx))
	}
}

// join returns the run of an equal parked call and counts the caller as a follower of that run. It returns "" if there
// is no such call. If the result of the run was delivered while the caller was in its turn, join still returns the run,
// because the caller arrived together with the call that fetched the result.
func (p *parked) join(key string, mine *place) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	if t := p.turns[key]; t != nil {
		delete(t.wait, mine)
	}
	if mine.run != "" {
		return mine.run
	}
	c := p.list[key]
	if c == nil {
		return ""
	}
	if c.advised && time.Since(c.since) > keptFor {
		delete(p.list, key)
		return ""
	}
	c.followers++
	return c.run
}

// add records that a run is parked, with the caller as its follower, unless the run is recorded already. If advised is
// set, other clients may fetch the result.
func (p *parked) add(key, run string, advised bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.list == nil {
		p.list = map[string]*parkedCall{}
	}
	if p.list[key] != nil {
		return
	}
	for len(p.list) >= maxParked {
		oldest := ""
		for k, c := range p.list {
			if oldest == "" || c.since.Before(p.list[oldest].since) {
				oldest = k
			}
		}
		delete(p.list, oldest)
	}
	p.list[key] = &parkedCall{run: run, since: time.Now(), followers: 1, advised: advised}
}

// leave records that a follower left after it was advised to call again.
func (p *parked) leave(key, run string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if c := p.list[key]; c != nil && c.run == run {
		c.followers--
		c.advised, c.since = true, time.Now()
	}
}

// alone removes a follower whose client is gone. It reports whether the result is of no use to any client: nobody else
// follows the run, and no client was advised to call again.
func (p *parked) alone(key, run string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	c := p.list[key]
	if c == nil || c.run != run {
		return true
	}
	c.followers--
	if c.followers > 0 || c.advised {
		return false
	}
	delete(p.list, key)
	return true
}

// done records that the result of a run was delivered, so that the next equal call is a new one. It reports whether the
// run was parked.
func (p *parked) done(key, run string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	c := p.list[key]
	if c == nil || c.run != run {
		return false
	}
	delete(p.list, key)
	if t := p.turns[key]; t != nil {
		for w := range t.wait {
			w.run = run
		}
	}
	return true
}

// forget removes a run whose result no client wants. Equal calls that wait for their turn do not join it.
func (p *parked) forget(key, run string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if c := p.list[key]; c != nil && c.run == run {
		delete(p.list, key)
	}
}

// fetched records in the store that the result was delivered. If this fails, an equal call gets the result again. That
// is better than to make the call twice. A result counts as delivered when it is written to the client's connection,
// also as an announcement of a task. If that connection is broken, the next equal call is a new one, but
// tasks/get still gives the result.
func (f *following) fetched(ctx context.Context) {
	h := f.g.current()
	if err := h.Service().Storage().State().Parked().Fetched(ctx, f.key, f.run); err != nil {
		h.Service().Info().Logger.Warn("an equal call gets the same result again", "run", f.run, "error", err)
	}
}

// park records in the store that the run waits. If another process has already parked an equal call, park cancels the
// run of f and makes f follow the run of that call.
func (f *following) park(ctx context.Context) error {
	h := f.g.current()
	run, err := h.Service().Storage().State().Parked().Park(ctx, f.key, f.run)
	if err != nil {
		return err
	}
	if run != f.run {
		if err := h.Runs().Cancel(ctx, f.run, "an equal call is parked as run "+run); err != nil {
			return err
		}
		f.follows(run)
		f.after = 0
	}
	f.g.parked.add(f.key, f.run, false)
	f.decided()
	return nil
}

// wait waits until a parked run can continue, and resumes it if no process works on it. When the time to park is over,
// it returns an error that advises the client to call again for the result.
func (f *following) wait(ctx context.Context) error {
	if err := f.park(ctx); err != nil {
		if ctx.Err() != nil {
			return nil // read reports it
		}
		return err
	}
	answered, stop, err := f.askClient(ctx)
	if err != nil {
		return err
	}
	defer stop()
	if answered == nil {
		if err := f.asTask(ctx, f.advice()); err != nil {
			return err
		}
	}
	end := time.NewTimer(f.g.parkTime())
	defer end.Stop()
	if answered != nil {
		end.Stop() // the client has the question, so it needs no advice yet
	}
	tell := time.NewTicker(tellEvery)
	defer tell.Stop()
	look := time.NewTicker(lookEvery)
	defer look.Stop()
	message := f.advice()
	f.progress(0, 0, message)
	var store changes
	defer store.end()
	for {
		h := f.g.current()
		changed := store.next(ctx, h.Service().Storage().State())
		row, err := h.Runs().Get(ctx, f.run)
		if err != nil && ctx.Err() == nil && h == f.g.current() {
			return err
		}
		if err == nil && row.State != tenon.RunInputRequired {
			if row.State == tenon.RunWorking {
				_ = h.Runs().Resume(ctx, f.run) // another process may work on it already
			}
			return nil
		}
		select {
		case <-changed:
		case <-look.C:
		case <-answered:
			answered = nil
			end.Reset(f.g.parkTime())
		case <-tell.C:
			f.progress(0, 0, message)
		case <-end.C:
			f.g.parked.leave(f.key, f.run)
			return tenon.Errorf(tenon.CodeWaiting, "%s. Then call the tool again with the same arguments: that call "+
				"gets the result, and nothing is done twice", message)
		case <-f.g.draining.Done():
			return errClosing
		case <-ctx.Done():
			return nil // read reports it
		}
	}
}

// advice returns a sentence for the client that says for what the call waits.
func (f *following) advice() string {
	return fmt.Sprintf("The call of '%s' waits for a person: tenon approvals allow %s", tenon.Visible(f.request.Name),
		f.run)
}

// parkTime returns how long the gateway holds the client of a waiting call.
func (g *Gateway) parkTime() time.Duration {
	return cmp.Or(g.cfg.Park, g.current().Service().Info().Config.Gateway.WithDefaults().Park)
}
