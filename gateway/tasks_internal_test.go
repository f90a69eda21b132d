package gateway

import (
	"encoding/json"
	"errors"
	"testing"

	"github.com/tenonhq/tenon"
)

// TestGW_21_Announcements checks which states of a task are announced: not the one with which the subscription begins,
// each later one once, also after an error, and the last one only if the task has really ended.
func TestGW_21_Announcements(t *testing.T) {
	type look struct {
		state  tenon.RunState
		status string // of tasks/get; empty: an error
		want   string
		done   bool
	}
	for name, looks := range map[string][]look{
		"until its end": {{tenon.RunInputRequired, "working", "", false}, {tenon.RunInputRequired, "working", "", false},
			{tenon.RunWorking, "working", "working", false}, {tenon.RunCompleted, "completed", "completed", true}},
		"ended before":     {{tenon.RunCancelled, "cancelled", "cancelled", true}},
		"an error":         {{tenon.RunWorking, "working", "", false}, {tenon.RunFailed, "", "", false}, {tenon.RunFailed, "failed", "failed", true}},
		"an error at once": {{tenon.RunCompleted, "", "", false}, {tenon.RunCompleted, "completed", "completed", true}},
		"resumed in between": {{tenon.RunWorking, "working", "", false}, {tenon.RunFailed, "working", "working", false},
			{tenon.RunWorking, "working", "", false}, {tenon.RunFailed, "failed", "failed", true}},
	} {
		t.Run(name, func(t *testing.T) {
			var told announced
			for n, l := range looks {
				task, done := told.step(l.state, func() (json.RawMessage, error) {
					if l.status == "" {
						return nil, errors.New("the store is busy")
					}
					return json.RawMessage(`{"resultType":"complete","status":"` + l.status + `"}`), nil
				})
				want := ""
				if l.want != "" {
					want = `{"status":"` + l.want + `"}`
				}
				if string(task) != want || done != l.done {
					t.Errorf("look %d: %s, %v, want %s, %v", n+1, task, done, want, l.done)
				}
			}
		})
	}
}
