package model_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/internal/history"
	"github.com/tenonhq/tenon/model"
)

// turn is a scripted answer of a provider that is independent of the wire format.
type turn struct {
	text  string
	calls [][3]string // id, name, arguments
	stop  tenon.StopReason
}

// stream encodes the turn in the form that recordings of the wire format have.
func (x turn) stream(wire string) string {
	var b strings.Builder
	event := func(format string, args ...any) { fmt.Fprintf(&b, "data: "+format+"\n\n", args...) }
	if wire == "chat" {
		event(`{"choices":[{"index":0,"delta":{"role":"assistant","content":%q}}]}`, x.text)
		for i, c := range x.calls {
			event(`{"choices":[{"index":0,"delta":{"tool_calls":[{"index":%d,"id":%q,"type":"function","function":{"name":%q,"arguments":""}}]}}]}`, i, c[0], c[1])
			event(`{"choices":[{"index":0,"delta":{"tool_calls":[{"index":%d,"function":{"arguments":%q}}]}}]}`, i, c[2])
		}
		word := map[tenon.StopReason]string{tenon.StopEnd: "stop", tenon.StopToolUse: "tool_calls", tenon.StopMaxTokens: "length"}[x.stop]
		event(`{"choices":[{"index":0,"delta":{},"finish_reason":%q}]}`, word)
		event(`{"choices":[],"usage":{"prompt_tokens":11,"completion_tokens":7}}`)
		event("[DONE]")
		return b.String()
	}
	if wire == "responses" {
		x.responses(event)
		return b.String()
	}
	if wire == "gemini" {
		x.gemini(event)
		return b.String()
	}
	event(`{"type":"message_start","message":{"id":"m","content":[],"usage":{"input_tokens":11,"output_tokens":1}}}`)
	if x.text != "" {
		event(`{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}`)
		event(`{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":%q}}`, x.text)
		event(`{"type":"content_block_stop","index":0}`)
	}
	for i, c := range x.calls {
		event(`{"type":"content_block_start","index":%d,"content_block":{"type":"tool_use","id":%q,"name":%q,"input":{}}}`, i+1, c[0], c[1])
		event(`{"type":"content_block_delta","index":%d,"delta":{"type":"input_json_delta","partial_json":%q}}`, i+1, c[2])
		event(`{"type":"content_block_stop","index":%d}`, i+1)
	}
	word := map[tenon.StopReason]string{tenon.StopEnd: "end_turn", tenon.StopToolUse: "tool_use", tenon.StopMaxTokens: "max_tokens"}[x.stop]
	event(`{"type":"message_delta","delta":{"stop_reason":%q},"usage":{"output_tokens":7}}`, word)
	event(`{"type":"message_stop"}`)
	return b.String()
}

func (x turn) responses(event func(string, ...any)) {
	event(`{"type":"response.created","response":{"id":"r","status":"in_progress"}}`)
	n := 0
	if x.text != "" {
		event(`{"type":"response.output_item.added","output_index":0,"item":{"id":"msg_1","type":"message","role":"assistant","content":[]}}`)
		event(`{"type":"response.output_text.delta","output_index":0,"delta":%q}`, x.text)
		event(`{"type":"response.output_item.done","output_index":0,"item":{"id":"msg_1","type":"message","status":"completed","role":"assistant","content":[{"type":"output_text","text":%q,"annotations":[]}]}}`, x.text)
		n++
	}
	for _, c := range x.calls {
		event(`{"type":"response.output_item.added","output_index":%d,"item":{"id":"fc_%d","type":"function_call","call_id":%q,"name":%q,"arguments":""}}`, n, n, c[0], c[1])
		event(`{"type":"response.function_call_arguments.delta","output_index":%d,"delta":%q}`, n, c[2])
		event(`{"type":"response.output_item.done","output_index":%d,"item":{"id":"fc_%d","type":"function_call","status":"completed","call_id":%q,"name":%q,"arguments":%q}}`, n, n, c[0], c[1], c[2])
		n++
	}
	status, details := "completed", "null"
	if x.stop == tenon.StopMaxTokens {
		status, details = "incomplete", `{"reason":"max_output_tokens"}`
	}
	event(`{"type":"response.%s","response":{"id":"r","status":"%s","incomplete_details":%s,"usage":{"input_tokens":11,"output_tokens":7}}}`, status, status, details)
}

