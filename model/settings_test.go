package model_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/model"
	"github.com/tenonhq/tenon/model/bedrock"
)

// TestSettingsOnTheWire checks that each setting of models.NAME is sent in the right member of the request, and that a
// question's setting overrides it.
func TestSettingsOnTheWire(t *testing.T) {
	seed, yes := 7, true
	asks := tenon.Sampling{Effort: "low"}
	checkSent(t, []sentSetting{
		{"MD-9_chat", "chat", model.Config{Provider: "vllm", Reasoning: "high", Stop: []string{"END"}, TopK: 5, Seed: &seed,
			Verbosity: "low", ServiceTier: "flex", Store: &yes}, tenon.Sampling{}, []string{`"reasoning_effort":"high"`,
			`"stop":["END"]`, `"top_k":5`, `"seed":7`, `"verbosity":"low"`, `"service_tier":"flex"`, `"store":true`}, nil},
		{"MD-9_question", "chat", model.Config{Provider: "vllm", Reasoning: "high", Stop: []string{"END"}},
			tenon.Sampling{Effort: "low", Stop: []string{"X"}},
			[]string{`"reasoning_effort":"low"`, `"stop":["X"]`}, []string{"high", "END"}},
		{"MD-9_openrouter", "chat", model.Config{Provider: "openrouter", Reasoning: "2000"}, tenon.Sampling{},
			[]string{`"reasoning":{"max_tokens":2000}`}, []string{"effort"}},
		{"MD-9_openrouter_question", "chat", model.Config{Provider: "openrouter", Reasoning: "2000"}, asks,
			[]string{`"reasoning_effort":"low"`}, []string{"2000"}},
		{"MD-9_responses", "responses", model.Config{Provider: "openai", API: "responses", Model: "gpt-5", Reasoning: "xhigh",
			Verbosity: "high", ServiceTier: "priority", Store: &yes, Include: []string{"message.output_text.logprobs",
				"reasoning.encrypted_content"}, Extra: json.RawMessage(`{"reasoning":{"summary":"auto","effort":"x"}}`)},
			tenon.Sampling{}, []string{`"reasoning":{"effort":"xhigh","summary":"auto"}`, `"text":{"verbosity":"high"}`,
				`"service_tier":"priority"`, `"store":true`,
				`"include":["reasoning.encrypted_content","message.output_text.logprobs"]`}, nil},
		{"MD-9_anthropic", "anthropic", model.Config{Model: "claude-opus-4-6", Reasoning: "medium", TopP: new(0.96),
			ServiceTier: "auto", Stop: []string{"E"}}, tenon.Sampling{}, []string{`"output_config":{"effort":"medium"}`,
			`"top_p":0.96`, `"service_tier":"auto"`, `"stop_sequences":["E"]`, `"thinking":{"type":"adaptive"}`}, nil},
		{"MD-9_anthropic_top_k", "anthropic", model.Config{Model: "claude-sonnet-4-5", TopK: 3}, tenon.Sampling{},
			[]string{`"top_k":3`}, []string{"thinking"}},
		{"MD-9_anthropic_budget", "anthropic", model.Config{Model: "claude-sonnet-4-5", Reasoning: "2048"}, tenon.Sampling{},
			[]string{`"thinking":{"type":"enabled","budget_tokens":2048}`}, nil},
		{"MD-9_anthropic_word", "anthropic", model.Config{Model: "claude-sonnet-4-5", Reasoning: "high", MaxTokens: 8000},
			tenon.Sampling{}, []string{`"thinking":{"type":"enabled","budget_tokens":4000}`}, []string{"output_config"}},
		{"MD-9_anthropic_short_answer", "anthropic", model.Config{Model: "claude-sonnet-4-5", Reasoning: "2048"},
			tenon.Sampling{MaxTokens: 500}, []string{`"thinking":{"type":"disabled"}`}, nil},
		{"MD-9_gemini", "gemini", model.Config{Provider: "gemini", Model: "gemini-2.5-flash", Reasoning: "512", TopK: 9,
			Seed: &seed, Extra: json.RawMessage(`{"generationConfig":{"thinkingConfig":{"includeThoughts":true}},
				"toolConfig":{"retrievalConfig":{"languageCode":"de"}}}`)}, tenon.Sampling{}, []string{
			`"thinkingConfig":{"thinkingBudget":512,"includeThoughts":true}`, `"topK":9`, `"seed":7`,
			`"toolConfig":{"functionCallingConfig":{"mode":"ANY"},"retrievalConfig":{"languageCode":"de"}}`}, nil},
		{"MD-9_gemini_off", "gemini", model.Config{Provider: "gemini", Model: "gemini-2.5-flash", Reasoning: "0"},
			tenon.Sampling{}, []string{`"thinkingConfig":{"thinkingBudget":0}`}, nil},
		{"MD-9_bedrock", "bedrock", model.Config{Provider: "bedrock", Model: "anthropic.claude-sonnet-4-5-v1:0",
			Reasoning: "3000", ServiceTier: "flex"}, tenon.Sampling{}, []string{
			`"additionalModelRequestFields":{"thinking":{"type":"enabled","budget_tokens":3000}}`,
			`"serviceTier":{"type":"flex"}`}, nil},
		{"MD-9_bedrock_top_k", "bedrock", model.Config{Provider: "bedrock", Model: "anthropic.claude-sonnet-4-5-v1:0",
			TopK: 4}, tenon.Sampling{}, []string{`"additionalModelRequestFields":{"top_k":4}`}, nil},
		{"MD-10_ollama", "ollama", model.Config{Provider: "ollama", API: "ollama", Model: "gpt-oss", Reasoning: "low", TopK: 4,
			Seed: &seed, NumCtx: 32768, KeepAlive: "30m", Logprobs: new(2), Stop: []string{"E"}, TopP: new(0.5),
			Temperature: new(0.25), Extra: json.RawMessage(`{"options":{"min_p":0.1},"truncate":true}`)}, tenon.Sampling{},
			[]string{`"think":"low"`, `"options":{"num_predict":4096,"temperature":0.25,"top_p":0.5,"stop":["E"],"seed":7,` +
				`"top_k":4,"num_ctx":32768,"min_p":0.1}`, `"keep_alive":"30m"`, `"top_logprobs":2,"logprobs":true`,
				`"truncate":true`, `"shift":false`, `"stream":true`}, []string{"tool_choice", `"truncate":false`}},
		{"MD-10_ollama_question", "ollama", model.Config{Provider: "ollama", API: "ollama", Model: "qwen3", Reasoning: "high",
			KeepAlive: "-1"}, tenon.Sampling{Effort: "none", MaxTokens: 9}, []string{`"think":false`, `"num_predict":9`,
			`"keep_alive":-1`, `"truncate":false`}, []string{"high"}},
		{"MD-9_bedrock_adaptive", "bedrock", model.Config{Provider: "bedrock", Model: "us.anthropic.claude-opus-4-6-v1",
			Reasoning: "low"}, tenon.Sampling{}, []string{`"thinking":{"type":"adaptive"}`,
			`"output_config":{"effort":"low"}`}, nil},
	})
}

