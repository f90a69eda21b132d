package model_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/model"
)

// answerOf sends a request in a wire format and returns the parsed answer.
func answerOf(t *testing.T, wire string, r reply) (answered, error) {
	t.Helper()
	p := &provider{replies: []reply{r}}
	return generate(t.Context(), open(t, wire, "http://localhost", p.env()), question)
}

// TestRefusedCalls checks the answer if the provider could not parse the model's call. It has the stop reason bad_call,
// so that the agent asks the model again.
func TestRefusedCalls(t *testing.T) {
	const object = `{"error":{"message":"Failed to call a function. Please adjust your prompt.","type":"invalid_request_error","code":"tool_use_failed","failed_generation":"<function=get{\"a\": 1}</function>"}}`
	const text = `data: {"choices":[{"index":0,"delta":{"content":"I look. "}}]}` + "\n\n"
	const call = `data: {"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"c","function":{"name":"f","arguments":"{}"}}]}}]}` + "\n\n"
	raws := []string{"<function=get", model.NoFinish, "MALFORMED_FUNCTION_CALL"}
	const usage = `data: {"choices":[],"usage":{"prompt_tokens":3,"completion_tokens":1}}` + "\n\ndata: [DONE]\n\n"
	for name, tt := range map[string]struct {
		reply reply
		text  string
	}{
		"MD-2_status":                {reply{status: 400, body: object}, ""},
		"MD-2_stream":                {reply{body: "data: " + object + "\n\n"}, ""},
		"MD-2_stream_after_text":     {reply{body: text + "data: " + object + "\n\n"}, "I look. "},
		"MD-2_stream_after_a_call":   {reply{body: text + call + "data: " + object + "\n\n"}, "I look. "},
		"MD-2_event":                 {reply{body: "event: error\ndata: " + object + "\n\n"}, ""},
		"MD-2_event_without_wrapper": {reply{body: "event: error\ndata: {\"message\":\"Failed to call a function: <function=get\"}\n\n"}, ""},
		"MD-2_no_finish_reason":      {reply{body: strings.ReplaceAll(text+call, `"{}"`, `""`) + usage}, "I look. "},
		"MD-2_no_finish_reason_half_arguments": {reply{body: strings.ReplaceAll(text+call, `"{}"`, `"{\"a\":1"`) + usage},
			"I look. "},
		"MD-2_OpenRouter": {reply{body: text + call + `data: {"choices":[{"index":0,"delta":{},"finish_reason":"error",` +
			`"native_finish_reason":"MALFORMED_FUNCTION_CALL"}]}` + "\n\ndata: [DONE]\n\n"}, "I look. "},
		"MD-2_document": {reply{body: object, header: map[string]string{"Content-Type": "application/json"}}, ""},
		"MD-2_Ollama":   {reply{status: 500, body: `{"error":"error parsing tool call: raw='<function=get', err=unexpected end"}`}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			a, err := answerOf(t, "chat", tt.reply)
			if err != nil {
				t.Fatal(err)
			}
			if a.resp.Stop != tenon.StopBadCall || a.resp.Message.Text() != tt.text || len(a.resp.Message.Calls()) > 0 ||
				!slices.ContainsFunc(raws, func(raw string) bool { return strings.Contains(a.resp.RawStop, raw) }) {
				t.Errorf("%s, %q, %+v", a.resp.Stop, a.resp.RawStop, a.resp.Message)
			}
		})
	}
}

