package host_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/agent"
	"github.com/tenonhq/tenon/config"
	"github.com/tenonhq/tenon/host"
)

// TestExpiredIsNotListed checks that an expired approval is no longer listed, even before a process has resumed its
// run. A late decision has no effect: the caller learns that the approval has expired, and the run continues without
// the call.
func TestExpiredIsNotListed(t *testing.T) {
	c := &clock{time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}
	cfg := &config.Config{}
	cfg.Policy.Defaults.Expires = time.Hour
	m := answering(func(req *tenon.Request) (*tenon.Response, error) {
		if req.Messages[len(req.Messages)-1].Role == tenon.RoleTool {
			return says("nobody was there"), nil
		}
		return calls("sell {}"), nil
	})
	s := &shop{}
	h, err := host.Open(t.Context(), host.Config{Config: cfg, Home: t.TempDir(), Clock: c,
		Model: "m", Models: map[string]tenon.Model{"m": m}, Toolsets: map[string]tenon.Toolset{"shop": s}, LookupEnv: func(string) (string, bool) { return "", false }})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = h.Close() })
	r, _ := ask(t, h, host.Question{Text: "q"})
	count := func() (all, own int) {
		t.Helper()
		list, err := h.Approvals().List(t.Context(), "")
		if err != nil {
			t.Fatal(err)
		}
		awaited, err := h.Approvals().List(t.Context(), r.Run)
		if err != nil {
			t.Fatal(err)
		}
		return len(list), len(awaited)
	}
	c.now = c.now.Add(time.Hour - time.Second)
	if all, own := count(); all != 1 || own != 1 {
		t.Fatalf("a second before its time %d questions are listed, %d of the run", all, own)
	}
	c.now = c.now.Add(time.Second)
	if all, own := count(); all != 0 || own != 0 {
		t.Errorf("when its time is up %d questions are listed, %d of the run", all, own)
	}
	won, mine, err := h.Approvals().Decide(t.Context(), r.Run, "1.0", agent.Ruling{Verdict: tenon.Allow, By: "late"})
	if err != nil || mine || won.Kind != tenon.EventExpired {
		t.Errorf("who is late: %v, %t, %v", won.Kind, mine, err)
	}
	if err := h.Runs().Resume(t.Context(), r.Run); err != nil {
		t.Fatal(err)
	}
	for _, err := range h.Runs().Events(t.Context(), r.Run, 0) {
		if err != nil {
			t.Fatal(err)
		}
	}
	if row, err := h.Runs().Get(t.Context(), r.Run); err != nil || row.State != tenon.RunCompleted || s.sold.Load() != 0 {
		t.Errorf("the run is %s, sold %d, %v", row.State, s.sold.Load(), err)
	}
}

// TestApprovalsStandInTheirOrder checks the order of approvals: one call of a run first, then more than ten calls in
// one turn of another run a minute later.
func TestApprovalsStandInTheirOrder(t *testing.T) {
	c := &clock{time.Date(2026, 1, 2, 0, 0, 0, 0, time.UTC)}
	n := 0
	m := answering(func(*tenon.Request) (*tenon.Response, error) {
		return calls(slices.Repeat([]string{"sell {}"}, n)...), nil
	})
	h, err := host.Open(t.Context(), host.Config{Home: t.TempDir(), Clock: c, Model: "m", Models: map[string]tenon.Model{"m": m}, Toolsets: map[string]tenon.Toolset{"shop": &shop{}},
		LookupEnv: func(string) (string, bool) { return "", false }})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = h.Close() })
	var want []string
	for _, n = range []int{1, 12} {
		r, _ := ask(t, h, host.Question{Text: "q"})
		for i := range n {
			want = append(want, fmt.Sprintf("%s/1.%d", r.Run, i))
		}
		c.now = c.now.Add(time.Minute)
	}
	list, err := h.Approvals().List(t.Context(), "")
	var got []string
	for _, a := range list {
		got = append(got, a.ID)
	}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("%v\nhas %v\nnot %v", err, got, want)
	}
}
