package model_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/internal/history"
	"github.com/tenonhq/tenon/model"
)

// TestContentMappingInside checks the mapping of tool results in section 1 of the reference, for the wire formats whose
// results are not separate messages.
func TestContentMappingInside(t *testing.T) {
	png := tenon.Content{Type: "image", MimeType: "image/png", Data: "aGVsbG8="}
	wav := tenon.Content{Type: "audio", MimeType: "audio/wav", Data: "aGk="}
	for name, c := range map[string]struct {
		content           []tenon.Content
		isError           bool
		responses, gemini string
	}{
		"text":     {[]tenon.Content{tenon.Text("a\u202eb")}, false, `"a\\u202eb"}`, `{"output":"a\\u202eb"}}}`},
		"empty":    {nil, false, `"(empty result)"}`, `{"output":"(empty result)"}}}`},
		"error":    {[]tenon.Content{tenon.Text("boom")}, true, `"Error: boom"}`, `{"error":"boom"}}}`},
		"image":    {[]tenon.Content{png}, false, `[{"type":"input_image","image_url":"data:image/png;base64,aGVsbG8="}]}`, `{"output":"[image/png 5 bytes, attached]"},"parts":[{"inlineData":{"mimeType":"image/png","data":"aGVsbG8="}}]}}`},
		"several":  {[]tenon.Content{tenon.Text("a"), png}, true, `[{"type":"input_text","text":"Error:"},{"type":"input_text","text":"a"},{"type":"input_image","image_url":"data:image/png;base64,aGVsbG8="}]}`, `{"error":"a\n[image/png 5 bytes, attached]"},"parts":[{"inlineData":{"mimeType":"image/png","data":"aGVsbG8="}}]}}`},
		"audio":    {[]tenon.Content{wav}, false, `"[audio audio/wav 2 bytes omitted: this model does not take it]"}`, `{"output":"[audio/wav 2 bytes, in the following part]"}}},{"inlineData":{"mimeType":"audio/wav","data":"aGk="}}`},
		"resource": {[]tenon.Content{{Type: "resource", URI: "file:///a", MimeType: "audio/mp3", Data: "aGk="}}, false, `"[resource file:///a audio/mp3 2 bytes]"}`, `{"output":"[audio/mp3 2 bytes, in the following part]"}}},{"inlineData":{"mimeType":"audio/mp3","data":"aGk="}}`},
		"weird":    {[]tenon.Content{{Type: "weird"}}, false, `"[unsupported content type 'weird' omitted]"}`, `{"output":"[unsupported content type 'weird' omitted]"}}}`},
	} {
		t.Run(name, func(t *testing.T) {
			req := &tenon.Request{Messages: []*tenon.Message{tenon.UserMessage("q"), assistant(callPart("c1", "f", "{}")),
				results(&tenon.ToolResult{ID: "c1", Name: "f", Content: c.content, IsError: c.isError})}}
			got := send(t, "responses", model.Config{}, req)
			if want := `{"type":"function_call_output","call_id":"c1","output":` + c.responses; !strings.Contains(string(got.body), want) {
				t.Errorf("\ngot  %s\nwant %s", got.body, want)
			}
			valid(t, got)
			got = send(t, "gemini", model.Config{}, req)
			if want := `{"functionResponse":{"id":"c1","name":"f","response":` + c.gemini; !strings.Contains(string(got.body), want) {
				t.Errorf("\ngot  %s\nwant %s", got.body, want)
			}
			valid(t, got)
		})
	}
	older := sent(t, "gemini", model.Config{Model: "gemini-2.5-flash"}, &tenon.Request{Messages: []*tenon.Message{results(&tenon.ToolResult{ID: "c1", Name: "f", Content: []tenon.Content{png}})}})
	if want := `"response":{"output":"[image/png 5 bytes, in the following part]"}}},{"inlineData":`; !strings.Contains(older, want) {
		t.Errorf("\ngot  %s\nwant %s", older, want)
	}
}

// valid checks a request against the rules of its provider.
func valid(t testing.TB, c *capture) {
	t.Helper()
	if err := history.Check(c.path, c.body); err != nil {
		t.Errorf("the provider would refuse it: %v\n%s", err, c.body)
	}
}