// TestUnusualAnswers checks streams and documents that differ from the documented form.
func TestUnusualAnswers(t *testing.T) {
	json := map[string]string{"Content-Type": "application/json; charset=utf-8"}
	for name, tt := range map[string]struct {
		wire, body string
		header     map[string]string
		want       string // the answer, or a part of the error
	}{
		"MD-3_no_finish_reason": {"chat", `data: {"choices":[{"index":0,"delta":{"content":"fine"}}]}` + "\n\n" +
			`data: {"choices":[],"usage":{"prompt_tokens":3,"completion_tokens":1}}` + "\n\ndata: [DONE]\n\n", nil, "fine"},
		"MD-3_no_finish_reason_and_no_usage": {"chat", `data: {"choices":[{"index":0,"delta":{"content":"fine"}}]}` + "\n\ndata: [DONE]\n\n", nil, "cut off"},
		"MD-3_no_finish_reason_and_no_end":   {"chat", `data: {"choices":[{"index":0,"delta":{"content":"fine"}}],"usage":{"prompt_tokens":3}}` + "\n\n", nil, "cut off"},
		"MD-3_error_of_Groq": {"chat", `data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}],"x_groq":` +
			`{"id":"r","error":"the engine stopped"}}` + "\n\n", nil, "the engine stopped"},
		"MD-3_error_of_a_choice": {"chat", `data: {"choices":[{"index":0,"delta":{"content":"Half"},"finish_reason":"error",` +
			`"error":{"code":400,"message":"Upstream failed","metadata":{"raw":"the engine stopped"}}}]}` + "\n\n", nil,
			"Upstream failed (its cause: the engine stopped)"},
		"MD-3_error_line":          {"chat", "error: {\"message\": \"the engine stopped\"}\n\n", nil, "the engine stopped"},
		"MD-3_error_line_as_text":  {"chat", "error: the engine stopped\n\n", nil, "the engine stopped"},
		"MD-3_bare_error":          {"chat", "{\"error\": {\n\"message\": \"the engine stopped\"}}", nil, "the engine stopped"},
		"MD-3_error_event_as_text": {"chat", "event: error\ndata: the engine stopped\n\n", nil, "the engine stopped"},
		"MD-3_error_of_Mistral":    {"chat", `data: {"object":"error","message":"the engine stopped","code":500}` + "\n\n", nil, "the engine stopped"},
		"MD-3_error_null":          {"chat", `data: {"error":null,"choices":[{"index":0,"delta":{"content":"fine"},"finish_reason":"stop"}]}` + "\n\n", nil, "fine"},
		"MD-3_error_empty": {"chat", `data: {"error":"","choices":[{"index":0,"delta":{"content":"fine"},"finish_reason":"stop"}]}` +
			"\n\n", nil, "fine"},
		"MD-3_document_chat":                  {"chat", `{"error":null,"choices":[{"index":0,"message":{"role":"assistant","content":"fine"},"finish_reason":"stop"}]}`, json, "fine"},
		"MD-3_document_without_finish_reason": {"chat", `{"choices":[{"index":0,"finish_reason":"","message":{"content":"fine","tool_calls":null}}]}`, json, "fine"},
		"MD-3_document_without_a_type":        {"anthropic", `  {"id":"m","type":"message","role":"assistant","content":[{"type":"text","text":"fine"}],"stop_reason":"end_turn"}`, map[string]string{"Content-Type": ""}, "fine"},
		"MD-3_stream_without_a_type":          {"chat", good, map[string]string{"Content-Type": "text/plain"}, "fine"},
		"MD-3_piece_and_message":              {"chat", `data: {"choices":[{"index":0,"delta":{"content":"fi"},"message":{"content":"fi"}}]}` + "\n\n" + `data: {"choices":[{"index":0,"finish_reason":"stop","delta":{"content":"ne"},"message":{"content":"fine"}}]}` + "\n\n", nil, "fine"},
		"MD-3_empty_piece_and_message":        {"chat", `{"choices":[{"index":0,"finish_reason":"stop","message":{"content":"fine"},"delta":{"content":""}}]}`, json, "fine"},
		"MD-3_document_without_content":       {"chat", `{"choices":[{"index":0,"finish_reason":"","message":{"content":""}}]}`, json, "this server does not stream"},
		"MD-3_empty_function":                 {"chat", `{"choices":[{"index":0,"finish_reason":"stop","message":{"content":"fine","function_call":{"arguments":"","name":""}}}]}`, json, "fine"},
		"MD-3_document_anthropic":             {"anthropic", `{"id":"m","type":"message","role":"assistant","content":[{"type":"text","text":"fine"}],"stop_reason":"end_turn","usage":{"input_tokens":1,"output_tokens":1}}`, json, "fine"},
		"MD-3_document_gemini":                {"gemini", `{"candidates":[{"content":{"parts":[{"text":"fine"}]},"finishReason":"STOP"}]}`, json, "fine"},
		"MD-3_documents_gemini":               {"gemini", `[{"candidates":[{"content":{"parts":[{"text":"fi"}]}}]},{"candidates":[{"content":{"parts":[{"text":"ne"}]},"finishReason":"STOP"}]}]`, json, "fine"},
		"MD-3_document_responses":             {"responses", `{"id":"r","status":"completed","error":null,"output":[{"type":"message","content":[{"type":"output_text","text":"fine"}]}]}`, json, "fine"},
		"MD-3_document_failed":                {"responses", `{"id":"r","status":"failed","error":{"code":"server_error","message":"the engine stopped"},"output":[]}`, json, "the engine stopped"},
		"MD-3_document_error":                 {"gemini", `[{"error":{"code":400,"message":"the engine stopped"}}]`, json, "the engine stopped"},
		"MD-3_document_of_something_else":     {"anthropic", `{"status":"ok"}`, json, "this server does not stream"},
		"MD-3_document_cut_off":               {"chat", `{"choices":[{"index":0,"message":{"content":"fi`, json, "not JSON"},
	} {
		check := func(t *testing.T, r reply) {
			a, err := answerOf(t, tt.wire, r)
			switch {
			case tt.want == "fine":
				if err != nil || a.resp.Message.Text() != "fine" || a.resp.Stop != tenon.StopEnd {
					t.Errorf("%+v, %v", a.resp, err)
				}
			case err == nil || !strings.Contains(err.Error(), tt.want):
				t.Errorf("%+v, %v", a.resp, err)
			}
		}
		t.Run(name, func(t *testing.T) { check(t, reply{body: tt.body, header: tt.header}) })
		if tt.header["Content-Type"] != json["Content-Type"] {
			continue
		}
		// The same documents with the type of an event stream, as some proxies send them.
		t.Run(name+"_as_an_event_stream", func(t *testing.T) { check(t, reply{body: tt.body}) })
		if tt.want == "not JSON" {
			continue
		}
		t.Run(name+"_as_an_event_stream_with_lines", func(t *testing.T) {
			check(t, reply{body: "\r\n " + strings.ReplaceAll(tt.body, `":`, "\":\n ") + "\n\n"})
		})
	}
}

