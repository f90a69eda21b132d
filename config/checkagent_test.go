package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestForcedThinking checks MD-9: a warning is printed about an agent that is forced to call a tool and whose model is
// an Anthropic model with thinking, because the API refuses this combination.
func TestForcedThinking(t *testing.T) {
	for name, c := range map[string]struct {
		file string
		want bool
	}{
		"MD-9_forced": {"models:\n  c: {provider: anthropic, model: claude-opus-4-6, reasoning: low}\nagents:\n  a: {tool_choice: any}\n", true},
		"MD-9_of_agent": {"models:\n  c: {provider: anthropic, model: claude-sonnet-4-5}\nagents:\n  a: {tool_choice: 'x,y', settings: {reasoning: '2048'}}\n",
			true},
		"MD-9_auto":   {"models:\n  c: {provider: anthropic, model: claude-opus-4-6, reasoning: low}\nagents:\n  a: {tool_choice: 'auto:x'}\n", false},
		"MD-9_openai": {"models:\n  c: {provider: openai, model: gpt-5, reasoning: low}\nagents:\n  a: {tool_choice: any}\n", false},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "tenon.yaml")
			if err := os.WriteFile(path, []byte(c.file), 0o600); err != nil {
				t.Fatal(err)
			}
			got, err := Load(t.Context(), Options{File: path, Home: t.TempDir(), LookupEnv: env()})
			if err != nil {
				t.Fatal(err)
			}
			said := false
			for _, w := range got.Warnings {
				said = said || strings.Contains(w.Error(), "sent without reasoning")
			}
			if said != c.want {
				t.Errorf("warnings %v", got.Warnings)
			}
		})
	}
}
