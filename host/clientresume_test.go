package host_test

import (
	"context"
	"encoding/json"
	"iter"
	"log/slog"
	"slices"
	"sync"
	"testing"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/agent"
	"github.com/tenonhq/tenon/config"
	"github.com/tenonhq/tenon/host"
)

// hangingModel calls the client's tool x in its first turn, if calls is set. Its next turn never ends.
type hangingModel struct {
	first ownModel
	calls bool
	hangs chan struct{} // closed when the turn that never ends has begun
}

func (m hangingModel) Name() string { return "own/model" }

func (m hangingModel) Generate(ctx context.Context, q *tenon.Request) iter.Seq2[tenon.Delta, error] {
	if m.calls && *m.first.n == 0 {
		return m.first.Generate(ctx, q)
	}
	return func(yield func(tenon.Delta, error) bool) {
		close(m.hangs)
		<-ctx.Done()
		yield(tenon.Delta{}, ctx.Err())
	}
}

// TestClientToolsResumed checks that a process that supervises the store resumes a run with tools of the client after
// the first process has ended.
func TestClientToolsResumed(t *testing.T) {
	t.Parallel() // it mostly waits
	for _, tt := range []struct {
		name  string
		calls bool
	}{
		{"RP-4_resumed_called", true},
		{"RP-4_resumed_offered", false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			home := t.TempDir()
			m := hangingModel{first: callsX(), calls: tt.calls, hangs: make(chan struct{})}
			h := openModel(t, home, m, nil)
			s, err := h.Start(t.Context(), host.Question{Text: "How warm?", ClientTools: clientX})
			if err != nil {
				t.Fatal(err)
			}
			if tt.calls {
				for _, err := range h.Runs().Events(t.Context(), s.Run.ID, 0) {
					if err != nil {
						t.Fatal(err)
					}
				}
				if _, _, err := h.Approvals().Decide(t.Context(), s.Run.ID, "1.0", agent.Ruling{Verdict: tenon.Allow,
					Arguments: json.RawMessage(`"21 °C"`)}); err != nil {
					t.Fatal(err)
				}
				if err := h.Runs().Resume(t.Context(), s.Run.ID); err != nil {
					t.Fatal(err)
				}
			}
			<-m.hangs
			if err := h.Close(); err != nil {
				t.Fatal(err)
			}
			next := openModel(t, home, answers(responds(tenon.StopEnd, textPart("done"))), nil)
			ctx, cancel := context.WithCancel(t.Context())
			var wg sync.WaitGroup
			wg.Go(func() { next.Service().Supervise(ctx) })
			defer wg.Wait()
			defer cancel()
			eventually(t, "the run is completed", func() bool {
				row, err := next.Runs().Get(t.Context(), s.Run.ID)
				return err == nil && row.State == tenon.RunCompleted
			})
		})
	}
}

// TestSuperviseLeft checks that the follower of a run that this process cannot resume gets the reason, whether it
// begins to follow before or after the process has found out.
func TestSuperviseLeft(t *testing.T) {
	t.Parallel() // it mostly waits
	home, s := t.TempDir(), &shop{}
	h := open(t, home, sellSteps, s)
	r, _ := ask(t, h, host.Question{Text: "q"})
	if _, _, err := h.Approvals().Decide(t.Context(), r.Run, r.ToolCalls[0].Step,
		agent.Ruling{Verdict: tenon.Allow, By: "ann"}); err != nil {
		t.Fatal(err)
	}
	if err := h.Close(); err != nil {
		t.Fatal(err)
	}
	log := &lines{}
	stranger, err := host.Open(t.Context(), host.Config{Config: &config.Config{}, Home: home,
		Logger: slog.New(slog.NewTextHandler(log, nil)), LookupEnv: func(string) (string, bool) { return "", false }})
	if err != nil {
		t.Fatal(err)
	}
	defer stranger.Close()
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	defer wg.Wait()
	defer cancel()
	follow := func() error {
		for _, err := range stranger.Runs().Events(ctx, r.Run, 0) {
			if err != nil {
				return err
			}
		}
		return nil
	}
	before := make(chan error, 1)
	wg.Go(func() { before <- follow() })
	wg.Go(func() { stranger.Service().Supervise(ctx) })
	errs := []error{<-before, follow()}
	if i := slices.IndexFunc(errs, func(err error) bool { return tenon.ErrorCode(err) != tenon.CodeConfig }); i >= 0 {
		t.Errorf("RP-4: follower %d: %v", i, errs[i])
	}
}
