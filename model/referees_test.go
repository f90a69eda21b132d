package model_test

import (
	"cmp"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// referees maps each wire to its referee.
var referees = map[string]func([]string) verdict{"anthropic": refereeAnthropic, "chat": refereeChat,
	"responses": refereeResponses, "gemini": refereeGemini}

// refereeResponses uses the final form of each item, and its pieces only if the item has no end.
func refereeResponses(events []string) verdict {
	v := verdict{Input: -1, Output: -1}
	items := map[int]map[string]any{}
	var order []int
	for _, e := range events {
		ev, ok := decodeAny(e).(map[string]any)
		if !ok {
			continue
		}
		switch ev["type"] {
		case "response.output_item.done":
			n := num(ev["output_index"])
			items[n] = ev["item"].(map[string]any)
			order = append(order, n)
		case "response.completed", "response.incomplete":
			r := ev["response"].(map[string]any)
			v.Stop, _ = r["status"].(string)
			if d, ok := r["incomplete_details"].(map[string]any); ok {
				v.Stop, _ = d["reason"].(string)
			}
			if u, ok := r["usage"].(map[string]any); ok {
				v.Input, v.Output = num(u["input_tokens"]), num(u["output_tokens"])
			}
		}
	}
	slices.Sort(order)
	plain := false // a thought that cannot be sent back; the items of its turn then have no ids
	for _, n := range order {
		if it := items[n]; it["type"] == "reasoning" {
			if _, ok := it["encrypted_content"].(string); !ok {
				plain = true
			}
		}
	}
	for _, n := range order {
		it := items[n]
		var block any = it
		switch it["type"] {
		case "message":
			s := strings.Join(textsOf(it["content"]), "")
			v.Text += s
			if plain && s == "" {
				continue
			}
			if plain {
				block = map[string]any{"role": "assistant", "content": s}
			}
		case "reasoning":
			list := textsOf(it["summary"])
			if len(list) == 0 {
				list = textsOf(it["content"])
			}
			v.Thinking += strings.Join(list, "\n\n")
			if _, ok := it["encrypted_content"].(string); !ok {
				continue
			}
		case "mcp_approval_request": // a call that the provider makes if it is approved
			v.Calls = append(v.Calls, verdictCall{"approval_" + it["id"].(string), it["server_label"].(string) + "__" + it["name"].(string), decodeAny(it["arguments"].(string))})
		case "function_call":
			args := cmp.Or(it["arguments"].(string), "{}")
			v.Calls = append(v.Calls, verdictCall{it["call_id"].(string), it["name"].(string), decodeAny(args)})
			if plain {
				block = map[string]any{"type": "function_call", "call_id": it["call_id"], "name": it["name"], "arguments": args}
			}
		}
		v.Blocks = append(v.Blocks, block)
	}
	return v
}

// textsOf returns the texts and refusals of a list of content.
func textsOf(list any) (out []string) {
	l, _ := list.([]any)
	for _, c := range l {
		m := c.(map[string]any)
		for _, k := range []string{"text", "refusal"} {
			if s, ok := m[k].(string); ok && s != "" {
				out = append(out, s)
			}
		}
	}
	return out
}

// refereeGemini decodes complete chunks and joins their parts.
func refereeGemini(events []string) verdict {
	v := verdict{Input: -1, Output: -1}
	var args map[string]any // arguments of the incomplete call
	var block map[string]any
	last := "" // kind of the last block while more text may be joined to it
	for _, e := range events {
		ev, ok := decodeAny(e).(map[string]any)
		if !ok {
			continue
		}
		if u, ok := ev["usageMetadata"].(map[string]any); ok && u["promptTokenCount"] != nil {
			v.Input = num(u["promptTokenCount"])
			v.Output = num(u["candidatesTokenCount"]) + num(u["thoughtsTokenCount"])
		}
		candidates, _ := ev["candidates"].([]any)
		for _, c := range candidates {
			cand := c.(map[string]any)
			if s, ok := cand["finishReason"].(string); ok {
				v.Stop = s
			}
			content, _ := cand["content"].(map[string]any)
			parts, _ := content["parts"].([]any)
			for _, p := range parts {
				part := p.(map[string]any)
				call, isCall := part["functionCall"].(map[string]any)
				text, isText := part["text"].(string)
				signed := part["thoughtSignature"] != nil
				switch {
				case isCall && call["name"] != nil:
					args, _ = call["args"].(map[string]any)
					if args == nil {
						args = map[string]any{}
					}
					id, _ := call["id"].(string)
					v.Calls = append(v.Calls, verdictCall{id, call["name"].(string), args})
					fc := map[string]any{"name": call["name"], "args": args}
					if id != "" {
						fc["id"] = id
					}
					block = map[string]any{"functionCall": fc}
					for k, x := range part {
						if k != "functionCall" {
							block[k] = x
						}
					}
					v.Blocks = append(v.Blocks, block)
					last = ""
				case isCall:
					list, _ := call["partialArgs"].([]any)
					for _, x := range list {
						setPath(args, x.(map[string]any))
					}
				case isText && part["thought"] == true:
					v.Thinking += text
					last = ""
					if signed {
						v.Blocks = append(v.Blocks, part)
					}
				case isText:
					v.Text += text
					switch {
					case signed:
						v.Blocks = append(v.Blocks, part)
						last = ""
					case text != "" && last == "text":
						block["text"] = block["text"].(string) + text
					case text != "":
						block = map[string]any{"text": text}
						v.Blocks = append(v.Blocks, block)
						last = "text"
					}
				default:
					v.Blocks = append(v.Blocks, part)
					last = ""
				}
			}
		}
	}
	return v
}

var step = regexp.MustCompile(`\.(\w+)|\[(\d+)\]`)

// setPath sets a piece of the arguments at a path of nested maps.
func setPath(root map[string]any, piece map[string]any) {
	set := func(old any) any {
		if s, ok := piece["stringValue"].(string); ok {
			was, _ := old.(string)
			return was + s
		}
		for _, k := range []string{"numberValue", "boolValue"} {
			if x, ok := piece[k]; ok {
				return x
			}
		}
		return old
	}
	steps := step.FindAllStringSubmatch(piece["jsonPath"].(string), -1)
	var walk func(at any, rest [][]string) any
	walk = func(at any, rest [][]string) any {
		if len(rest) == 0 {
			return set(at)
		}
		if name := rest[0][1]; name != "" {
			m, _ := at.(map[string]any)
			if m == nil {
				m = map[string]any{}
			}
			m[name] = walk(m[name], rest[1:])
			return m
		}
		n, _ := strconv.Atoi(rest[0][2])
		l, _ := at.([]any)
		for len(l) <= n {
			l = append(l, nil)
		}
		l[n] = walk(l[n], rest[1:])
		return l
	}
	walk(root, steps)
}

// echoed returns the blocks of the assistant turn in a request.
func echoed(t *testing.T, wire, body string) []any {
	t.Helper()
	var req struct {
		Input    []any
		Contents []struct{ Parts []any }
	}
	d := json.NewDecoder(strings.NewReader(body))
	d.UseNumber()
	if err := d.Decode(&req); err != nil {
		t.Fatal(fmt.Errorf("%w: %s", err, body))
	}
	if wire == "responses" {
		return append([]any(nil), req.Input...)
	}
	var out []any
	for _, c := range req.Contents {
		out = append(out, c.Parts...)
	}
	return out
}
