package model_test

import (
	"cmp"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/model"
)

// lastRequest is a transport that records the last request and answers with a text.
type lastRequest struct {
	req  *http.Request
	body string
}

func (s *lastRequest) RoundTrip(req *http.Request) (*http.Response, error) {
	b, _ := io.ReadAll(req.Body)
	s.req, s.body = req, string(b)
	return &http.Response{StatusCode: 200, Header: http.Header{"Content-Type": {"text/event-stream"}},
		Body: io.NopCloser(strings.NewReader(good)), Request: req}, nil
}

// TestAddressesOfServers checks the address, the key and the request members for servers that differ from their
// provider's API.
func TestAddressesOfServers(t *testing.T) {
	no := false
	for name, tt := range map[string]struct {
		cfg        model.Config
		url        string
		apiKey     string
		has, lacks string
	}{
		"MD-5_Azure_deployment": {model.Config{BaseURL: "https://r.openai.azure.com/openai/deployments/gpt?api-version=2025-01-01"},
			"https://r.openai.azure.com/openai/deployments/gpt/chat/completions?api-version=2025-01-01", key, `"max_completion_tokens":`, "cache_control"},
		"MD-5_Azure_v1": {model.Config{BaseURL: "https://r.services.ai.azure.com/openai/v1/"},
			"https://r.services.ai.azure.com/openai/v1/chat/completions", key, `"max_completion_tokens":`, ""},
		"MD-5_Bedrock": {model.Config{BaseURL: "https://bedrock-runtime.us-west-2.amazonaws.com/openai/v1"},
			"https://bedrock-runtime.us-west-2.amazonaws.com/openai/v1/chat/completions", "", `"max_completion_tokens":`, ""},
		"MD-5_Snowflake": {model.Config{BaseURL: "https://acme.snowflakecomputing.com/api/v2/cortex/v1"},
			"https://acme.snowflakecomputing.com/api/v2/cortex/v1/chat/completions", "", `"max_completion_tokens":`, ""},
		"MD-5_another_server": {model.Config{BaseURL: "https://models.example.com/v1"},
			"https://models.example.com/v1/chat/completions", "", `"max_tokens":`, ""},
		"MD-8_Claude_at_OpenRouter": {model.Config{BaseURL: "https://openrouter.ai/api/v1", Model: "anthropic/claude-sonnet-4.5"},
			"https://openrouter.ai/api/v1/chat/completions", "",
			`{"role":"system","content":[{"type":"text","text":"be brief","cache_control":{"type":"ephemeral"}}]}`, ""},
		"MD-8_Claude_at_OpenRouter_without_cache": {model.Config{BaseURL: "https://openrouter.ai/api/v1", Model: "anthropic/claude-sonnet-4.5",
			Quirks: model.QuirkConfig{Cache: &no}}, "https://openrouter.ai/api/v1/chat/completions", "", `{"role":"system","content":"be brief"}`, "cache_control"},
		"MD-8_another_model_at_OpenRouter": {model.Config{BaseURL: "https://openrouter.ai/api/v1", Model: "openai/gpt-5"},
			"https://openrouter.ai/api/v1/chat/completions", "", `"be brief"`, "cache_control"},
	} {
		t.Run(name, func(t *testing.T) {
			s := &lastRequest{}
			tt.cfg.Model = cmp.Or(tt.cfg.Model, "gpt-5")
			tt.cfg.Provider, tt.cfg.APIKey = "openai-compatible", tenon.NewSecret(key)
			m := adapter(t, "chat", tt.cfg, model.Env{Transport: s})
			req := &tenon.Request{System: "be brief", Messages: []*tenon.Message{tenon.UserMessage("q")}}
			if _, err := generate(t.Context(), m, req); err != nil {
				t.Fatal(err)
			}
			if got := s.req.URL.String(); got != tt.url {
				t.Errorf("address %s, want %s", got, tt.url)
			}
			if got := s.req.Header.Get("Api-Key"); got != tt.apiKey || s.req.Header.Get("Authorization") != "Bearer "+key {
				t.Errorf("api-key %q, want %q", got, tt.apiKey)
			}
			if !strings.Contains(s.body, tt.has) || tt.lacks != "" && strings.Contains(s.body, tt.lacks) {
				t.Errorf("%s must have %s and not %q", s.body, tt.has, tt.lacks)
			}
		})
	}
}

