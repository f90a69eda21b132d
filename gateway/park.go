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

// callKey identifies equal calls of one principal at one endpoint.
func callKey(of doorKey, name string, args json.RawMessage) (string, error) {
	same := policy.SameCall{Scope: "gateway", Owner: of.endpoint, Principal: string(of.who), Remote: name,
		Arguments: args}
	return same.Key()
}

// parked has the calls that wait for a person, or that ended after their client had left with the advice to call again.
type parked struct {
	mu   sync.Mutex
	list map[string]*parkedCall
}

// parkedCall is one of them.
type parkedCall struct {
	run       string
	since     time.Time
	followers int
	advised   bool // a client left with the advice to call again, so that no departure cancels the run
}

// join returns the run of an equal parked call, "" if there is none, and counts the caller as its follower.
func (p *parked) join(key string) string {
	p.mu.Lock()
	defer p.mu.Unlock()
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

// add notes that a run is parked. It returns the run of an equal call that was parked before, if there is one.
func (p *parked) add(key, run string) {
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
	p.list[key] = &parkedCall{run: run, since: time.Now(), followers: 1}
}

// leave notes that a follower left with the advice to call again.
func (p *parked) leave(key, run string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if c := p.list[key]; c != nil && c.run == run {
		c.followers--
		c.advised, c.since = true, time.Now()
	}
}

// alone removes a follower whose client is gone. It reports whether nobody else will want the result.
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

// done notes that the result of a run was delivered, so that the next equal call is a new one.
func (p *parked) done(key, run string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if c := p.list[key]; c != nil && c.run == run {
		delete(p.list, key)
	}
}

// wait waits until a parked run can go on, and resumes it if no process works on it. After the time to park it returns
// an error that says how the client gets the result.
func (f *following) wait(ctx context.Context) error {
	f.g.parked.add(f.key, f.run)
	end := time.NewTimer(f.g.parkTime())
	defer end.Stop()
	tell := time.NewTicker(tellEvery)
	defer tell.Stop()
	look := time.NewTicker(lookEvery)
	defer look.Stop()
	message := f.advice()
	f.progress(0, 0, message)
	for {
		h := f.g.current()
		changed := h.Service().Storage().State().Changed(ctx)
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
		case <-tell.C:
			f.progress(0, 0, message)
		case <-end.C:
			f.g.parked.leave(f.key, f.run)
			return tenon.Errorf(tenon.CodeWaiting, "%s. Then call the tool again with the same arguments: that call "+
				"gets the result, and nothing is done twice", message)
		case <-ctx.Done():
			return nil // read reports it
		}
	}
}

// advice tells the client what a call waits for.
func (f *following) advice() string {
	return fmt.Sprintf("The call of '%s' waits for a person: tenon approvals allow %s", tenon.Visible(f.request.Name),
		f.run)
}

// parkTime returns how long a call that waits holds its client.
func (g *Gateway) parkTime() time.Duration {
	return cmp.Or(g.cfg.Park, g.current().Service().Info().Config.Gateway.WithDefaults().Park)
}
