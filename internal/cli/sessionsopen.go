package cli

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/engine"
	"github.com/tenonhq/tenon/transcript"
	"github.com/tenonhq/tenon/view"
)

// openCalls returns the calls of a conversation that have not ended, with their states in words. The messages contain
// no result of such a call.
func (a *app) openCalls(ctx context.Context, h desk, session string, said []transcript.Message) ([]string, error) {
	if len(said) == 0 || said[len(said)-1].Role == tenon.RoleUser {
		return nil, nil
	}
	calls, err := h.Sessions().Transcripts().Calls(ctx, session)
	if err != nil {
		return nil, err
	}
	calls = slices.DeleteFunc(calls, func(c view.Call) bool { return c.Outcome != view.CallOpen })
	if len(calls) == 0 {
		return nil, nil
	}
	runs, err := h.Runs().List(ctx, engine.Filter{Session: session, State: tenon.RunWorking})
	if err != nil {
		return nil, err
	}
	dead, err := interruptedRuns(ctx, h, runs)
	if err != nil {
		return nil, err
	}
	var states []string
	for _, c := range calls {
		states = append(states, c.Name+" "+stateOfOpen(c, dead[c.Run]))
	}
	return states, nil
}

// stateOfOpen returns the state of a call that has not ended. dead says that no process works on its run.
func stateOfOpen(c view.Call, dead bool) string {
	asks := len(c.Questions) > 0 && c.Questions[len(c.Questions)-1].Outcome == view.CallOpen
	switch {
	case asks:
		return "waits for input"
	case c.Attempts == 0 && c.Verdict == tenon.Ask:
		return "waits for approval"
	case dead:
		return "interrupted; tenon runs resume continues the run"
	case c.Attempts == 0:
		return "not begun"
	}
	return "running"
}

// showOpen writes the states of open calls.
func (a *app) showOpen(b *strings.Builder, states []string) {
	for _, s := range states {
		fmt.Fprintf(b, "  %s %s\n", a.outStyle(yellow, "…"), a.outStyle(dim, safeLine(s)))
	}
}
