package model_test

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/model"
)

// capture is a transport that records the last request and returns a useless answer.
type capture struct {
	body   []byte
	header http.Header
	url    string
	path   string
	length int64
}

func (c *capture) RoundTrip(req *http.Request) (*http.Response, error) {
	c.body, _ = io.ReadAll(req.Body)
	c.header, c.url, c.path, c.length = req.Header, req.URL.String(), req.URL.Path, req.ContentLength
	return &http.Response{StatusCode: 400, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(`{"error":"no"}`)), Request: req}, nil
}

// send sends the request with the configuration and returns the bytes of the HTTP request.
func send(t testing.TB, wire string, cfg model.Config, req *tenon.Request) *capture {
	t.Helper()
	c := &capture{}
	if cfg.Model == "" {
		cfg.Model = "m"
	}
	if wire == "anthropic" && cfg.Provider != "vertex" {
		cfg.Provider = "anthropic"
	}
	if cfg.APIKey.IsZero() {
		cfg.APIKey = tenon.NewSecret("k")
	}
	if cfg.Provider == "" && cfg.BaseURL == "" && wire != "anthropic" {
		cfg.BaseURL = "http://localhost/v1"
	}
	m := adapter(t, wire, cfg, model.Env{Transport: c})
	_, _ = generate(t.Context(), m, req)
	if !json.Valid(c.body) || c.length != int64(len(c.body)) {
		t.Errorf("the body has %d bytes, announced are %d: %s", len(c.body), c.length, c.body)
	}
	return c
}

func sent(t testing.TB, wire string, cfg model.Config, req *tenon.Request) string {
	t.Helper()
	return string(send(t, wire, cfg, req).body)
}

func assistant(parts ...tenon.Part) *tenon.Message {
	return &tenon.Message{Role: tenon.RoleAssistant, Parts: parts}
}

func text(s string) tenon.Part { return tenon.Part{Type: tenon.PartText, Text: s} }

func callPart(id, name, args string) tenon.Part {
	return tenon.Part{Type: tenon.PartCall, Call: &tenon.ToolCall{ID: id, Name: name, Arguments: json.RawMessage(args)}}
}

func results(rs ...*tenon.ToolResult) *tenon.Message {
	m := &tenon.Message{Role: tenon.RoleTool}
	for _, r := range rs {
		m.Parts = append(m.Parts, tenon.Part{Type: tenon.PartResult, Result: r})
	}
	return m
}

// Test_RA24_NativeBlocks checks that the example conversation in the reference is sent in the native blocks of each
// provider.
func Test_RA24_NativeBlocks(t *testing.T) {
	req := &tenon.Request{
		System: "You are a helpful assistant.",
		Messages: []*tenon.Message{
			tenon.UserMessage("What is the weather in London?"),
			assistant(text("I'll check."), callPart("tool_abc123", "get_weather", `{"location":"London"}`)),
			results(&tenon.ToolResult{ID: "tool_abc123", Name: "get_weather", Content: []tenon.Content{tenon.Text("15°C, Cloudy")}}),
		},
		Tools: []tenon.Tool{{Name: "get_weather", Description: "Weather", Input: json.RawMessage(`{"type": "object", "properties": {"location": {"type": "string"}}}`)}},
	}
	for wire := range wires {
		golden(t, wire, sent(t, wire, model.Config{}, req))
	}
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	var buf bytes.Buffer
	if err := json.Indent(&buf, []byte(got), "", "  "); err != nil {
		t.Fatal(err)
	}
	file := "testdata/RA-24-" + name + "-request.json"
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(strings.TrimSpace(string(want)), buf.String()); d != "" {
		t.Errorf("%s differs:\n%s", file, d)
	}
}

