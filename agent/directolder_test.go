package agent_test

import (
	"testing"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/agent"
)

// TestDirectOfOlderVersions folds journals of calls that their clients cancelled, as earlier versions wrote them: with
// the cancellation after the outcome, or without it. The core asks for the end where the journal has it, which is all
// that a replay compares. The end itself may be another one: failed then, cancelled now.
func TestDirectOfOlderVersions(t *testing.T) {
	failed := tenon.Event{Step: "1.0", Kind: agent.EventFailed, Data: data(agent.Failure{Error: tenon.Errorf(tenon.CodeCancelled, "cancelled")})}
	cancel := tenon.Event{Kind: tenon.EventCancel, Data: data(tenon.CancelData{Reason: "the client cancelled it"})}
	unknown := tenon.Event{Step: "1.0", Kind: tenon.EventUnknown}
	interrupted := tenon.Event{Step: "1.0", Kind: tenon.EventInterrupted}
	for name, events := range map[string][]tenon.Event{
		"RP-12_interrupted, cancelled": {interrupted, cancel},
		"RP-12_cancelled, interrupted": {cancel, interrupted},
		"RP-12_unknown":                {unknown},
		"RP-12_cancelled, unknown":     {cancel, unknown},
		"RP-12_unknown, cancelled":     {unknown, cancel},
		"RP-12_failed":                 {failed},
		"RP-12_cancelled, failed":      {cancel, failed},
		"RP-12_failed, cancelled":      {failed, cancel},
	} {
		t.Run(name, func(t *testing.T) {
			core := agent.NewDirect(agent.DirectSpec{Name: "add", By: "local", Ask: true})
			apply := func(e tenon.Event) {
				if err := core.Apply(e); err != nil {
					t.Fatal(err)
				}
			}
			apply(tenon.Event{Kind: tenon.EventRun})
			apply(decided(core.Next()[0], tenon.Allow, false)[0])
			apply(tenon.Event{Step: "1.0", Kind: tenon.EventStarted, Attempt: 1})
			for _, e := range events {
				apply(e)
			}
			if next := core.Next(); len(next) != 1 || next[0].Kind != tenon.CommandDone || next[0].Step != "" {
				t.Errorf("wants %v", show(next))
			}
			apply(tenon.Event{Kind: tenon.EventDone, Data: data(tenon.DoneData{State: tenon.RunFailed, Stop: tenon.StopError})})
		})
	}
}
