package host_test

import (
	"bytes"
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/agent"
	"github.com/tenonhq/tenon/config"
	"github.com/tenonhq/tenon/engine"
	"github.com/tenonhq/tenon/host"
	"github.com/tenonhq/tenon/internal/longtest"
	"github.com/tenonhq/tenon/store"
	"github.com/tenonhq/tenon/store/sqlite"
)

// lines is a log that can be read while it is written.
type lines struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lines) count(text string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Count(l.b.String(), text)
}

// eventually waits until a condition is met by the goroutines of a host.
func eventually(t *testing.T, what string, is func() bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !is(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("in vain: %s", what)
		}
	}
}

// TestSupervise decides about a run while no process works on it. A host without the run's servers does not continue
// it, and logs that once. A host with these servers continues it.
func TestSupervise(t *testing.T) {
	t.Parallel() // it mostly waits
	home, s := t.TempDir(), &shop{}
	h := open(t, home, sellSteps, s)
	r, _ := ask(t, h, host.Question{Text: "q"})
	if _, _, err := h.Approvals().Decide(t.Context(), r.Run, r.ToolCalls[0].Step, agent.Ruling{Verdict: tenon.Allow, By: "ann"}); err != nil {
		t.Fatal(err)
	}
	if err := h.Close(); err != nil {
		t.Fatal(err)
	}
	log := &lines{}
	stranger, err := host.Open(t.Context(), host.Config{Config: &config.Config{}, Home: home, Logger: slog.New(slog.NewTextHandler(log, nil)),
		LookupEnv: func(string) (string, bool) { return "", false }})
	if err != nil {
		t.Fatal(err)
	}
	defer stranger.Close()
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	wg.Go(func() { stranger.Service().Supervise(ctx) })
	eventually(t, "it says that the run is left", func() bool { return log.count("its servers are not configured here: shop") > 0 })
	time.Sleep(1200 * time.Millisecond) // further looks
	cancel()
	wg.Wait()
	if n := log.count("is not resumed"); n != 1 {
		t.Errorf("it was said %d times", n)
	}
	if row, err := stranger.Runs().Get(t.Context(), r.Run); err != nil || row.State != tenon.RunWorking || s.sold.Load() != 0 {
		t.Errorf("the run is %s, sold %d: %v", row.State, s.sold.Load(), err)
	}

	owner := open(t, home, sellSteps, s)
	ctx, cancel = context.WithCancel(t.Context())
	wg.Go(func() { owner.Service().Supervise(ctx) })
	eventually(t, "the run is completed", func() bool {
		row, err := owner.Runs().Get(t.Context(), r.Run)
		return err == nil && row.State == tenon.RunCompleted
	})
	cancel()
	wg.Wait()
	if s.sold.Load() != 1 {
		t.Errorf("sold %d", s.sold.Load())
	}
}

