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
	"github.com/tenonhq/tenon/view"
)

const sellTwice = `steps:
  - calls: [{name: sell, arguments: {n: 1}}, {name: sell, arguments: {n: 2}}, {name: other, arguments: {}}]
  - text: done
`

// pair is a toolset with two tools that need approval. The tool slow runs until the test releases it.
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

// TestGrantSettlesOthers checks that an approval for the session also allows the calls of the same tool that already
// wait, and no other calls. The journal has a separate decision for each call.
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

// TestApproveBesideASlowCall checks that a person is asked about a call while another call runs, and that the allowed
// call runs at the same time.
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

// TestSessionGrantWithdrawn allows a tool for a session, in which later calls need no approval. Once that is withdrawn,
// the next call asks again, in a later question and in a run under way, until the tool is allowed again.
func TestSessionGrantWithdrawn(t *testing.T) {
	// The script is played for each question.
	const steps = "steps:\n  - calls: [{name: sell, arguments: {n: 1}}]\n  - calls: [{name: sell, arguments: {n: 2}}]\n  - text: done\n"
	h := openPair(t, &pair{}, steps, nil)
	approvals := h.Approvals()
	allow := func(run, step string, before func()) view.Report {
		t.Helper()
		if _, _, err := approvals.Decide(t.Context(), run, step, agent.Ruling{Verdict: tenon.Allow, By: "ann",
			Remember: agent.RememberSession}); err != nil {
			t.Fatal(err)
		}
		before()
		if err := h.Runs().Resume(t.Context(), run); err != nil {
			t.Fatal(err)
		}
		r, _ := follow(t, h, run)
		return r
	}
	revoke := func() {
		t.Helper()
		list, err := approvals.Grants(t.Context(), "")
		if err != nil || len(list) != 1 {
			t.Fatalf("%+v, %v", list, err)
		}
		if err := approvals.Revoke(t.Context(), tenon.PrincipalLocal, list[0].ID); err != nil {
			t.Fatal(err)
		}
	}
	r, _ := ask(t, h, host.Question{Text: "one"})
	first := allow(r.Run, "1.0", func() {})
	if first.State != tenon.RunCompleted || len(first.ToolCalls) != 2 || first.ToolCalls[1].By != "ann (for the session)" {
		t.Fatalf("the first question: %s, %+v", first.State, first.ToolCalls)
	}
	list, err := approvals.Grants(t.Context(), "")
	if err != nil || len(list) != 1 || list[0].Session != first.Session || list[0].Tool() != "shop.sell" ||
		list[0].By != "ann" || list[0].State != host.GrantActive || list[0].Created.IsZero() || !host.IsGrantID(list[0].ID) {
		t.Fatalf("the list: %+v, %v", list, err)
	}
	for ref, want := range map[string]bool{"shop.sell": true, list[0].ID[:8]: true, "shop.other": false} {
		if g, err := host.FindGrant(list, ref); (err == nil) != want || want && g.ID != list[0].ID {
			t.Errorf("%s: %+v, %v", ref, g, err)
		}
	}
	if err := approvals.Revoke(t.Context(), "somebody else", list[0].ID); tenon.ErrorCode(err) != tenon.CodeNotFound {
		t.Errorf("another principal withdraws it: %v", err)
	}
	revoke()
	second, _ := ask(t, h, host.Question{Text: "two", Session: first.Session})
	if second.State != tenon.RunInputRequired || len(second.ToolCalls) != 1 {
		t.Fatalf("after the withdrawal, the run is %s: %+v", second.State, second.ToolCalls)
	}
	if second = allow(second.Run, "1.0", revoke); second.State != tenon.RunInputRequired || len(second.ToolCalls) != 2 {
		t.Fatalf("withdrawn in a run under way, the run is %s: %+v", second.State, second.ToolCalls)
	}
	if second = allow(second.Run, "2.0", func() {}); second.State != tenon.RunCompleted {
		t.Fatalf("the second question: %s", second.State)
	}
	if third, _ := ask(t, h, host.Question{Text: "three", Session: first.Session}); third.State != tenon.RunCompleted {
		t.Errorf("allowed again, the run is %s", third.State)
	}
}

// TestSessionGrantOfALoser: of two decisions about a call only the first counts, and the approval of the other one is
// not kept.
func TestSessionGrantOfALoser(t *testing.T) {
	h := openPair(t, &pair{}, "steps:\n  - calls: [{name: sell, arguments: {n: 1}}]\n  - text: done\n", nil)
	r, _ := ask(t, h, host.Question{Text: "go"})
	if _, _, err := h.Approvals().Decide(t.Context(), r.Run, "1.0", agent.Ruling{Verdict: tenon.Deny, By: "ann"}); err != nil {
		t.Fatal(err)
	}
	if _, mine, err := h.Approvals().Decide(t.Context(), r.Run, "1.0", agent.Ruling{Verdict: tenon.Allow, By: "bob",
		Remember: agent.RememberSession}); mine {
		t.Errorf("the second decision counts: %v", err)
	}
	if list, err := h.Approvals().Grants(t.Context(), ""); err != nil || len(list) != 0 {
		t.Errorf("%+v, %v", list, err)
	}
}
