package model_test

import (
	"cmp"
	"encoding/json"
	"strings"
)

// verdict is the content of an answer according to the referee, a simple second decoder. It shares no code with the
// adapters and uses only encoding/json.
type verdict struct {
	Text, Thinking, Stop string
	Calls                []verdictCall
	Input, Output        int // -1 if missing
	Blocks               []any
}

type verdictCall struct {
	ID, Name string
	Args     any
}

func decodeAny(s string) any {
	d := json.NewDecoder(strings.NewReader(s))
	d.UseNumber()
	var v any
	if d.Decode(&v) != nil {
		return "INVALID " + s
	}
	return v
}

func num(v any) int {
	n, ok := v.(json.Number)
	if !ok {
		return 0
	}
	i, _ := n.Int64()
	return int(i)
}

// refereeAnthropic decodes a complete stream of the Messages API.
func refereeAnthropic(events []string) verdict {
	v := verdict{Input: -1, Output: -1}
	var order []map[string]any
	byIndex := map[int]map[string]any{}
	partial := map[int]string{}
	usage := map[string]any{}
	first := ""
	for _, e := range events {
		ev, ok := decodeAny(e).(map[string]any)
		if !ok {
			continue
		}
		index := num(ev["index"])
		switch ev["type"] {
		case "message_start":
			m := ev["message"].(map[string]any)
			id, _ := m["id"].(string)
			if first != "" && id == first {
				continue
			}
			first = id
			order, byIndex, partial = nil, map[int]map[string]any{}, map[int]string{}
			usage = map[string]any{}
			for k, x := range m["usage"].(map[string]any) {
				usage[k] = x
			}
			if content, ok := m["content"].([]any); ok {
				for _, b := range content {
					order = append(order, b.(map[string]any))
				}
			}
			if s, ok := m["stop_reason"].(string); ok {
				v.Stop = s
			}
		case "content_block_start":
			b := ev["content_block"].(map[string]any)
			order = append(order, b)
			byIndex[index] = b
			partial[index] = ""
		case "content_block_delta":
			b, d := byIndex[index], ev["delta"].(map[string]any)
			str := func(k string) { old, _ := b[k].(string); b[k] = old + d[k].(string) }
			switch d["type"] {
			case "text_delta":
				str("text")
			case "thinking_delta":
				str("thinking")
			case "signature_delta":
				b["signature"] = d["signature"]
			case "compaction_delta":
				str("content")
			case "citations_delta":
				list, _ := b["citations"].([]any)
				b["citations"] = append(list, d["citation"])
			case "input_json_delta":
				partial[index] += d["partial_json"].(string)
				if partial[index] != "" {
					b["input"] = decodeAny(partial[index])
				}
			}
		case "message_delta":
			if s, ok := ev["delta"].(map[string]any)["stop_reason"].(string); ok {
				v.Stop = s
			}
			if u, ok := ev["usage"].(map[string]any); ok {
				for k, x := range u {
					usage[k] = x
				}
			}
		}
	}
	v.addBlocks(order)
	if _, ok := usage["output_tokens"]; ok {
		v.Output = num(usage["output_tokens"])
		v.Input = num(usage["input_tokens"]) + num(usage["cache_read_input_tokens"]) + num(usage["cache_creation_input_tokens"])
	}
	return v
}

// addBlocks adds the content blocks of an answer of Anthropic.
func (v *verdict) addBlocks(order []map[string]any) {
	for _, b := range order {
		switch b["type"] {
		case "text":
			s, _ := b["text"].(string)
			v.Text += s
			if strings.TrimSpace(s) == "" {
				continue
			}
		case "thinking":
			s, _ := b["thinking"].(string)
			v.Thinking += s
		case "tool_use":
			v.Calls = append(v.Calls, verdictCall{b["id"].(string), b["name"].(string), b["input"]})
		}
		v.Blocks = append(v.Blocks, b)
	}
}

// chatChunk is an event of a chat completion.
type chatChunk struct {
	Choices []struct {
		Delta struct {
			Content          json.RawMessage
			ReasoningContent string `json:"reasoning_content"`
			Reasoning        string
			ToolCalls        []struct {
				Index    int
				ID       string
				Function struct{ Name, Arguments string }
			} `json:"tool_calls"`
		}
		FinishReason string `json:"finish_reason"`
	}
	Usage *struct {
		Prompt     int `json:"prompt_tokens"`
		Completion int `json:"completion_tokens"`
		Total      int `json:"total_tokens"`
		Details    struct {
			Reasoning int `json:"reasoning_tokens"`
		} `json:"completion_tokens_details"`
	}
}

// refereeChat decodes a complete stream of chat completions.
func refereeChat(events []string) verdict {
	v := verdict{Input: -1, Output: -1}
	type call struct{ id, name, args string }
	var calls []*call
	byIndex := map[int]*call{}
	for _, e := range events {
		var c chatChunk
		if json.Unmarshal([]byte(e), &c) != nil {
			continue
		}
		if c.Usage != nil {
			v.Input, v.Output = c.Usage.Prompt, c.Usage.Completion
			if n := c.Usage.Details.Reasoning; c.Usage.Total == v.Input+v.Output+n { // xAI counts reasoning apart
				v.Output += n
			}
		}
		for _, ch := range c.Choices {
			var s string
			if json.Unmarshal(ch.Delta.Content, &s) == nil {
				v.Text += s
			}
			var parts []struct {
				Type, Text string
				Thinking   []struct{ Text string }
			}
			if s == "" && json.Unmarshal(ch.Delta.Content, &parts) == nil {
				for _, p := range parts {
					v.Text += p.Text
					for _, t := range p.Thinking {
						v.Thinking += t.Text
					}
				}
			}
			v.Thinking += ch.Delta.ReasoningContent + ch.Delta.Reasoning
			for _, tc := range ch.Delta.ToolCalls {
				x := byIndex[tc.Index]
				if x == nil {
					x = &call{}
					byIndex[tc.Index] = x
					calls = append(calls, x)
				}
				x.id = cmp.Or(x.id, tc.ID)
				x.name = cmp.Or(x.name, tc.Function.Name)
				x.args += tc.Function.Arguments
			}
			v.Stop = cmp.Or(ch.FinishReason, v.Stop)
		}
	}
	for _, c := range calls {
		c.args = cmp.Or(c.args, "{}")
		v.Calls = append(v.Calls, verdictCall{c.id, c.name, decodeAny(c.args)})
	}
	return v
}
