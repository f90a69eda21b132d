package textcall

import (
	"encoding/json"
	"errors"
	"strings"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/internal/rawjson"
)

// form is a syntax for calls with two marks. A call extends from the first mark to the end of the text, because the
// closing mark may be missing.
type form struct {
	open, close string
	read        func(inner string, tools []tenon.Tool) (Call, error)
}

// forms returns the marks of the chat templates, the more specific ones first. Sources: Hermes and Qwen (tool_call),
// Functionary and Llama 3.1 (function=NAME), Qwen 3 Coder (function=NAME in tool_call, with parameter=KEY), Mistral
// ([TOOL_CALLS], with [ARGS] from version 11 on), Llama 3 (python_tag), DeepSeek V3 (its marks with full-width bars),
// Phi 4 (functools), Anthropic's prompt form (invoke), Granite (<|tool_call|>).
func forms() []form {
	return []form{
		{"<tool_call>", "</tool_call>", readTagged},
		{"<tool_calls>", "</tool_calls>", readTagged},
		{"<function_call>", "</function_call>", readTagged},
		{"<|tool_call|>", "<|/tool_call|>", readTagged},
		{"<function_calls>", "</function_calls>", readTagged},
		{"<function=", "</function>", readFunction},
		{"<invoke name=", "</invoke>", readInvoke},
		{"[tool_calls]", "[/tool_calls]", readMistral},
		{"<|python_tag|>", "<|eom_id|>", readTagged},
		{"functools[", "", readList},
		{"<｜tool▁calls▁begin｜>", "<｜tool▁calls▁end｜>", readDeepSeek},
		{"<｜tool▁call▁begin｜>", "<｜tool▁call▁end｜>", readDeepSeek},
	}
}

// Find reads the call at the end of a text without thinking. It finds a call between the marks of a chat template, a
// JSON object that begins a line, in a code block or not, and the form NAME(…) if the text contains nothing else.
// before is the text in front of the call. The error is [ErrNone] if nothing in the text resembles a call, and a
// [NoCallError] if a call cannot be read.
func Find(text string, tools []tenon.Tool) (c Call, before string, err error) {
	if c, before, err = Marked(text, tools); !errors.Is(err, ErrNone) {
		return c, before, err
	}
	text = strings.TrimSpace(text)
	body, rest := unfence(text)
	if c, err = readCode(body, tools); rest == "" && !errors.Is(err, ErrNone) {
		return c, "", err
	}
	at := objectAt(text)
	if at < 0 {
		return Call{}, "", ErrNone
	}
	inner, before := text[at:], text[:at]
	if lead := strings.TrimRight(before, " \t\n\r"); strings.HasSuffix(lead, "```") || fenceLine(lead) {
		before = lead[:max(0, strings.LastIndex(lead, "```"))]
	}
	c, err = readObject(inner, tools)
	return c, before, err
}

// Marked is like [Find], but finds only calls between the marks of a chat template.
func Marked(text string, tools []tenon.Tool) (c Call, before string, err error) {
	for _, f := range forms() {
		at := indexFold(text, f.open)
		if at < 0 {
			continue
		}
		inner := text[at+len(f.open):]
		if f.close != "" {
			if end := indexFold(inner, f.close); end >= 0 {
				if after := text[at+len(f.open)+end+len(f.close):]; indexFold(after, f.open) >= 0 {
					return Call{}, "", &NoCallError{Why: "the text has several calls; write one at a time"}
				}
				inner = inner[:end]
			}
		}
		c, err := f.read(strings.TrimSpace(inner), tools)
		if errors.Is(err, ErrNone) {
			err = &NoCallError{Why: "the text after " + f.open + " is not a call"}
		}
		return c, text[:at], err
	}
	return Call{}, "", ErrNone
}

// readTagged reads an object, a list with one object, or another form within the marks.
func readTagged(inner string, tools []tenon.Tool) (Call, error) {
	if c, before, err := Marked(inner, tools); !errors.Is(err, ErrNone) && strings.TrimSpace(before) == "" {
		return c, err
	}
	inner, _ = unfence(inner)
	if strings.HasPrefix(inner, "[") {
		return readList(inner[1:], tools)
	}
	if c, err := readCode(inner, tools); !errors.Is(err, ErrNone) {
		return c, err
	}
	return readObject(inner, tools)
}

// readList reads a list with one object. inner begins after the opening bracket.
func readList(inner string, tools []tenon.Tool) (Call, error) {
	c, n, err := objectCall(strings.TrimSpace(inner), tools)
	if rest := strings.TrimSpace(strings.TrimSpace(inner)[n:]); err == nil && strings.HasPrefix(rest, ",") {
		return Call{}, &NoCallError{Why: "the text has several calls; write one at a time"}
	}
	return c, err
}

// readObject reads an object. Only closing marks may follow it.
func readObject(inner string, tools []tenon.Tool) (Call, error) {
	c, n, err := objectCall(inner, tools)
	if err != nil {
		return c, err
	}
	rest := strings.TrimSpace(inner[n:])
	switch {
	case strings.Trim(rest, "`}] \r\n\t") == "", strings.HasPrefix(rest, "<|"), strings.HasPrefix(rest, "</"):
		return c, nil
	case strings.HasPrefix(strings.ToLower(strings.TrimLeft(rest, "` \r\n\t*")), "observation"):
		return c, nil
	}
	return Call{}, &NoCallError{Why: "there is text after the call"}
}

