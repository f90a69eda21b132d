package textcall

import (
	"strings"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/internal/rawjson"
)

// This file contains the forms of particular models.

// beginnings and ends are the special tokens around a reply. A server that does not know the template of a model leaves
// them in the text. Sources: the chat templates of Qwen, Llama 3, Gemma, Phi, Mistral, Granite, gpt-oss and DeepSeek.
var (
	beginnings = []string{"<|begin_of_text|>", "<bos>", "<s>", "[/INST]", "<|im_start|>assistant",
		"<|start_header_id|>assistant<|end_header_id|>", "<|start_of_role|>assistant<|end_of_role|>",
		"<start_of_turn>model", "<|assistant|>", "<|start|>assistant", "<|channel|>final<|message|>"}
	ends = []string{"<|im_end|>", "<|eot_id|>", "<|eom_id|>", "<end_of_turn>", "<|end|>", "</s>", "<|endoftext|>",
		"<|end_of_text|>", "<|return|>", "<｜end▁of▁sentence｜>", "<end_action>"}
)

// Strip removes the special tokens at the beginning and at the end of a reply.
func Strip(text string) string {
	for found := true; found; {
		found = false
		for _, token := range beginnings {
			if t := strings.TrimLeft(text, " \t\r\n"); hasPrefixFold(t, token) {
				text, found = strings.TrimLeft(t[len(token):], " \t\r\n"), true
			}
		}
		for _, token := range ends {
			if t := strings.TrimRight(text, " \t\r\n"); strings.HasSuffix(t, token) {
				text, found = strings.TrimRight(t[:len(t)-len(token)], " \t\r\n"), true
			}
		}
	}
	return text
}

// readPairs reads NAME and pairs of <arg_key>KEY</arg_key> and <arg_value>VALUE</arg_value> (GLM 4.5).
func readPairs(inner string, closed bool, tools []tenon.Tool) (c Call, err error) {
	name, body, _ := strings.Cut(inner, "<arg_key>")
	name = strings.TrimSpace(name)
	if !closed || body == "" {
		return Call{}, &NoCallError{Why: "the call ends before its arguments are complete"}
	}
	args := []byte{'{'}
	schema := schemaOf(name, tools)
	for body != "" {
		key, rest, ok := strings.Cut(body, "</arg_key>")
		between, rest, opened := strings.Cut(rest, "<arg_value>")
		value, rest, closed := strings.Cut(rest, "</arg_value>")
		if !ok || !opened || !closed || strings.TrimSpace(between) != "" {
			return Call{}, &NoCallError{Why: "the arguments are not closed one by one"}
		}
		if len(args) > 1 {
			args = append(args, ',')
		}
		key = strings.TrimSpace(key)
		args = append(rawjson.AppendString(args, key), ':')
		if args, err = appendTyped(args, value, rawjson.Field(rawjson.Field(schema, "properties"), key)); err != nil {
			return Call{}, &NoCallError{Why: "the argument " + quoted(key) + ": " + err.Error()}
		}
		rest = strings.TrimSpace(rest)
		if body, ok = strings.CutPrefix(rest, "<arg_key>"); !ok && rest != "" {
			return Call{}, &NoCallError{Why: "there is text after the arguments"}
		}
	}
	err = c.complete(name, append(args, '}'), tools)
	return c, err
}

// readKimi reads functions.NAME:NUMBER<|tool_call_argument_begin|>{…} (Kimi K2).
func readKimi(inner string, closed bool, tools []tenon.Tool) (Call, error) {
	const begin, end = "<|tool_call_begin|>", "<|tool_call_end|>"
	if strings.Count(inner, begin) > 1 {
		return Call{}, &NoCallError{Why: "the text has several calls; write one at a time"}
	}
	inner = strings.TrimSpace(strings.ReplaceAll(inner, begin, ""))
	inner, _, ended := strings.Cut(inner, end)
	name, args, ok := strings.Cut(inner, "<|tool_call_argument_begin|>")
	if !ok {
		return Call{}, ErrNone
	}
	name, _, _ = strings.Cut(strings.TrimSpace(name), ":")
	return readParameters(name, strings.TrimSpace(args), noTags, closed || ended, tools)
}

// readHarmony reads functions.NAME <|constrain|>json<|message|>{…} (gpt-oss).
func readHarmony(inner string, closed bool, tools []tenon.Tool) (Call, error) {
	head, args, ok := strings.Cut(inner, "<|message|>")
	if !ok {
		return Call{}, ErrNone
	}
	if i := strings.IndexAny(head, " <\t\n"); i >= 0 {
		head = head[:i]
	}
	return readParameters(head, strings.TrimSpace(args), noTags, closed, tools)
}
