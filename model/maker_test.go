package model_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/internal/history"
	"github.com/tenonhq/tenon/model"
)

// thoughtful has answers with one call and with encrypted reasoning that contains OPAQUE. Only the model that made the
// reasoning can use it.
var thoughtful = map[string]string{
	"anthropic": `data: {"type":"message_start","message":{"id":"m","content":[]}}

data: {"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":"hm","signature":"OPAQUE"}}

data: {"type":"content_block_stop","index":0}

data: {"type":"content_block_start","index":1,"content_block":{"type":"tool_use","id":"c1","name":"f","input":{"a":1}}}

data: {"type":"content_block_stop","index":1}

data: {"type":"message_delta","delta":{"stop_reason":"tool_use"}}

data: {"type":"message_stop"}

`,
	"chat": `data: {"choices":[{"index":0,"delta":{"reasoning_content":"OPAQUE"}}]}

data: {"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"c1","type":"function","function":{"name":"f","arguments":"{\"a\":1}"}}]}}]}

data: {"choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}]}

data: [DONE]

`,
	"responses": `data: {"type":"response.output_item.done","output_index":0,"item":{"id":"rs_1","type":"reasoning","summary":[],"encrypted_content":"OPAQUE"}}

data: {"type":"response.output_item.done","output_index":1,"item":{"id":"fc_1","type":"function_call","call_id":"c1","name":"f","arguments":"{\"a\":1}"}}

data: {"type":"response.completed","response":{"id":"r","status":"completed"}}

`,
	"gemini": `data: {"candidates":[{"content":{"role":"model","parts":[{"functionCall":{"name":"f","args":{"a":1}},"thoughtSignature":"OPAQUE"}]},"finishReason":"STOP"}]}

`,
}

// TestThoughtsStayWithTheirMaker checks that encrypted reasoning is sent back only to the model
// that made it, and not to another model or address of the same wire. The call and its result are
// sent to all of them.
func TestThoughtsStayWithTheirMaker(t *testing.T) {
	configs := map[string]model.Config{
		"anthropic": {Model: "claude-opus-4-8"}, "gemini": {Provider: "gemini", Model: "gemini-3-pro"},
		"chat": {Provider: "deepseek", Model: "one"}, "responses": {Provider: "openai", API: model.APIResponses, Model: "gpt-5"},
	}
	for wire := range wires {
		t.Run(wire, func(t *testing.T) {
			cfg := configs[wire]
			cfg.APIKey = tenon.NewSecret("sk-test-key")
			p := &provider{replies: []reply{{body: thoughtful[wire]}}}
			m := adapter(t, wire, cfg, p.env())
			a, err := generate(t.Context(), m, question)
			if err != nil {
				t.Fatal(err)
			}
			made := a.resp.Message
			if made.By != m.Name() {
				t.Errorf("made by %q, want %q", made.By, m.Name())
			}
			kept, err := json.Marshal(made) // as in a journal
			if err != nil {
				t.Fatal(err)
			}
			older := strings.Replace(string(kept), `,"by":"`+made.By+`"`, "", 1)
			other, elsewhere := cfg, cfg
			other.Model += "-next"
			elsewhere.BaseURL = "https://elsewhere.example/v1"
			elsewhere.Quirks.EchoReasoning = []string{model.ReasoningContent} // otherwise nothing is echoed
			for _, c := range []struct {
				name string
				cfg  model.Config
				msg  string
				back bool
			}{
				{"the same model", cfg, string(kept), true}, {"another model", other, string(kept), false},
				{"the same model elsewhere", elsewhere, string(kept), false}, {"a journal that does not say", other, older, true},
			} {
				msg := &tenon.Message{}
				if err := json.Unmarshal([]byte(c.msg), msg); err != nil {
					t.Fatal(err)
				}
				calls := msg.Calls()
				req := &tenon.Request{Tools: []tenon.Tool{{Name: "f"}}, Messages: []*tenon.Message{tenon.UserMessage("q"), msg,
					results(&tenon.ToolResult{ID: calls[0].ID, Name: "f", Content: []tenon.Content{tenon.Text("done")}})}}
				got := send(t, wire, c.cfg, req)
				if err := history.Check(got.path, got.body); err != nil {
					t.Errorf("%s: %v", c.name, err)
				}
				body := string(got.body)
				if strings.Contains(body, "OPAQUE") != c.back || !strings.Contains(body, `"f"`) || !strings.Contains(body, "done") {
					t.Errorf("%s is sent %s", c.name, body)
				}
			}
			// Two models encode the same message, each in its own form.
			for _, c := range []struct {
				cfg  model.Config
				back bool
			}{{cfg, true}, {other, false}, {cfg, true}} {
				req := &tenon.Request{Messages: []*tenon.Message{tenon.UserMessage("q"), made}}
				if got := sent(t, wire, c.cfg, req); strings.Contains(got, "OPAQUE") != c.back {
					t.Errorf("%s is sent %s", c.cfg.Model, got)
				}
			}
		})
	}
}

