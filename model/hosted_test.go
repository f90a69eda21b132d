package model_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/model"
	"github.com/tenonhq/tenon/model/bedrock"
)

// TestHostedTools checks how the provider's own tools, such as web search, are declared in requests.
func TestHostedTools(t *testing.T) {
	own := []tenon.Tool{{Name: "f"}}
	for name, c := range map[string]struct {
		wire  string
		cfg   model.Config
		req   tenon.Request
		want  string
		other string // not in the request
	}{
		"MD-6_anthropic": {"anthropic", model.Config{Tools: []byte(`{"web_search":{"max_uses":3},"code_execution":{}}`)}, tenon.Request{Tools: own, Hosted: []string{"web_search", "code_execution"}},
			`"input_schema":{"type":"object","properties":{}}},{"type":"web_search_20250305","name":"web_search","max_uses":3},{"type":"code_execution_20250825","name":"code_execution"}]`, ""},
		"MD-6_anthropic_alone":   {"anthropic", model.Config{Tools: []byte(`{"web_search":{}}`)}, tenon.Request{Hosted: []string{"web_search"}}, `"tools":[{"type":"web_search_20250305","name":"web_search"}]`, ""},
		"MD-6_anthropic_version": {"anthropic", model.Config{Tools: []byte(`{"web_search":{"type":"web_search_20260209","name":"web_search"}}`)}, tenon.Request{Hosted: []string{"web_search"}}, `"tools":[{"type":"web_search_20260209","name":"web_search"}]`, ""},
		"MD-6_responses": {"responses", model.Config{Tools: []byte(`{"file_search":{"vector_store_ids":["vs_1"]},"code_execution":{"container":{"memory_limit":"4g"}},"wiki":{"type":"mcp","server_label":"wiki","server_url":"https://w.example/mcp"}}`)},
			tenon.Request{Tools: own, Hosted: []string{"file_search", "code_execution", "wiki"}},
			`"strict":false},{"type":"file_search","vector_store_ids":["vs_1"]},{"type":"code_interpreter","container":{"type":"auto","memory_limit":"4g"}},{"type":"mcp","server_label":"wiki","server_url":"https://w.example/mcp"}]`, ""},
		"MD-6_openrouter":    {"chat", model.Config{Provider: "openrouter", Tools: []byte(`{"web_search":{}}`)}, tenon.Request{Tools: own, Hosted: []string{"web_search"}}, `}},{"type":"openrouter:web_search"}]`, ""},
		"MD-6_chat_as_it_is": {"chat", model.Config{Tools: []byte(`{"browser":{"type":"browser_search"}}`)}, tenon.Request{Hosted: []string{"browser"}}, `"tools":[{"type":"browser_search"}]`, ""},
		"MD-6_gemini":        {"gemini", model.Config{Tools: []byte(`{"web_search":{"excludeDomains":["a"]},"maps":{"googleMaps":{}}}`)}, tenon.Request{Tools: own, Hosted: []string{"web_search", "maps"}}, `}]},{"googleSearch":{"excludeDomains":["a"]}},{"googleMaps":{}}]`, ""},
		"MD-6_gemini_alone":  {"gemini", model.Config{Tools: []byte(`{"code_execution":{}}`)}, tenon.Request{Hosted: []string{"code_execution"}}, `"tools":[{"codeExecution":{}}]`, ""},
		"MD-6_withheld":      {"anthropic", model.Config{Tools: []byte(`{"web_search":{},"code_execution":{}}`)}, tenon.Request{Tools: own, Hosted: []string{"web_search"}}, `"web_search_20250305"`, "code_execution"},
		"MD-6_not_offered":   {"anthropic", model.Config{Tools: []byte(`{"web_search":{}}`)}, tenon.Request{Tools: own}, `"tools":[{"name":"f","input_schema":{"type":"object","properties":{}}}]`, "web_search"},
		"MD-6_choice_none":   {"responses", model.Config{Tools: []byte(`{"web_search":{}}`)}, tenon.Request{Tools: own, ToolChoice: "none", Hosted: []string{"web_search"}}, `"tool_choice":"none"`, "web_search"},
		"MD-6_mode_none":     {"gemini", model.Config{ToolMode: model.ToolsNone, Tools: []byte(`{"web_search":{}}`)}, tenon.Request{Hosted: []string{"web_search"}}, `"contents"`, "googleSearch"},
	} {
		t.Run(name, func(t *testing.T) {
			c.req.Messages = question.Messages
			sent := settingsSent(t, c.wire, c.cfg, &c.req)
			if !strings.Contains(sent, c.want) || c.other != "" && strings.Contains(sent, c.other) {
				t.Errorf("%s\nis sent, want %s and not %q", sent, c.want, c.other)
			}
		})
	}
	t.Run("MD-6_bedrock", func(t *testing.T) {
		got, err := bedrock.EncodeRequest("amazon.nova-2-lite-v1:0", &tenon.Request{Messages: question.Messages, Hosted: []string{"web_search"}})
		if err != nil || strings.Contains(string(got), "toolConfig") {
			t.Errorf("%s %v: the entry has no tools", got, err)
		}
		cfg := model.Config{Provider: "bedrock", Model: "amazon.nova-2-lite-v1:0", Tools: []byte(`{"web_search":{}}`)}
		if got := string(cfg.AppendHosted(nil, &tenon.Request{Hosted: []string{"web_search"}})); got != `,{"systemTool":{"name":"nova_grounding"}}` {
			t.Error(got)
		}
	})
	t.Run("MD-6_betas", func(t *testing.T) {
		cfg := model.Config{Provider: "anthropic", Model: "m", Tools: []byte(`{"web_search":{},"code_execution":{},"web_fetch":{}}`)}
		got := cfg.Betas(&tenon.Request{Hosted: []string{"web_search", "code_execution"}})
		if diff := cmp.Diff([]string{"code-execution-2025-08-25"}, got); diff != "" {
			t.Error(diff)
		}
	})
	t.Run("MD-6_for_the_rules", func(t *testing.T) {
		cfg := model.Config{Provider: "openai", API: "responses", Model: "m", Tools: []byte(`{"wiki":{"type":"mcp"},"web_search":{}}`)}
		list := cfg.Hosted()
		if len(list) != 2 || list[0].Remote != "web_search" || !list[0].Annotations.IsReadOnly() || list[1].Annotations.IsReadOnly() || list[1].Server != "provider" {
			t.Errorf("%+v", list)
		}
	})
}

