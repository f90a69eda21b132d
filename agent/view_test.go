package agent_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/agent"
)

// moving answers the calls of tools by their names. "to_X" changes the agent's state to X, "fails_to_X" fails and must
// not change it, and "find_N" finds N tools.
func moving(do func(tenon.Command) []tenon.Event) func(tenon.Command) []tenon.Event {
	return func(c tenon.Command) []tenon.Event {
		if c.Kind != agent.CommandDecide && c.Kind != agent.CommandTool {
			return do(c)
		}
		name := ""
		if c.Kind == agent.CommandDecide {
			name = said[agent.DecideCommand](c).Call.Name
		} else {
			name = said[agent.ToolCommand](c).Name
		}
		var to string
		n, fails := 0, false
		switch {
		case scan(name, "to_%s", &to):
		case scan(name, "fails_to_%s", &to):
			fails = true
		case scan(name, "find_%d", &n):
		}
		if c.Kind == agent.CommandDecide {
			events := decided(c, tenon.Allow, false)
			var d agent.Decision
			_ = json.Unmarshal(events[0].Data, &d)
			if d.NextState = to; n > 0 {
				d.Kind = agent.KindSearch
			}
			events[0].Data = data(d)
			return events
		}
		events := result(c.Step, "ok", fails)
		if n > 0 {
			d := said[agent.ToolCommand](c)
			o := agent.Outcome{Result: &tenon.Result{}}
			if d.View == nil {
				o.Result.IsError = true // the command of a search must say which tools it can find
			}
			for i := range n {
				o.Found = append(o.Found, fmt.Sprintf("tool_%03d", i))
			}
			events[0].Data = data(o)
		}
		return events
	}
}

func scan(s, format string, to any) bool {
	n, err := fmt.Sscanf(s, format, to)
	return n == 1 && err == nil
}

// TestView checks the agent's state and the tools that it has found, over several turns and runs, and after the journal
// was replayed.
func TestView(t *testing.T) {
	run := func(spec agent.Spec, parent *agent.State, answers ...func(string) []tenon.Event) *agent.State {
		t.Helper()
		d := newDriver(t, spec, moving(script(answers...)))
		if parent != nil {
			d.parent, d.core = parent, agent.New(spec, parent)
			_ = d.core.Apply(d.journal[0])
		}
		d.run()
		again := agent.New(spec, parent)
		for _, e := range d.journal {
			if err := again.Apply(e); err != nil {
				t.Fatal(err)
			}
		}
		if diff := cmp.Diff(d.core.View(), again.View()); diff != "" {
			t.Errorf("read again it is another view (-want +got):\n%s", diff)
		}
		return d.core
	}
	want := func(s *agent.State, state string, found ...string) {
		t.Helper()
		if v := s.View(); v.State != state || !cmp.Equal(v.Found, found) && len(v.Found)+len(found) > 0 {
			t.Errorf("state %q, found %v; want %q, %v", v.State, v.Found, state, found)
		}
	}
	spec := agent.Spec{Agent: "a", Question: "q", State: "start"}
	first := run(spec, nil, says("", "find_2", "to_one", "fails_to_two"), says("end"))
	want(first, "one", "tool_000", "tool_001")
	want(run(spec, nil, says("", "to_one", "to_two"), says("end")), "two")
	want(run(spec, nil, says("", "fails_to_one"), says("end")), "start")

	second := run(spec, first, says("", "find_3"), says("end"))
	want(second, "one", "tool_000", "tool_001", "tool_002")
	asked := spec
	asked.State, asked.StateAsked = "asked", true
	want(run(asked, first, says("end")), "asked", "tool_000", "tool_001")
	other := spec
	other.Agent = "b"
	want(run(other, first, says("end")), "start", "tool_000", "tool_001")

	many := run(spec, first, says("", "find_150"), says("end")).View().Found
	if len(many) != 100 || many[0] != "tool_050" || many[99] != "tool_149" {
		t.Errorf("%d tools are kept, from %s to %s", len(many), many[0], many[len(many)-1])
	}
	for _, m := range first.Messages() {
		for _, p := range m.Parts {
			if p.Result != nil && p.Result.Name == "find_2" && len(p.Result.Found) != 2 {
				t.Errorf("the result does not say what was found: %v", p.Result)
			}
		}
	}
}