// TestSuperviseExpires checks that a run continues without a decision when its approval has expired.
func TestSuperviseExpires(t *testing.T) {
	t.Parallel() // it mostly waits
	home, s := t.TempDir(), &shop{}
	cfg := &config.Config{}
	cfg.Policy.Defaults.Expires = 1500 * time.Millisecond
	file := filepath.Join(home, "steps.yaml")
	if err := os.WriteFile(file, []byte(sellSteps), 0o600); err != nil {
		t.Fatal(err)
	}
	h, err := host.Open(t.Context(), host.Config{Config: cfg, Home: home, Model: "script:" + file, Toolsets: map[string]tenon.Toolset{"shop": s},
		LookupEnv: func(string) (string, bool) { return "", false }})
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	r, _ := ask(t, h, host.Question{Text: "q"})
	if r.State != tenon.RunInputRequired {
		t.Fatalf("state %s", r.State)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	wg.Go(func() { h.Service().Supervise(ctx) })
	eventually(t, "the run is completed", func() bool {
		row, err := h.Runs().Get(t.Context(), r.Run)
		return err == nil && row.State == tenon.RunCompleted
	})
	cancel()
	wg.Wait()
	if s.sold.Load() != 0 {
		t.Errorf("sold %d", s.sold.Load())
	}
}

// TestSuperviseMany resumes more runs than one process resumes at a time. None of them waits until an earlier one has
// ended: a call of each is under way before the first may end.
func TestSuperviseMany(t *testing.T) {
	longtest.Skip(t)
	const runs = 60
	home, s := t.TempDir(), &shop{}
	h := open(t, home, sellSteps, s)
	for range runs {
		r, _ := ask(t, h, host.Question{Text: "q"})
		if _, _, err := h.Approvals().Decide(t.Context(), r.Run, r.ToolCalls[0].Step, agent.Ruling{Verdict: tenon.Allow, By: "ann"}); err != nil {
			t.Fatal(err)
		}
	}
	if err := h.Close(); err != nil {
		t.Fatal(err)
	}
	s.gate = make(chan struct{})
	owner := open(t, home, sellSteps, s)
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	wg.Go(func() { owner.Service().Supervise(ctx) })
	eventually(t, "all runs are at work at the same time", func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		return len(s.keys) == runs
	})
	if n := s.sold.Load(); n != 0 {
		t.Errorf("%d runs ended before", n)
	}
	close(s.gate)
	eventually(t, "all runs are completed", func() bool {
		list, err := owner.Runs().List(t.Context(), engine.Filter{State: tenon.RunCompleted, Limit: 1000})
		return err == nil && len(list) == runs
	})
	cancel()
	wg.Wait()
	if n := s.sold.Load(); n != runs {
		t.Errorf("sold %d", n)
	}
}

// TestDrainReplaced starts a run at a host that was replaced. It is stored, and the next host works on it.
func TestDrainReplaced(t *testing.T) {
	s := &shop{gate: make(chan struct{})}
	close(s.gate)
	h := open(t, t.TempDir(), sellSteps, s)
	next, err := h.Reopen(h.Service().Info().Config)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := next.Close(); err != nil {
			t.Error(err)
		}
	}()
	h.Service().Drain(t.Context())
	run, err := h.Start(t.Context(), host.Question{Text: "q", Grant: "test"})
	if err != nil {
		t.Fatal(err)
	}
	h.Service().Drain(t.Context())
	if err := h.Close(); err != nil || s.sold.Load() != 0 {
		t.Errorf("close: %v; the old host sold %d", err, s.sold.Load())
	}
	if err := next.Runs().Resume(t.Context(), run.ID); err != nil {
		t.Fatal(err)
	}
	if r, _ := follow(t, next, run.ID); r.State != tenon.RunCompleted || s.sold.Load() != 1 {
		t.Errorf("state %s, sold %d", r.State, s.sold.Load())
	}
}

// TestDrain checks that current steps end and are stored, that no new step begins, and that the run can continue later.
func TestDrain(t *testing.T) {
	home, s := t.TempDir(), &shop{gate: make(chan struct{})}
	h := open(t, home, sellSteps, s)
	run, err := h.Start(t.Context(), host.Question{Text: "q", Grant: "test"})
	if err != nil {
		t.Fatal(err)
	}
	kinds := func() (list []string) {
		events, err := h.Runs().Open(run.ID).Journal(t.Context(), 0, 0)
		if err != nil {
			t.Error(err)
		}
		for _, e := range events {
			list = append(list, e.Kind+" "+e.Step)
		}
		return list
	}
	last := func() string { l := kinds(); return l[len(l)-1] }
	eventually(t, "the call begins", func() bool { return last() == "started 1.0" })
	drained := make(chan struct{})
	go func() {
		defer close(drained)
		h.Service().Drain(t.Context())
	}()
	eventually(t, "nothing new begins", func() bool {
		_, err := h.Start(t.Context(), host.Question{Text: "another"})
		return tenon.ErrorCode(err) == tenon.CodeCancelled
	})
	close(s.gate)
	<-drained
	if got := last(); got != "result 1.0" {
		t.Errorf("the last event is %q of %q", got, kinds())
	}
	if o, err := h.Runs().Open(run.ID).Owner(t.Context()); o.Working || err != nil {
		t.Errorf("the run is still owned: %v", err)
	}
	if err := h.Close(); err != nil {
		t.Fatal(err)
	}
	next := open(t, home, sellSteps, s)
	if err := next.Runs().Resume(t.Context(), run.ID); err != nil {
		t.Fatal(err)
	}
	if r, _ := follow(t, next, run.ID); r.State != tenon.RunCompleted || s.sold.Load() != 1 {
		t.Errorf("state %s, sold %d", r.State, s.sold.Load())
	}
}