func TestSwitchesOfTheNewerWires(t *testing.T) {
	half := 0.5
	tools := []tenon.Tool{{Name: "f", Description: "F"}}
	req := func(choice string, tools []tenon.Tool) *tenon.Request {
		return &tenon.Request{System: "s\"", Messages: []*tenon.Message{tenon.UserMessage("q")}, Tools: tools, ToolChoice: choice, Sampling: tenon.Sampling{MaxTokens: 7}}
	}
	yes := true
	for name, c := range map[string]struct {
		wire, want string
		cfg        model.Config
		req        *tenon.Request
	}{
		"responses":           {"responses", `{"model":"m","max_output_tokens":7,"stream":true,"store":false,"temperature":0.5,"tool_choice":"required","tools":[{"type":"function","name":"f","description":"F","parameters":{"type":"object","properties":{}},"strict":false}],"instructions":"s\"","input":[{"role":"user","content":"q"}]}`, model.Config{Temperature: &half}, req("any", tools)},
		"responses named":     {"responses", `"tool_choice":{"type":"function","name":"f"}`, model.Config{}, req("f", tools)},
		"responses none":      {"responses", `"tool_choice":"none"`, model.Config{}, req("none", tools)},
		"responses no tools":  {"responses", `"store":false,"instructions"`, model.Config{ToolMode: "none"}, req("any", tools)},
		"responses reasoning": {"responses", `"store":false,"include":["reasoning.encrypted_content"],"instructions"`, model.Config{Provider: "openai", Model: "gpt-5"}, req("", nil)},
		"responses chat":      {"responses", `"store":false,"instructions"`, model.Config{Provider: "openai", Model: "gpt-4o"}, req("", nil)},
		"responses asked for": {"responses", `"include":["reasoning.encrypted_content"]`, model.Config{Quirks: model.QuirkConfig{EncryptedReasoning: &yes}}, req("", nil)},
		"gemini":              {"gemini", `{"generationConfig":{"maxOutputTokens":7,"topP":0.5},"toolConfig":{"functionCallingConfig":{"mode":"ANY"}},"tools":[{"functionDeclarations":[{"name":"f","description":"F","parametersJsonSchema":{"type":"object","properties":{}}}]}],"systemInstruction":{"parts":[{"text":"s\""}]},"contents":[{"role":"user","parts":[{"text":"q"}]}]}`, model.Config{TopP: &half}, req("any", tools)},
		"gemini named":        {"gemini", `{"mode":"ANY","allowedFunctionNames":["f"]}`, model.Config{}, req("f", tools)},
		"gemini none":         {"gemini", `{"mode":"NONE"}`, model.Config{}, req("none", tools)},
		"gemini no tools":     {"gemini", `{"generationConfig":{"maxOutputTokens":7},"systemInstruction":`, model.Config{ToolMode: "none"}, req("any", tools)},
	} {
		t.Run(name, func(t *testing.T) {
			got := send(t, c.wire, c.cfg, c.req)
			if !strings.Contains(string(got.body), c.want) {
				t.Errorf("\ngot  %s\nwant %s", got.body, c.want)
			}
			valid(t, got)
		})
	}
	for _, c := range []struct{ wire, base, name, url, header, value string }{
		{"gemini", "https://h/v1beta/", "models/gemini-2.5-flash", "https://h/v1beta/models/gemini-2.5-flash:streamGenerateContent?alt=sse", "X-Goog-Api-Key", "k"},
		{"gemini", "https://h", "a/../b?key=", "https://h/v1beta/models/a%2F..%2Fb%3Fkey=:streamGenerateContent?alt=sse", "Accept", "text/event-stream"},
		{"responses", "https://h/v1/responses/", "m", "https://h/v1/responses", "Authorization", "Bearer k"},
	} {
		got := send(t, c.wire, model.Config{BaseURL: c.base, Model: c.name}, question)
		if got.url != c.url || got.header.Get(c.header) != c.value {
			t.Errorf("%s, %s: %s", got.url, c.header, got.header.Get(c.header))
		}
	}
}

