package host_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/agent"
	"github.com/tenonhq/tenon/config"
	"github.com/tenonhq/tenon/host"
)

// clumsyBank is a toolset whose second payment loses its answer.
type clumsyBank struct{ paid atomic.Int32 }

func (b *clumsyBank) Tools(context.Context) ([]tenon.Tool, error) {
	return []tenon.Tool{{Remote: "pay", Input: json.RawMessage(`{"type":"object"}`)}}, nil
}

func (b *clumsyBank) Call(context.Context, tenon.Call) (*tenon.Result, error) {
	n := b.paid.Add(1)
	if n == 2 {
		return nil, tenon.Errorf(tenon.CodeUnknown, "the connection was lost")
	}
	return &tenon.Result{Content: []tenon.Content{tenon.Text(fmt.Sprint("paid ", n))}}, nil
}

// bankHost opens a host with a bank and workflows.
func bankHost(t *testing.T, b *clumsyBank, flows map[string]host.Workflow) *host.Host {
	t.Helper()
	h, err := host.Open(t.Context(), host.Config{Home: t.TempDir(), Config: &config.Config{}, Workflows: flows,
		Toolsets: map[string]tenon.Toolset{"bank": b}, LookupEnv: func(string) (string, bool) { return "", false }})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = h.Close() })
	return h
}

// resumeFlow resumes a run and follows it until it ends or waits.
func resumeFlow(t *testing.T, h *host.Host, run string) tenon.Run {
	t.Helper()
	row, err := h.Runs().Get(t.Context(), run)
	if err != nil {
		t.Fatal(err)
	}
	if err := h.Runs().Resume(t.Context(), run); err != nil {
		t.Fatal(err)
	}
	for _, err := range h.Runs().Events(t.Context(), run, row.Seq) {
		if err != nil {
			t.Fatal(err)
		}
	}
	if row, err = h.Runs().Get(t.Context(), run); err != nil {
		t.Fatal(err)
	}
	return row
}

// TestUnknownAsksAgain checks that a workflow whose call has an unknown outcome makes the call again only after a
// person has allowed this repeat, even if all calls were allowed beforehand, and that no decision about other calls
// allows it. The call is one of the workflow itself, or of a workflow that it calls with retries.
func TestUnknownAsksAgain(t *testing.T) {
	pays := flowFile(t, "steps:\n  - {id: p, server: bank, tool: pay, foreach: {items: '[1, 2, 3]', concurrency: 1}}\n"+
		"  - {id: m, template: done}\nmessage: m\n")
	outer := flowFile(t, "steps:\n  - {id: o, server: workflows, tool: pays, retry: 3}\n  - {id: m, template: done}\n"+
		"message: m\n")
	for name, tt := range map[string]struct {
		flow  host.Workflow
		waits string // the step that waits after the first retry, without ~TRY
		calls int32  // at the end
	}{
		"RP-12_step":  {pays, "p.1", 4},
		"RP-12_child": {outer, "o.0", 5},
	} {
		t.Run(name, func(t *testing.T) {
			b := &clumsyBank{}
			h := bankHost(t, b, map[string]host.Workflow{"pays": pays})
			row, _ := runFlow(t, h, host.WorkflowCall{Workflow: tt.flow, Grant: "me"})
			r, err := h.Runs().Open(row.ID).Report(t.Context())
			if err != nil || row.State != tenon.RunFailed || b.paid.Load() != 2 ||
				!strings.HasSuffix(r.Error.Message, "a person is asked before the call is made again.") ||
				strings.Count(r.Error.Message, "is resumed") != 1 {
				t.Fatalf("%s, %d calls, %v, %v", row.State, b.paid.Load(), r.Error, err)
			}
			row = resumeFlow(t, h, row.ID)
			list, err := h.Approvals().List(t.Context(), row.ID)
			if err != nil || row.State != tenon.RunInputRequired || b.paid.Load() != 2 || len(list) != 1 ||
				list[0].Step != tt.waits+"~2" || !list[0].Again || list[0].Reason != agent.AgainReason {
				t.Fatalf("%s, %d calls, %+v, %v", row.State, b.paid.Load(), list, err)
			}
			for _, scope := range []string{agent.RememberSession, agent.RememberAlways} {
				_, _, err := h.Approvals().Decide(t.Context(), row.ID, list[0].Step,
					agent.Ruling{Verdict: tenon.Allow, Remember: scope})
				if tenon.ErrorCode(err) != tenon.CodeInvalid || !strings.Contains(err.Error(), "for this call only") {
					t.Errorf("remember %s: %v", scope, err)
				}
			}
			ruleOn(t, h, row.ID, tt.waits+"~2", tenon.Deny)
			row = resumeFlow(t, h, row.ID)
			if r, err = h.Runs().Open(row.ID).Report(t.Context()); err != nil || row.State != tenon.RunFailed ||
				!strings.Contains(r.Error.Message, "was not made again") || b.paid.Load() != 2 {
				t.Fatalf("%s, %d calls, %v, %v", row.State, b.paid.Load(), r.Error, err)
			}
			if row = resumeFlow(t, h, row.ID); row.State != tenon.RunInputRequired || b.paid.Load() != 2 {
				t.Fatalf("%s, %d calls", row.State, b.paid.Load())
			}
			ruleOn(t, h, row.ID, tt.waits+"~3", tenon.Allow)
			if row = resumeFlow(t, h, row.ID); row.State != tenon.RunCompleted || b.paid.Load() != tt.calls {
				t.Errorf("%s, %d calls, want %d", row.State, b.paid.Load(), tt.calls)
			}
		})
	}
}

// ruleOn decides about a call that waits.
func ruleOn(t *testing.T, h *host.Host, run, step string, v tenon.Verdict) {
	t.Helper()
	if _, mine, err := h.Approvals().Decide(t.Context(), run, step, agent.Ruling{Verdict: v, By: "me"}); err != nil || !mine {
		t.Fatalf("the decision about %s: %v, %v", step, mine, err)
	}
}

// TestUnknownDirect checks that resuming a single call with an unknown outcome does not make it again. To repeat it, the
// person makes another call.
func TestUnknownDirect(t *testing.T) {
	b := &clumsyBank{}
	b.paid.Store(1)
	h := bankHost(t, b, nil)
	_, run, err := host.CallTool(t.Context(), h, "pay", nil, nil)
	if tenon.ErrorCode(err) != tenon.CodeUnknown || b.paid.Load() != 2 {
		t.Fatalf("%v, %d calls", err, b.paid.Load())
	}
	if row := resumeFlow(t, h, run); row.State != tenon.RunFailed || b.paid.Load() != 2 {
		t.Errorf("RP-12: %s, %d calls", row.State, b.paid.Load())
	}
}