// TestSteer checks that a run that gets a message from a person asks its model once more.
func TestSteer(t *testing.T) {
	home, s := t.TempDir(), &shop{}
	h := open(t, home, sellSteps, s)
	r, _ := ask(t, h, host.Question{Text: "q"})
	for text, code := range map[string]tenon.Code{" ": tenon.CodeInvalid, strings.Repeat("x", 2<<20): tenon.CodeTooLarge} {
		if _, err := h.Runs().Steer(t.Context(), r.Run, text, "ann"); tenon.ErrorCode(err) != code {
			t.Errorf("a message of %d bytes: %v", len(text), err)
		}
	}
	if _, err := h.Runs().Steer(t.Context(), "run_none", "x", "ann"); tenon.ErrorCode(err) != tenon.CodeNotFound {
		t.Errorf("no such run: %v", err)
	}
	e, err := h.Runs().Steer(t.Context(), r.Run, "gently", "ann")
	if err != nil || e.Kind != agent.EventMessage || string(e.Data) != `{"text":"gently","by":"ann"}` {
		t.Errorf("%+v: %v", e, err)
	}
	if err := h.Runs().Cancel(t.Context(), r.Run, ""); err != nil {
		t.Fatal(err)
	}
	if _, err := h.Runs().Steer(t.Context(), r.Run, "too late", "ann"); tenon.ErrorCode(err) != tenon.CodeConflict {
		t.Errorf("it has ended: %v", err)
	}
}

// stuck is a store whose appends to journals of runs fail.
type stuck struct {
	store.Store
	tries atomic.Int32
}

func (s *stuck) Append(_ context.Context, a store.Append) error {
	s.tries.Add(1)
	return tenon.Errorf(tenon.CodeStore, "run %s: the disk is full", a.Run)
}

// TestSuperviseBacksOff checks that a run that cannot continue is tried again after increasing pauses.
func TestSuperviseBacksOff(t *testing.T) {
	t.Parallel() // it mostly waits
	home, s := t.TempDir(), &shop{}
	h := open(t, home, sellSteps, s)
	r, _ := ask(t, h, host.Question{Text: "q"})
	if _, _, err := h.Approvals().Decide(t.Context(), r.Run, r.ToolCalls[0].Step, agent.Ruling{Verdict: tenon.Allow, By: "ann"}); err != nil {
		t.Fatal(err)
	}
	if err := h.Close(); err != nil {
		t.Fatal(err)
	}
	file, err := sqlite.Open(t.Context(), sqlite.Config{Path: filepath.Join(home, "tenon.db")})
	if err != nil {
		t.Fatal(err)
	}
	log, full := &lines{}, &stuck{Store: file}
	h, err = host.Open(t.Context(), host.Config{Config: &config.Config{}, Store: full, Toolsets: map[string]tenon.Toolset{"shop": s},
		Logger: slog.New(slog.NewTextHandler(log, nil)), LookupEnv: func(string) (string, bool) { return "", false }})
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	wg.Go(func() { h.Service().Supervise(ctx) })
	eventually(t, "it pauses longer and longer", func() bool { return log.count("again_in=2s") > 0 })
	cancel()
	wg.Wait()
	if log.count("again_in=1s") != 1 || full.tries.Load() > 4 {
		t.Errorf("%d tries:\n%s", full.tries.Load(), log.b.String())
	}
}
