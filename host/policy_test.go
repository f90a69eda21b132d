package host_test

import (
	"context"
	"encoding/json"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/agent"
	"github.com/tenonhq/tenon/catalog"
	"github.com/tenonhq/tenon/config"
	"github.com/tenonhq/tenon/host"
	"github.com/tenonhq/tenon/policy"
	"github.com/tenonhq/tenon/view"
)

// ruled returns a configuration with rules for the shop's tool price.
func ruled(b policy.Block) *config.Config {
	return &config.Config{Tools: map[string]catalog.Tool{"price": {Server: "shop", RemoteName: "price", Policy: b}}}
}

// once returns a model that calls some tools in one turn and then says that it is done.
func once(list ...string) answering {
	return func(req *tenon.Request) (*tenon.Response, error) {
		if last := req.Messages[len(req.Messages)-1]; last.Role == tenon.RoleUser {
			return calls(list...), nil
		}
		return says("done"), nil
	}
}

// TestRate checks that the rate limit of a tool counts the calls of all hosts of a store. A call that is slightly early
// waits. A call that would wait too long gets an error that says when to retry.
func TestRate(t *testing.T) {
	t.Parallel() // it mostly waits
	home := t.TempDir()
	open := func(rate string) *host.Host {
		h, _ := budgeted(t, home, ruled(policy.Block{Rate: rate}), &shop{}, once(`price {"thing":"tea"}`))
		return h
	}
	hosts := []*host.Host{open("3/h"), open("3/h")}
	var mu sync.Mutex
	var wg sync.WaitGroup
	var refused []string
	for i := range 8 {
		wg.Go(func() {
			r, _ := ask(t, hosts[i%2], host.Question{Text: "q"})
			mu.Lock()
			defer mu.Unlock()
			if r.State != tenon.RunCompleted {
				t.Errorf("%s %v", r.State, r.Error)
			}
			if c := r.ToolCalls[0]; c.Outcome == view.CallDenied {
				refused = append(refused, c.Error)
			}
			replay(t, hosts[0], r.Session)
		})
	}
	wg.Wait()
	if len(refused) != 5 || !strings.Contains(refused[0], "tool 'price' of server 'shop' may be called 3 times an hour, and is free again in ") {
		t.Errorf("%d refused: %q", len(refused), refused)
	}

	quick := open("1/s")
	h, _ := budgeted(t, t.TempDir(), ruled(policy.Block{Rate: "1/s"}), &shop{}, once(`price {"thing":"tea"}`, `price {"thing":"milk"}`))
	r, events := ask(t, h, host.Question{Text: "q"})
	var waits []time.Duration
	for _, e := range events {
		var a agent.Admitted
		if e.Kind == agent.EventAdmitted && json.Unmarshal(e.Data, &a) == nil {
			waits = append(waits, a.Wait)
		}
	}
	if len(waits) != 2 || waits[0] != 0 || waits[1] <= 0 || waits[1] > time.Second || !r.ToolCalls[1].Success {
		t.Errorf("waits %v: %+v", waits, r.ToolCalls)
	}
	replay(t, h, r.Session)
	// The limit also applies to a call that a person starts.
	if _, _, err := host.CallTool(t.Context(), quick, "price", json.RawMessage(`{"thing":"tea"}`), nil); err != nil {
		t.Error(err)
	}
	if _, _, err := host.CallTool(t.Context(), hosts[0], "price", json.RawMessage(`{"thing":"tea"}`), nil); tenon.ErrorCode(err) != tenon.CodeRateLimited {
		t.Errorf("beyond the rate: %v", err)
	}
}

// TestCost checks that the prices of tool calls are added to the cost of the run, and that a cached result is free.
func TestCost(t *testing.T) {
	b := policy.Block{Cost: new(0.25), Cache: policy.Cache{TTL: new(time.Minute)}}
	h, _ := budgeted(t, t.TempDir(), ruled(b), &shop{}, once(`price {"thing":"tea"}`, `price {"thing":"milk"}`, `price {"thing":"tea"}`))
	r, events := ask(t, h, host.Question{Text: "q"})
	if r.Cost == nil || *r.Cost != tenon.Dollars(0.5) {
		t.Errorf("cost %v", r.Cost)
	}
	var d tenon.DoneData
	var s agent.Summary
	if err := json.Unmarshal(events[len(events)-1].Data, &d); err != nil || json.Unmarshal(d.Data, &s) != nil || s.Cost != tenon.Dollars(0.5) {
		t.Errorf("the run's own sum: %s, %v", s.Cost, err)
	}
	if hits := cachedCalls(r); len(hits) != 1 || hits[0].Cost != 0 {
		t.Errorf("%+v", r.ToolCalls)
	}
}

func cachedCalls(r view.Report) (hits []view.Call) {
	for _, c := range r.ToolCalls {
		if c.Cached {
			hits = append(hits, c)
		}
	}
	return hits
}

// countingShop is a shop that counts its calls.
type countingShop struct {
	shop
	calls atomic.Int32
}

func (c *countingShop) Call(ctx context.Context, call tenon.Call) (*tenon.Result, error) {
	c.calls.Add(1)
	time.Sleep(5 * time.Millisecond) // so that equal calls meet
	return c.shop.Call(ctx, call)
}

// TestCache makes the same call many times, concurrently and one after another. The tool is called only once for each
// principal, project or run, depending on the scope of the cache.
func TestCache(t *testing.T) {
	many := make([]string, 20)
	for i := range many {
		many[i] = `price {"thing":"tea"}`
	}
	s := &countingShop{}
	home := t.TempDir()
	open := func(scope string, s tenon.Toolset) *host.Host {
		h, _ := budgeted(t, home, ruled(policy.Block{Cache: policy.Cache{TTL: new(time.Hour), Scope: scope}}), s, once(many...))
		return h
	}
	h := open(policy.ScopeProject, s)
	r, events := ask(t, h, host.Question{Text: "q", Principal: "ann"})
	if n := s.calls.Load(); n != 1 || len(cachedCalls(r)) != len(many)-1 {
		t.Errorf("%d calls, %d hits", n, len(cachedCalls(r)))
	}
	from := r.Run + "/1.0"
	for _, e := range events {
		var o agent.Outcome
		if e.Kind == agent.EventResult && json.Unmarshal(e.Data, &o) == nil && (o.Source == agent.SourceCache) != (o.Of != "") {
			t.Errorf("%s: source %q of %q", e.Step, o.Source, o.Of)
		}
	}
	replay(t, h, r.Session)
	// Another host with the same store, as after a restart.
	again := open(policy.ScopeProject, s)
	r, _ = ask(t, again, host.Question{Text: "q", Principal: "ann"})
	if n := s.calls.Load(); n != 1 || len(cachedCalls(r)) != len(many) || !strings.HasPrefix(r.ToolCalls[0].From, strings.Split(from, "/")[0]) {
		t.Errorf("%d calls, %d hits from %q", n, len(cachedCalls(r)), r.ToolCalls[0].From)
	}
	// A principal never gets the cached result of another one.
	if ask(t, again, host.Question{Text: "q", Principal: "bob"}); s.calls.Load() != 2 {
		t.Errorf("%d calls", s.calls.Load())
	}
	// With the scope "run", another run does not get the cached result.
	runs := open(policy.ScopeRun, s)
	ask(t, runs, host.Question{Text: "q", Principal: "ann"})
	ask(t, runs, host.Question{Text: "q", Principal: "ann"})
	if n := s.calls.Load(); n != 4 {
		t.Errorf("%d calls", n)
	}
}
