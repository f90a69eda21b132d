package model_test

import (
	"testing"

	"github.com/tenonhq/tenon/model"
)

// TestUX4_Windows checks the sizes of contexts by the names that services use.
func TestUX4_Windows(t *testing.T) {
	for name, c := range map[string]struct {
		provider, model string
		want            int
	}{
		"claude":              {"anthropic", "claude-sonnet-4-5-20250929", 200_000},
		"claude, large":       {"anthropic", "claude-opus-4-6", 1_000_000},
		"claude, newer":       {"anthropic", "claude-sonnet-5-5", 1_000_000},
		"bedrock":             {"bedrock", "eu.anthropic.claude-sonnet-4-6-v1:0", 1_000_000},
		"openrouter":          {"openrouter", "anthropic/claude-opus-4.6", 1_000_000},
		"vertex":              {"vertex", "claude-haiku-4-5@20251001", 200_000},
		"gpt":                 {"openai", "gpt-5-mini", 400_000},
		"gpt, minor":          {"openai", "gpt-5.4", 1_050_000},
		"gpt, small one":      {"openai", "gpt-5.4-mini", 0},
		"gpt, chat":           {"openai", "gpt-5-chat-latest", 128_000},
		"gpt, sound":          {"openai", "gpt-4o-audio-preview", 0},
		"gemini":              {"gemini", "gemini-2.5-flash-lite", 1_048_576},
		"gemini, pictures":    {"gemini", "gemini-2.5-flash-image", 0},
		"unknown":             {"openai", "davinci", 0},
		"a name of elsewhere": {"ollama", "gpt-5", 0},
	} {
		t.Run(name, func(t *testing.T) {
			if got := (model.Config{Provider: c.provider, Model: c.model}).Window(); got != c.want {
				t.Errorf("%d, want %d", got, c.want)
			}
		})
	}
	if got := (model.Config{Provider: "ollama", Model: "llama3.2", NumCtx: 8192}).Window(); got != 8192 {
		t.Errorf("num_ctx: %d", got)
	}
	for _, c := range []struct {
		tokens, answer, window, at int
	}{{0, 0, 400_000, 0}, {32_000, 0, 32_000, 27_904}, {6000, 0, 6000, 3000}, {200_000, 64_000, 200_000, 136_000}, {1, 0, 1, 1}} {
		m := model.Config{Provider: "openai", Model: "gpt-5", ContextTokens: c.tokens, MaxTokens: c.answer}
		if m.Window() != c.window || m.CompactAt() != c.at {
			t.Errorf("context_tokens %d: window %d, compaction at %d", c.tokens, m.Window(), m.CompactAt())
		}
	}
}
