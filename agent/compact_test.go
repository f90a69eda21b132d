package agent_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/agent"
)

// compacting answers compaction commands with a summary. do handles all other commands.
func compacting(do func(tenon.Command) []tenon.Event) func(tenon.Command) []tenon.Event {
	return func(c tenon.Command) []tenon.Event {
		if c.Kind == agent.CommandCompact {
			return compacted(c)
		}
		return do(c)
	}
}

// shown returns each message as a short line: its role and its text.
func shown(messages []*tenon.Message) []string {
	var list []string
	for _, m := range messages {
		s := string(m.Role) + ":"
		for _, p := range m.Parts {
			switch {
			case p.Call != nil:
				s += " call " + p.Call.Name
			case p.Result != nil:
				text := p.Result.Content[0].Text
				s += " " + text[:min(len(text), 8)]
			default:
				s += " " + strings.ReplaceAll(p.Text, "\n", "/")
			}
		}
		list = append(list, s)
	}
	return list
}

func TestCompactBySize(t *testing.T) {
	do := script(says("one", "a", "b"), says("two", "a"), says("three", "a"), says("end"))
	d := newDriver(t, agent.Spec{Question: "q?", Compaction: agent.Compaction{At: 12, Keep: 1}}, compacting(do))
	d.run()
	if d.done.State != tenon.RunCompleted || d.done.Answer != "end" {
		t.Fatalf("%+v", d.done)
	}
	const summary = "user: This is a summary of our conversation so far://the gist//My question was://q?"
	want := []string{summary, "assistant: three call a", "tool: ok", "assistant: end"}
	if diff := cmp.Diff(want, shown(d.core.Messages())); diff != "" {
		t.Errorf("the model sees (-want +got):\n%s", diff)
	}
	whole := []string{"user: q?", "assistant: one call a call b", "tool: ok ok", "assistant: two call a", "tool: ok", "assistant: three call a", "tool: ok", "assistant: end"}
	if diff := cmp.Diff(whole, shown(d.core.History())); diff != "" {
		t.Errorf("the history is (-want +got):\n%s", diff)
	}
	// The next run continues from the summary, and History still returns the whole conversation.
	next := agent.New(agent.Spec{Question: "and then?"}, d.core)
	if diff := cmp.Diff(append(want, "user: and then?"), shown(next.Messages())); diff != "" {
		t.Errorf("the next run's model sees (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(append(whole, "user: and then?"), shown(next.History())); diff != "" {
		t.Errorf("the next run's history is (-want +got):\n%s", diff)
	}
	var s agent.Summary
	_ = json.Unmarshal(d.done.Data, &s)
	if s.Usage.Input <= 40 {
		t.Errorf("the summaries' tokens are not counted: %+v", s.Usage)
	}
}

func TestClearResults(t *testing.T) {
	long := strings.Repeat("rain ", 200)
	do := script(says("", "a"), says("", "a"), says("", "a"), says("end"))
	d := newDriver(t, agent.Spec{Question: "q", Compaction: agent.Compaction{ClearAt: 100, KeepResults: 1}}, compacting(func(c tenon.Command) []tenon.Event {
		if c.Kind == agent.CommandTool {
			return result(c.Step, long, false)
		}
		return do(c)
	}))
	d.run()
	want := []string{"user: q", "assistant: call a", "tool: [left ou", "assistant: call a", "tool: [left ou", "assistant: call a", "tool: rain rai", "assistant: end"}
	if diff := cmp.Diff(want, shown(d.core.Messages())); diff != "" {
		t.Errorf("the model sees (-want +got):\n%s", diff)
	}
	if got := shown(d.core.History())[2]; got != "tool: rain rai" {
		t.Errorf("the history lost a result: %s", got)
	}
}

func TestContextFull(t *testing.T) {
	full := stops(tenon.StopContextFull, "")
	tests := []struct {
		name  string
		do    func(tenon.Command) []tenon.Event
		state tenon.RunState
		stop  tenon.StopReason
		err   string
	}{
		{"once", compacting(script(says("", "a"), says("", "a"), full, says("end"))), tenon.RunCompleted, tenon.StopEnd, ""},
		{"as an error", compacting(script(says("", "a"), says("", "a"), func(step string) []tenon.Event {
			return []tenon.Event{{Step: step, Kind: agent.EventFailed, Data: data(agent.Failure{Error: tenon.Errorf(tenon.CodeTooLarge, "prompt is too long")})}}
		}, says("end"))), tenon.RunCompleted, tenon.StopEnd, ""},
		{"twice in a turn", compacting(script(says("", "a"), says("", "a"), full, full)), tenon.RunFailed, tenon.StopContextFull, "no longer fits"},
		{"with nothing to sum up", compacting(script(full)), tenon.RunFailed, tenon.StopContextFull, "nothing in it to sum up"},
		{"said by the provider", compacting(script(func(step string) []tenon.Event {
			return []tenon.Event{{Step: step, Kind: agent.EventFailed, Data: data(agent.Failure{Error: tenon.Errorf(tenon.CodeTooLarge, "model m: 9000 tokens > 8192 maximum")})}}
		})), tenon.RunFailed, tenon.StopContextFull, "nothing in it to sum up; ask for less, or use a model with a larger one: model m: 9000 tokens > 8192 maximum"},
		{"and no summary", func() func(c tenon.Command) []tenon.Event {
			do := script(says("", "a"), says("", "a"), full)
			return func(c tenon.Command) []tenon.Event {
				if c.Kind == agent.CommandCompact {
					return []tenon.Event{{Step: c.Step, Kind: agent.EventFailed, Data: data(agent.Failure{Error: tenon.Errorf(tenon.CodeModel, "overloaded")})}}
				}
				return do(c)
			}
		}(), tenon.RunFailed, tenon.StopContextFull, "overloaded"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			d := newDriver(t, agent.Spec{Question: "q"}, tt.do)
			d.run()
			if d.done == nil || d.done.State != tt.state || d.done.Stop != tt.stop {
				t.Fatalf("ended %+v, want %s %s", d.done, tt.state, tt.stop)
			}
			if tt.err != "" && (d.done.Error == nil || !strings.Contains(d.done.Error.Message, tt.err)) {
				t.Errorf("error %v, want %q", d.done.Error, tt.err)
			}
		})
	}
}