// TestBridgeBehindResults checks servers that refuse a user message directly after a tool result. An assistant message,
// the bridge, is inserted there, and nowhere else.
func TestBridgeBehindResults(t *testing.T) {
	const bridge = `{"role":"assistant","content":"I have the results."}`
	picture := tenon.Content{Type: tenon.ContentImage, MimeType: "image/png", Data: "iVBORw0KGgo="}
	turn := func(c tenon.Content) []*tenon.Message {
		return []*tenon.Message{tenon.UserMessage("q"), assistant(callPart("abcDEF123", "f", "{}")),
			results(&tenon.ToolResult{ID: "abcDEF123", Name: "f", Content: []tenon.Content{c}})}
	}
	for _, c := range []struct {
		name     string
		messages []*tenon.Message
		bridges  int
	}{
		{"results", turn(tenon.Text("1")), 0},
		{"results and a message", append(turn(tenon.Text("1")), tenon.UserMessage("and now?")), 1},
		{"results and two messages", append(turn(tenon.Text("1")), tenon.UserMessage("stop"), tenon.UserMessage("and now?")), 1},
		{"results and an answer", append(turn(tenon.Text("1")), assistant(text("one")), tenon.UserMessage("and now?")), 0},
		{"a picture", turn(picture), 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			for provider, want := range map[string]int{"mistral": c.bridges, "groq": 0} {
				got := send(t, "chat", model.Config{Provider: provider}, &tenon.Request{Messages: c.messages})
				if err := history.Check(got.path, got.body); err != nil {
					t.Errorf("%s: %v", provider, err)
				}
				if n := strings.Count(string(got.body), bridge); n != want {
					t.Errorf("%s: %d bridges, want %d: %s", provider, n, want, got.body)
				}
				if refused := strings.Contains(string(got.body), `"role":"tool"`) && followsResult(t, got.body); refused != (want == 0 && c.bridges > 0) {
					t.Errorf("%s: a user's message behind results: %t in %s", provider, refused, got.body)
				}
			}
			on := true
			if got := sent(t, "chat", model.Config{Quirks: model.QuirkConfig{BridgeResults: &on}}, &tenon.Request{Messages: c.messages}); strings.Count(got, bridge) != c.bridges {
				t.Errorf("with the switch: %s", got)
			}
		})
	}
}

// followsResult reports whether a user message directly follows a tool message.
func followsResult(t *testing.T, body []byte) bool {
	t.Helper()
	var r struct{ Messages []struct{ Role string } }
	if err := json.Unmarshal(body, &r); err != nil {
		t.Fatal(err)
	}
	for i, m := range r.Messages {
		if i > 0 && m.Role == "user" && r.Messages[i-1].Role == "tool" {
			return true
		}
	}
	return false
}
