package host_test

import (
	"sync"
	"testing"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/host"
)

// chatSteps is a script for any number of questions.
const chatSteps = "steps:\n  - {text: I answer., repeat: forever}\n"

// TestSessionKeepsAnswers asks questions in one session at the same time, and renames it. Some questions
// are refused. The session has all answers to the others.
func TestSessionKeepsAnswers(t *testing.T) {
	t.Parallel()
	h := open(t, t.TempDir(), chatSteps, &shop{})
	first, err := host.Ask(t.Context(), h, host.Question{Text: "q"})
	if err != nil {
		t.Fatal(err)
	}
	session := first.Run.Session
	var mu sync.Mutex
	answered := map[string]bool{first.Run.ID: true}
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for range 25 {
				a, err := host.Ask(t.Context(), h, host.Question{Text: "q", Session: session})
				if err != nil && !host.IsBusy(err) {
					t.Error(err)
				}
				if err != nil {
					continue
				}
				if _, err := h.Sessions().Rename(t.Context(), session, "title"); err != nil {
					t.Error(err)
				}
				mu.Lock()
				answered[a.Run.ID] = true
				mu.Unlock()
			}
		})
	}
	all.Wait()
	list, err := h.Sessions().Transcripts().Messages(t.Context(), session)
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range list {
		if m.Role == tenon.RoleAssistant {
			delete(answered, m.Run)
		}
	}
	if len(answered) > 0 {
		t.Errorf("%d answers are missing in the session: %v", len(answered), answered)
	}
}
