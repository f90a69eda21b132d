package workflow_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tenonhq/tenon/workflow"
)

// TestGraphOfMessage checks that the message node and a step named message get different ids.
func TestGraphOfMessage(t *testing.T) {
	for name, test := range map[string]struct {
		body string
		want []workflow.GraphEdge
	}{
		"another step": {"steps: [{id: m, template: hi}]\nmessage: m",
			[]workflow.GraphEdge{{From: "m", To: "message"}}},
		"step": {"steps: [{id: message, template: hi}]\nmessage: message",
			[]workflow.GraphEdge{{From: "message", To: "the message"}}},
		"input": {"inputs: [{name: message}]\nsteps: [{id: m, sql: SELECT * FROM message}]\nmessage: m",
			[]workflow.GraphEdge{{From: "message", To: "m"}, {From: "m", To: "the message"}}},
	} {
		t.Run(name, func(t *testing.T) {
			g := parse(t, test.body).Graph()
			if diff := cmp.Diff(test.want, g.Edges); diff != "" {
				t.Error(diff)
			}
			var ids []string
			for _, n := range g.Nodes {
				ids = append(ids, n.ID)
			}
			slices.Sort(ids)
			if len(slices.Compact(slices.Clone(ids))) != len(ids) {
				t.Errorf("nodes with the same id: %q", ids)
			}
		})
	}
}

// TestGraphOfInputs checks the edges from inputs to their users: a query, a table of a call, an expression.
func TestGraphOfInputs(t *testing.T) {
	g := parse(t,
		"inputs: [{name: s}, {name: u}]\nsteps:\n- {id: q, sql: 'SELECT 1 FROM S'}\n"+
			"- {id: c, tool: flow, inputs: {t: s}}\n"+
			"- {id: m, template: '{{ inputs.s.count }} {{ steps.c.text }}'}\n"+
			"outputs: [{name: o, from: s, description: o}]\nmessage: m").Graph()
	want := []workflow.GraphEdge{{From: "s", To: "q"}, {From: "s", To: "c"}, {From: "c", To: "m"}, {From: "s", To: "m"},
		{From: "s", To: "output o"}, {From: "m", To: "message"}}
	if diff := cmp.Diff(want, g.Edges); diff != "" {
		t.Error(diff)
	}
	levels := map[string]int{}
	for _, n := range g.Nodes {
		levels[n.ID] = n.Level
	}
	if diff := cmp.Diff(map[string]int{"s": 0, "u": 0, "q": 1, "c": 1, "m": 2, "output o": 1, "message": 3},
		levels); diff != "" {
		t.Error(diff)
	}
}
