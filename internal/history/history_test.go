package history_test

import (
	"strings"
	"testing"

	"github.com/tenonhq/tenon/internal/history"
)

const (
	messages  = "/v1/messages"
	chat      = "/v1/chat/completions"
	responses = "/v1/responses"
	gemini2   = "/v1beta/models/gemini-2.5-flash:streamGenerateContent"
	gemini3   = "/v1beta/models/gemini-3-pro:streamGenerateContent?alt=sse"
)

// TestCheck checks that each rule reports violations and accepts valid requests.
func TestCheck(t *testing.T) {
	msgs := func(s string) string { return `{"max_tokens":1,"messages":[{"role":"user","content":"q"},` + s + `]}` }
	items := func(s string) string { return `{"store":false,"input":[{"role":"user","content":"q"}` + s + `]}` }
	parts := func(s string) string { return `{"contents":[{"role":"user","parts":[{"text":"q"}]}` + s + `]}` }
	const use = `{"role":"assistant","content":[{"type":"tool_use","id":"a","name":"f","input":{}}]}`
	const result = `{"role":"user","content":[{"type":"tool_result","tool_use_id":"a"}]}`
	const called = `{"role":"assistant","tool_calls":[{"id":"a","type":"function","function":{"name":"f",` +
		`"arguments":"{}"}}]}`
	const item = `,{"type":"function_call","call_id":"a","name":"f","arguments":"{}"}`
	const output = `,{"type":"function_call_output","call_id":"a","output":"x"}`
	const fc = `,{"role":"model","parts":[{"functionCall":{"name":"f","args":{}}}]}`
	const fr = `,{"role":"user","parts":[{"functionResponse":{"name":"f","response":{"output":"x"}}}]}`
	for name, x := range map[string]struct{ path, body, want string }{
		"anthropic": {messages,
			msgs(use + "," + result + "," + `{"role":"user","content":"more"}`), ""},
		"anthropic call without a result": {messages, msgs(use + "," + `{"role":"user","content":"more"}`),
			"messages[1]: the call a has no result"},
		"anthropic result without a call": {messages, msgs(result), "has no call"},
		"anthropic second result":         {messages, msgs(use + "," + result + "," + result), "or is a duplicate"},
		"anthropic two of one id": {messages,
			msgs(strings.Replace(use, "]}", `,{"type":"tool_use","id":"a","name":"f","input":{}}]}`, 1) + "," + result),
			"two calls have the id a"},
		"anthropic result too late": {messages,
			msgs(use +
				`,{"role":"user","content":[{"type":"text","text":"x"},{"type":"tool_result","tool_use_id":"a"}]}`),
			"follows other blocks"},
		"anthropic bad id": {messages, msgs(strings.Replace(use, `"a"`, `"a:1"`, 1)), "not an id"},
		"anthropic input":  {messages, msgs(strings.Replace(use, `{}`, `[]`, 1)), "is not an object"},
		"anthropic unsigned": {messages,
			msgs(`{"role":"assistant","content":[{"type":"thinking","thinking":"x"}]},{"role":"user","content":"q"}`),
			"without a signature"},
		"anthropic empty text": {messages, msgs(`{"role":"user","content":" "}`), "empty text"},
		"anthropic last":       {messages, msgs(`{"role":"assistant","content":"x"}`), "the last message is the assistant's"},
		"anthropic first": {messages,
			`{"max_tokens":1,"messages":[{"role":"assistant","content":"x"}]}`, "the first message is the assistant's"},
		"anthropic nothing": {messages, `{"messages":[]}`, "max_tokens is missing"},
		"chat": {chat,
			msgs(called + `,{"role":"tool","tool_call_id":"a","content":"x"},{"role":"user","content":"more"}`), ""},
		"chat call without a result": {chat,
			msgs(called + `,{"role":"user","content":"more"},{"role":"tool","tool_call_id":"a","content":"x"}`),
			"the call a has no result"},
		"chat at the end": {chat, msgs(called), "the call a has no result"},
		"chat arguments":  {chat, msgs(strings.Replace(called, `"{}"`, `"{"`, 1)), "not a JSON object"},
		"chat nothing said": {chat, msgs(`{"role":"assistant","content":null}`),
			"neither text nor calls"},
		"chat nobody": {chat, msgs(`{"role":"king","content":"x"}`), `role "king"`},
		"responses": {responses,
			items(`,{"type":"reasoning","id":"r","encrypted_content":"x"}` + item + output), ""},
		"responses call without a result": {responses, items(item), "the call a has no result"},
		"responses result without a call": {responses, items(output), "has no call"},
		"responses orphan": {responses,
			items(item + output + `,{"type":"reasoning","id":"r","encrypted_content":"x"}`), "not followed"},
		"responses open thought": {responses, items(`,{"type":"reasoning","id":"r"}` + item + output),
			"without encrypted_content"},
		"responses state": {responses, `{"input":[{"role":"user","content":"q"}]}`, "store"},
		"gemini":          {gemini2, parts(fc + fr), ""},
		"gemini unsigned": {gemini3, parts(fc + fr), "has no signature"},
		"gemini signed": {gemini3,
			parts(strings.Replace(fc, "}}}", `}},"thoughtSignature":"x"}`, 1) + fr), ""},
		"gemini call without a result": {gemini2, parts(fc), "has no result"},
		"gemini result too late": {gemini2, parts(fc + `,{"role":"user","parts":[{"text":"x"}]}` + fr),
			"has no result here"},
		"gemini result without a call": {gemini2, parts(fr), "has no call"},
		"gemini other id": {gemini2, parts(strings.Replace(fc, `"name"`, `"id":"1","name"`, 1) + fr),
			"is in the place of"},
		"gemini twice": {gemini2,
			parts(
				`,{"role":"model","parts":[{"text":"x"}]},{"role":"model","parts":[{"text":"x"}]},{"role":"user",` +
					`"parts":[{"text":"x"}]}`), "two consecutive messages of the model"},
		"no such wire": {"/v1/embeddings", `{}`, "unknown wire format"},
		"no JSON":      {chat, `{`, "not a request"},
	} {
		t.Run(name, func(t *testing.T) {
			err := history.Check(x.path, []byte(x.body))
			if (x.want == "") != (err == nil) || err != nil && !strings.Contains(err.Error(), x.want) {
				t.Errorf("%v, want %q", err, x.want)
			}
		})
	}
}
