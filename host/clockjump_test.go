package host_test

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/agent"
	"github.com/tenonhq/tenon/config"
	"github.com/tenonhq/tenon/host"
)

// shelf is a toolset whose tool runs a function of the test during its call.
type shelf struct {
	reads  bool
	during func()
}

func (s *shelf) Tools(context.Context) ([]tenon.Tool, error) {
	return []tenon.Tool{{Remote: "sell", Input: json.RawMessage(`{"type":"object"}`),
		Annotations: tenon.Annotations{ReadOnly: &s.reads}}}, nil
}

func (s *shelf) Call(context.Context, tenon.Call) (*tenon.Result, error) {
	s.during()
	return &tenon.Result{Content: []tenon.Content{tenon.Text("sold")}}, nil
}

// TestClockJump sets the clock forward or back during a call of a run with a time limit: in the process that began the
// run, and after a decision. A jump in either direction does not change the run.
func TestClockJump(t *testing.T) {
	for _, tt := range []struct {
		name string
		jump time.Duration
		ask  bool
	}{
		{"RP-27_forward", 3 * time.Hour, false},
		{"RP-27_forward_after_a_decision", 3 * time.Hour, true},
		{"RP-27_back", -3 * time.Hour, false},
		{"RP-27_back_after_a_decision", -3 * time.Hour, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := &clock{time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}
			cfg := &config.Config{Agents: map[string]agent.Config{"default": {Limits: agent.Limits{RunTimeout: time.Minute}}}}
			s := &shelf{reads: !tt.ask, during: func() { c.now = c.now.Add(tt.jump) }}
			m := answering(func(req *tenon.Request) (*tenon.Response, error) {
				if req.Messages[len(req.Messages)-1].Role == tenon.RoleTool {
					return says("done"), nil
				}
				return calls("sell {}"), nil
			})
			h, err := host.Open(t.Context(), host.Config{Config: cfg, Home: t.TempDir(), Clock: c, Model: "m",
				Models: map[string]tenon.Model{"m": m}, Toolsets: map[string]tenon.Toolset{"shop": s},
				LookupEnv: func(string) (string, bool) { return "", false }})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = h.Close() })
			r, _ := ask(t, h, host.Question{Text: "q"})
			if tt.ask {
				if r.State != tenon.RunInputRequired {
					t.Fatalf("the run is %s", r.State)
				}
				if _, _, err := h.Approvals().Decide(t.Context(), r.Run, "1.0", agent.Ruling{Verdict: tenon.Allow}); err != nil {
					t.Fatal(err)
				}
				if err := h.Runs().Resume(t.Context(), r.Run); err != nil {
					t.Fatal(err)
				}
				for _, err := range h.Runs().Events(t.Context(), r.Run, 0) {
					if err != nil {
						t.Fatal(err)
					}
				}
			}
			if row, err := h.Runs().Get(t.Context(), r.Run); err != nil || row.State != tenon.RunCompleted {
				t.Errorf("the run is %s (%s), %v", row.State, row.Stop, err)
			}
		})
	}
}
