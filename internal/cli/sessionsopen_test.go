package cli

import (
	"testing"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/view"
)

// TestStateOfOpen checks the words that describe a call that has not ended.
func TestStateOfOpen(t *testing.T) {
	for name, test := range map[string]struct {
		call view.Call
		dead bool
		want string
	}{
		"approval": {view.Call{Verdict: tenon.Ask}, false, "waits for approval"},
		"running":  {view.Call{Verdict: tenon.Allow, Attempts: 1}, false, "running"},
		"decided":  {view.Call{Verdict: tenon.Allow}, false, "not begun"},
		"dead":     {view.Call{Verdict: tenon.Allow, Attempts: 1}, true, "interrupted; tenon runs resume continues the run"},
		"question": {view.Call{Attempts: 1, Questions: []view.Asked{{Outcome: view.CallOpen}}}, false, "waits for input"},
		"answered": {view.Call{Attempts: 2, Questions: []view.Asked{{Outcome: view.AskedAnswered}}}, false, "running"},
	} {
		if got := stateOfOpen(test.call, test.dead); got != test.want {
			t.Errorf("%s: %s, not %s", name, got, test.want)
		}
	}
}
