package cli

import (
	"strings"
	"testing"

	"github.com/tenonhq/tenon/model"
)

// TestUX4_ContextOnScreen checks that the status line shows how much of a model's context its last request used, by
// models.NAME.context_tokens: for each model its own, for the first answer as for later ones.
func TestUX4_ContextOnScreen(t *testing.T) {
	const steps = `conversations:
  - {match: first, steps: [{text: One., usage: {input_tokens: 50000, output_tokens: 7000}}]}
  - {match: second, steps: [{text: Two., usage: {input_tokens: 150000, output_tokens: 10}}]}
  - {match: third, steps: [{text: Three., usage: {input_tokens: 190000, output_tokens: 10}}]}
`
	for name, tt := range map[string]struct {
		size int
		want [3]string
	}{
		"configured": {200_000, [3]string{"context 50.0k 25%", "context 150.0k 75%", "context 190.0k 19%"}},
		"unknown":    {0, [3]string{"context 50.0k ·", "context 150.0k ·", "context 190.0k 19%"}},
	} {
		t.Run(name, func(t *testing.T) {
			c := openChatOf(t, 110, 30, steps, map[string]model.Config{
				"mine": {ContextTokens: tt.size, MaxTokens: 10_000}, "large": {ContextTokens: 1_000_000}})
			c.start(&asking{})
			c.awaits("Ask something.")
			c.types("first\r")
			c.awaits("One.", tt.want[0])
			c.types("second\r")
			if screen := c.awaits("Two.", tt.want[1]); tt.size == 0 && strings.Contains(screen, "%") {
				t.Errorf("a share of an unknown size:\n%s", screen)
			}
			c.types("/model large\r")
			c.awaits("large")
			c.types("third\r")
			c.awaits("Three.", tt.want[2])
			c.leaves()
		})
	}
}
