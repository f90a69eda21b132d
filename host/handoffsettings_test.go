package host_test

import (
	"cmp"
	"context"
	"iter"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/agent"
	"github.com/tenonhq/tenon/config"
	"github.com/tenonhq/tenon/host"
	"github.com/tenonhq/tenon/model"
	"github.com/tenonhq/tenon/view"
)

// handing is a model that hands the conversation over in its first answer. It records the stop sequences of each
// request.
type handing struct{ stops [][]string }

func (*handing) Name() string { return "handing" }

func (m *handing) Generate(_ context.Context, r *tenon.Request) iter.Seq2[tenon.Delta, error] {
	m.stops = append(m.stops, r.Sampling.Stop)
	answer := says("Final Answer: done")
	if len(m.stops) == 1 {
		answer = calls(`transfer_to_clerk {}`)
	}
	return func(yield func(tenon.Delta, error) bool) { yield(tenon.Delta{Response: answer}, nil) }
}

// TestSettingsAfterAHandoff checks a question whose settings cannot be sent to the model of the agent that takes over.
// The settings are dropped, and the journal names them.
func TestSettingsAfterAHandoff(t *testing.T) {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, `{"error":{"message":"no"}}`, http.StatusBadRequest)
	}))
	defer srv.Close()
	seed, low := int64(7), 0.5
	full := &agent.Sampling{Seed: &seed, Presence: &low, Stop: []string{"END"}}
	for _, c := range []struct {
		name     string
		clerk    agent.Config
		sampling *agent.Sampling
		want     []string
		stops    [][]string
	}{
		{"RP-4_model", agent.Config{Model: "claude"}, full,
			[]string{"presence_penalty, seed of the question cannot be sent to model 'claude'"}, [][]string{{"END"}}},
		{"RP-4_react", agent.Config{Mode: agent.ModeReact}, full, []string{"stop is dropped after the handoff to agent 'clerk'"},
			[][]string{{"END"}, nil}},
		{"RP-4_same", agent.Config{}, full, nil, [][]string{{"END"}, {"END"}}},
		{"RP-4_none", agent.Config{Model: "claude"}, nil, nil, [][]string{nil}},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.clerk.Description = "the clerk"
			c.clerk.Model = cmp.Or(c.clerk.Model, "own")
			lead := agent.Config{Description: "the lead", Handoffs: []string{"clerk"}, Model: "own"}
			m := &handing{}
			h, err := host.Open(t.Context(), host.Config{Home: t.TempDir(), Models: map[string]tenon.Model{"own": m},
				LookupEnv: func(string) (string, bool) { return "", false }, Config: &config.Config{
					Models: map[string]model.Config{"claude": {Provider: "anthropic", Model: "claude-opus-4-6", BaseURL: srv.URL,
						APIKey: tenon.NewSecret("k")}},
					Agents: map[string]agent.Config{"lead": lead.WithDefaults(), "clerk": c.clerk.WithDefaults()}}})
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = h.Close() }()
			run, err := h.Start(t.Context(), host.Question{Text: "go", Agent: "lead", Sampling: c.sampling})
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for e, err := range h.Runs().Events(t.Context(), run.ID, 0) {
				if err != nil {
					t.Fatal(err)
				}
				if e.Kind == agent.EventHandoff {
					got = view.As[agent.Handoff](e).Warnings
				}
			}
			if len(got) != len(c.want) {
				t.Fatalf("warnings: %q", got)
			}
			for i, w := range c.want {
				if !strings.Contains(got[i], w) {
					t.Errorf("%q lacks %q", got[i], w)
				}
			}
			if diff := gocmp.Diff(c.stops, m.stops); diff != "" {
				t.Error(diff)
			}
		})
	}
}