func (x turn) gemini(event func(string, ...any)) {
	if x.text != "" {
		event(`{"candidates":[{"content":{"role":"model","parts":[{"text":%q}]}}]}`, x.text)
	}
	for i, c := range x.calls {
		signature := ""
		if i == 0 {
			signature = `,"thoughtSignature":"c2ln"`
		}
		event(`{"candidates":[{"content":{"role":"model","parts":[{"functionCall":{"id":%q,"name":%q,"args":%s}%s}]}}]}`, c[0], c[1], c[2], signature)
	}
	word := map[tenon.StopReason]string{tenon.StopMaxTokens: "MAX_TOKENS"}[x.stop]
	if word == "" {
		word = "STOP"
	}
	event(`{"candidates":[{"finishReason":%q}],"usageMetadata":{"promptTokenCount":11,"candidatesTokenCount":7}}`, word)
}

// sentRequest has the members that occur in any of the wire formats.
type sentRequest struct {
	Messages []struct {
		Role      string
		Content   json.RawMessage
		ToolCalls []struct {
			ID       string
			Function struct{ Name, Arguments string }
		} `json:"tool_calls"`
		ToolCallID string `json:"tool_call_id"`
	}
	Input []struct {
		Type, Role, Name, Arguments, Output string
		CallID                              string `json:"call_id"`
		Content                             json.RawMessage
	}
	Contents []struct {
		Role  string
		Parts []struct {
			Text         string
			FunctionCall *struct {
				ID, Name string
				Args     json.RawMessage
			}
			FunctionResponse *struct {
				ID       string
				Response map[string]string
			}
		}
	}
}

// seen returns the content of a request independently of the wire format: the role, the text, and the ids of calls and
// results in order.
func seen(t *testing.T, wire, body string) []string {
	t.Helper()
	var req sentRequest
	if err := json.Unmarshal([]byte(body), &req); err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, it := range req.Input {
		switch it.Type {
		case "function_call":
			out = append(out, "call "+it.CallID+" "+it.Name+" "+it.Arguments)
		case "function_call_output":
			out = append(out, "result "+it.CallID+" "+strings.TrimPrefix(it.Output, "Error: "))
		default:
			var s string
			var list []struct{ Text string }
			if json.Unmarshal(it.Content, &s) != nil && json.Unmarshal(it.Content, &list) == nil {
				s = list[0].Text
			}
			out = append(out, it.Role+" "+s)
		}
	}
	for _, c := range req.Contents {
		for _, p := range c.Parts {
			switch {
			case p.FunctionCall != nil:
				out = append(out, "call "+p.FunctionCall.ID+" "+p.FunctionCall.Name+" "+string(p.FunctionCall.Args))
			case p.FunctionResponse != nil:
				r := p.FunctionResponse.Response
				out = append(out, "result "+p.FunctionResponse.ID+" "+strings.TrimPrefix(r["output"]+r["error"], "Error: "))
			default:
				out = append(out, map[string]string{"user": "user ", "model": "assistant "}[c.Role]+p.Text)
			}
		}
	}
	for _, m := range req.Messages {
		if wire == "chat" {
			var s string
			_ = json.Unmarshal(m.Content, &s) // null next to calls
			if m.Role == "tool" {
				out = append(out, "result "+m.ToolCallID+" "+strings.TrimPrefix(s, "Error: "))
				continue
			}
			if s != "" {
				out = append(out, m.Role+" "+s)
			}
			for _, c := range m.ToolCalls {
				out = append(out, "call "+c.ID+" "+c.Function.Name+" "+c.Function.Arguments)
			}
			continue
		}
		out = append(out, seenBlocks(t, m.Role, m.Content)...)
	}
	return out
}

