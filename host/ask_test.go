package host_test

import (
	"testing"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/agent"
	"github.com/tenonhq/tenon/host"
)

// TestAsk checks that an answer contains the text, the calls and the run. If the run waits, Ask returns an error that
// names the run.
func TestAsk(t *testing.T) {
	h := open(t, t.TempDir(), sellSteps, &shop{})
	a, err := host.Ask(t.Context(), h, host.Question{Text: "Sell tea.", Grant: "test"})
	if err != nil || a.Text == "" || len(a.Calls) != 1 || a.Run.State != tenon.RunCompleted {
		t.Errorf("%+v, %v", a, err)
	}
	a, err = h.Ask(t.Context(), "Sell tea.")
	if tenon.ErrorCode(err) != tenon.CodeWaiting || a.Run.State != tenon.RunInputRequired || len(a.Calls) != 1 {
		t.Fatalf("%+v, %v", a, err)
	}
	list, err := h.Approvals().List(t.Context(), a.Run.ID)
	if err != nil || len(list) != 1 {
		t.Fatalf("%+v, %v", list, err)
	}
	if _, mine, err := h.Approvals().Decide(t.Context(), list[0].Run, list[0].Step, agent.Ruling{Verdict: tenon.Deny}); err != nil || !mine {
		t.Errorf("mine %v, %v", mine, err)
	}
}

// TestStartWithKey checks that two questions with the same key start only one run, and that a different question with
// this key is a conflict.
func TestStartWithKey(t *testing.T) {
	h := open(t, t.TempDir(), sellSteps, &shop{})
	first, err := h.Start(t.Context(), host.Question{Text: "Sell tea.", Key: "k"})
	if err != nil || first.Again {
		t.Fatalf("%+v, %v", first, err)
	}
	second, err := h.Start(t.Context(), host.Question{Text: "Sell tea.", Key: "k"})
	if err != nil || !second.Again || second.ID != first.ID {
		t.Errorf("%+v, %v", second, err)
	}
	if _, err := h.Start(t.Context(), host.Question{Text: "Sell coffee.", Key: "k"}); tenon.ErrorCode(err) != tenon.CodeConflict {
		t.Errorf("another question: %v", err)
	}
}