// TestErrorBeforeEvents checks that an error without a field name at the beginning of a stream is reported at once,
// although the stream does not end.
func TestErrorBeforeEvents(t *testing.T) {
	for name, body := range map[string]string{
		"MD-3_error_and_an_open_stream": `{"error":{"message":"the engine stopped"}}` + "\n\n",
		"MD-3_error_and_events":         `{"error":{"message":"the engine stopped"}}` + "\n\n" + good,
	} {
		t.Run(name, func(t *testing.T) {
			a, err := answerOf(t, "chat", reply{body: body, cut: true})
			if err == nil || !strings.Contains(err.Error(), "the engine stopped") {
				t.Errorf("%+v, %v", a.resp, err)
			}
		})
	}
}

// TestDocumentWithCalls checks that calls of a document without indexes are separate calls.
func TestDocumentWithCalls(t *testing.T) {
	t.Run("MD-3_calls", func(t *testing.T) {
		body := `{"choices":[{"message":{"content":null,"tool_calls":[` +
			`{"id":"a","type":"function","function":{"name":"f","arguments":"{\"n\":1}"}},` +
			`{"id":"b","type":"function","function":{"name":"g","arguments":"{}"}}]},"finish_reason":"tool_calls"}]}`
		a, err := answerOf(t, "chat", reply{body: body, header: map[string]string{"Content-Type": "application/json"}})
		if err != nil {
			t.Fatal(err)
		}
		calls := a.resp.Message.Calls()
		if len(calls) != 2 || string(calls[0].Arguments) != `{"n":1}` || calls[1].Name != "g" || a.resp.Stop != tenon.StopToolUse {
			t.Errorf("%+v, %s", calls, a.resp.Stop)
		}
	})
}

// TestCompleteCallsWithoutFinish checks that a complete call is a call if the stream has no finish reason, as the
// streams of Snowflake Cortex.
func TestCompleteCallsWithoutFinish(t *testing.T) {
	t.Run("MD-3_call_without_a_finish_reason", func(t *testing.T) {
		a, err := answerOf(t, "chat", reply{body: streamOf(
			`{"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"c","function":{"name":"f","arguments":"{}"}}]}}]}`,
			`{"choices":[],"usage":{"prompt_tokens":3,"completion_tokens":1}}`, "[DONE]")})
		if err != nil || len(a.resp.Message.Calls()) != 1 || a.resp.Stop != tenon.StopToolUse {
			t.Errorf("%+v, %v", a.resp, err)
		}
	})
}

