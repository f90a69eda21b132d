package textcall

import (
	"encoding/json"
	"errors"
	"strings"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/internal/rawjson"
)

// form is a syntax for calls with two marks. A call extends from the first mark to the end of the text, because the
// closing mark may be missing. Then closed is false, and only a complete object of arguments can be read. Other calls
// may have lost parameters.
type form struct {
	open, close string
	read        func(inner string, closed bool, tools []tenon.Tool) (Call, error)
}

// forms returns the marks of the chat templates, the more specific ones first. Sources: Hermes and Qwen (tool_call),
// Functionary and Llama 3.1 (function=NAME), Qwen 3 Coder (function=NAME in tool_call, with parameter=KEY), Mistral
// ([TOOL_CALLS], with [ARGS] from version 11 on), Llama 3 (python_tag), DeepSeek V3 (its marks with full-width bars)
// and V3.2 (DSML), Phi 4 (functools), Anthropic's prompt form (invoke), Granite and Phi 4 mini (<|tool_call|>), GLM 4.5
// (arg_key in tool_call), MiniMax M2 (invoke in its tool_call), Kimi K2 (tool_calls_section), Nemotron (TOOLCALL), LFM2
// and MiniCPM (tool_call_start), InternLM (action_start), gpt-oss (the commentary channel). Qwen 2.5 Coder often writes
// <tools>, the tag of its prompt.
func forms() []form {
	return []form{
		{"<tool_call>", "</tool_call>", readTagged},
		{"<tool_calls>", "</tool_calls>", readTagged},
		{"<function_call>", "</function_call>", readTagged},
		{"<|tool_call|>", "<|/tool_call|>", readTagged},
		{"<minimax:tool_call>", "</minimax:tool_call>", readTagged},
		{"<toolcall>", "</toolcall>", readTagged},
		{"<tools>", "</tools>", readTagged},
		{"<|tool_call_start|>", "<|tool_call_end|>", readTagged},
		{"<|action_start|><|plugin|>", "<|action_end|>", readTagged},
		{"<｜DSML｜function_calls>", "</｜DSML｜function_calls>", readTagged},
		{"<｜DSML｜invoke name=", "</｜DSML｜invoke>", readInvoke},
		{"<function_calls>", "</function_calls>", readTagged},
		{"<function=", "</function>", readFunction},
		{"<invoke name=", "</invoke>", readInvoke},
		{"[tool_calls]", "[/tool_calls]", readMistral},
		{"<|python_tag|>", "<|eom_id|>", readTagged},
		{"functools[", "", readListed},
		{"<|tool_calls_section_begin|>", "<|tool_calls_section_end|>", readKimi},
		{"<|tool_call_begin|>", "<|tool_call_end|>", readKimi},
		{"<|channel|>commentary to=", "<|call|>", readHarmony},
		{"<｜tool▁calls▁begin｜>", "<｜tool▁calls▁end｜>", readDeepSeek},
		{"<｜tool▁call▁begin｜>", "<｜tool▁call▁end｜>", readDeepSeek},
		{"<|tool▁calls▁begin|>", "<|tool▁calls▁end|>", readDeepSeek},
		{"<|tool▁call▁begin|>", "<|tool▁call▁end|>", readDeepSeek},
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
	if strings.HasPrefix(inner, "[") {
		c, err = readList(inner[1:], tools)
		return c, before, err
	}
	if lead := strings.TrimRight(before, " \t\n\r"); strings.HasSuffix(lead, "```") || fenceLine(lead) {
		before = lead[:max(0, strings.LastIndex(lead, "```"))]
	}
	c, err = readObject(inner, tools)
	return c, before, err
}

// Marked is like [Find], but finds only calls between the marks of a chat template.
func Marked(text string, tools []tenon.Tool) (c Call, before string, err error) {
	return marked(text, false, tools)
}

// marked is like [Marked]. closed reports whether a closing mark of other marks follows the text.
func marked(text string, closed bool, tools []tenon.Tool) (c Call, before string, err error) {
	for _, f := range forms() {
		at := openingAt(text, f.open)
		if at < 0 {
			continue
		}
		inner := text[at+len(f.open):]
		if f.close != "" {
			if end := indexFold(inner, f.close); end >= 0 {
				after := inner[end+len(f.close):]
				switch {
				case indexFold(after, f.open) >= 0:
					return Call{}, "", &NoCallError{Why: "the text has several calls; write one at a time"}
				case !endsReply(after):
					return Call{}, "", &NoCallError{Why: "there is text after the call"}
				}
				inner, closed = inner[:end], true
			}
		}
		c, err := f.read(strings.TrimSpace(inner), closed, tools)
		if errors.Is(err, ErrNone) {
			err = &NoCallError{Why: "the text after " + f.open + " is not a call"}
		}
		return c, text[:at], err
	}
	return Call{}, "", ErrNone
}

// openingAt returns the offset of the first opening mark that may begin a call, or -1. A mark in a sentence is only
// mentioned there, except for special tokens, which no sentence has.
func openingAt(text, open string) int {
	for from := 0; ; {
		i := indexFold(text[from:], open)
		if i < 0 {
			return -1
		}
		from += i
		line := text[strings.LastIndexByte(text[:from], '\n')+1 : from]
		if mayOpen(line, isToken(open)) {
			return from
		}
		from += len(open)
	}
}

// mayOpen reports whether a mark may begin a call after the beginning of its line.
func mayOpen(line string, token bool) bool {
	lead := strings.Trim(line, " \t\r")
	switch {
	case lead == "", strings.HasSuffix(lead, ">") && strings.HasPrefix(lead, "<"): // other tags may precede a mark
		return true
	case !token || strings.HasPrefix(lead, ">"):
		return false
	}
	return strings.Count(line, "`")%2 == 0 && !strings.ContainsRune("\"'“‘«„(`", lastRune(lead))
}

// endsReply reports whether nothing but tags, special tokens, the fence of a code block or an invented observation
// follows a call.
func endsReply(after string) bool {
	after = strings.ToLower(strings.Trim(after, "` \t\r\n"))
	return after == "" || strings.HasPrefix(after, "<") ||
		strings.HasPrefix(strings.TrimLeft(after, "*_#> "), "observation")
}

// readTagged reads an object, a list with one object, or another form within the marks.
func readTagged(inner string, closed bool, tools []tenon.Tool) (Call, error) {
	if c, before, err := marked(inner, closed, tools); !errors.Is(err, ErrNone) && strings.TrimSpace(before) == "" {
		return c, err
	}
	inner, _ = unfence(inner)
	if strings.Contains(inner, "<arg_key>") {
		return readPairs(inner, closed, tools)
	}
	if c, err := readCode(inner, tools); !errors.Is(err, ErrNone) {
		return c, err
	}
	if strings.HasPrefix(inner, "[") {
		return readList(inner[1:], tools)
	}
	return readObject(inner, tools)
}

func readListed(inner string, _ bool, tools []tenon.Tool) (Call, error) {
	return readList(inner, tools)
}

// readList reads a list with one object. inner begins after the opening bracket.
func readList(inner string, tools []tenon.Tool) (Call, error) {
	inner = strings.TrimSpace(inner)
	c, n, err := objectCall(inner, tools)
	if err != nil {
		return c, err
	}
	rest, closed := strings.CutPrefix(strings.TrimSpace(inner[n:]), "]")
	switch {
	case strings.HasPrefix(rest, ","):
		return Call{}, &NoCallError{Why: "the text has several calls; write one at a time"}
	case closed && !endsReply(rest), !closed && rest != "":
		return Call{}, &NoCallError{Why: "there is text after the call"}
	}
	return c, nil
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

// readFunction reads NAME>{…}, NAME{…} and NAME><parameter=KEY>VALUE</parameter>…. Llama often omits the bracket.
func readFunction(inner string, closed bool, tools []tenon.Tool) (Call, error) {
	i := strings.IndexAny(inner, ">{")
	if i < 0 {
		return Call{}, ErrNone
	}
	name, body := inner[:i], strings.TrimPrefix(inner[i:], ">")
	return readParameters(name, strings.TrimSpace(body), "<parameter=", closed, tools)
}

// readInvoke reads "NAME"><parameter name="KEY">VALUE</parameter>….
func readInvoke(inner string, closed bool, tools []tenon.Tool) (Call, error) {
	inner = strings.ReplaceAll(inner, "｜DSML｜", "")
	name, body, ok := strings.Cut(inner, ">")
	if !ok {
		return Call{}, ErrNone
	}
	closed = closed || strings.HasSuffix(strings.TrimSpace(name), "/")
	return readParameters(attribute(name), strings.TrimSpace(body), "<parameter name=", closed, tools)
}

// attribute returns the value of an attribute without its quotation marks and without the attributes after it.
func attribute(s string) string {
	s = strings.TrimSpace(s)
	if s != "" && (s[0] == '"' || s[0] == '\'') {
		if i := strings.IndexByte(s[1:], s[0]); i >= 0 {
			return s[1 : 1+i]
		}
	}
	return strings.Trim(s, `"' `)
}

// noTags is the opening tag of forms whose arguments are an object.
const noTags = "\x00"

// readParameters reads arguments: one object, or each argument between tags. Arguments between tags, and missing ones,
// are complete only if the call is closed.
func readParameters(name, body, open string, closed bool, tools []tenon.Tool) (c Call, err error) {
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
	switch {
	case !closed && (body == "" || open != noTags):
		return Call{}, &NoCallError{Why: "the call ends before its arguments are complete"}
	case body == "" && open == noTags:
		err = c.complete(name, nil, tools)
		return c, err
	}
	args := []byte{'{'}
	schema := schemaOf(name, tools)
	for body != "" {
		rest, ok := strings.CutPrefix(body, open)
		key, rest, cut := strings.Cut(rest, ">")
		value, rest, closed := strings.Cut(rest, "</parameter>")
		if !ok || !cut || !closed || strings.Contains(value, open) {
			return Call{}, &NoCallError{Why: "the parameters are not closed one by one"}
		}
		if len(args) > 1 {
			args = append(args, ',')
		}
		key = attribute(key)
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
func readMistral(inner string, closed bool, tools []tenon.Tool) (Call, error) {
	name, args, ok := strings.Cut(inner, "[ARGS]")
	if name, _, _ = strings.Cut(name, "[CALL_ID]"); ok && !strings.ContainsAny(name, "{[") {
		return readParameters(strings.TrimSpace(name), strings.TrimSpace(args), noTags, closed, tools)
	}
	return readTagged(inner, closed, tools)
}

// fullBars replaces the ASCII bars in marks of DeepSeek. Some conversions of its tokenizer write them.
var fullBars = strings.NewReplacer("<|tool▁call▁begin|>", "<｜tool▁call▁begin｜>", "<|tool▁call▁end|>",
	"<｜tool▁call▁end｜>", "<|tool▁sep|>", "<｜tool▁sep｜>")

// readDeepSeek reads function<｜tool▁sep｜>NAME, then the object in a code block, and NAME<｜tool▁sep｜>{…}.
func readDeepSeek(inner string, closed bool, tools []tenon.Tool) (Call, error) {
	inner = fullBars.Replace(inner)
	for _, mark := range []string{"<｜tool▁call▁begin｜>", "<｜tool▁call▁end｜>"} {
		if strings.Count(inner, mark) > 1 {
			return Call{}, &NoCallError{Why: "the text has several calls; write one at a time"}
		}
		closed = closed || strings.HasSuffix(inner, mark)
		inner = strings.ReplaceAll(inner, mark, "")
	}
	kind, rest, ok := strings.Cut(strings.TrimSpace(inner), "<｜tool▁sep｜>")
	if !ok {
		return Call{}, ErrNone
	}
	if kind != "function" {
		return readParameters(kind, strings.TrimSpace(rest), noTags, closed, tools)
	}
	name, args, _ := strings.Cut(rest, "\n")
	args, _ = unfence(strings.TrimSpace(args))
	return readParameters(name, args, noTags, closed, tools)
}
