package model_test

import (
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
			if tt.cfg.Model == "" {
				tt.cfg.Model = "gpt-5"
			}
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
