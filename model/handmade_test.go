package model_test

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/model"
	"github.com/tenonhq/tenon/model/anthropic"
)

// summary formats an answer as one line.
func summary(a answered, err error) string {
	if err != nil {
		return fmt.Sprintf("%s: %v", tenon.ErrorCode(err), err)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s(%s)", a.resp.Stop, a.resp.RawStop)
	for _, p := range a.resp.Message.Parts {
		switch {
		case p.Call != nil && p.Call.Malformed != "":
			fmt.Fprintf(&b, " %s!%s", p.Call.Name, p.Call.Malformed)
		case p.Call != nil:
			fmt.Fprintf(&b, " %s%s", p.Call.Name, p.Call.Arguments)
		case p.Type == tenon.PartOpaque:
			fmt.Fprintf(&b, " opaque:%s", p.Raw)
		default:
			fmt.Fprintf(&b, " %s:%q", p.Type, p.Text)
		}
	}
	if u := a.resp.Usage; u != nil {
		fmt.Fprintf(&b, " usage %d/%d r%d w%d t%d", u.Input, u.Output, u.CacheRead, u.CacheWrite, u.Reasoning)
	}
	for _, w := range a.resp.Warnings {
		fmt.Fprintf(&b, " [%s]", w)
	}
	return b.String()
}

func TestHandMadeStreams(t *testing.T) {
	const usage = " usage 17/9 r5 w2 t0"
	want := map[string]string{
		"anthropic-overloaded": "model_error: anthropic/m: overloaded_error: Overloaded (request req_h)",
		"anthropic-invalid":    "model_error: anthropic/m: invalid_request_error: messages: bad",
		"anthropic-pause": `pause(pause_turn) opaque:{"type":"server_tool_use","id":"srvtoolu_1","name":"web_search","input":{"query": "x"}}` +
			" usage 17/7 r5 w2 t0",
		"anthropic-redacted": `stop(end_turn) thinking:"Smile 😀 <&>" opaque:{"type":"redacted_thinking","data":"ZW5j"} ` +
			`opaque:{"type":"hologram","beam":{"n":9007199254740993}} text:"Hi" usage 17/9 r5 w2 t4`,
		"anthropic-no-id": `tool_use(tool_use) kept{"n": 9007199254740993} whole{"a":[1]} bad!{oops` + usage +
			` [a call of lost without an id is omitted]`,
		"anthropic-half-call":      "max_tokens(max_tokens)" + usage + " [the call of write was cut off and is omitted]",
		"anthropic-empty-call-cut": "max_tokens(max_tokens)" + usage + " [the call of write was cut off and is omitted]",
		"chat-refusal":             `content_filter(stop) text:"I cannot help."`,
		"chat-error":               "model_error: openai-compatible/m: HTTP 502: Provider disconnected",
		"chat-quota":               "model_error: openai-compatible/m: insufficient_quota: You exceeded your current quota; check plan and billing at the provider",
		"chat-half-call":           `max_tokens(length) whole{"a":1} [the call of half was cut off and is omitted]`,
		"chat-same-index":          `tool_use(stop) f{} g{"n":9007199254740993}`,
		"chat-no-index":            `tool_use(tool_calls) f{"x":1} g{"y":2}`,
		"chat-old-function":        `tool_use(function_call) f{"x":1}`,
		"chat-bad-arguments":       `tool_use(tool_calls) text:"a😀b" f!{oops none{} [a tool call without a name is omitted]`,
		"chat-no-name":             "bad_call(tool_calls) [a tool call without a name is omitted]",
		"anthropic-no-name":        "bad_call(tool_use)" + usage + " [a tool call without a name is omitted]",
		"chat-only-done":           "protocol: openai-compatible/m: the answer was cut off: the stream ended before a finish_reason",
	}
	const responses = " usage 17/9 r5 w0 t4"
	for name, text := range map[string]string{
		"responses-refusal":       `content_filter(completed) text:"I cannot help."` + responses,
		"responses-half-call":     `max_tokens(max_output_tokens) whole{"a":1}` + responses + " [the call of half was cut off and is omitted]",
		"responses-cut-text":      `max_tokens(max_output_tokens) text:"It goes on"` + responses,
		"responses-filter":        "content_filter(content_filter)" + responses,
		"responses-no-items":      `tool_use(completed) text:"whole at the end" f{"n":9007199254740993}` + responses,
		"responses-bad-arguments": `tool_use(completed) f!{oops g{} opaque:{"type": "hologram", "n": 9007199254740993}` + responses + " [a tool call without a name is omitted]",
		"responses-no-name":       "bad_call(completed)" + responses + " [a tool call without a name is omitted]",
		"gemini-no-name":          "bad_call(STOP)" + responses + " [a tool call without a name is omitted]",
		"responses-flat-error":    "model_error: openai-compatible/m: server_error: The server had an error",
		"responses-rate":          "rate_limited: openai-compatible/m: rate_limit_exceeded: Slow down; try again later",
		"responses-context":       "too_large: openai-compatible/m: context_length_exceeded: Your input exceeds the context window of this model.",
		"responses-cut-off":       "protocol: openai-compatible/m: the answer was cut off: the stream ended before response.completed",
		"gemini-max-tokens":       `max_tokens(MAX_TOKENS) text:"It goes on"` + responses,
		"gemini-safety":           `content_filter(SAFETY) text:"How to"`,
		"gemini-blocked":          "content_filter(PROHIBITED_CONTENT) usage 17/0 r0 w0 t0",
		"gemini-malformed-call":   "bad_call(MALFORMED_FUNCTION_CALL)" + responses + " [Malformed function call: print(x)]",
		"gemini-half-call":        `max_tokens(MAX_TOKENS) whole{"a": 1} [the call of half was cut off and is omitted]`,
		"gemini-parts": `stop(STOP) thinking:"Smile 😀 <&>" text:"Hi" opaque:{"executableCode": {"language": "PYTHON", "code": "9007199254740993"}} ` +
			`opaque:{"text": "", "thoughtSignature": "c2ln"}`,
		"gemini-pieces":      `tool_use(STOP) f{"a":{"b c":[null,9007199254740993]},"s":"xy","t":true,"n":null}`,
		"gemini-open-call":   "tool_use(STOP) open!{\"a\":\"/tm\"} (the arguments ended early)",
		"gemini-open-string": "tool_use(STOP) open!{\"a\":\"/tm\"} (the arguments ended early)",
		"gemini-bad-path":    "protocol: gemini/m: arguments have more than 16384 values",
		"gemini-bad-index":   "protocol: gemini/m: arguments have more than 16384 values",
		"gemini-error":       "model_error: gemini/m: HTTP 503: UNAVAILABLE: The model is overloaded.",
		"gemini-cut-off":     "protocol: gemini/m: the answer was cut off: the stream ended before a finishReason",
	} {
		want[name] = text
	}
	files, err := filepath.Glob("testdata/*-handmade.sse")
	if err != nil || len(files) != len(want) {
		t.Fatalf("%d files for %d cases, %v", len(files), len(want), err)
	}
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), "-handmade.sse")
		t.Run(name, func(t *testing.T) {
			body, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			wire, _, _ := strings.Cut(name, "-")
			m := open(t, wire, "http://localhost", model.Env{Transport: fixed(func() io.Reader { return bytes.NewReader(body) })})
			if got := summary(generate(t.Context(), m, question)); got != want[name] {
				t.Errorf("\ngot  %s\nwant %s", got, want[name])
			}
		})
	}
}

