package react

import (
	"slices"
	"testing"

	"github.com/tenonhq/tenon"
)

// TestPromptsReadArgumentsOnce checks that the description of the tools is rendered once and used for all prompts.
func TestPromptsReadArgumentsOnce(t *testing.T) {
	t.Run("TG-41", func(t *testing.T) {
		text, _ := Builtin("default")
		p, err := New(Config{Template: text})
		if err != nil {
			t.Fatal(err)
		}
		tools := slices.Clone(bank)
		read, prompts := map[*toolset]int{}, map[string]int{}
		for range 100 {
			req, err := p.Request(&tenon.Request{Tools: tools, Messages: []*tenon.Message{tenon.UserMessage("balance of 1?")}})
			if err != nil {
				t.Fatal(err)
			}
			prompts[req.System+req.Messages[0].Text()]++
			for _, e := range p.tools.ring {
				if e.set != nil {
					read[e.set] += len(e.set.values)
				}
			}
		}
		if len(read) != 1 || len(prompts) != 1 {
			t.Fatalf("the tools were read %d times, for %d prompts", len(read), len(prompts))
		}
		for set := range read {
			if len(set.values) != len(tools) {
				t.Errorf("%d tools were read of %d", len(set.values), len(tools))
			}
		}
	})
}