// TestUsageForms checks the places and names of Moonshot's usage, and that a usage that cannot be right is unknown.
func TestUsageForms(t *testing.T) {
	const end = `{"choices":[{"index":0,"delta":{"content":"x"},"finish_reason":"stop"%}]}`
	for name, tt := range map[string]struct {
		lines []string
		want  *tenon.Usage
	}{
		"MD-4_usage_of_a_choice": {[]string{strings.Replace(end, "%", `,"usage":{"prompt_tokens":600,"completion_tokens":50,"cached_tokens":300}`, 1)},
			&tenon.Usage{Input: 600, Output: 50, CacheRead: 300}},
		"MD-4_cached_tokens": {[]string{strings.Replace(end, "%", "", 1), `{"choices":[],"usage":{"prompt_tokens":600,"completion_tokens":50,"cached_tokens":300}}`},
			&tenon.Usage{Input: 600, Output: 50, CacheRead: 300}},
		"MD-4_negative_usage": {[]string{strings.Replace(end, "%", "", 1), `{"choices":[],"usage":{"prompt_tokens":-6,"completion_tokens":5}}`}, nil},
		"MD-4_empty_usage":    {[]string{strings.Replace(end, "%", "", 1), `{"choices":[],"usage":{}}`}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			a, err := answerOf(t, "chat", reply{body: streamOf(append(tt.lines, "[DONE]")...)})
			if err != nil {
				t.Fatal(err)
			}
			if got := a.resp.Usage; (got == nil) != (tt.want == nil) || got != nil && *got != *tt.want {
				t.Errorf("%+v, want %+v", got, tt.want)
			}
		})
	}
}

// TestAnnouncedCalls checks answers whose stop reason announces calls, but that have none. The text of such an answer
// can still be a call (package textcall), so the adapters keep the reason, and RequireCalls changes it.
func TestAnnouncedCalls(t *testing.T) {
	json := map[string]string{"Content-Type": "application/json"}
	chat := func(delta, finish string) reply {
		return reply{body: `data: {"choices":[{"index":0,"delta":` + delta + `,"finish_reason":"` + finish + `"}]}` +
			"\n\ndata: [DONE]\n\n"}
	}
	for name, tt := range map[string]struct {
		wire  string
		reply reply
		raw   string
	}{
		"RP-1_empty_list": {"chat", chat(`{"content":null,"tool_calls":[]}`, "tool_calls"), "tool_calls"},
		"RP-1_no_list":    {"chat", chat(`{"content":null}`, "tool_calls"), "tool_calls"},
		"RP-1_with_text":  {"chat", chat(`{"content":"I look."}`, "tool_calls"), "tool_calls"},
		"RP-1_older_form": {"chat", chat(`{"content":null}`, "function_call"), "function_call"},
		"RP-1_Cohere":     {"chat", chat(`{"content":null}`, "TOOL_CALL"), "TOOL_CALL"},
		"RP-1_document": {"chat", reply{body: `{"choices":[{"message":{"content":null,"tool_calls":[]},` +
			`"finish_reason":"tool_calls"}]}`, header: json}, "tool_calls"},
		"RP-1_Anthropic": {"anthropic", reply{body: `{"type":"message","role":"assistant","content":[],` +
			`"stop_reason":"tool_use","usage":{"input_tokens":1,"output_tokens":1}}`, header: json}, "tool_use"},
	} {
		t.Run(name, func(t *testing.T) {
			a, err := answerOf(t, tt.wire, tt.reply)
			if err != nil {
				t.Fatal(err)
			}
			if a.resp.Stop != tenon.StopToolUse || a.resp.RawStop != tt.raw {
				t.Errorf("the adapter gave %s (%s)", a.resp.Stop, a.resp.RawStop)
			}
			model.RequireCalls(a.resp)
			if want := `"` + tt.raw + `", but contains no tool call`; a.resp.Stop != tenon.StopBadCall ||
				!strings.Contains(a.resp.RawStop, want) {
				t.Errorf("%s (%s)", a.resp.Stop, a.resp.RawStop)
			}
		})
	}
}
