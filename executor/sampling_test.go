package executor

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/tenonhq/tenon/mcp/elicit"
)

// TestSampleMeansOneThing checks that a person sees the text that the model receives: a page in a
// browser distinguishes "messages" from "Messages".
func TestSampleMeansOneThing(t *testing.T) {
	message := func(text string) string { return `[{"role":"user","content":{"type":"text","text":"` + text + `"}}]` }
	for _, tt := range []struct{ name, params, want string }{
		{"SEC-F11_two conversations", `{"messages":` + message("harmless") + `,"Messages":` + message("other") + `}`, `has to be written "messages"`},
		{"SEC-F11_a conversation twice", `{"messages":` + message("harmless") + `,"messages":` + message("other") + `}`, "there twice"},
		{"SEC-F11_two system prompts", `{"messages":` + message("x") + `,"systemPrompt":"harmless","systemprompt":"other"}`, `has to be written "systemPrompt"`},
		{"SEC-F11_two roles", `{"messages":[{"role":"user","Role":"assistant","content":{"type":"text","text":"x"}}]}`, `has to be written "role"`},
		{"one of each", `{"messages":` + message("x") + `,"systemPrompt":"y","includeContext":"none"}`, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := readSample(json.RawMessage(tt.params), 100)
			if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error %v, want %q", err, tt.want)
			}
		})
	}
	if _, err := elicit.ParseRequests(json.RawMessage(`{"a":{"method":"x","Method":"y"}}`)); err == nil {
		t.Error("two methods are taken")
	}
}