func objectCall(inner string, tools []tenon.Tool) (Call, int, error) {
	object, n, repairs, err := Object(inner)
	if err != nil {
		if looksLikeCall(inner) {
			return Call{}, 0, &NoCallError{Why: "the call is not JSON: " + err.Error()}
		}
		return Call{}, 0, ErrNone
	}
	c, err := Shape(object, tools)
	if err == nil {
		c.Repairs = append(repairs, c.Repairs...)
	}
	return c, n, err
}

// looksLikeCall reports whether a text begins with an object that has the members of a call.
func looksLikeCall(s string) bool {
	s = strings.ToLower(s[:min(len(s), 1024)])
	has := func(keys []string) bool {
		for _, k := range keys {
			if i := strings.Index(s, k); i > 0 && strings.ContainsRune("\"'“”‘’", lastRune(s[:i])) {
				return true
			}
		}
		return false
	}
	return strings.HasPrefix(s, "{") && has(nameKeys) && has(argsKeys)
}

func lastRune(s string) rune {
	r := []rune(s)
	return r[len(r)-1]
}

// readFunction reads NAME>{…} and NAME><parameter=KEY>VALUE</parameter>….
func readFunction(inner string, tools []tenon.Tool) (Call, error) {
	name, body, ok := strings.Cut(inner, ">")
	if !ok {
		return Call{}, ErrNone
	}
	return readParameters(name, strings.TrimSpace(body), "<parameter=", tools)
}

// readInvoke reads "NAME"><parameter name="KEY">VALUE</parameter>….
func readInvoke(inner string, tools []tenon.Tool) (Call, error) {
	name, body, ok := strings.Cut(inner, ">")
	if !ok {
		return Call{}, ErrNone
	}
	return readParameters(strings.Trim(name, `"' `), strings.TrimSpace(body), "<parameter name=", tools)
}

// readParameters reads arguments: one object, or each argument between tags.
func readParameters(name, body, open string, tools []tenon.Tool) (c Call, err error) {
	if strings.HasPrefix(body, "{") {
		object, n, repairs, err := Object(body)
		if err == nil && strings.TrimSpace(body[n:]) != "" {
			err = problem("there is text after the object")
		}
		if err != nil {
			return Call{}, &NoCallError{Why: "the arguments are not JSON: " + err.Error()}
		}
		c.Repairs = repairs
		err = c.complete(name, object, tools)
		return c, err
	}
	args := []byte{'{'}
	schema := schemaOf(name, tools)
	for body != "" {
		rest, ok := strings.CutPrefix(body, open)
		key, rest, cut := strings.Cut(rest, ">")
		value, rest, closed := strings.Cut(rest, "</parameter>")
		if !ok || !cut || !closed {
			return Call{}, &NoCallError{Why: "the parameters are not closed one by one"}
		}
		if len(args) > 1 {
			args = append(args, ',')
		}
		key = strings.Trim(key, `"' `)
		args = append(rawjson.AppendString(args, key), ':')
		if args, err = appendTyped(args, value, rawjson.Field(rawjson.Field(schema, "properties"), key)); err != nil {
			return Call{}, &NoCallError{Why: "the parameter " + quoted(key) + ": " + err.Error()}
		}
		body = strings.TrimSpace(rest)
	}
	err = c.complete(name, append(args, '}'), tools)
	return c, err
}

func schemaOf(name string, tools []tenon.Tool) json.RawMessage {
	exact, _, _ := Name(name, tools)
	for i := range tools {
		if tools[i].Name == exact {
			return tools[i].Input
		}
	}
	return nil
}

// appendTyped appends a value that was written without quotation marks. The schema decides whether the value is a
// string.
func appendTyped(dst []byte, value string, schema json.RawMessage) ([]byte, error) {
	typ := rawjson.String(rawjson.Field(schema, "type"))
	if typ == "string" || typ == "" && !json.Valid([]byte(strings.TrimSpace(value))) {
		return rawjson.AppendString(dst, strings.Trim(value, "\r\n")), nil
	}
	text := strings.TrimSpace(value)
	switch text {
	case "True", "False":
		text = strings.ToLower(text)
	case "None":
		text = "null"
	}
	if !json.Valid([]byte(text)) {
		return nil, problem("the value is not of type " + typ)
	}
	return append(dst, text...), nil
}

// readMistral reads [{…}], {…} and NAME[ARGS]{…}.
func readMistral(inner string, tools []tenon.Tool) (Call, error) {
	if name, args, ok := strings.Cut(inner, "[ARGS]"); ok && !strings.ContainsAny(name, "{[") {
		name, _, _ = strings.Cut(name, "[CALL_ID]")
		return readParameters(strings.TrimSpace(name), strings.TrimSpace(args), "\x00", tools)
	}
	return readTagged(inner, tools)
}

// readDeepSeek reads function<｜tool▁sep｜>NAME, then the object in a code block, and NAME<｜tool▁sep｜>{…}.
func readDeepSeek(inner string, tools []tenon.Tool) (Call, error) {
	for _, mark := range []string{"<｜tool▁call▁begin｜>", "<｜tool▁call▁end｜>"} {
		if strings.Count(inner, mark) > 1 {
			return Call{}, &NoCallError{Why: "the text has several calls; write one at a time"}
		}
		inner = strings.ReplaceAll(inner, mark, "")
	}
	kind, rest, ok := strings.Cut(strings.TrimSpace(inner), "<｜tool▁sep｜>")
	if !ok {
		return Call{}, ErrNone
	}
	if kind != "function" {
		return readParameters(kind, strings.TrimSpace(rest), "\x00", tools)
	}
	name, args, _ := strings.Cut(rest, "\n")
	args, _ = unfence(strings.TrimSpace(args))
	return readParameters(name, args, "\x00", tools)
}