// TestContentMapping checks the mapping of tool results in section 1 of the reference about models.
func TestContentMapping(t *testing.T) {
	png := tenon.Content{Type: "image", MimeType: "image/png", Data: "aGVsbG8="}
	for name, c := range map[string]struct {
		content         []tenon.Content
		isError         bool
		anthropic, chat string
	}{
		"HD-US3.1_text":       {[]tenon.Content{tenon.Text("a\x1b[31m\u202eb\u200b\n👩‍🚀")}, false, `[{"type":"text","text":"a\\x1b[31m\\u202eb\\u200b\n👩‍🚀"}]`, `"a\\x1b[31m\\u202eb\\u200b\n👩‍🚀"`},
		"HD-US3.2_image":      {[]tenon.Content{png}, false, `[{"type":"image","source":{"type":"base64","media_type":"image/png","data":"aGVsbG8="}}]`, `"[image image/png 5 bytes, in the following user message]"},{"role":"user","content":[{"type":"image_url","image_url":{"url":"data:image/png;base64,aGVsbG8="}}]`},
		"HD-US3.2_saved":      {[]tenon.Content{{Type: "image", MimeType: "image/svg+xml", Data: "aGk=", Artifact: "3f9a2c-1.0-0"}}, false, `[{"type":"text","text":"[image image/svg+xml 2 bytes, saved as 3f9a2c-1.0-0]"}]`, `"[image image/svg+xml 2 bytes, saved as 3f9a2c-1.0-0]"`},
		"HD-EDGE-1_empty":     {nil, false, `[{"type":"text","text":"(empty result)"}]`, `"(empty result)"`},
		"HD-EDGE-1_emptyText": {[]tenon.Content{tenon.Text("")}, false, `[{"type":"text","text":"(empty result)"}]`, `"(empty result)"`},
		"HD-EDGE-3_weird":     {[]tenon.Content{{Type: "weird"}}, false, `[{"type":"text","text":"[unsupported content type 'weird' omitted]"}]`, `"[unsupported content type 'weird' omitted]"`},
		"error":               {[]tenon.Content{tenon.Text("boom")}, true, `[{"type":"text","text":"boom"}]`, `"Error: boom"`},
		"error named":         {[]tenon.Content{tenon.Text("Error: boom")}, true, `[{"type":"text","text":"Error: boom"}]`, `"Error: boom"`},
		"audio":               {[]tenon.Content{{Type: "audio", MimeType: "audio/wav", Data: "aGk="}}, false, `[{"type":"text","text":"[audio audio/wav 2 bytes omitted: this model does not take it]"}]`, `"[audio audio/wav 2 bytes omitted: this model does not take it]"`},
		"saved audio":         {[]tenon.Content{{Type: "audio", MimeType: "audio/wav", Data: "aGk=", Artifact: "3f9a2c-1.0-0"}}, false, `[{"type":"text","text":"[audio audio/wav 2 bytes, saved as 3f9a2c-1.0-0]"}]`, `"[audio audio/wav 2 bytes, saved as 3f9a2c-1.0-0]"`},
		"resource":            {[]tenon.Content{{Type: "resource", URI: "file:///a", MimeType: "text/plain", Text: "hi"}}, false, `[{"type":"text","text":"[resource file:///a text/plain]\nhi"}]`, `"[resource file:///a text/plain]\nhi"`},
		"link":                {[]tenon.Content{{Type: "resource_link", URI: "file:///a", Name: "A", MimeType: "text/plain"}}, false, `[{"type":"text","text":"[resource link file:///a A text/plain]"}]`, `"[resource link file:///a A text/plain]"`},
		"svg":                 {[]tenon.Content{{Type: "image", MimeType: "image/svg+xml", Data: "aGk="}}, false, `[{"type":"text","text":"[image image/svg+xml 2 bytes omitted: this model does not take it]"}]`, `"[image image/svg+xml 2 bytes omitted: this model does not take it]"`},
		"several":             {[]tenon.Content{tenon.Text("a"), png, tenon.Text("b")}, false, `[{"type":"text","text":"a"},{"type":"image","source":{"type":"base64","media_type":"image/png","data":"aGVsbG8="}},{"type":"text","text":"b"}]`, `"a\n[image image/png 5 bytes, in the following user message]\nb"},{"role":"user","content":[{"type":"image_url","image_url":{"url":"data:image/png;base64,aGVsbG8="}}]`},
	} {
		t.Run(name, func(t *testing.T) {
			req := &tenon.Request{Messages: []*tenon.Message{results(&tenon.ToolResult{ID: "c1", Content: c.content, IsError: c.isError})}}
			mark := ""
			if c.isError {
				mark = `"is_error":true,`
			}
			if got, want := sent(t, "anthropic", model.Config{}, req), `{"type":"tool_result","tool_use_id":"c1",`+mark+`"content":`+c.anthropic+`}`; !strings.Contains(got, want) {
				t.Errorf("\ngot  %s\nwant %s", got, want)
			}
			if got, want := sent(t, "chat", model.Config{}, req), `{"role":"tool","tool_call_id":"c1","content":`+c.chat+`}]`; !strings.Contains(got, want) {
				t.Errorf("\ngot  %s\nwant %s", got, want)
			}
		})
	}
}

