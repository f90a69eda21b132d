package host_test

import (
	"context"
	"fmt"
	"iter"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/agent"
	"github.com/tenonhq/tenon/config"
	"github.com/tenonhq/tenon/host"
)

// asking is a model that records its requests. It answers with the given calls first, and then with a text.
type asking struct {
	requests []*tenon.Request
	calls    []string
}

func (*asking) Name() string { return "asking" }

func (m *asking) Generate(_ context.Context, r *tenon.Request) iter.Seq2[tenon.Delta, error] {
	m.requests = append(m.requests, r)
	answer := says("done")
	if len(m.requests) <= len(m.calls) {
		answer = calls(m.calls[len(m.requests)-1])
	}
	return func(yield func(tenon.Delta, error) bool) { yield(tenon.Delta{Response: answer}, nil) }
}

// TestAgentSettings checks MD-9: the settings of an agent reach its model, a question overrides them, and a handoff
// replaces them with the new agent's settings.
func TestAgentSettings(t *testing.T) {
	warm, cold, seed := 0.9, 0.1, 7
	lead := agent.Config{Model: "own", Description: "lead", Handoffs: []string{"clerk"}, Settings: agent.Settings{
		Temperature: &warm, Seed: &seed, Stop: []string{"END"}, Reasoning: "64"}}
	clerk := agent.Config{Model: "own", Description: "clerk", Settings: agent.Settings{Temperature: &cold, Reasoning: "low"}}
	m := &asking{calls: []string{`transfer_to_clerk {}`}}
	h, err := host.Open(t.Context(), host.Config{Home: t.TempDir(), Models: map[string]tenon.Model{"own": m},
		LookupEnv: func(string) (string, bool) { return "", false }, Config: &config.Config{
			Agents: map[string]agent.Config{"lead": lead.WithDefaults(), "clerk": clerk.WithDefaults()}}})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = h.Close() }()
	if _, err := host.Ask(t.Context(), h, host.Question{Text: "go", Agent: "lead",
		Sampling: &agent.Sampling{Stop: []string{"X"}}}); err != nil {
		t.Fatal(err)
	}
	long, n := int64(seed), 64
	want := []tenon.Sampling{{Temperature: &warm, Seed: &long, Stop: []string{"X"}, Thinking: &n},
		{Temperature: &cold, Stop: []string{"X"}, Effort: "low"}}
	var got []tenon.Sampling
	for _, r := range m.requests {
		got = append(got, r.Sampling)
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

// TestListOfTools checks MD-9: a tool choice that lists tools restricts the run to these tools, even if the model calls
// another one.
func TestListOfTools(t *testing.T) {
	function := func(name string) host.Function {
		return host.NewFunction(name, name, func(context.Context, struct{}) (string, error) { return "ran " + name, nil }).ReadOnly()
	}
	for _, c := range []struct{ name, choice, choices, result string }{
		{"MD-9_auto", "auto:a,b", "auto:a,b auto:a,b", "only these tools are to be called here"},
		{"MD-9_any", "a,b", "a,b auto", "ran c"},
		{"MD-9_unknown", "a,x", "", "tool choice 'x' is neither"},
		{"MD-9_empty", "auto:", "", "tool choice 'auto:' is neither"},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := &asking{calls: []string{`c {}`}}
			h, err := host.Open(t.Context(), host.Config{Home: t.TempDir(), Models: map[string]tenon.Model{"own": m}, Model: "own",
				LookupEnv: func(string) (string, bool) { return "", false }, Functions: []host.Function{function("a"), function("b"), function("c")}})
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = h.Close() }()
			_, err = host.Ask(t.Context(), h, host.Question{Text: "go", ToolChoice: c.choice})
			var choices []string
			said := fmt.Sprint(err)
			for _, r := range m.requests {
				choices = append(choices, r.ToolChoice)
				if last := r.Messages[len(r.Messages)-1]; last.Role == tenon.RoleTool {
					result := tenon.Result{Content: last.Parts[0].Result.Content}
					said += result.Text()
				}
			}
			if got := strings.Join(choices, " "); got != c.choices || !strings.Contains(said, c.result) {
				t.Errorf("choices %q, want %q; said %q", got, c.choices, said)
			}
		})
	}
}