// TestDefaultsOfServers checks the switches that decide whether reasoning is sent back.
func TestDefaultsOfServers(t *testing.T) {
	for host, encrypted := range map[string]bool{"api.x.ai": true, "r.openai.azure.com": true, "r.services.ai.azure.com": true,
		"bedrock-runtime.eu-west-1.amazonaws.com": true, "bedrock-mantle.eu-west-1.api.aws": true, "api.groq.com": false} {
		t.Run("MD-5_"+host, func(t *testing.T) {
			cfg := model.Config{Provider: "openai-compatible", Model: "gpt-5", API: model.APIResponses, BaseURL: "https://" + host}
			if got := cfg.ResolvedQuirks().EncryptedReasoning; got != encrypted {
				t.Errorf("%v", got)
			}
		})
	}
}

// TestNarrowServers checks requests to servers that accept less than OpenAI's API.
func TestNarrowServers(t *testing.T) {
	object, closed := []byte(`{"type":"object"}`), []byte(`{"type":"object","properties":{"a":{"type":"string"}},"required":["a"],"additionalProperties":false}`)
	tools := []tenon.Tool{{Name: "f"}, {Name: "g"}}
	cohere := model.Config{Provider: "openai-compatible", BaseURL: "https://api.cohere.ai/compatibility/v1"}
	for name, tt := range map[string]struct {
		wire       string
		cfg        model.Config
		req        tenon.Request
		has, lacks string
	}{
		"MD-5_Cohere_schema":            {"chat", cohere, tenon.Request{Output: closed}, `"response_format":{"type":"json_object","schema":{"type":"object",`, "stream_options"},
		"MD-5_Cohere_object":            {"chat", cohere, tenon.Request{Output: object}, `"response_format":{"type":"json_object"}`, ""},
		"MD-5_Cohere_one_call":          {"chat", cohere, tenon.Request{Tools: tools, Sampling: tenon.Sampling{Serial: true, ServiceTier: "flex"}}, `"g"`, "parallel_tool_calls"},
		"MD-5_Cohere_tier_of_a_handoff": {"chat", cohere, tenon.Request{Sampling: tenon.Sampling{ServiceTier: "flex", Effort: "high"}}, `"reasoning_effort":"high"`, "service_tier"},
		"MD-5_LM_Studio_named_tool":     {"chat", model.Config{Provider: "lmstudio"}, tenon.Request{Tools: tools, ToolChoice: "f"}, `"tool_choice":"required"`, `"g"`},
		"MD-5_LM_Studio_object":         {"chat", model.Config{Provider: "lmstudio"}, tenon.Request{Output: object}, `"json_schema"`, "json_object"},
		"MD-5_LM_Studio_responses":      {"responses", model.Config{Provider: "lmstudio"}, tenon.Request{Output: closed}, `"input"`, `"format"`},
		"MD-5_vLLM_named_tool":          {"chat", model.Config{Provider: "vllm"}, tenon.Request{Tools: tools, ToolChoice: "f"}, `"tool_choice":{"type":"function","function":{"name":"f"}}`, ""},
		"MD-5_Bedrock_schema": {"bedrock", model.Config{Model: "us.anthropic.claude-sonnet-4-5-20250929-v1:0"}, tenon.Request{Output: closed, Tools: tools},
			`"outputConfig":{"textFormat":{"type":"json_schema","structure":{"jsonSchema":{"name":"answer","schema":"{\"type\":\"object\",`, ""},
		"MD-5_Bedrock_older_Claude": {"bedrock", model.Config{Model: "anthropic.claude-3-5-sonnet-20240620-v1:0"}, tenon.Request{Output: closed}, `"messages"`, "outputConfig"},
		"MD-5_Hugging_Face":         {"chat", model.Config{Provider: "openai-compatible", BaseURL: "https://router.huggingface.co/v1"}, tenon.Request{Output: closed}, `"json_schema"`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			tt.req.Messages = question.Messages
			body := sent(t, tt.wire, tt.cfg, &tt.req)
			if !strings.Contains(body, tt.has) || tt.lacks != "" && strings.Contains(body, tt.lacks) {
				t.Errorf("%s must have %s and not %q", body, tt.has, tt.lacks)
			}
		})
	}
	t.Run("MD-5_refused_in_the_configuration", func(t *testing.T) {
		for want, change := range map[string]func(*model.Config){
			"service_tier: Cohere has no such parameter": func(c *model.Config) { c.ServiceTier = "flex" },
			"reasoning: model m takes none, high":        func(c *model.Config) { c.Reasoning = "low" },
		} {
			c := cohere
			c.Name, c.Model = "main", "m"
			change(&c)
			if err := c.Check(); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%v, want %s", err, want)
			}
		}
		err := cohere.CheckSampling(&tenon.Sampling{Serial: true})
		if err == nil || !strings.Contains(err.Error(), "parallel_tool_calls cannot be sent to model '': Cohere has no such parameter") {
			t.Error(err)
		}
	})
}

