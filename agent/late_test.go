package agent_test

import (
	"testing"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/agent"
)

// TestSteerTooLate: a message that the run took, and that no model call sent before the run was stopped, is part of the
// conversation.
func TestSteerTooLate(t *testing.T) {
	d := newDriver(t, agent.Spec{Question: "q"}, script(says("", "a"), says("end")))
	d.step(func(int) int { return 0 })
	d.apply(tenon.Event{Kind: agent.EventMessage, Data: data(agent.Steer{Text: "in Celsius"})})
	if n := len(d.core.Messages()); n != 3 {
		t.Fatalf("%d messages before the end, want the question, the call and its result", n)
	}
	d.apply(tenon.Event{Kind: tenon.EventDone, Data: data(tenon.DoneData{State: tenon.RunCancelled})})
	next := agent.New(agent.Spec{Question: "again"}, d.core)
	msgs := next.Messages()
	if got := msgs[len(msgs)-2].Text(); got != "in Celsius" {
		t.Errorf("the next run sends %q before its question", got)
	}
}

// TestAlwaysIsNoSessionGrant: what is allowed for good can be revoked, so the session does not keep it as well.
func TestAlwaysIsNoSessionGrant(t *testing.T) {
	var last *agent.DecideCommand
	d := newDriver(t, agent.Spec{Question: "q", MaxTurns: 2}, func(c tenon.Command) []tenon.Event {
		if c.Kind == agent.CommandDecide {
			last = said[agent.DecideCommand](c)
			return decided(c, tenon.Ask, false)
		}
		return script(says("", "pay"), says("", "pay"))(c)
	})
	d.run()
	d.apply(tenon.Event{Step: "1.0", Kind: agent.EventDecision, Data: data(agent.Ruling{Verdict: tenon.Allow, By: "ann", Remember: agent.RememberAlways})})
	d.run()
	if got := last.GrantFor("s", "pay", nil); got != "" || last.Call.Name != "pay" {
		t.Errorf("the call of %s is granted by %q", last.Call.Name, got)
	}
}