// TestAnswersOnTheWire checks that settings about the form of answers are sent in the right member of the request.
func TestAnswersOnTheWire(t *testing.T) {
	yes := true
	checkSent(t, []sentSetting{
		{"MD-9_answers", "chat", model.Config{Provider: "openai", Model: "gpt-audio", Logprobs: new(3), Voice: "alloy",
			Modalities: []string{"text", "audio"}}, tenon.Sampling{}, []string{`"logprobs":true`, `"top_logprobs":3`,
			`"modalities":["text","audio"]`, `"audio":{"voice":"alloy","format":"pcm16"}`}, nil},
		{"MD-9_answers_responses", "responses", model.Config{Provider: "openai", API: "responses", Model: "gpt-4o",
			Logprobs: new(0)}, tenon.Sampling{}, []string{`"top_logprobs":0`, `"include":["message.output_text.logprobs"]`},
			nil},
		{"MD-9_answers_gemini", "gemini", model.Config{Provider: "gemini", Model: "gemini-2.5-flash-image",
			Modalities: []string{"text", "image"}, Logprobs: new(0), Voice: "Kore"}, tenon.Sampling{}, []string{
			`"responseModalities":["TEXT","IMAGE"]`, `"responseLogprobs":true`, `"speechConfig":{"voiceConfig":{` +
				`"prebuiltVoiceConfig":{"voiceName":"Kore"}}}`}, []string{`"logprobs"`}},
		{"MD-9_answers_of_question", "gemini", model.Config{Provider: "gemini", Model: "gemini-2.5-flash",
			Modalities: []string{"text"}, Reasoning: "512"}, tenon.Sampling{Modalities: []string{"image"}, Logprobs: new(5),
			Thinking: new(64)}, []string{`"responseModalities":["IMAGE"]`, `"logprobs":5`, `"thinkingBudget":64`}, nil},
		{"MD-9_words_of_question", "responses", model.Config{Provider: "openai", API: "responses", Model: "gpt-5",
			Verbosity: "low", ServiceTier: "flex"}, tenon.Sampling{Verbosity: "high", ServiceTier: "priority", Store: &yes,
			Include: []string{"x"}}, []string{`"verbosity":"high"`, `"service_tier":"priority"`, `"store":true`,
			`"include":["reasoning.encrypted_content","x"]`}, nil},
		{"MD-9_anthropic_forced", "anthropic", model.Config{Model: "claude-sonnet-4-5", Reasoning: "2048",
			Extra: json.RawMessage(`{"thinking":{"type":"enabled","budget_tokens":1024},"metadata":{}}`)}, tenon.Sampling{},
			[]string{`"tool_choice":{"type":"any"}`, `"metadata":{}`}, []string{"thinking"}},
	})
}

