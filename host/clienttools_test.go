package host_test

import (
	"encoding/json"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/agent"
	"github.com/tenonhq/tenon/config"
	"github.com/tenonhq/tenon/host"
	"github.com/tenonhq/tenon/policy"
)

// clientX lists the tool x, which the client executes itself.
var clientX = []tenon.Tool{{Name: "x", Description: "Reads a sensor", Input: json.RawMessage(`{"type":"object"}`)}}

// TestClientTools checks that a call of a client's tool waits in the journal for the client's result, in any process,
// and that no rule makes it wait for an approval.
func TestClientTools(t *testing.T) {
	always := &config.Config{Policy: policy.Config{Defaults: policy.Block{
		Approval: policy.Approval{Mode: policy.ApprovalAlways}}}}
	for _, tt := range []struct {
		name, want string
		ruling     agent.Ruling
		cfg        *config.Config
		restart    bool
	}{
		{"RP-4_text", "client_tools.x result", agent.Ruling{Verdict: tenon.Allow,
			Arguments: json.RawMessage(`"21 °C"`)}, nil, false},
		{"RP-4_restart", "client_tools.x result", agent.Ruling{Verdict: tenon.Allow,
			Arguments: json.RawMessage(`{"content":[{"type":"text","text":"21 °C"}]}`)}, nil, true},
		{"RP-4_always", "client_tools.x result", agent.Ruling{Verdict: tenon.Allow,
			Arguments: json.RawMessage(`{"celsius":"21 °C"}`)}, always, true},
		{"RP-4_refused", "", agent.Ruling{Verdict: tenon.Deny, Reason: "no sensor; 21 °C is a guess"}, nil, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			home := t.TempDir()
			h := openModel(t, home, callsX(), tt.cfg)
			a, err := host.Ask(t.Context(), h, host.Question{Text: "How warm?", ClientTools: clientX})
			if tenon.ErrorCode(err) != tenon.CodeWaiting {
				t.Fatal(err)
			}
			if tt.restart {
				if err := h.Close(); err != nil {
					t.Fatal(err)
				}
				h = openModel(t, home, answers(responds(tenon.StopEnd, textPart("done"))), tt.cfg)
			}
			list, err := h.Approvals().List(t.Context(), a.Run.ID)
			if err != nil || len(list) != 1 || list[0].Kind != agent.AskClient || list[0].Remote != "x" {
				t.Fatalf("%+v, %v", list, err)
			}
			if _, _, err := h.Approvals().Decide(t.Context(), a.Run.ID, list[0].Step,
				agent.Ruling{Verdict: tenon.Allow}); tenon.ErrorCode(err) != tenon.CodeInvalid {
				t.Errorf("no result: %v", err)
			}
			if _, mine, err := h.Approvals().Decide(t.Context(), a.Run.ID, list[0].Step, tt.ruling); err != nil || !mine {
				t.Fatal(mine, err)
			}
			if won, mine, err := h.Approvals().Decide(t.Context(), a.Run.ID, list[0].Step, tt.ruling); err != nil ||
				mine || won.Kind != agent.EventAnswer || !strings.Contains(string(won.Data), "21 °C") {
				t.Errorf("sent twice: %+v, %v, %v", won, mine, err)
			}
			if err := h.Runs().Resume(t.Context(), a.Run.ID); err != nil {
				t.Fatal(err)
			}
			for _, err := range h.Runs().Events(t.Context(), a.Run.ID, 0) {
				if err != nil {
					t.Fatal(err)
				}
			}
			if got := callsOf(t, h, a.Run.ID); !strings.HasPrefix(got, tt.want) {
				t.Errorf("calls %q, want %q", got, tt.want)
			}
			seen, err := h.Runs().Open(a.Run.ID).Conversation(t.Context())
			if b, _ := json.Marshal(seen); err != nil || !strings.Contains(string(b), "21 °C") {
				t.Errorf("the model saw %s, %v", b, err)
			}
		})
	}
}

// TestClientToolsNames checks that a client's tool is refused if its name cannot be offered to a model.
func TestClientToolsNames(t *testing.T) {
	var n atomic.Int32
	h := openModel(t, t.TempDir(), callsX(), nil)
	for _, tt := range []struct {
		name, has string
		tools     []tenon.Tool
	}{
		{"RP-4_name", "invalid name", []tenon.Tool{{Name: "a b"}}},
		{"RP-4_twice", "two tools 'x'", []tenon.Tool{{Name: "x"}, {Name: "x"}}},
		{"RP-4_schema", "cannot be offered these tools of the client: x", []tenon.Tool{{Name: "x",
			Input: json.RawMessage(`{"type":7}`)}}},
		{"RP-4_many", "128 is the limit", make([]tenon.Tool, 129)},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := h.Start(t.Context(), host.Question{Text: "x", ClientTools: tt.tools})
			if tenon.ErrorCode(err) != tenon.CodeInvalid || !strings.Contains(err.Error(), tt.has) {
				t.Errorf("%v, want %q", err, tt.has)
			}
		})
	}
	t.Run("RP-4_clash", func(t *testing.T) {
		_, err := h.Start(t.Context(), host.Question{Text: "x", ClientTools: clientX, ToolChoice: "x",
			Functions: []host.Function{counterTool(&n)}})
		if tenon.ErrorCode(err) != tenon.CodeInvalid || !strings.Contains(err.Error(), "'x' (of functions)") {
			t.Errorf("a function of the question: %v", err)
		}
		own := openOwn(t, callsX(), lasting{})
		_, err = own.Start(t.Context(), host.Question{Text: "x", ClientTools: clientX})
		if tenon.ErrorCode(err) != tenon.CodeInvalid || !strings.Contains(err.Error(), "'x' (of ") {
			t.Errorf("a tool of the agent: %v", err)
		}
	})
	t.Run("RP-4_denied", func(t *testing.T) {
		deny := &config.Config{Policy: policy.Config{Rules: []policy.Rule{{
			When: `tool.remote_name == "x"`, Verdict: "deny"}}}}
		h := openModel(t, t.TempDir(), callsX(), deny)
		a, err := host.Ask(t.Context(), h, host.Question{Text: "x", ClientTools: clientX})
		if got := callsOf(t, h, a.Run.ID); err != nil || !strings.Contains(got, "x denied") {
			t.Errorf("%q, %v", got, err)
		}
	})
}