// Test_RA12_IncompleteCall checks that a block without an id is ignored with one warning, and that
// the other calls run.
func Test_RA12_IncompleteCall(t *testing.T) {
	body, err := os.ReadFile("testdata/anthropic-no-id-handmade.sse")
	if err != nil {
		t.Fatal(err)
	}
	m := open(t, "anthropic", "http://localhost", model.Env{Transport: fixed(func() io.Reader { return bytes.NewReader(body) })})
	a, err := generate(t.Context(), m, question)
	if err != nil {
		t.Fatal(err)
	}
	if w := a.resp.Warnings; len(w) != 1 || !strings.Contains(w[0], "lost") {
		t.Errorf("warnings %q", w)
	}
	if calls := a.resp.Message.Calls(); len(calls) != 3 || calls[0].Name != "kept" {
		t.Errorf("calls %v", calls)
	}
}

// TestOpaquePartsGoBackInPlace checks that thinking, redacted thinking and unknown blocks are sent back unchanged and
// in the same position, and only in the same wire format.
func TestOpaquePartsGoBackInPlace(t *testing.T) {
	body, err := os.ReadFile("testdata/anthropic-redacted-handmade.sse")
	if err != nil {
		t.Fatal(err)
	}
	m := open(t, "anthropic", "http://localhost", model.Env{Transport: fixed(func() io.Reader { return bytes.NewReader(body) })})
	a, err := generate(t.Context(), m, question)
	if err != nil {
		t.Fatal(err)
	}
	want := `{"role":"assistant","content":[{"type":"thinking","thinking":"Smile \ud83d\ude00 <&>","signature":"c2ln"},` +
		`{"type":"redacted_thinking","data":"ZW5j"},{"type":"hologram","beam":{"n":9007199254740993}},{"type":"text","text":"Hi"}]}`
	if got := string(anthropic.EncodeMessage(a.resp.Message)); got != want {
		t.Errorf("\ngot  %s\nwant %s", got, want)
	}
	other := sent(t, "chat", model.Config{}, &tenon.Request{Messages: []*tenon.Message{tenon.UserMessage("q"), a.resp.Message}})
	if !strings.Contains(other, `{"role":"assistant","content":"Hi"}`) || strings.Contains(other, "c2ln") || strings.Contains(other, "Smile") {
		t.Errorf("another wire gets %s", other)
	}
}

