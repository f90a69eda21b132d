package model_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/model"
)

const (
	strictSchema = `{"type":"object","properties":{"city":{"type":"string"}},"required":["city"],"additionalProperties":false}`
	looseSchema  = `{"type": "object", "properties": {"city": {"type": "string", "minLength": 1}}}`
)

// TestOutputSchema checks in which form an output schema is sent to each provider, with and without tools, strict and
// not strict.
func TestOutputSchema(t *testing.T) {
	tools := []tenon.Tool{{Name: "f", Input: json.RawMessage(`{"type":"object"}`)}}
	openAI, claude := model.Config{Provider: "openai", Model: "gpt-5"}, model.Config{Model: "claude-sonnet-4-5"}
	for name, c := range map[string]struct {
		wire   string
		cfg    model.Config
		schema string
		tools  []tenon.Tool
		want   string // "" means that no schema is sent
	}{
		"anthropic":                   {"anthropic", claude, strictSchema, tools, `"output_config":{"format":{"type":"json_schema","schema":` + strictSchema + `}}`},
		"anthropic, not strict":       {"anthropic", claude, looseSchema, nil, ""},
		"anthropic, older":            {"anthropic", model.Config{Model: "claude-3-7-sonnet-latest"}, strictSchema, nil, ""},
		"anthropic's form elsewhere":  {"anthropic", model.Config{Model: "claude-sonnet-4-5", BaseURL: "http://localhost"}, strictSchema, nil, ""},
		"anthropic's form at Azure":   {"anthropic", model.Config{Provider: "anthropic", Model: "claude-sonnet-4-5", BaseURL: "https://x.services.ai.azure.com/anthropic"}, strictSchema, nil, ""},
		"openai":                      {"openai-chat", openAI, strictSchema, tools, `"response_format":{"type":"json_schema","json_schema":{"name":"answer","strict":true,"schema":` + strictSchema + `}}`},
		"openai, not strict":          {"openai-chat", openAI, looseSchema, tools, `"strict":false,"schema":{"type":"object","properties":{"city":{"type":"string","minLength":1}}}`},
		"openai, older":               {"openai-chat", model.Config{Provider: "openai", Model: "gpt-4-turbo"}, strictSchema, nil, ""},
		"responses":                   {"responses", openAI, strictSchema, tools, `"text":{"format":{"type":"json_schema","name":"answer","strict":true,"schema":` + strictSchema + `}}`},
		"gemini":                      {"gemini", model.Config{Model: "gemini-3-pro"}, looseSchema, tools, `"responseMimeType":"application/json","responseJsonSchema":{"type":"object","properties"`},
		"older gemini":                {"gemini", model.Config{Model: "gemini-2.5-flash"}, looseSchema, nil, `"responseMimeType":"application/json"`},
		"older gemini, with tools":    {"gemini", model.Config{Model: "gemini-2.5-flash"}, looseSchema, tools, ""},
		"llama.cpp":                   {"openai-chat", model.Config{Provider: "llamacpp"}, looseSchema, nil, `"response_format"`},
		"llama.cpp, with tools":       {"openai-chat", model.Config{Provider: "llamacpp"}, looseSchema, tools, ""},
		"llama.cpp, told to":          {"openai-chat", model.Config{Provider: "llamacpp", Quirks: model.QuirkConfig{OutputSchema: "always"}}, looseSchema, tools, `"response_format"`},
		"a server that nobody knows":  {"openai-chat", model.Config{}, strictSchema, nil, ""},
		"no tools for the model":      {"openai-chat", model.Config{Provider: "ollama", ToolMode: "none"}, strictSchema, tools, `"response_format"`},
		"deepseek has only json mode": {"openai-chat", model.Config{Provider: "deepseek"}, strictSchema, nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			body := sent(t, c.wire, c.cfg, &tenon.Request{Messages: []*tenon.Message{tenon.UserMessage("q")}, Tools: c.tools, Output: json.RawMessage(c.schema)})
			said := strings.Contains(body, "json_schema") || strings.Contains(body, "responseJsonSchema")
			if said != (c.want != "") || !strings.Contains(body, c.want) {
				t.Errorf("%s", body)
			}
		})
	}
}

func TestIsStrict(t *testing.T) {
	for schema, want := range map[string]bool{
		strictSchema: true, looseSchema: false, `{"type":"array","items":{}}`: false, `x`: false, `{"type":"object"}`: false,
		`{"type":"object","properties":{"a":{"type":"object"}},"required":["a"],"additionalProperties":false}`:                                                        false,
		`{"type":"object","properties":{"a":{"anyOf":[{"type":"string"},{"not":{}}]}},"required":["a"],"additionalProperties":false}`:                                 false,
		`{"type":"object","properties":{"a":{"$ref":"#/$defs/b"}},"required":["a"],"additionalProperties":false,"$defs":{"b":{"type":"array","items":{"enum":[1]}}}}`: true,
	} {
		if got := model.IsStrict(json.RawMessage(schema)); got != want {
			t.Errorf("%s: %t", schema, got)
		}
	}
}

