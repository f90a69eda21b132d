package host_test

import (
	"context"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/agent"
	"github.com/tenonhq/tenon/config"
	"github.com/tenonhq/tenon/host"
	"github.com/tenonhq/tenon/policy"
)

// TestSameReason checks that a person gets the same reason as the model for a call that a limit or the end of the run
// stopped.
func TestSameReason(t *testing.T) {
	two := func(stop tenon.StopReason) func(yield func(tenon.Delta, error) bool) {
		return responds(stop, callPart("1", "x", `{}`), callPart("2", "x", `{}`))
	}
	done := responds(tenon.StopEnd, textPart("done"))
	one := 1
	for name, tt := range map[string]struct {
		model  ownModel
		limits agent.Limits
		block  policy.Block
		want   []string // the reasons of the calls; "" for a result
	}{
		"RP-12_tool": {answers(two(tenon.StopToolUse), done), agent.Limits{}, policy.Block{MaxCalls: policy.CallLimit{Run: &one}},
			[]string{"", "not run: limit of 1 call reached for tool 'x' in this run; go on without it"}},
		"RP-12_calls": {answers(two(tenon.StopToolUse), done), agent.Limits{ToolCalls: 1, OnLimit: agent.OnLimitFinal}, policy.Block{},
			[]string{"", agent.CallLimitText}},
		"RP-12_final": {answers(spendTwo(tenon.StopToolUse), done), agent.Limits{Tokens: 100, OnLimit: agent.OnLimitFinal}, policy.Block{},
			[]string{agent.LimitText, agent.LimitText}},
		"RP-12_fails": {answers(spendTwo(tenon.StopToolUse), done), agent.Limits{Tokens: 100}, policy.Block{},
			slices.Repeat([]string{"not run: the run's limit of 100 tokens is reached (110 used); raise limits.tokens"}, 2)},
		"RP-12_cut_off": {answers(two(tenon.StopMaxTokens), done), agent.Limits{}, policy.Block{},
			slices.Repeat([]string{agent.CutOffText(tenon.StopMaxTokens)}, 2)},
	} {
		t.Run(name, func(t *testing.T) {
			var n atomic.Int32
			h := openModel(t, t.TempDir(), tt.model, &config.Config{
				Agents: map[string]agent.Config{"default": {Model: "own", Limits: tt.limits}},
				Policy: policy.Config{Defaults: tt.block}})
			a, _ := host.Ask(t.Context(), h, host.Question{Text: "go", Functions: []host.Function{counterTool(&n).ReadOnly()}})
			sameReasons(t, h, a.Run.ID, tt.want)
		})
	}
}

// spendTwo returns an answer with two calls. The answer used 110 tokens.
func spendTwo(stop tenon.StopReason) func(yield func(tenon.Delta, error) bool) {
	return func(yield func(tenon.Delta, error) bool) {
		yield(tenon.Delta{Response: &tenon.Response{Stop: stop, Usage: &tenon.Usage{Input: 90, Output: 20},
			Message: &tenon.Message{Role: tenon.RoleAssistant, Parts: []tenon.Part{callPart("1", "x", `{}`),
				callPart("2", "x", `{}`)}}}}, nil)
	}
}

// sameReasons compares the errors of a run's calls with the expected errors and with the errors that the model gets.
func sameReasons(t *testing.T, h *host.Host, run string, want []string) {
	t.Helper()
	r, err := h.Runs().Open(run).Report(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var shown, seen []string
	for _, c := range r.ToolCalls {
		shown = append(shown, c.Error)
	}
	said, err := h.Runs().Open(run).Conversation(t.Context())
	for _, m := range said {
		for _, p := range m.Parts {
			if p.Result != nil {
				text, failed := strings.CutPrefix(p.Result.Content[0].Text, "Error: ")
				if !failed {
					text = ""
				}
				seen = append(seen, text)
			}
		}
	}
	if err != nil || !slices.Equal(shown, want) || !slices.Equal(seen, want) {
		t.Errorf("a person reads\n%q\nthe model reads\n%q\nwant\n%q, %v", shown, seen, want, err)
	}
}

// TestInterrupted cancels a run during a call. The call is interrupted, for the person and for the model, if it only
// reads. If it may have changed something, its outcome is unknown.
func TestInterrupted(t *testing.T) {
	for name, tt := range map[string]struct {
		readOnly      bool
		outcome, want string
	}{
		"RP-12_read_only": {true, "interrupted", agent.EndedText(true, false, nil)},
		"RP-12_writes":    {false, "unknown", ""},
	} {
		t.Run(name, func(t *testing.T) {
			began := make(chan struct{})
			f := host.NewFunction("x", "Waits", func(ctx context.Context, _ struct{}) (string, error) {
				close(began)
				<-ctx.Done()
				return "", ctx.Err()
			})
			if tt.readOnly {
				f = f.ReadOnly()
			}
			h := openModel(t, t.TempDir(), callsX(), &config.Config{Policy: policy.Config{
				Defaults: policy.Block{Approval: policy.Approval{Mode: policy.ApprovalNever}}}})
			s, err := h.Start(t.Context(), host.Question{Text: "go", Functions: []host.Function{f}})
			if err != nil {
				t.Fatal(err)
			}
			<-began
			if err := h.Runs().Cancel(t.Context(), s.ID, "enough"); err != nil {
				t.Fatal(err)
			}
			for _, err := range h.Runs().Events(t.Context(), s.ID, 0) { // until it has ended
				if err != nil {
					t.Fatal(err)
				}
			}
			r, err := h.Runs().Open(s.ID).Report(t.Context())
			if err != nil || len(r.ToolCalls) != 1 || r.ToolCalls[0].Outcome != tt.outcome {
				t.Fatalf("%+v, %v", r.ToolCalls, err)
			}
			if tt.want != "" {
				sameReasons(t, h, s.ID, []string{tt.want})
			}
		})
	}
}
