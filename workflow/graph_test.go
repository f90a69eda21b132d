package workflow_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tenonhq/tenon/workflow"
)

// TestGraphOfMessage keeps the text for the caller apart from a step of that name.
func TestGraphOfMessage(t *testing.T) {
	for name, test := range map[string]struct {
		body string
		want []workflow.GraphEdge
	}{
		"another step": {"steps: [{id: m, template: hi}]\nmessage: m", []workflow.GraphEdge{{From: "m", To: "message"}}},
		"step":         {"steps: [{id: message, template: hi}]\nmessage: message", []workflow.GraphEdge{{From: "message", To: "the message"}}},
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
				t.Errorf("nodes of one name: %q", ids)
			}
		})
	}
}
