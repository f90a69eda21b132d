package catalog

import (
	"cmp"
	"encoding/json"
	"fmt"
	"testing"

	"github.com/tenonhq/tenon"
)

// TestArgumentsAreReadOnce counts how often the definitions of arguments are parsed, in 100 merges, prompts and calls.
// Each parsing returns another value, so the test counts the calls with each value.
func TestArgumentsAreReadOnce(t *testing.T) {
	t.Run("TG-41", func(t *testing.T) {
		const n = 12
		src := Source{Server: "bank", Entries: map[string]Tool{}}
		for i := range n {
			remote := fmt.Sprintf("tool_%02d", i)
			src.Tools = append(src.Tools, tenon.Tool{Remote: remote, Input: json.RawMessage(`{"type":"object","properties":{"account_id":{"type":"string"}}}`)})
			src.Entries[fmt.Sprintf("bank_%02d", i)] = Tool{RemoteName: remote, Arguments: []Argument{{Name: "account_id", Type: "string", Description: "Account"}}}
		}
		listing := Shape(src)
		checks, sent, shaped := map[*validator]int{}, map[*tenon.Tool]int{}, map[*tenon.Tool]int{}
		var first *Snapshot
		for round := range 100 {
			s, problems := Merge([]*Listing{listing}) // even a merge from scratch parses nothing
			if len(problems) > 0 || len(s.Tools()) != n {
				t.Fatal(problems)
			}
			for i := range listing.items {
				shaped[&listing.items[i].tool]++
			}
			first = cmp.Or(first, s)
			prompt, _ := first.For("gemini")
			for i := range prompt {
				sent[&prompt[i]]++
			}
			name := fmt.Sprintf("bank_%02d", round%n)
			if _, err := first.Prepare(&tenon.ToolCall{Name: name, Arguments: json.RawMessage(`{"account_id":"1"}`)}, nil); err != nil {
				t.Fatal(err)
			}
			if _, err := first.Prepare(&tenon.ToolCall{Name: name, Arguments: json.RawMessage(`{"account_id":1}`)}, nil); err == nil {
				t.Fatal("a number for a text")
			}
			for _, v := range first.schemas {
				checks[v]++
			}
		}
		if len(shaped) != n || len(sent) != n || len(checks) != n {
			t.Errorf("of %d tools were read: %d for the list, %d for prompts, %d for calls", n, len(shaped), len(sent), len(checks))
		}
	})
}