func TestSwitchesInTheRequest(t *testing.T) {
	half, no := 0.5, false
	tools := []tenon.Tool{{Name: "f"}}
	req := func(choice string, tools []tenon.Tool) *tenon.Request {
		return &tenon.Request{System: "s\"", Messages: []*tenon.Message{tenon.UserMessage("q")}, Tools: tools, ToolChoice: choice, Sampling: tenon.Sampling{MaxTokens: 7}}
	}
	const user = `{"role":"user","content":"q"}`
	for name, c := range map[string]struct {
		wire, want string
		cfg        model.Config
		req        *tenon.Request
	}{
		"RA-6 chat plain": {"chat", `{"model":"m","max_tokens":7,"stream":true,"stream_options":{"include_usage":true},"messages":[{"role":"system","content":"s\""},` + user + `]}`, model.Config{}, req("any", nil)},
		"openai":          {"chat", `{"model":"m","max_completion_tokens":7,"stream":true,"stream_options":{"include_usage":true},"temperature":0.5,"messages":[` + `{"role":"system","content":"s\""},` + user + `]}`, model.Config{Provider: "openai", APIKey: tenon.NewSecret("k"), Temperature: &half}, req("", nil)},
		"RA-6 chat tools": {"chat", `{"model":"m","max_tokens":7,"stream":true,"tool_choice":"required","tools":[{"type":"function","function":{"name":"f","parameters":{"type":"object","properties":{}}}}],"messages":[{"role":"system","content":"s\""},` + user + `]}`, model.Config{Quirks: model.QuirkConfig{StreamOptions: &no}}, req("any", tools)},
		"chat none":       {"chat", `"tool_choice":"none"`, model.Config{}, req("none", tools)},
		"chat named":      {"chat", `"tool_choice":{"type":"function","function":{"name":"f"}}`, model.Config{}, req("f", tools)},
		"tools off":       {"chat", `{"model":"m","max_tokens":7,"stream":true,"stream_options":{"include_usage":true},"messages":[{"role":"system","content":"s\""},` + user + `]}`, model.Config{ToolMode: "none"}, req("", tools)},
		"anthropic":       {"anthropic", `{"model":"m","max_tokens":7,"stream":true,"cache_control":{"type":"ephemeral"},"tool_choice":{"type":"any"},"tools":[{"name":"f","input_schema":{"type":"object","properties":{}}}],"system":"s\"","messages":[{"role":"user","content":[{"type":"text","text":"q"}]}]}`, model.Config{}, req("any", tools)},
		"anthropic named": {"anthropic", `"tool_choice":{"type":"tool","name":"f"}`, model.Config{}, req("f", tools)},
		"anthropic other": {"anthropic", `{"model":"m","max_tokens":7,"stream":true,"top_p":0.5,"system":"s\"","messages":[`, model.Config{BaseURL: "http://localhost", TopP: &half}, req("none", nil)},
	} {
		t.Run(name, func(t *testing.T) {
			if got := sent(t, c.wire, c.cfg, c.req); !strings.Contains(got, c.want) {
				t.Errorf("\ngot  %s\nwant %s", got, c.want)
			}
		})
	}
}

func TestAddressesAndHeaders(t *testing.T) {
	key := tenon.NewSecret("sk-1")
	for _, c := range []struct{ wire, base, url, header, value string }{
		{"anthropic", "", "https://api.anthropic.com/v1/messages", "X-Api-Key", "sk-1"},
		{"anthropic", "http://h:1/v1/", "http://h:1/v1/messages", "Anthropic-Version", "2023-06-01"},
		{"chat", "http://h:1/v1/", "http://h:1/v1/chat/completions", "Authorization", "Bearer sk-1"},
		{"chat", "http://h:1/api/chat/completions", "http://h:1/api/chat/completions", "X-Team", "demo"},
	} {
		cfg := model.Config{Provider: "openai-compatible", BaseURL: c.base, APIKey: key, Headers: map[string]string{"X-Team": "demo"}}
		got := send(t, c.wire, cfg, question)
		if got.url != c.url || got.header.Get(c.header) != c.value {
			t.Errorf("%s, %s: %s", got.url, c.header, got.header.Get(c.header))
		}
	}
}

