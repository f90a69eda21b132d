package host_test

import (
	"context"
	"fmt"
	"path/filepath"
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
	"github.com/tenonhq/tenon/model"
	"github.com/tenonhq/tenon/policy"
	"github.com/tenonhq/tenon/store"
	"github.com/tenonhq/tenon/store/sqlite"
)

// budgeted opens a host with budgets, a model written in Go and the toolset s.
func budgeted(t *testing.T, home string, c *config.Config, s tenon.Toolset, m answering) (*host.Host, store.Store) {
	t.Helper()
	st, err := sqlite.Open(t.Context(), sqlite.Config{Path: filepath.Join(home, "tenon.db")})
	if err != nil {
		t.Fatal(err)
	}
	h, err := host.Open(t.Context(), host.Config{Config: c, Store: st, Model: "m", Toolsets: map[string]tenon.Toolset{"shop": s},
		Models: map[string]tenon.Model{"m": m}, LookupEnv: func(string) (string, bool) { return "", false }})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = h.Close() })
	return h, st
}

// TestBudgets has three runs share a budget. The run that exceeds it stops with the reason for the unit: turns, tokens,
// calls or time.
func TestBudgets(t *testing.T) {
	tests := []struct {
		name   string
		b      agent.Budgets
		stop   tenon.StopReason // of the third run
		err    string
		other  bool // another session, or another principal, still has room
		second bool // the second run already reaches the limit
	}{
		{"session turns", agent.Budgets{Session: agent.Budget{Turns: 4}}, tenon.LimitTurns, "budget of this session is used up: 4 model requests of 4 model requests; raise budgets.session", true, false},
		{"day turns", agent.Budgets{Day: agent.Budget{Turns: 4}}, tenon.LimitTurns, "budget of this day", false, false},
		{"principal tokens", agent.Budgets{Principal: agent.Budget{Tokens: 400}}, tenon.LimitTokens, "budget of this principal is used up: 440 tokens of 400 tokens", true, false},
		{"session calls", agent.Budgets{Session: agent.Budget{ToolCalls: 2}}, tenon.LimitToolCalls, "2 tool calls", true, false},
		{"day time", agent.Budgets{Day: agent.Budget{Time: time.Millisecond}}, tenon.LimitTime, "budget of this day", false, true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			h, _ := budgeted(t, t.TempDir(), &config.Config{Budgets: tt.b}, &shop{}, func(req *tenon.Request) (*tenon.Response, error) {
				time.Sleep(2 * time.Millisecond)
				if last := req.Messages[len(req.Messages)-1]; last.Role == tenon.RoleUser {
					return calls(`price {"thing":"tea"}`), nil
				}
				return says("done"), nil
			})
			session := ""
			for i := range 3 {
				r, _ := ask(t, h, host.Question{Text: "again", Session: session, Principal: "ann"})
				session = r.Session
				over := i == 2 || tt.second
				if over != (r.State == tenon.RunFailed) || over && (r.Stop != tt.stop || !strings.Contains(r.Error.Message, tt.err)) {
					t.Fatalf("run %d: %s %s %v", i, r.State, r.Stop, r.Error)
				}
				replay(t, h, session)
				if over {
					break
				}
			}
			q := host.Question{Text: "again", Principal: "bob"}
			if r, _ := ask(t, h, q); tt.other != (r.State == tenon.RunCompleted) {
				t.Errorf("somebody else's run: %s %v", r.State, r.Error)
			}
		})
	}
}

// TestBudgetConfirm checks that a person can let a run continue when it has reached the limit of a budget.
func TestBudgetConfirm(t *testing.T) {
	c := &config.Config{Budgets: agent.Budgets{Day: agent.Budget{Turns: 1}}, Agents: map[string]agent.Config{
		"default": agent.Config{Limits: agent.Limits{OnLimit: agent.OnLimitConfirm}}.WithDefaults()}}
	n := 0
	h, _ := budgeted(t, t.TempDir(), c, &shop{}, func(*tenon.Request) (*tenon.Response, error) {
		if n++; n < 4 {
			return calls(`price {"thing":"tea"}`), nil
		}
		return says("done"), nil
	})
	r, _ := ask(t, h, host.Question{Text: "q"})
	if r.State != tenon.RunInputRequired || len(r.Waiting) != 1 {
		t.Fatalf("%s %+v", r.State, r.Waiting)
	}
	if _, _, err := h.Approvals().Decide(t.Context(), r.Run, r.Waiting[0].Step, agent.Ruling{Verdict: tenon.Allow, By: "ann"}); err != nil {
		t.Fatal(err)
	}
	if err := h.Runs().Resume(t.Context(), r.Run); err != nil {
		t.Fatal(err)
	}
	if r, _ = follow(t, h, r.Run); r.State != tenon.RunCompleted || n != 4 {
		t.Errorf("%s %v after %d requests", r.State, r.Error, n)
	}
	replay(t, h, r.Session)
}