// TestDocuments checks that PDF files of questions and tool results reach each provider in its
// form. A note replaces them for models that cannot read them.
func TestDocuments(t *testing.T) {
	const pdf, wav = "JVBERi0x", "UklGRg=="
	ask := &tenon.Message{Role: tenon.RoleUser, Parts: []tenon.Part{{Type: tenon.PartText, Text: "read"},
		{Type: tenon.PartFile, Text: "a.pdf", MimeType: "application/pdf", Data: pdf}, {Type: tenon.PartFile, Text: "s.wav", MimeType: "audio/wav", Data: wav}}}
	call := &tenon.Message{Role: tenon.RoleAssistant, Parts: []tenon.Part{{Type: tenon.PartCall, Call: &tenon.ToolCall{ID: "c1", Name: "f", Arguments: json.RawMessage(`{}`)}}}}
	result := &tenon.Message{Role: tenon.RoleTool, Parts: []tenon.Part{{Type: tenon.PartResult, Result: &tenon.ToolResult{ID: "c1", Name: "f",
		Content: []tenon.Content{tenon.Text("here"), {Type: tenon.ContentResource, URI: "file:///x/b.pdf", MimeType: "application/pdf", Data: pdf, Artifact: "art-1"}}}}}}
	no, yes := false, true
	for name, c := range map[string]struct {
		wire string
		cfg  model.Config
		want []string
		not  string
	}{
		"anthropic": {"anthropic", model.Config{Model: "claude-sonnet-4-5"}, []string{
			`{"type":"text","text":"read"},{"type":"document","title":"a.pdf","source":{"type":"base64","media_type":"application/pdf","data":"JVBERi0x"}},{"type":"text","text":"[audio audio/wav 4 bytes omitted: this model does not take it]"}`,
			`{"type":"text","text":"here"},{"type":"document","title":"b.pdf",`}, ""},
		"chat": {"openai-chat", model.Config{Provider: "openai", Model: "gpt-5"}, []string{
			`{"type":"file","file":{"filename":"a.pdf","file_data":"data:application/pdf;base64,JVBERi0x"}}`,
			`here\n[resource file:///x/b.pdf application/pdf 6 bytes, in the following user message]`, `"filename":"b.pdf"`}, "input_audio"},
		"chat that hears": {"openai-chat", model.Config{Provider: "openai", Model: "gpt-5", Quirks: model.QuirkConfig{Audio: &yes}}, []string{
			`{"type":"input_audio","input_audio":{"format":"wav","data":"UklGRg=="}}`}, ""},
		"chat that does not read": {"openai-chat", model.Config{}, []string{`[resource a.pdf application/pdf 6 bytes]`, `[resource file:///x/b.pdf application/pdf 6 bytes, saved as art-1]`}, pdf},
		"responses": {"responses", model.Config{Provider: "openai", Model: "gpt-5"}, []string{
			`{"type":"input_file","filename":"a.pdf","file_data":"data:application/pdf;base64,JVBERi0x"}`,
			`"output":[{"type":"input_text","text":"here"},{"type":"input_file","filename":"b.pdf"`}, wav},
		"gemini": {"gemini", model.Config{Model: "gemini-3-pro"}, []string{
			`{"inlineData":{"mimeType":"application/pdf","data":"JVBERi0x"}},{"inlineData":{"mimeType":"audio/wav","data":"UklGRg=="}}`,
			`[application/pdf 6 bytes, in the following part]`}, ""},
		"gemini that is told not to": {"gemini", model.Config{Model: "gemini-3-pro", Quirks: model.QuirkConfig{Documents: &no}}, []string{`saved as art-1`}, pdf},
	} {
		t.Run(name, func(t *testing.T) {
			body := sent(t, c.wire, c.cfg, &tenon.Request{Messages: []*tenon.Message{ask, call, result}})
			for _, w := range c.want {
				if !strings.Contains(body, w) {
					t.Errorf("no %s in\n%s", w, body)
				}
			}
			if c.not != "" && strings.Contains(body, c.not) {
				t.Errorf("%s in\n%s", c.not, body)
			}
		})
	}
}

// TestExtra checks that additional members are sent unchanged on every wire, and that they cannot
// replace tenon's own members.
func TestExtra(t *testing.T) {
	for wire := range wires {
		body := sent(t, wire, model.Config{BaseURL: "http://localhost", Extra: json.RawMessage(`{"grammar":"root ::= \"x\"","n_probs":9007199254740993}`)}, question)
		if !strings.Contains(body, `,"grammar":"root ::= \"x\"","n_probs":9007199254740993`) {
			t.Errorf("%s: %s", wire, body)
		}
	}
	for _, bad := range []string{`[]`, `{"messages":[]}`, `{`, `1`} {
		if err := (model.Config{Provider: "ollama", Model: "m", Extra: json.RawMessage(bad)}).Check(); tenon.ErrorCode(err) != tenon.CodeConfig {
			t.Errorf("%s: %v", bad, err)
		}
	}
}
