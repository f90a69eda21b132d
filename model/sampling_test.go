package model_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/model"
)

// TestSamplingOnTheWire checks that each setting of a question is sent once, in the right member of the request.
func TestSamplingOnTheWire(t *testing.T) {
	one, seed := 0.5, int64(9007199254740993)
	all := tenon.Sampling{Stop: []string{"END", "\n\n"}, Presence: &one, Frequency: &one, Seed: &seed, Effort: "low",
		Serial: true, TopK: 7}
	tools := []tenon.Tool{{Name: "f"}}
	for _, c := range []struct {
		name, wire string
		cfg        model.Config
		want       []string
		no         []string
	}{
		{"RP-4_chat", "chat", model.Config{Extra: json.RawMessage(`{"seed":1,"top_k":4}`)}, []string{
			`"stop":["END","\n\n"]`, `"presence_penalty":0.5`, `"frequency_penalty":0.5`, `"seed":9007199254740993`,
			`"reasoning_effort":"low"`, `"parallel_tool_calls":false`, `"top_k":7`}, []string{`"seed":1,`, `"top_k":4`}},
		{"RP-4_responses", "responses", model.Config{Extra: json.RawMessage(`{"reasoning":{"summary":"auto"}}`)},
			[]string{`"reasoning":{"effort":"low","summary":"auto"}`, `"parallel_tool_calls":false`}, []string{"stop"}},
		{"RP-4_anthropic", "anthropic", model.Config{Model: "claude-opus-4-6", TopK: 3}, []string{`"top_k":7`,
			`"stop_sequences":["END","\n\n"]`, `"output_config":{"effort":"low"}`,
			`"tool_choice":{"type":"auto","disable_parallel_tool_use":true}`}, []string{"seed", "penalty"}},
		{"RP-4_anthropic_old", "anthropic", model.Config{Model: "claude-3-haiku"}, nil, []string{"output_config"}},
		{"RP-4_gemini", "gemini", model.Config{Model: "gemini-3-pro"}, []string{`"stopSequences":["END","\n\n"]`,
			`"presencePenalty":0.5`, `"topK":7`, `"frequencyPenalty":0.5`, `"seed":9007199254740993`,
			`"thinkingConfig":{"thinkingLevel":"low"}`}, nil},
		{"RP-4_gemini_budget", "gemini", model.Config{Model: "gemini-2.5-flash"},
			[]string{`"thinkingConfig":{"thinkingBudget":1024}`}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			req := &tenon.Request{Messages: []*tenon.Message{tenon.UserMessage("q")}, Tools: tools, Sampling: all}
			got := sent(t, c.wire, c.cfg, req)
			if !json.Valid([]byte(got)) {
				t.Fatalf("not JSON: %s", got)
			}
			for _, w := range c.want {
				if strings.Count(got, w) != 1 {
					t.Errorf("%s is not once in %s", w, got)
				}
			}
			for _, w := range c.no {
				if strings.Contains(got, w) {
					t.Errorf("%s is in %s", w, got)
				}
			}
		})
	}
}

// TestJSONMode checks that a schema that accepts every object is sent as the JSON mode of the wire format.
func TestJSONMode(t *testing.T) {
	for name, c := range map[string]struct {
		wire, want string
		cfg        model.Config
	}{
		"RP-4_chat": {"chat", `"response_format":{"type":"json_object"}`, model.Config{Provider: "openai", Model: "gpt-5"}},
		"RP-4_responses": {"responses", `"text":{"format":{"type":"json_object"}}`,
			model.Config{Provider: "openai", API: "responses", Model: "gpt-5"}},
		"RP-4_gemini": {"gemini", `"responseMimeType":"application/json"}`, model.Config{Model: "gemini-3-pro"}},
	} {
		t.Run(name, func(t *testing.T) {
			got := sent(t, c.wire, c.cfg, &tenon.Request{Messages: []*tenon.Message{tenon.UserMessage("q")},
				Output: json.RawMessage(`{"type":"object"}`)})
			if !strings.Contains(got, c.want) {
				t.Errorf("%s is not in %s", c.want, got)
			}
		})
	}
}

// TestCheckSampling checks that a setting that a wire format cannot express is refused, with the name that OpenAI's API
// uses.
func TestCheckSampling(t *testing.T) {
	one, much, seed := 0.5, 3.0, int64(1)
	settings := map[string]tenon.Sampling{
		"stop": {Stop: []string{"x"}}, "presence_penalty": {Presence: &one}, "frequency_penalty": {Frequency: &one},
		"seed": {Seed: &seed}, "parallel_tool_calls": {Serial: true}, "reasoning_effort": {Effort: "none"},
	}
	for _, c := range []struct {
		name    string
		cfg     model.Config
		refused string // names, in alphabetical order
	}{
		{"RP-4_chat", model.Config{Provider: "openai", Model: "gpt-5"}, ""},
		{"RP-4_responses", model.Config{Provider: "openai", API: "responses", Model: "gpt-5"},
			"frequency_penalty presence_penalty seed stop"},
		{"RP-4_anthropic", model.Config{Provider: "anthropic", Model: "claude-opus-4-6"},
			"frequency_penalty presence_penalty reasoning_effort seed"},
		{"RP-4_anthropic_old", model.Config{Provider: "anthropic", Model: "claude-sonnet-4-5"},
			"frequency_penalty presence_penalty reasoning_effort seed"},
		{"RP-4_gemini", model.Config{Provider: "gemini", Model: "gemini-2.5-flash"}, "parallel_tool_calls"},
		{"RP-4_script", model.Config{Provider: "script"}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			var refused []string
			for _, name := range []string{"frequency_penalty", "parallel_tool_calls", "presence_penalty",
				"reasoning_effort", "seed", "stop"} {
				s := settings[name]
				if err := c.cfg.CheckSampling(&s); err != nil {
					if tenon.ErrorCode(err) != tenon.CodeInvalid || !strings.Contains(err.Error(), name) {
						t.Errorf("%s: %v", name, err)
					}
					refused = append(refused, name)
				}
			}
			if got := strings.Join(refused, " "); got != c.refused {
				t.Errorf("refused %q, want %q", got, c.refused)
			}
		})
	}
	for name, s := range map[string]tenon.Sampling{
		"RP-4_hot": {Temperature: &much}, "RP-4_penalty": {Presence: &much}, "RP-4_stops": {Stop: make([]string, 5)},
		"RP-4_empty": {Stop: []string{""}}, "RP-4_effort": {Effort: "huge"}, "RP-4_tokens": {MaxTokens: -1},
	} {
		t.Run(name, func(t *testing.T) {
			if err := (model.Config{}).CheckSampling(&s); tenon.ErrorCode(err) != tenon.CodeInvalid {
				t.Errorf("%v", err)
			}
		})
	}
}