// TestBudgetShared checks that many concurrent runs that share a budget never exceed it together, and that no run is
// refused while the budget has room. The exception is a single step: if it is the only one in progress, it may exceed
// the budget.
func TestBudgetShared(t *testing.T) {
	const limit = 20_000 // a request uses 110 tokens, and reserves about 4,200 before it is sent
	var used atomic.Int64
	h, st := budgeted(t, t.TempDir(), &config.Config{Budgets: agent.Budgets{Day: agent.Budget{Tokens: limit}}}, &shop{}, func(req *tenon.Request) (*tenon.Response, error) {
		used.Add(110)
		if len(req.Messages) < 12 {
			return calls(`price {"thing":"tea"}`), nil
		}
		return says("done"), nil
	})
	var wg sync.WaitGroup
	var refused atomic.Int64
	for range 32 {
		wg.Go(func() {
			run, err := h.Start(t.Context(), host.Question{Text: "q"})
			if err != nil {
				t.Error(err)
				return
			}
			for _, err := range h.Runs().Events(t.Context(), run.ID, 0) {
				if err != nil {
					t.Error(err)
				}
			}
			r, err := h.Runs().Open(run.ID).Report(t.Context())
			if err != nil {
				t.Error(err)
			}
			if r.Stop == tenon.LimitTokens {
				refused.Add(1)
			} else if r.State != tenon.RunCompleted {
				t.Errorf("%s %v", r.State, r.Error)
			}
		})
	}
	wg.Wait()
	if refused.Load() == 0 || used.Load() > limit+110 || used.Load() < limit-4400 {
		t.Errorf("used %d of %d, %d runs refused", used.Load(), limit, refused.Load())
	}
	balances, err := st.Balances(t.Context(), "day/")
	if err != nil || len(balances) != 1 || balances[0].Used != used.Load() || balances[0].Reserved != 0 {
		t.Errorf("balances %+v %v, used %d", balances, err, used.Load())
	}
}

// TestPriceUnknown checks that a money budget is refused if the price of the model is unknown, because the budget would
// limit nothing.
func TestPriceUnknown(t *testing.T) {
	c := &config.Config{Models: map[string]model.Config{"x": {Name: "x", Provider: "openai-compatible", BaseURL: "http://127.0.0.1:1", Model: "who-knows"}},
		Limits: agent.Limits{Cost: 1}, Agents: map[string]agent.Config{"default": agent.Config{Model: "x", Limits: agent.Limits{Cost: 1}}.WithDefaults()}}
	h, err := host.Open(t.Context(), host.Config{Config: c, Home: t.TempDir(), LookupEnv: func(string) (string, bool) { return "", false }})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = h.Close() })
	if _, err := h.Start(t.Context(), host.Question{Text: "q"}); tenon.ErrorCode(err) != tenon.CodeConfig || !strings.Contains(err.Error(), "price of model 'x' is not known") {
		t.Errorf("error %v", err)
	}
}

// TestAlways checks that a permanent approval holds only for the person and the tool that it was given for.
func TestAlways(t *testing.T) {
	s := &shop{}
	h, _ := budgeted(t, t.TempDir(), &config.Config{}, s, func(req *tenon.Request) (*tenon.Response, error) {
		if req.Messages[len(req.Messages)-1].Role == tenon.RoleUser {
			return calls(`sell {}`), nil
		}
		return says("done"), nil
	})
	r, _ := ask(t, h, host.Question{Text: "q"})
	if r.State != tenon.RunInputRequired {
		t.Fatal(r.State)
	}
	if _, _, err := h.Approvals().Decide(t.Context(), r.Run, r.Waiting[0].Step, agent.Ruling{Verdict: tenon.Allow, By: "ann", Remember: agent.RememberAlways}); err != nil {
		t.Fatal(err)
	}
	if err := h.Runs().Resume(t.Context(), r.Run); err != nil {
		t.Fatal(err)
	}
	_, _ = follow(t, h, r.Run)
	r, _ = ask(t, h, host.Question{Text: "in another session"})
	if r.State != tenon.RunCompleted || r.ToolCalls[0].By != "ann (always)" {
		t.Errorf("%s %+v", r.State, r.ToolCalls)
	}
	if r, _ := ask(t, h, host.Question{Text: "of somebody else", Principal: "bob"}); r.State != tenon.RunInputRequired {
		t.Errorf("somebody else's: %s", r.State)
	}
	grants, err := h.Approvals().Grants(t.Context(), "")
	if err != nil || len(grants) != 1 || grants[0].Remote != "sell" || grants[0].By != "ann" {
		t.Fatalf("grants %+v %v", grants, err)
	}
	if err := h.Approvals().Revoke(t.Context(), "", grants[0].ID); err != nil {
		t.Fatal(err)
	}
	if r, _ := ask(t, h, host.Question{Text: "after it was taken back"}); r.State != tenon.RunInputRequired {
		t.Errorf("after it was taken back: %s", r.State)
	}
}