// TestToolsAreMarked checks that the tools are marked for the cache if no system prompt follows them.
func TestToolsAreMarked(t *testing.T) {
	t.Run("MD-8_Claude_at_OpenRouter_without_a_system_prompt", func(t *testing.T) {
		cfg := model.Config{BaseURL: "https://openrouter.ai/api/v1", Model: "anthropic/claude-sonnet-4.5", Provider: "openai-compatible"}
		req := &tenon.Request{Messages: []*tenon.Message{tenon.UserMessage("q")}, Tools: []tenon.Tool{{Name: "f"}, {Name: "g"}}}
		got := sent(t, "chat", cfg, req)
		const mark = `"cache_control":{"type":"ephemeral"}`
		if !strings.Contains(got, `"name":"g","parameters":{"type":"object","properties":{}}},`+mark+`}],"messages"`) ||
			strings.Count(got, mark) != 2 || !json.Valid([]byte(got)) {
			t.Error(got)
		}
	})
}

// TestEchoOfReasoning checks that reasoning is sent back only to the servers in the table, in the member in which it
// was received.
func TestEchoOfReasoning(t *testing.T) {
	thought := tenon.Part{Type: tenon.PartThinking, Text: "hm", Wire: "openai-chat", Raw: json.RawMessage(`{"reasoning_content":"hm","reasoning":"hm","reasoning_details":[1]}`)}
	req := &tenon.Request{Messages: []*tenon.Message{tenon.UserMessage("q"), assistant(thought, text("a"))}}
	for base, want := range map[string]string{
		"https://api.x.ai/v1":          `"content":"a","reasoning_content":"hm"}`,
		"https://openrouter.ai/api/v1": `"content":"a","reasoning":"hm","reasoning_details":[1]}`,
		"https://api.openai.com/v1":    `"content":"a"}`,
		"http://127.0.0.1:8000/v1":     `"content":"a"}`,
		"https://notx.ai/v1":           `"content":"a"}`,
	} {
		if got := sent(t, "chat", model.Config{Provider: "openai-compatible", BaseURL: base}, req); !strings.Contains(got, want) {
			t.Errorf("%s gets %s", base, got)
		}
	}
}

// TestOddCallsGoBack checks that invalid tool calls of the model are sent back in a form that providers accept.
func TestOddCallsGoBack(t *testing.T) {
	msg := assistant(text("  "), callPart("", "a", ``), callPart("x:1", "b", `[1]`),
		tenon.Part{Type: tenon.PartCall, Call: &tenon.ToolCall{ID: "c", Name: "c", Malformed: `{"x`}})
	req := &tenon.Request{Messages: []*tenon.Message{msg, results(&tenon.ToolResult{}, &tenon.ToolResult{ID: "x:1"}, &tenon.ToolResult{ID: "c"})}}
	got := sent(t, "anthropic", model.Config{}, req)
	for _, want := range []string{`"content":[{"type":"tool_use","id":"call_0","name":"a","input":{}}`, `"id":"x_1","name":"b","input":{"_not_an_object":[1]}`,
		`"input":{"_invalid_json":"{\"x"}`, `"tool_use_id":"call_0"`, `"tool_use_id":"x_1"`} {
		if !strings.Contains(got, want) {
			t.Errorf("%s lacks %s", got, want)
		}
	}
	got = sent(t, "chat", model.Config{}, req)
	for _, want := range []string{`{"id":"call_0","type":"function","function":{"name":"a","arguments":"{}"}}`, `"arguments":"{\"_invalid_json\":\"{\\\"x\"}"`,
		`"tool_call_id":"call_0"`, `"tool_call_id":"x:1"`} {
		if !strings.Contains(got, want) {
			t.Errorf("%s lacks %s", got, want)
		}
	}
}