// TestReasoningInContent checks answers whose content is a list with reasoning, and that the reasoning is sent back
// unchanged.
func TestReasoningInContent(t *testing.T) {
	event := func(content string) string {
		return `data: {"choices":[{"index":0,"delta":{"content":` + content + "}}]}\n\n"
	}
	const end = `data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}` + "\n\ndata: [DONE]\n\n"
	for name, tt := range map[string]struct{ base, body, back string }{
		"MD-3_Databricks": {"https://dbc.cloud.databricks.com/serving-endpoints",
			event(`[{"type":"reasoning","summary":[{"type":"summary_text","text":"I "}]}]`) +
				event(`[{"type":"reasoning","summary":[{"type":"summary_text","text":"think"}]}]`) +
				event(`[{"type":"reasoning","summary":[{"type":"summary_text","text":"","signature":"S+\/="}]}]`) + event(`"fine"`) + end,
			`"content":[{"type":"reasoning","summary":[{"type":"summary_text","text":"I think","signature":"S+\/="}]},{"type":"text","text":"fine"}]`},
		"MD-3_Mistral": {"https://api.mistral.ai/v1", event(`[{"type":"thinking","thinking":[{"type":"text","text":"I think"}]}]`) + event(`"fine"`) + end,
			`"content":"fine"`},
	} {
		t.Run(name, func(t *testing.T) {
			p := &provider{replies: []reply{{body: tt.body}}}
			cfg := model.Config{Provider: "openai-compatible", Model: "m", BaseURL: tt.base}
			m := adapter(t, "chat", cfg, p.env())
			a, err := generate(t.Context(), m, question)
			if err != nil || a.thinking != "I think" || a.resp.Message.Text() != "fine" {
				t.Fatalf("%+v, %v", a, err)
			}
			got := sent(t, "chat", cfg, &tenon.Request{Messages: []*tenon.Message{tenon.UserMessage("q"), a.resp.Message, tenon.UserMessage("q")}})
			if !strings.Contains(got, tt.back) {
				t.Errorf("%s\nmust have %s", got, tt.back)
			}
		})
	}
}

// TestPlainReasoningItems checks that a reasoning item with its text is sent back with `api: responses` to servers that
// accept reasoning, and not to others, which would refuse it.
func TestPlainReasoningItems(t *testing.T) {
	const item = `{"id":"r1","type":"reasoning","summary":[],"content":[{"type":"reasoning_text","text":"hm"}],"status":"completed"}`
	body := `data: {"type":"response.output_item.done","output_index":0,"item":` + item + "}\n\n" +
		`data: {"type":"response.output_item.done","output_index":1,"item":{"id":"fc_1","type":"function_call","call_id":"c1","name":"f","arguments":"{}"}}` + "\n\n" +
		`data: {"type":"response.completed","response":{"id":"r","status":"completed"}}` + "\n\n"
	for name, back := range map[string]bool{"deepseek": true, "openai": false, "lmstudio": false} {
		t.Run("MD-5_"+name, func(t *testing.T) {
			p := &provider{replies: []reply{{body: body}}}
			cfg := model.Config{Provider: name, Model: "m", API: model.APIResponses, APIKey: tenon.NewSecret("k")}
			a, err := generate(t.Context(), adapter(t, "responses", cfg, p.env()), question)
			if err != nil || a.thinking != "hm" {
				t.Fatalf("%+v, %v", a, err)
			}
			got := sent(t, "responses", cfg, &tenon.Request{Tools: []tenon.Tool{{Name: "f"}}, Messages: []*tenon.Message{
				tenon.UserMessage("q"), a.resp.Message, results(&tenon.ToolResult{ID: "c1", Name: "f"})}})
			if strings.Contains(got, item) != back || strings.Contains(got, `"id":"fc_1"`) != back {
				t.Errorf("%s", got)
			}
		})
	}
}

