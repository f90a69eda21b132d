package catalog_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/catalog"
)

// TestShapeMany shapes so many tools that the work is spread over several cores. The result must be the same as for
// each tool alone, in the same order. A transform function must not be called concurrently.
func TestShapeMany(t *testing.T) {
	tools := make([]tenon.Tool, 5000)
	for i := range tools {
		tools[i] = tenon.Tool{Remote: fmt.Sprintf("tool_%d", i), Description: "does it", Input: json.RawMessage(`{"type":"object","properties":{"a":{"type":"string"}}}`)}
		switch i % 10 {
		case 3:
			tools[i].Input = json.RawMessage(`{"type":"array"}`)
		case 5:
			tools[i].Input = json.RawMessage(`{"type":`)
		case 7:
			tools[i].Output = json.RawMessage(`{"a"}`)
		case 9:
			tools[i].Remote = "left_" + tools[i].Remote
		}
	}
	calls := 0 // without a lock, so that the race detector reports concurrent calls
	source := func(list []tenon.Tool) catalog.Source {
		return catalog.Source{Server: "s", Trusted: true, Exclude: []string{"left_*"}, Tools: list, Transform: []catalog.Transform{
			{HideParams: []string{"a"}}, {Rename: map[string]string{"tool_4000": "renamed"}}}}
	}
	many, problems := catalog.Build([]catalog.Source{source(tools)})
	if len(problems) != 1 || !strings.Contains(problems[0].Error(), "and so are 'tool_15', 'tool_25', 'tool_35', 'tool_45', 'tool_55' and 494 more") {
		t.Error(problems) // one error about all schemas that cannot be used
	}
	var one []*tenon.Tool
	var withheld []catalog.Withheld
	for i := range tools {
		s, _ := catalog.Build([]catalog.Source{source(tools[i : i+1])})
		one, withheld = append(one, s.Tools()...), append(withheld, s.Withheld()...)
	}
	byName := func(a, b *tenon.Tool) int { return strings.Compare(a.Name, b.Name) }
	slices.SortFunc(one, byName)
	slices.SortFunc(withheld, func(a, b catalog.Withheld) int { return strings.Compare(a.Remote, b.Remote) })
	if diff := cmp.Diff(one, many.Tools()); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(withheld, many.Withheld()); diff != "" {
		t.Error(diff)
	}
	again, err := catalog.Decode(many.Encode())
	if err != nil || again.Digest() != many.Digest() {
		t.Errorf("encoded, it is another one: %v", err)
	}

	last := source(tools)
	last.Transform = append(last.Transform, catalog.Transform{Func: func(t tenon.Tool) *tenon.Tool { calls++; return &t }})
	catalog.Shape(last)
	if calls != 5000-500-500 { // without the tools that earlier steps left out
		t.Errorf("the function saw %d tools", calls)
	}
}

// TestShapeAllocates checks that shaping allocates memory for the list, not for each tool.
func TestShapeAllocates(t *testing.T) {
	tools := make([]tenon.Tool, 400) // one core's
	for i := range tools {
		tools[i] = tenon.Tool{Remote: fmt.Sprintf("tool_%d", i), Title: "Does it", Description: "does it", Input: json.RawMessage(`{"type":"object","properties":{"a":{"type":"string"}}}`)}
	}
	source := catalog.Source{Server: "s", Trusted: true, Tools: tools}
	if n := testing.AllocsPerRun(10, func() { catalog.Shape(source) }); n > float64(len(tools))/4 {
		t.Errorf("%v allocations for %d tools", n, len(tools))
	}
}