// counting is a toolset that records how many of its calls ran at the same time.
type counting struct {
	shop
	now, most atomic.Int32
	two       chan struct{} // closed when two calls have run at the same time
	once      sync.Once
}

func (c *counting) Call(ctx context.Context, call tenon.Call) (*tenon.Result, error) {
	n := c.now.Add(1)
	defer c.now.Add(-1)
	for m := c.most.Load(); n > m && !c.most.CompareAndSwap(m, n); m = c.most.Load() {
	}
	if n == 2 {
		c.once.Do(func() { close(c.two) })
	}
	select {
	case <-c.two:
	case <-time.After(30 * time.Second):
	}
	time.Sleep(5 * time.Millisecond)
	return c.shop.Call(ctx, call)
}

// TestConcurrency checks the limit of concurrent calls of a tool over several runs.
func TestConcurrency(t *testing.T) {
	s := &counting{two: make(chan struct{})}
	c := &config.Config{Tools: map[string]catalog.Tool{"price": {Server: "shop", RemoteName: "price", Policy: policy.Block{Concurrency: new(2)}}}}
	h, _ := budgeted(t, t.TempDir(), c, s, func(req *tenon.Request) (*tenon.Response, error) {
		if req.Messages[len(req.Messages)-1].Role == tenon.RoleUser {
			return calls(`price {"thing":"a"}`, `price {"thing":"b"}`, `price {"thing":"c"}`), nil
		}
		return says("done"), nil
	})
	var wg sync.WaitGroup
	for i := range 4 {
		wg.Go(func() {
			run, err := h.Start(t.Context(), host.Question{Text: fmt.Sprint(i)})
			if err != nil {
				t.Error(err)
				return
			}
			for _, err := range h.Runs().Events(t.Context(), run.ID, 0) {
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	if s.most.Load() != 2 {
		t.Errorf("%d calls at a time, want 2", s.most.Load())
	}
}

// TestBudgetHeld checks that a call waits if another run has reserved the rest of a budget. When the other run settles
// its reservation, the call is made or refused, depending on how much was really used.
func TestBudgetHeld(t *testing.T) {
	for used, want := range map[int64]string{0: "3 EUR", 2: "budget of this day is used up"} {
		t.Run(fmt.Sprint(used), func(t *testing.T) {
			h, st := budgeted(t, t.TempDir(), &config.Config{Budgets: agent.Budgets{Day: agent.Budget{ToolCalls: 2}}}, &shop{}, func(req *tenon.Request) (*tenon.Response, error) {
				if last := req.Messages[len(req.Messages)-1]; last.Role == tenon.RoleUser {
					return calls(`price {"thing":"tea"}`), nil
				}
				return says("done"), nil
			})
			release, ok, err := st.Acquire("other")
			if err != nil || !ok {
				t.Fatal(ok, err)
			}
			defer release()
			key := "day/" + time.Now().UTC().Format(time.DateOnly) + "/tool_calls"
			if _, err := st.Reserve(t.Context(), "other", "1.0", []store.Charge{{Key: key, Amount: 2, Limit: 2}}); err != nil {
				t.Fatal(err)
			}
			time.AfterFunc(50*time.Millisecond, func() { _ = st.Settle(context.Background(), "other", "1.0", []int64{used}) }) // the answer shows it
			r, _ := ask(t, h, host.Question{Text: "How much is tea?"})
			if len(r.ToolCalls) != 1 || !strings.Contains(r.ToolCalls[0].Error+text(r.ToolCalls[0].Result), want) {
				t.Errorf("%+v", r.ToolCalls)
			}
		})
	}
}

func text(r *tenon.Result) string {
	if r == nil {
		return ""
	}
	return r.Text()
}

// TestBudgetRetry resumes a failed run. Its repeated model request counts against the budget, and is refused if the
// budget is used up.
func TestBudgetRetry(t *testing.T) {
	n := 0
	h, st := budgeted(t, t.TempDir(), &config.Config{Budgets: agent.Budgets{Day: agent.Budget{Turns: 2}}}, &shop{}, func(*tenon.Request) (*tenon.Response, error) {
		n++
		return nil, tenon.Errorf(tenon.CodeModel, "not today")
	})
	r, _ := ask(t, h, host.Question{Text: "q"})
	for range 2 {
		if r.State != tenon.RunFailed || r.Stop != tenon.StopError {
			t.Fatalf("%s %s %v", r.State, r.Stop, r.Error)
		}
		if err := h.Runs().Resume(t.Context(), r.Run); err != nil {
			t.Fatal(err)
		}
		r, _ = follow(t, h, r.Run)
	}
	if b, err := st.Balances(t.Context(), "day/"); n != 2 || r.Stop != tenon.LimitTurns || err != nil || len(b) != 1 || b[0].Used != 2 {
		t.Errorf("%d requests, %s %v; %+v %v", n, r.Stop, r.Error, b, err)
	}
}

// late is a shop whose calls take some time. It is closed at first.
type late struct {
	shop
	calls atomic.Int32
}

const lateness = 50 * time.Millisecond

func (l *late) Call(ctx context.Context, c tenon.Call) (*tenon.Result, error) {
	time.Sleep(lateness)
	if l.calls.Add(1) == 1 {
		return nil, tenon.Errorf(tenon.CodeUnreachable, "the shop is closed")
	}
	return l.shop.Call(ctx, c)
}

// TestBudgetSecondAttempt checks that a repeated call is charged for the time of all attempts, but only once for its
// price.
func TestBudgetSecondAttempt(t *testing.T) {
	price := 0.25
	c := &config.Config{Budgets: agent.Budgets{Day: agent.Budget{Time: time.Hour, Cost: 10}},
		Models: map[string]model.Config{"m": {Name: "m", Provider: "openai-compatible", BaseURL: "http://127.0.0.1:1", Price: &model.Price{}}},
		Tools:  map[string]catalog.Tool{"price": {Server: "shop", RemoteName: "price", Policy: policy.Block{Cost: &price}}}}
	s := &late{}
	h, st := budgeted(t, t.TempDir(), c, s, func(req *tenon.Request) (*tenon.Response, error) {
		if req.Messages[len(req.Messages)-1].Role == tenon.RoleUser {
			return calls(`price {"thing":"tea"}`), nil
		}
		return says("done"), nil
	})
	if r, _ := ask(t, h, host.Question{Text: "q"}); r.State != tenon.RunCompleted || s.calls.Load() != 2 {
		t.Fatalf("%s %v after %d calls", r.State, r.Error, s.calls.Load())
	}
	list, err := st.Balances(t.Context(), "day/")
	if err != nil {
		t.Fatal(err)
	}
	used := map[string]int64{}
	for _, b := range list {
		used[b.Key[strings.LastIndexByte(b.Key, '/')+1:]] = b.Used
	}
	if used["time"] < 2*lateness.Milliseconds() || used["cost"] != int64(tenon.Dollars(price)) {
		t.Errorf("%v, want the time of two attempts, and the price of one call", used)
	}
}

// TestBudgetFull checks that a step is charged for both model requests if the first one fails because the conversation
// is too long.
func TestBudgetFull(t *testing.T) {
	n := 0
	h, st := budgeted(t, t.TempDir(), &config.Config{Budgets: agent.Budgets{Day: agent.Budget{Turns: 100}}}, &shop{}, func(req *tenon.Request) (*tenon.Response, error) {
		if n++; n == 3 {
			return nil, tenon.Errorf(tenon.CodeTooLarge, "the prompt is too long")
		}
		return says("done"), nil
	})
	session := ""
	for range 3 {
		r, _ := ask(t, h, host.Question{Text: "q", Session: session})
		if session = r.Session; r.State != tenon.RunCompleted {
			t.Fatalf("%s %v", r.State, r.Error)
		}
	}
	b, err := st.Balances(t.Context(), "day/")
	if err != nil || len(b) != 1 || b[0].Used != int64(n) || b[0].Reserved != 0 {
		t.Errorf("%d requests count as %+v (%v)", n, b, err)
	}
}

// TestBudgetQueueEnds checks that a run reaches its time limit while its model call waits for a reservation of another
// run that is never settled.
func TestBudgetQueueEnds(t *testing.T) {
	c := &config.Config{Budgets: agent.Budgets{Day: agent.Budget{Turns: 1}}, Agents: map[string]agent.Config{
		"default": agent.Config{Limits: agent.Limits{RunTimeout: 100 * time.Millisecond}}.WithDefaults()}}
	h, st := budgeted(t, t.TempDir(), c, &shop{}, func(*tenon.Request) (*tenon.Response, error) { return says("done"), nil })
	release, ok, err := st.Acquire("other")
	if err != nil || !ok {
		t.Fatal(ok, err)
	}
	defer release()
	key := "day/" + time.Now().UTC().Format(time.DateOnly) + "/turns"
	if _, err := st.Reserve(t.Context(), "other", "1", []store.Charge{{Key: key, Amount: 1, Limit: 1}}); err != nil {
		t.Fatal(err)
	}
	if r, _ := ask(t, h, host.Question{Text: "q"}); r.Stop != tenon.LimitTime {
		t.Errorf("%s %s %v", r.State, r.Stop, r.Error)
	}
}