// sentSetting is a setting with the members that a request must contain.
type sentSetting struct {
	name, wire string
	cfg        model.Config
	asked      tenon.Sampling
	want, no   []string
}

// checkSent checks that requests contain the members of the settings.
func checkSent(t *testing.T, list []sentSetting) {
	for _, c := range list {
		t.Run(c.name, func(t *testing.T) {
			req := &tenon.Request{Messages: []*tenon.Message{tenon.UserMessage("q")}, Tools: []tenon.Tool{{Name: "f"}},
				ToolChoice: "any", Sampling: c.asked}
			if strings.Contains(strings.Join(c.want, ""), `"thinking":`) {
				req.ToolChoice = "" // Anthropic refuses both; see MD-9_anthropic_forced
			}
			got := settingsSent(t, c.wire, c.cfg, req)
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

// TestCheckSettings checks that a setting that a wire format or model cannot express is an error that names the key.
func TestCheckSettings(t *testing.T) {
	seed, yes := 7, true
	for _, c := range []struct {
		name string
		cfg  model.Config
		key  string // "" is none
	}{
		{"MD-9_responses_stop", model.Config{Provider: "openai", API: "responses", Stop: []string{"x"}}, "stop"},
		{"MD-9_responses_seed", model.Config{Provider: "openai", API: "responses", Seed: &seed}, "seed"},
		{"MD-9_empty_stop", model.Config{Provider: "openai", Stop: []string{""}}, "stop"},
		{"MD-9_react_stop", model.Config{Provider: "ollama", ToolMode: "react", Stop: []string{"x"}}, "stop"},
		{"MD-9_openai_top_k", model.Config{Provider: "openai", TopK: 3}, "top_k"},
		{"MD-10_num_ctx_chat", model.Config{Provider: "ollama", NumCtx: 8192}, "num_ctx"},
		{"MD-10_num_ctx_other", model.Config{Provider: "openai", NumCtx: 8192}, "num_ctx"},
		{"MD-10_keep_alive_chat", model.Config{Provider: "ollama", KeepAlive: "5m"}, "keep_alive"},
		{"MD-10_keep_alive_word", model.Config{Provider: "ollama", API: "ollama", KeepAlive: "long"}, "keep_alive"},
		{"MD-10_api_of_another", model.Config{Provider: "openai", API: "ollama"}, "api"},
		{"MD-10_ollama_tools", model.Config{Provider: "ollama", API: "ollama", Tools: json.RawMessage(`{"web_search":{}}`)},
			"tools"},
		{"MD-10_ollama_store", model.Config{Provider: "ollama", API: "ollama", Store: &yes}, "store"},
		{"MD-10_ollama", model.Config{Provider: "ollama", API: "ollama", NumCtx: 8192, KeepAlive: "0"}, ""},
		{"MD-10_two_sizes", model.Config{Provider: "ollama", API: "ollama", NumCtx: 8192, ContextTokens: 8192}, "context_tokens"},
		{"MD-10_negative_size", model.Config{Provider: "openai", ContextTokens: -1}, "context_tokens"},
		{"MD-9_gemini_store", model.Config{Provider: "gemini", Store: &yes}, "store"},
		{"MD-9_gemini_verbosity", model.Config{Provider: "gemini", Verbosity: "low"}, "verbosity"},
		{"MD-9_long", model.Config{Provider: "openai", Verbosity: "long"}, "verbosity"},
		{"MD-9_chat_include", model.Config{Provider: "openai", Include: []string{"x"}}, "include"},
		{"MD-9_included_too_much", model.Config{Provider: "openai", API: "responses",
			Include: slices.Repeat([]string{"x"}, 33)}, "include"},
		{"MD-9_word", model.Config{Provider: "openai", Reasoning: "huge"}, "reasoning"},
		{"MD-9_chat_tokens", model.Config{Provider: "openai", Reasoning: "2000"}, "reasoning"},
		{"MD-9_few_tokens", model.Config{Provider: "anthropic", Model: "claude-opus-4-6", Reasoning: "1000"}, "reasoning"},
		{"MD-9_many_tokens", model.Config{Provider: "anthropic", Model: "claude-opus-4-6", Reasoning: "4096"}, "reasoning"},
		{"MD-9_claude_xhigh", model.Config{Provider: "anthropic", Model: "claude-opus-4-6", Reasoning: "xhigh"}, "reasoning"},
		{"MD-9_old_gemini", model.Config{Provider: "gemini", Model: "gemini-1.5-pro", Reasoning: "low"}, "reasoning"},
		{"MD-9_warm_thought", model.Config{Provider: "anthropic", Model: "claude-sonnet-4-5", Reasoning: "2000",
			Temperature: new(0.2)}, "temperature"},
		{"MD-9_thought_top_k", model.Config{Provider: "bedrock", Region: "eu-west-1", Model: "anthropic.claude-opus-4-6-v1",
			Reasoning: "low", TopK: 2}, "top_k"},
		{"MD-9_thought_top_p", model.Config{Provider: "anthropic", Model: "claude-sonnet-4-5", TopP: new(0.5),
			Extra: json.RawMessage(`{"thinking":{"type":"enabled","budget_tokens":2000}}`)}, "top_p"},
		{"MD-9_warm_opus", model.Config{Provider: "anthropic", Model: "claude-opus-4-8", Temperature: new(0.2)}, "temperature"},
		{"MD-9_opus_tokens", model.Config{Provider: "anthropic", Model: "claude-opus-4-8", Reasoning: "2000"}, "reasoning"},
		{"MD-9_mute", model.Config{Provider: "openai", Modalities: []string{"audio"}}, "modalities"},
		{"MD-9_smell", model.Config{Provider: "gemini", Modalities: []string{"smell"}}, "modalities"},
		{"MD-9_claude_speaks", model.Config{Provider: "anthropic", Modalities: []string{"text"}}, "modalities"},
		{"MD-9_claude_logprobs", model.Config{Provider: "anthropic", Logprobs: new(0)}, "logprobs"},
		{"MD-9_many_logprobs", model.Config{Provider: "openai", Logprobs: new(21)}, "logprobs"},
		{"MD-9_warm_one", model.Config{Provider: "anthropic", Model: "claude-sonnet-4-5", Reasoning: "2000",
			Temperature: new(1.0), TopP: new(0.95)}, ""},
		{"MD-9_warm_gemini", model.Config{Provider: "gemini", Model: "gemini-3-pro", Reasoning: "low",
			Temperature: new(0.2)}, ""},
		{"MD-9_tokens", model.Config{Provider: "anthropic", Model: "claude-opus-4-6", Reasoning: "2000"}, ""},
		{"MD-9_budget_by_word", model.Config{Provider: "anthropic", Model: "claude-sonnet-4-5", Reasoning: "high"}, ""},
		{"MD-9_off", model.Config{Provider: "anthropic", Model: "claude-sonnet-4-5", Reasoning: "0"}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.cfg.Name = "a"
			if c.cfg.Model == "" {
				c.cfg.Model = "m"
			}
			err := c.cfg.Check()
			if (err != nil) != (c.key != "") || err != nil && !strings.Contains(err.Error(), "models.a."+c.key+":") {
				t.Errorf("got %v, want an error of %q", err, c.key)
			}
		})
	}
}

// TestExtraMembers checks that the key extra may not contain members that tenon sets itself in the wire format, and may
// contain all others.
func TestExtraMembers(t *testing.T) {
	for _, c := range []struct {
		name string
		cfg  model.Config
		says string // "" is accepted
	}{
		{"MD-9_member", model.Config{Provider: "openai", Extra: json.RawMessage(`{"messages":[]}`)}, "'messages' is set"},
		{"MD-9_inner", model.Config{Provider: "gemini", Extra: json.RawMessage(`{"generationConfig":{"topP":1}}`)},
			"'generationConfig.topP' is set"},
		{"MD-9_no_map", model.Config{Provider: "gemini", Extra: json.RawMessage(`{"generationConfig":1}`)}, "is not a map"},
		{"MD-9_list", model.Config{Provider: "gemini", Extra: json.RawMessage(`[]`)}, "is not a map"},
		{"MD-9_beside", model.Config{Provider: "gemini", Extra: json.RawMessage(`{"generationConfig":{"x":1},"store":1}`)}, ""},
		{"MD-9_other_wire", model.Config{Provider: "openai", Extra: json.RawMessage(`{"system":"x","contents":1}`)}, ""},
		{"MD-9_anthropic_text", model.Config{Provider: "anthropic", Extra: json.RawMessage(`{"text":1,"metadata":{}}`)}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.cfg.Model = "m"
			err := c.cfg.Check()
			if c.says == "" && err != nil || c.says != "" && (err == nil || !strings.Contains(err.Error(), c.says)) {
				t.Errorf("got %v, want %q", err, c.says)
			}
		})
	}
}

// FuzzMergeMembers checks MD-9: merged members are valid JSON, and tenon's own members keep their values.
func FuzzMergeMembers(f *testing.F) {
	f.Add(`{"a":{"b":[1]},"c":2}`, `{"a":{"b":[1,"x"],"d":{}},"c":3,"e":null}`)
	f.Add(`{}`, `{"a":1,"a":2}`)
	f.Fuzz(func(t *testing.T, a, b string) {
		var own, more map[string]any
		if json.Unmarshal([]byte(a), &own) != nil || json.Unmarshal([]byte(b), &more) != nil || own == nil || more == nil {
			return
		}
		merged := string(model.MergeMembers([]byte(strings.TrimSpace(a)[:len(strings.TrimSpace(a))-1]), []byte(b))) + "}"
		var got map[string]any
		if err := json.Unmarshal([]byte(merged), &got); err != nil {
			t.Fatalf("%v: %s", err, merged)
		}
		for k, v := range own {
			_, object := v.(map[string]any)
			_, list := v.([]any)
			if !object && !list && !cmp.Equal(got[k], v) {
				t.Errorf("%s is %v, want %v", k, got[k], v)
			}
		}
		for k := range more {
			if _, ok := got[k]; !ok {
				t.Errorf("%s is missing in %s", k, merged)
			}
		}
	})
}

// settingsSent returns the request body in a wire format.
func settingsSent(t *testing.T, wire string, cfg model.Config, req *tenon.Request) string {
	t.Helper()
	if wire != "bedrock" {
		return sent(t, wire, cfg, req)
	}
	c := &capture{}
	cfg.Region, cfg.APIKey = "us-east-1", tenon.NewSecret("k")
	m, err := bedrock.New(cfg, model.Env{Transport: c, LookupEnv: func(string) (string, bool) { return "", false }})
	if err != nil {
		t.Fatal(err)
	}
	_, err = generate(t.Context(), m, req)
	if len(c.body) == 0 {
		t.Fatal(fmt.Errorf("nothing was sent: %w", err))
	}
	return string(c.body)
}