// Test_RA13_StopReasons checks the mapping of each provider's stop reasons. An unknown reason is
// kept as raw text.
func Test_RA13_StopReasons(t *testing.T) {
	for wire, words := range map[string]map[string]tenon.StopReason{
		"anthropic": {"end_turn": "stop", "stop_sequence": "stop", "max_tokens": "max_tokens", "tool_use": "tool_use",
			"refusal": "content_filter", "pause_turn": "pause", "model_context_window_exceeded": "context_full", "bored": "error", "policy_violation": "content_filter"},
		"chat": {"stop": "stop", "length": "max_tokens", "tool_calls": "tool_use", "function_call": "tool_use",
			"content_filter": "content_filter", "bored": "error", "sensitive": "content_filter", "eos": "stop", "model_context_window_exceeded": "context_full"},
		"responses": {"completed": "stop", "called": "tool_use", "max_output_tokens": "max_tokens", "content_filter": "content_filter",
			"steered": "pause", "max_messages": "pause", "bored": "stop"},
		"gemini": {"STOP": "stop", "FINISH_REASON_UNSPECIFIED": "tool_use", "MODEL_ARMOR": "content_filter", "IMAGE_PROHIBITED_CONTENT": "content_filter", "MAX_TOKENS": "max_tokens", "SAFETY": "content_filter", "RECITATION": "content_filter",
			"BLOCKLIST": "content_filter", "PROHIBITED_CONTENT": "content_filter", "SPII": "content_filter", "IMAGE_SAFETY": "content_filter",
			"LANGUAGE": "content_filter", "CONTINUATION": "pause", "MALFORMED_FUNCTION_CALL": "bad_call", "UNEXPECTED_TOOL_CALL": "bad_call",
			"TOO_MANY_TOOL_CALLS": "bad_call", "OTHER": "error", "BORED": "error"},
	} {
		for word, want := range words {
			t.Run(wire+"/"+word, func(t *testing.T) {
				call := want == "tool_use"
				body := fmt.Sprintf(`data: {"choices":[{"index":0,"delta":{"content":"x"%s},"finish_reason":%q}]}`+"\n\ndata: [DONE]\n\n",
					pick(call, `,"tool_calls":[{"index":0,"id":"c","function":{"name":"f","arguments":"{}"}}]`), word)
				if wire == "anthropic" {
					body = `data: {"type":"message_start","message":{"id":"m"}}` + "\n\n" +
						pick(call, `data: {"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"c","name":"f","input":{}}}`+"\n\n"+
							`data: {"type":"content_block_stop","index":0}`+"\n\n") +
						fmt.Sprintf(`data: {"type":"message_delta","delta":{"stop_reason":%q}}`+"\n\n", word) +
						`data: {"type":"message_stop"}` + "\n\n"
				}
				switch {
				case wire == "responses" && (want == "stop" || call):
					body = pick(call, `data: {"type":"response.output_item.done","output_index":0,"item":{"type":"function_call","call_id":"c","name":"f","arguments":"{}"}}`+"\n\n") +
						fmt.Sprintf(`data: {"type":"response.completed","response":{"status":%q}}`+"\n\n", word)
				case wire == "responses":
					body = fmt.Sprintf(`data: {"type":"response.incomplete","response":{"status":"incomplete","incomplete_details":{"reason":%q}}}`+"\n\n", word)
				case wire == "gemini":
					body = fmt.Sprintf(`data: {"candidates":[{"content":{"parts":[{"text":"x"}%s]},"finishReason":%q}]}`+"\n\n",
						pick(call, `,{"functionCall":{"name":"f"}}`), word)
				}
				a, err := generate(t.Context(), open(t, wire, "http://localhost",
					model.Env{Transport: fixed(func() io.Reader { return strings.NewReader(body) })}), question)
				if err != nil || a.resp.Stop != want || a.resp.RawStop != word || a.resp.Usage != nil {
					t.Errorf("%+v, %v", a.resp, err)
				}
			})
		}
	}
}

func pick(yes bool, s string) string {
	if yes {
		return s
	}
	return ""
}

// TestEmptyReasoningHidesNone checks that reasoning is streamed if a gateway sends two members for
// it and the first is empty.
func TestEmptyReasoningHidesNone(t *testing.T) {
	const body = `data: {"choices":[{"delta":{"reasoning_content":"","reasoning":"Let me see."}}]}` + "\n\n" +
		`data: {"choices":[{"delta":{"content":"Hi"},"finish_reason":"stop"}]}` + "\n\ndata: [DONE]\n\n"
	m := open(t, "chat", "http://localhost", model.Env{Transport: fixed(func() io.Reader { return strings.NewReader(body) })})
	a, err := generate(t.Context(), m, question)
	if err != nil || a.thinking != "Let me see." || a.text != "Hi" {
		t.Errorf("shown: %q, then %q, %v", a.thinking, a.text, err)
	}
}
