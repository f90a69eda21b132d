package host_test

import (
	"context"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/agent"
	"github.com/tenonhq/tenon/config"
	"github.com/tenonhq/tenon/host"
)

const sellTwice = `steps:
  - calls: [{name: sell, arguments: {n: 1}}, {name: sell, arguments: {n: 2}}, {name: other, arguments: {}}]
  - text: done
`

// pair is a toolset with two tools that ask; slow is under way until it is let go.
type pair struct {
	mu    sync.Mutex
	calls []string
	let   chan struct{}
}

func (p *pair) Tools(context.Context) ([]tenon.Tool, error) {
	yes := true
	return []tenon.Tool{{Remote: "sell", Input: []byte(`{"type":"object"}`)}, {Remote: "other", Input: []byte(`{"type":"object"}`)},
		{Remote: "slow", Input: []byte(`{"type":"object"}`), Annotations: tenon.Annotations{ReadOnly: &yes}}}, nil
}

func (p *pair) Call(ctx context.Context, c tenon.Call) (*tenon.Result, error) {
	p.mu.Lock()
	p.calls = append(p.calls, c.Tool)
	p.mu.Unlock()
	if c.Tool == "slow" {
		select {
		case <-p.let:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	return &tenon.Result{Content: []tenon.Content{tenon.Text("done")}}, nil
}

// TestGrantSettlesOthers: what is allowed for the session is allowed for the calls of
// the same tool that wait already, and for no others; each has a decision of its own.
func TestGrantSettlesOthers(t *testing.T) {
	p := &pair{}
	h := openPair(t, p, sellTwice, nil)
	r, _ := ask(t, h, host.Question{Text: "go"})
	won, mine, err := h.Approvals().Decide(t.Context(), r.Run, "1.1", agent.Ruling{Verdict: tenon.Allow, By: "me", Remember: agent.RememberSession})
	if err != nil || !mine {
		t.Fatalf("%+v, %t, %v", won, mine, err)
	}
	list, err := h.Approvals().List(t.Context(), r.Run)
	if err != nil || len(list) != 1 || list[0].Remote != "other" {
		t.Fatalf("still waits: %+v, %v", list, err)
	}
	if _, _, err := h.Approvals().Decide(t.Context(), r.Run, "1.2", agent.Ruling{Verdict: tenon.Deny, By: "me"}); err != nil {
		t.Fatal(err)
	}
	if err := h.Runs().Resume(t.Context(), r.Run); err != nil {
		t.Fatal(err)
	}
	report, _ := follow(t, h, r.Run)
	by := map[string]string{}
	for _, c := range report.ToolCalls {
		by[c.Step] = string(c.Verdict) + " by " + c.By
	}
	if report.State != tenon.RunCompleted || by["1.0"] != "allow by me (for the session)" || by["1.1"] != "allow by me" || by["1.2"] != "deny by me" {
		t.Errorf("%s, %v", report.State, by)
	}
}

// TestApproveBesideASlowCall: a person is asked while another call is under way, and
// what was allowed runs beside it.
func TestApproveBesideASlowCall(t *testing.T) {
	p := &pair{let: make(chan struct{})}
	var once sync.Once
	asked, late := false, false
	h := openPair(t, p, "steps:\n  - calls: [{name: slow, arguments: {}}, {name: sell, arguments: {}}]\n  - text: done\n",
		func(context.Context, host.Approval) (agent.Ruling, error) {
			asked = true
			once.Do(func() { close(p.let) }) // while slow is under way
			return agent.Ruling{Verdict: tenon.Allow, By: "me"}, nil
		})
	timer := time.AfterFunc(time.Minute, func() { once.Do(func() { late = true; close(p.let) }) })
	defer timer.Stop()
	var done bool
	for e, err := range h.Stream(t.Context(), host.Question{Text: "go"}) {
		if err != nil {
			t.Fatal(err)
		}
		done = done || e.Kind == tenon.EventDone
	}
	if !asked || late {
		t.Errorf("asked: %t, only after the slow call: %t", asked, late)
	}
	if !done || len(p.calls) != 2 {
		t.Errorf("calls %v, done %t", p.calls, done)
	}
}

func openPair(t *testing.T, p *pair, steps string, approve func(context.Context, host.Approval) (agent.Ruling, error)) *host.Host {
	t.Helper()
	home := t.TempDir()
	h, err := host.Open(t.Context(), host.Config{Config: &config.Config{}, Home: home, Model: "script:" + writeSteps(t, home, steps), Approve: approve,
		Toolsets: map[string]tenon.Toolset{"shop": p}, LookupEnv: func(string) (string, bool) { return "", false }})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = h.Close() })
	return h
}

func writeSteps(t *testing.T, dir, steps string) string {
	t.Helper()
	file := filepath.Join(dir, "steps.yaml")
	if err := os.WriteFile(file, []byte(steps), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}