// seenBlocks returns the content of a message of Anthropic.
func seenBlocks(t *testing.T, role string, content json.RawMessage) (out []string) {
	t.Helper()
	var blocks []struct {
		Type, Text, ID, Name string
		Input                json.RawMessage
		ToolUseID            string `json:"tool_use_id"`
		Content              []struct{ Text string }
	}
	if err := json.Unmarshal(content, &blocks); err != nil {
		t.Fatal(err)
	}
	for _, b := range blocks {
		switch b.Type {
		case "text":
			out = append(out, role+" "+b.Text)
		case "tool_use":
			out = append(out, "call "+b.ID+" "+b.Name+" "+string(b.Input))
		case "tool_result":
			out = append(out, "result "+b.ToolUseID+" "+strings.TrimPrefix(b.Content[0].Text, "Error: "))
		}
	}
	return out
}

// Test_RA29_FiveConversations sends the same five conversations through every adapter. It also proves RA-6 and RA-7:
// calls arrive in order with id, name and raw input.
func Test_RA29_FiveConversations(t *testing.T) {
	const weather = `{"location":"London","n":9007199254740993}`
	call, two := [3]string{"c_1", "get_weather", weather}, [3]string{"c_2", "add", `{"a":2,"b":3}`}
	conversations := map[string]struct {
		turns   []turn
		isError bool
		want    []string // the content of the last request
	}{
		"no tool":  {[]turn{{text: "Hello.", stop: tenon.StopEnd}}, false, []string{"user hi"}},
		"one call": {[]turn{{"Looking.", [][3]string{call}, tenon.StopToolUse}, {text: "Done.", stop: tenon.StopEnd}}, false, []string{"user hi", "assistant Looking.", "call c_1 get_weather " + weather, "result c_1 result of get_weather"}},
		"parallel calls": {[]turn{{"", [][3]string{call, two}, tenon.StopToolUse}, {text: "Done.", stop: tenon.StopEnd}}, false, []string{"user hi", "call c_1 get_weather " + weather, `call c_2 add {"a":2,"b":3}`,
			"result c_1 result of get_weather", "result c_2 result of add"}},
		"tool error": {[]turn{{"", [][3]string{two}, tenon.StopToolUse}, {text: "Sorry.", stop: tenon.StopEnd}}, true, []string{"user hi", `call c_2 add {"a":2,"b":3}`, "result c_2 result of add"}},
		"limit":      {[]turn{{text: "It goes on and", stop: tenon.StopMaxTokens}}, false, []string{"user hi"}},
	}
	for name, c := range conversations {
		for wire := range wires {
			t.Run(name+"/"+wire, func(t *testing.T) {
				p := &provider{}
				for _, x := range c.turns {
					p.replies = append(p.replies, reply{body: x.stream(wire)})
				}
				m := adapter(t, wire, model.Config{Model: "m", BaseURL: "http://localhost", APIKey: tenon.NewSecret("k")}, p.env())
				msgs := []*tenon.Message{tenon.UserMessage("hi")}
				for _, x := range c.turns {
					a, err := generate(t.Context(), m, &tenon.Request{Messages: msgs})
					if err != nil {
						t.Fatal(err)
					}
					var calls [][3]string
					answer := &tenon.Message{Role: tenon.RoleTool}
					for _, tc := range a.resp.Message.Calls() {
						calls = append(calls, [3]string{tc.ID, tc.Name, string(tc.Arguments)})
						answer.Parts = append(answer.Parts, tenon.Part{Type: tenon.PartResult, Result: &tenon.ToolResult{ID: tc.ID, Name: tc.Name,
							IsError: c.isError, Content: []tenon.Content{tenon.Text("result of " + tc.Name)}}})
					}
					got := turn{a.resp.Message.Text(), calls, a.resp.Stop}
					if d := cmp.Diff(x, got, cmp.AllowUnexported(turn{})); d != "" {
						t.Errorf("turn (-want +got):\n%s", d)
					}
					if d := cmp.Diff(&tenon.Usage{Input: 11, Output: 7}, a.resp.Usage); d != "" {
						t.Errorf("usage:\n%s", d)
					}
					msgs = append(msgs, a.resp.Message, answer)
				}
				for i, body := range p.bodies {
					if err := history.Check(p.paths[i], []byte(body)); err != nil {
						t.Errorf("request %d would be refused: %v", i, err)
					}
				}
				if d := cmp.Diff(c.want, seen(t, wire, p.bodies[len(p.bodies)-1])); d != "" {
					t.Errorf("last request (-want +got):\n%s", d)
				}
			})
		}
	}
}