// TestHistoriesOfOtherWires checks that each provider accepts conversations that began in other wire formats, with odd
// calls, foreign signatures and missing ids.
func TestHistoriesOfOtherWires(t *testing.T) {
	raw := func(wire, kind, text, raw string) tenon.Part {
		return tenon.Part{Type: kind, Text: text, Wire: wire, Raw: json.RawMessage(raw)}
	}
	rawCall := func(wire, id, raw string) tenon.Part {
		p := callPart(id, "f", `{"n":9007199254740993}`)
		p.Wire, p.Raw = wire, json.RawMessage(raw)
		return p
	}
	answer := func(ids ...string) *tenon.Message {
		var rs []*tenon.ToolResult
		for _, id := range ids {
			rs = append(rs, &tenon.ToolResult{ID: id, Name: "f", Content: []tenon.Content{tenon.Text("r")}})
		}
		return results(rs...)
	}
	msgs := []*tenon.Message{
		tenon.UserMessage("q"),
		assistant(raw("anthropic", "thinking", "hm", `{"type":"thinking","thinking":"hm","signature":"s"}`), text("a"), callPart("toolu_1", "f", "{}"), callPart("toolu_2", "f", "[1]")),
		answer("toolu_1", "toolu_2"),
		assistant(raw("openai-chat", "thinking", "hm", `{"reasoning":"hm"}`), callPart("", "f", ""), callPart("call:1", "f", "{}")),
		answer("", "call:1"),
		assistant(raw("openai-responses", "thinking", "hm", `{"type":"reasoning","id":"rs_1","summary":[],"encrypted_content":"x"}`),
			rawCall("openai-responses", "call_9", `{"type":"function_call","id":"fc_9","call_id":"call_9","name":"f","arguments":"{\"n\":9007199254740993}","status":"completed"}`)),
		answer("call_9"),
		assistant(raw("openai-responses", "thinking", "hm", `{"type":"reasoning","id":"rs_2","summary":[]}`), raw("openai-responses", "text", "open", `{"type":"message","id":"msg_2","role":"assistant","content":[]}`)),
		tenon.UserMessage("and?"),
		assistant(raw("gemini", "thinking", "hm", ""), rawCall("gemini", "tenon_call_1", `{"functionCall":{"name":"f","args":{"n":9007199254740993}},"thoughtSignature":"s"}`), callPart("tenon_call_2", "f", "{}"),
			tenon.Part{Type: tenon.PartCall, Call: &tenon.ToolCall{ID: "tenon_call_3", Name: "f", Malformed: "{oops"}}, raw("gemini", "opaque", "", `{"text":"","thoughtSignature":"s"}`)),
		answer("tenon_call_1", "tenon_call_2", "tenon_call_3"),
		assistant(raw("script", "opaque", "", `{"conversation":0}`), text("done")),
		tenon.UserMessage("go on"),
	}
	for wire, want := range map[string][]string{
		"anthropic": {`"signature":"s"`, `"tool_use_id":"call_1"`},
		"chat":      {`"tool_call_id":"call:1"`},
		"responses": {`{"type":"reasoning","id":"rs_1","summary":[],"encrypted_content":"x"},{"type":"function_call","id":"fc_9"`, `{"role":"assistant","content":"open"}`},
		"gemini": {`{"functionCall":{"name":"f","args":{"n":9007199254740993}},"thoughtSignature":"s"},{"functionCall":{"name":"f","args":{}}}`,
			`{"functionCall":{"id":"toolu_1","name":"f","args":{}},"thoughtSignature":"skip_thought_signature_validator"},{"functionCall":{"id":"toolu_2"`,
			`{"functionResponse":{"name":"f","response":{"output":"r"}}}`},
	} {
		got := send(t, wire, model.Config{Model: "some-3"}, &tenon.Request{Messages: msgs})
		valid(t, got)
		for _, w := range want {
			if !strings.Contains(string(got.body), w) {
				t.Errorf("%s: %s lacks %s", wire, got.body, w)
			}
		}
		for _, secret := range []string{"rs_2", `"conversation"`} {
			if strings.Contains(string(got.body), secret) {
				t.Errorf("%s: %s holds %s", wire, got.body, secret)
			}
		}
	}
}
