package transcript

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tenonhq/tenon"
)

// TestWithoutUnended checks that withoutUnended removes the placeholder results of calls that have not ended, and keeps
// the calls (UX-8).
func TestWithoutUnended(t *testing.T) {
	talk := func(unended ...int) []Message {
		calls, results := &tenon.Message{Role: tenon.RoleAssistant, Parts: []tenon.Part{{Type: tenon.PartText, Text: "I look."}}},
			&tenon.Message{Role: tenon.RoleTool}
		for _, id := range []string{"a", "a", "b"} { // ids of providers may repeat
			calls.Parts = append(calls.Parts, tenon.Part{Type: tenon.PartCall, Call: &tenon.ToolCall{ID: id, Name: "f" + id}})
			results.Parts = append(results.Parts, tenon.Part{Type: tenon.PartResult, Result: &tenon.ToolResult{ID: id, Name: "f" + id}})
		}
		return []Message{{Message: calls, N: 1}, {Message: results, N: 2, unended: unended}}
	}
	for name, tt := range map[string]struct {
		unended  []int
		messages int
		results  []string
		open     []string // calls without a result
	}{
		"all ended":   {nil, 2, []string{"a", "a", "b"}, nil},
		"first":       {[]int{0}, 2, []string{"a", "b"}, []string{"a"}},
		"last":        {[]int{2}, 2, []string{"a", "a"}, []string{"b"}},
		"none of two": {[]int{0, 1}, 2, []string{"b"}, []string{"a", "a"}},
		"none":        {[]int{0, 1, 2}, 1, nil, []string{"a", "a", "b"}},
	} {
		t.Run(name, func(t *testing.T) {
			said := withoutUnended(talk(tt.unended...))
			var results, open []string
			for _, p := range said[len(said)-1].Parts {
				if p.Result != nil {
					results = append(results, p.Result.ID)
				}
			}
			for _, c := range callsWithoutResult(said) {
				open = append(open, c.ID)
			}
			if len(said) != tt.messages || !cmp.Equal(results, tt.results) || !cmp.Equal(open, tt.open) {
				t.Errorf("%d messages, results %v, open %v", len(said), results, open)
			}
		})
	}
	if got := withoutUnended(nil); len(got) != 0 {
		t.Errorf("of no messages: %v", got)
	}
}
