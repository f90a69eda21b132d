package host_test

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/config"
	"github.com/tenonhq/tenon/host"
	"github.com/tenonhq/tenon/policy"
	"github.com/tenonhq/tenon/store"
	"github.com/tenonhq/tenon/store/sqlite"
)

// panickyStore is a store that panics at one append, before or after it stores the events.
type panickyStore struct {
	store.Store
	appends, at atomic.Int64
	after       bool
}

func (s *panickyStore) Append(ctx context.Context, a store.Append) error {
	hit := s.appends.Add(1) == s.at.Load()
	if hit && !s.after {
		panic("oops")
	}
	err := s.Store.Append(ctx, a)
	if hit {
		panic("oops")
	}
	return err
}

// TestPanickyStore lets the program's store panic at each append of a run in turn. The process survives, the run stops
// with an error that names the panic, and another run works. The stopped run can continue without repeating its tool
// call.
func TestPanickyStore(t *testing.T) {
	for _, after := range []bool{false, true} {
		for at := int64(1); ; at++ {
			reached := true
			t.Run(fmt.Sprintf("RP-16_append_%d_stored_%v", at, after), func(t *testing.T) {
				inner, err := sqlite.Open(t.Context(), sqlite.Config{Path: filepath.Join(t.TempDir(), "tenon.db")})
				if err != nil {
					t.Fatal(err)
				}
				s := &panickyStore{Store: inner, after: after}
				s.at.Store(at)
				called := 0
				tools := ownTools{call: func() (*tenon.Result, error) {
					called++
					return &tenon.Result{Content: []tenon.Content{tenon.Text("called")}}, nil
				}}
				h, err := host.Open(t.Context(), host.Config{Store: s, Model: "m",
					LookupEnv: func(string) (string, bool) { return "", false },
					Models:    map[string]tenon.Model{"m": once("x {}")}, Toolsets: map[string]tenon.Toolset{"mine": tools},
					Config: &config.Config{Policy: policy.Config{Defaults: policy.Block{
						Approval: policy.Approval{Mode: "never"}}}}})
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { _ = h.Close() })
				answer, err := h.Ask(t.Context(), "q")
				if reached = s.appends.Load() >= at; !reached {
					if err != nil || called != 1 {
						t.Errorf("%d calls, %v", called, err)
					}
					return
				}
				if after && err == nil && answer.Run.State == tenon.RunCompleted && called == 1 {
					return // the last event was stored, so the journal contains the answer
				}
				if err == nil || !strings.Contains(err.Error(), "the program's store panicked in Append: it is unknown") {
					t.Fatalf("the error is %v", err)
				}
				if _, err := h.Ask(t.Context(), "another"); err != nil {
					t.Errorf("the next run: %v", err)
				}
				called--
				id := answer.Run.ID
				if id == "" {
					return // it was not begun
				}
				if run, err := h.Runs().Get(t.Context(), id); err == nil && !run.State.Ended() {
					if err := h.Runs().Resume(t.Context(), id); err != nil {
						t.Fatal(err)
					}
					for _, err := range h.Runs().Events(t.Context(), id, 0) {
						if err != nil {
							t.Fatal(err)
						}
					}
				}
				if run, err := h.Runs().Get(t.Context(), id); err != nil || run.State != tenon.RunCompleted || called != 1 {
					t.Errorf("the run is %s after %d calls: %v", run.State, called, err)
				}
			})
			if !reached || t.Failed() {
				break
			}
		}
	}
}