// TestUsage checks the token counts of each wire format.
func TestUsage(t *testing.T) {
	chat := func(usage string) string {
		return `data: {"choices":[{"index":0,"delta":{"content":"x"},"finish_reason":"stop"}],"usage":` + usage + "}\n\ndata: [DONE]\n\n"
	}
	for name, tt := range map[string]struct {
		wire, body string
		want       tenon.Usage
		cost       string
	}{
		"MD-4_OpenRouter": {"chat", chat(`{"prompt_tokens":95,"completion_tokens":7,"total_tokens":102,"cost":0.02,"prompt_tokens_details":{"cached_tokens":40,"cache_write_tokens":20},"completion_tokens_details":{"reasoning_tokens":3}}`),
			tenon.Usage{Input: 95, Output: 7, CacheRead: 40, CacheWrite: 20, Reasoning: 3}, "$0.02"},
		"MD-4_xAI": {"chat", chat(`{"prompt_tokens":32,"completion_tokens":9,"total_tokens":151,"completion_tokens_details":{"reasoning_tokens":110},"cost_in_usd_ticks":318319000}`),
			tenon.Usage{Input: 32, Output: 119, Reasoning: 110}, "$0.031832"},
		"MD-4_Groq": {"chat", `data: {"choices":[{"index":0,"delta":{"content":"x"},"finish_reason":"stop"}],"x_groq":{"id":"r","usage":{"prompt_tokens":32,"completion_tokens":9}}}` + "\n\n",
			tenon.Usage{Input: 32, Output: 9}, ""},
		"MD-4_DeepSeek": {"chat", chat(`{"prompt_tokens":32,"completion_tokens":9,"total_tokens":41,"prompt_cache_hit_tokens":30,"prompt_cache_miss_tokens":2}`),
			tenon.Usage{Input: 32, Output: 9, CacheRead: 30}, ""},
		"MD-4_gateway": {"chat", chat(`{"prompt_tokens":32,"completion_tokens":9,"cache_creation_input_tokens":5,"cache_read_input_tokens":20}`),
			tenon.Usage{Input: 32, Output: 9, CacheRead: 20, CacheWrite: 5}, ""},
		"MD-4_Perplexity": {"chat", chat(`{"prompt_tokens":32,"completion_tokens":9,"reasoning_tokens":4,"cost":{"request_cost":0.005,"total_cost":0.006}}`),
			tenon.Usage{Input: 32, Output: 9, Reasoning: 4}, "$0.006"},
		"MD-4_responses": {"responses", `data: {"type":"response.completed","response":{"status":"completed","output":[],"usage":{"input_tokens":10,"input_tokens_details":{"cached_tokens":4,"cache_write_tokens":2},"output_tokens":5,"output_tokens_details":{"reasoning_tokens":3},"cost":0.01}}}` + "\n\n",
			tenon.Usage{Input: 10, Output: 5, CacheRead: 4, CacheWrite: 2, Reasoning: 3}, "$0.01"},
		"MD-4_anthropic": {"anthropic", `data: {"type":"message_start","message":{"id":"m","usage":{"input_tokens":10,"cache_read_input_tokens":4,"cache_creation_input_tokens":2,"output_tokens":1}}}` + "\n\n" +
			`data: {"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":5,"output_tokens_details":{"thinking_tokens":3},"cost":0.01}}` + "\n\ndata: {\"type\":\"message_stop\"}\n\n",
			tenon.Usage{Input: 16, Output: 5, CacheRead: 4, CacheWrite: 2, Reasoning: 3}, "$0.01"},
		"MD-4_gemini": {"gemini", `data: {"candidates":[{"content":{"parts":[{"text":"x"}]},"finishReason":"STOP"}],"usageMetadata":{"promptTokenCount":10,"cachedContentTokenCount":4,"candidatesTokenCount":2,"thoughtsTokenCount":3}}` + "\n\n",
			tenon.Usage{Input: 10, Output: 5, CacheRead: 4, Reasoning: 3}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			a, err := answerOf(t, tt.wire, reply{body: tt.body})
			if err != nil {
				t.Fatal(err)
			}
			cost := ""
			if a.resp.Cost != nil {
				cost = a.resp.Cost.String()
			}
			if a.resp.Usage == nil || *a.resp.Usage != tt.want || cost != tt.cost {
				t.Errorf("%+v, cost %q; want %+v, %q", a.resp.Usage, cost, tt.want, tt.cost)
			}
		})
	}
}
