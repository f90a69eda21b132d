package agent_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/agent"
	"github.com/tenonhq/tenon/view"
)

// others decides that tools named "ask…" are agents and tools named "to…" are handoffs. child returns the events of a
// called agent; do handles all other commands.
func others(do func(tenon.Command) []tenon.Event, child func(agent.ChildCommand, string) []tenon.Event) func(tenon.Command) []tenon.Event {
	return func(c tenon.Command) []tenon.Event {
		switch c.Kind {
		case agent.CommandDecide:
			events := decided(c, tenon.Allow, true)
			var d agent.Decision
			_ = json.Unmarshal(events[0].Data, &d)
			switch {
			case strings.HasPrefix(d.Remote, "ask"):
				d.Kind = agent.KindAgent
			case strings.HasPrefix(d.Remote, "to"):
				d.Kind = agent.KindHandoff
			}
			events[0].Data = data(d)
			return events
		case agent.CommandChild:
			var cc agent.ChildCommand
			_ = json.Unmarshal(c.Data, &cc)
			return child(cc, c.Step)
		case agent.CommandHandoff:
			var cc agent.ChildCommand
			_ = json.Unmarshal(c.Data, &cc)
			return []tenon.Event{{Step: c.Step, Kind: agent.EventHandoff, Data: data(agent.Handoff{Agent: cc.Agent, System: "I am " + cc.Agent, Model: "m2", Text: "over to " + cc.Agent})}}
		}
		return do(c)
	}
}

func spent(step, text string, tokens int) []tenon.Event {
	return []tenon.Event{{Step: step, Kind: agent.EventResult, Data: data(agent.Outcome{Result: &tenon.Result{Content: []tenon.Content{tenon.Text(text)}},
		Spent: &agent.Summary{ToolCalls: 2, Usage: tenon.Usage{Input: tokens}, Cost: 5}})}}
}

// TestChild calls other agents. Their limits are a part of what the caller has left, and their usage counts as the
// caller's.
func TestChild(t *testing.T) {
	var given []string
	d := newDriver(t, agent.Spec{Question: "q", MaxDepth: 1, MaxTokens: 1000, MaxToolCalls: 100, MaxCost: 1000, Timeout: time.Hour},
		others(script(says("", "ask_a", "ask_b", "plain"), says("", "ask_a"), says("end")), func(c agent.ChildCommand, step string) []tenon.Event {
			given = append(given, fmt.Sprint(step, " ", c.Agent, " depth ", c.Depth, " tokens ", c.Allowance.Tokens, " calls ", c.Allowance.ToolCalls, " cost ", int64(c.Allowance.Cost)))
			if c.Allowance.Time <= 0 || c.Allowance.Time > time.Hour {
				t.Errorf("time %s", c.Allowance.Time)
			}
			return spent(step, "from "+c.Agent, 100)
		}))
	d.run()
	// 1000 - 12 = 988 tokens are left at first, and each child gets half of them. The first child used 100, so that 888
	// are left for the second.
	want := []string{"1.0 ask_a depth 1 tokens 494 calls 48 cost 496", "1.1 ask_b depth 1 tokens 888 calls 95 cost 988", "2.0 ask_a depth 1 tokens 776 calls 92 cost 976"}
	if diff := cmp.Diff(want, given); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	var s agent.Summary
	_ = json.Unmarshal(d.done.Data, &s)
	if d.done.Answer != "end" || s.Usage.Input != 330 || s.Cost != 3*7+3*5 {
		t.Errorf("%+v %+v", d.done, s)
	}
	calls := view.Of(d.journal).Calls()
	if calls[0].Kind != agent.KindAgent || calls[2].Kind != "mcp" {
		t.Errorf("kinds %s %s", calls[0].Kind, calls[2].Kind)
	}

	deep := newDriver(t, agent.Spec{Question: "q", Depth: 1, MaxDepth: 1}, others(script(says("", "ask_a"), says("end")), nil))
	deep.run()
	if text := lastResult(t, deep); !strings.Contains(text, "1 deep") {
		t.Errorf("an agent at the bound was told %q", text)
	}
}

// TestChildWaits lets a child run wait for a person twice. The caller waits for the child, and continues after a wake
// signal.
func TestChildWaits(t *testing.T) {
	tries := 0
	d := newDriver(t, agent.Spec{Question: "q", MaxDepth: 3}, others(script(says("", "ask_a"), says("end")), func(_ agent.ChildCommand, step string) []tenon.Event {
		if tries++; tries < 3 {
			return []tenon.Event{{Step: step, Kind: agent.EventChild, Data: data(agent.ChildWaits{Run: "run_1/" + step})}}
		}
		return spent(step, "done", 1)
	}))
	d.run()
	for range 2 {
		cmds := d.core.Next()
		var a agent.Asking
		if len(cmds) != 1 || cmds[0].Kind != tenon.CommandWait || json.Unmarshal(cmds[0].Data, &a) != nil || a.Kind != agent.AskChild || a.Run != "run_1/1.0" {
			t.Fatalf("wants %v", show(cmds))
		}
		d.apply(tenon.Event{Step: "1.0", Kind: agent.EventWake})
		d.run()
	}
	if d.done == nil || d.done.Answer != "end" || tries != 3 {
		t.Errorf("%+v after %d tries", d.done, tries)
	}
}

// TestHandoff hands the conversation over at the end of a turn. If the turn has several handoffs, the first one counts.
func TestHandoff(t *testing.T) {
	d := newDriver(t, agent.Spec{Question: "q", Agent: "first", Model: "m1"}, others(script(says("", "to_b", "plain", "to_c"), says("I am b")), nil))
	d.run()
	last := d.prompts[len(d.prompts)-1]
	if last.Model != "m2" || last.System != "I am to_b" {
		t.Errorf("the second turn went to %s (%s)", last.Model, last.System)
	}
	results := last.Messages[len(last.Messages)-1].Parts
	if results[0].Result.Content[0].Text != "over to to_b" || results[1].Result.Content[0].Text != "ok" || !results[2].Result.IsError {
		t.Errorf("results %+v", results)
	}
	var s agent.Summary
	_ = json.Unmarshal(d.done.Data, &s)
	if s.Agent != "to_b" {
		t.Errorf("the conversation ended with %s", s.Agent)
	}
}