// TestCompactByHand tests the run that the command /compact starts. It has no question and writes one summary.
func TestCompactByHand(t *testing.T) {
	first := newDriver(t, agent.Spec{Question: "q"}, script(says("", "a"), says("end")))
	first.run()
	by := func(parent *agent.State) *driver {
		d := newDriver(t, agent.Spec{Task: agent.TaskCompact}, compacting(nil))
		d.parent, d.core = parent, agent.New(d.spec, parent)
		_ = d.core.Apply(d.journal[0])
		d.run()
		return d
	}
	d := by(first.core)
	if d.done.State != tenon.RunCompleted || d.done.Answer != "the gist" {
		t.Errorf("%+v", d.done)
	}
	if diff := cmp.Diff([]string{"user: This is a summary of our conversation so far://the gist"}, shown(d.core.Messages())); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(shown(first.core.History()), shown(d.core.History())); diff != "" {
		t.Error(diff)
	}
	if again := by(d.core); again.done.State != tenon.RunCompleted || again.done.Answer != "" || len(again.journal) != 2 {
		t.Errorf("a summary alone was summed up again: %+v", again.done)
	}
}

// TestCompactByHandOnce checks that /compact replaces a whole long conversation by a single summary.
func TestCompactByHandOnce(t *testing.T) {
	first := newDriver(t, agent.Spec{Question: "q"}, script(says("", "a"), says("", "b"), says("", "c"), says("", "d"), says("end")))
	first.run()
	d := newDriver(t, agent.Spec{Task: agent.TaskCompact}, compacting(nil))
	d.parent, d.core = first.core, agent.New(d.spec, first.core)
	_ = d.core.Apply(d.journal[0])
	d.run()
	n := 0
	for _, e := range d.journal {
		if e.Kind == agent.EventCompacted {
			n++
		}
	}
	if n != 1 || len(d.core.Messages()) != 1 {
		t.Errorf("summed up %d times: %q", n, shown(d.core.Messages()))
	}
}
