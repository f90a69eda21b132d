package agent_test

import (
	"strings"
	"testing"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/agent"
)

// TestSteerTooLate sends a message to a run that stops before its next model call. The message stays in the
// conversation, so that the next run sends it.
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

// TestSteerWithdrawn cancels a run and withdraws its messages. The message that no model call has sent does not reach
// the next run, and the one that a call has sent stays.
func TestSteerWithdrawn(t *testing.T) {
	d := newDriver(t, agent.Spec{Question: "q"}, script(says("", "a"), says("end")))
	d.apply(tenon.Event{Kind: agent.EventMessage, Data: data(agent.Steer{Text: "sent"})})
	d.step(func(int) int { return 0 })
	d.apply(tenon.Event{Kind: agent.EventMessage, Data: data(agent.Steer{Text: "in Celsius"})})
	d.apply(tenon.Event{Kind: tenon.EventCancel, Data: data(tenon.CancelData{Withdraw: true})})
	d.apply(tenon.Event{Kind: agent.EventMessage, Data: data(agent.Steer{Text: "later"})})
	d.apply(tenon.Event{Kind: tenon.EventCancel, Data: data(tenon.CancelData{})})
	d.apply(tenon.Event{Kind: tenon.EventDone, Data: data(tenon.DoneData{State: tenon.RunCancelled})})
	var said []string
	for _, m := range agent.New(agent.Spec{Question: "again"}, d.core).Messages() {
		if m.Role == tenon.RoleUser {
			said = append(said, m.Text())
		}
	}
	if got := strings.Join(said, "|"); got != "q|sent|again" {
		t.Errorf("the next run sends %q", got)
	}
}

// TestAlwaysIsNoSessionGrant checks that a permanent approval is not also kept as a grant of the session, because it
// would outlive a revocation.
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