func TestCheckHosted(t *testing.T) {
	t.Run("MD-6_of_the_service", func(t *testing.T) {
		for _, c := range []model.Config{{Provider: "bedrock", Model: "us.anthropic.claude-sonnet-4-5-20250929-v1:0"}, {Provider: "vertex", Model: "claude-sonnet-4-5"}} {
			c.Tools = []byte(`{"code_execution":{}}`)
			if err := c.Check(); err == nil || !strings.Contains(err.Error(), "tenon knows no form of 'code_execution'") {
				t.Errorf("%s: %v", c.Provider, err)
			}
		}
	})
	for name, c := range map[string]struct{ provider, api, tools, want string }{
		"MD-6_no_map":      {"anthropic", "", `["web_search"]`, "it is not a map"},
		"MD-6_no_settings": {"anthropic", "", `{"web_search":true}`, "'web_search' is not a map of settings"},
		"MD-6_not_there":   {"anthropic", "", `{"file_search":{}}`, "tenon knows no form of 'file_search' for this API"},
		"MD-6_chat":        {"openai", "", `{"web_search":{}}`, "tenon knows no form of 'web_search' for this API"},
		"MD-6_unknown":     {"gemini", "", `{"maps":{}}`, "'maps' is no tool that tenon knows"},
		"MD-6_right":       {"openai", "responses", `{"web_search":{},"x":{"type":"x"}}`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			err := model.Config{Provider: c.provider, API: c.api, Model: "m", Tools: []byte(c.tools)}.Check()
			if got := ""; err == nil && c.want != got || err != nil && (c.want == "" || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("%v, want %q", err, c.want)
			}
		})
	}
}

// TestHostedUses checks that uses of the provider's own tools are described in answers, and sent back unchanged.
func TestHostedUses(t *testing.T) {
	for name, c := range map[string]struct {
		wire, stream string
		want         []string
	}{
		"MD-6_uses_anthropic": {"anthropic", streamOf(`{"type":"message_start","message":{"id":"m","content":[]}}`,
			`{"type":"content_block_start","index":0,"content_block":{"type":"server_tool_use","id":"s1","name":"web_search","input":{}}}`,
			`{"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":"{\"query\": \"tea\"}"}}`, `{"type":"content_block_stop","index":0}`,
			`{"type":"content_block_start","index":1,"content_block":{"type":"web_search_tool_result","tool_use_id":"s1","content":{"type":"web_search_tool_result_error","error_code":"max_uses_exceeded"}}}`, `{"type":"content_block_stop","index":1}`,
			`{"type":"content_block_start","index":2,"content_block":{"type":"mcp_tool_use","id":"s2","name":"add","server_name":"math","input":{"a":1}}}`, `{"type":"content_block_stop","index":2}`,
			`{"type":"message_delta","delta":{"stop_reason":"end_turn"}}`, `{"type":"message_stop"}`),
			[]string{`web_search {"query": "tea"}`, `web_search failed: max_uses_exceeded`, `math.add {"a":1}`}},
		"MD-6_uses_responses": {"responses", streamOf(`{"type":"response.output_item.done","output_index":0,"item":{"type":"web_search_call","id":"w","status":"completed","action":{"type":"search","query":"tea"}}}`,
			`{"type":"response.output_item.done","output_index":1,"item":{"type":"mcp_call","id":"m","server_label":"wiki","name":"read","arguments":"{\"p\":1}","output":"x"}}`,
			`{"type":"response.output_item.done","output_index":2,"item":{"type":"code_interpreter_call","id":"c","code":"print(1)"}}`, `{"type":"response.completed","response":{"id":"r","status":"completed"}}`),
			[]string{`web_search {"type":"search","query":"tea"}`, `wiki.read {"p":1}`, `code_interpreter print(1)`}},
		"MD-6_uses_gemini": {"gemini", streamOf(`{"candidates":[{"content":{"parts":[{"executableCode":{"language":"PYTHON","code":"print(1)\nprint(2)"}},{"codeExecutionResult":{"outcome":"OUTCOME_OK","output":"1"}},{"text":"1"}]},"finishReason":"STOP"}]}`),
			[]string{`code_execution print(1) print(2)`}},
	} {
		t.Run(name, func(t *testing.T) {
			m := answerTo(t, c.wire, c.stream).resp.Message
			if diff := cmp.Diff(c.want, m.Hosted()); diff != "" {
				t.Error(diff)
			}
		})
	}
}
