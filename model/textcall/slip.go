package textcall

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/internal/rawjson"
)

// maxSlips bounds the calls of one text.
const maxSlips = 32

// Slips reads calls at the end of a text that were written by a model with native tool calls. It accepts one or more
// blocks between the marks of the model's chat template, or a text that consists only of an object with the members
// name and arguments or parameters. before is the text in front of the calls. Slips is stricter than [Find], because
// the text of such a model is more often an answer than a call. Marks must begin a line unless they are special tokens,
// all blocks must be calls of tools, and nothing may follow them. Text in code blocks, quotations and thinking is never
// a call. The error is [ErrNone] if nothing resembles a call, and a [NoCallError] with the reason if text between marks
// is not a call.
func Slips(text string, tools []tenon.Tool) (calls []Call, before string, err error) {
	text = strings.TrimRight(text, " \t\r\n")
	f, at := firstMark(text)
	if at < 0 {
		calls, err = readWholes(strings.TrimSpace(text), tools)
		return calls, "", err
	}
	before = text[:at]
	for rest := text[at:]; rest != ""; {
		var inner string
		closed := false
		if inner, rest, closed, err = block(f, rest); err != nil {
			return nil, "", err
		}
		list, err := readBlock(f, inner, closed, tools)
		if err != nil {
			return nil, "", err
		}
		if calls = append(calls, list...); len(calls) > maxSlips {
			return nil, "", &NoCallError{Why: "the text has too many calls"}
		}
	}
	for _, c := range calls {
		if c.IsFinal || c.Name == "" {
			return nil, "", &NoCallError{Why: "the text between the marks is an answer"}
		}
	}
	return calls, before, nil
}

// firstMark returns the first mark that may begin a call and its offset, or -1.
func firstMark(text string) (found form, at int) {
	at = -1
	for _, f := range forms() {
		for from := 0; ; {
			i := indexFold(text[from:], f.open)
			if i < 0 || at >= 0 && from+i >= at {
				break
			}
			if i += from; begins(text[:i], isToken(f.open)) {
				found, at = f, i
				break
			}
			from = i + len(f.open)
		}
	}
	return found, at
}

// isToken reports whether a mark is a special token of a tokenizer, which does not occur in ordinary text by accident.
func isToken(mark string) bool {
	return strings.HasPrefix(mark, "<|") || strings.HasPrefix(mark, "<｜") || strings.HasPrefix(mark, "[")
}

// begins reports whether a call may begin after a text. The text must not end in a code block or quotation. If the mark
// is not a special token, it must be at the beginning of a line.
func begins(before string, token bool) bool {
	fence, paragraph := "", 0 // the marks of the open code block; where the paragraph begins
	line := before
	for {
		first, rest, ok := strings.Cut(line, "\n")
		if !ok {
			break
		}
		fence = afterLine(fence, strings.TrimLeft(first, " \t>"))
		line = rest
		if strings.TrimSpace(first) == "" {
			paragraph = len(before) - len(rest)
		}
	}
	lead := strings.TrimSpace(line)
	switch {
	case fence != "", isQuoted(before[paragraph:]), inElement(before):
		return false
	case lead == "":
		// Four spaces make a code block in Markdown.
		return before == line || !strings.HasPrefix(line, "    ") && !strings.HasPrefix(line, "\t")
	case !token || strings.HasPrefix(lead, ">") || strings.HasPrefix(lead, "```"):
		return false
	}
	return strings.Count(line, "`")%2 == 0 && !strings.ContainsRune("\"'“‘«„(`", lastRune(lead))
}

// afterLine returns the marks of the code block that is open after a line. fence are those before it. Only a line with
// the same marks and nothing else closes a block. Markdown also closes it at more marks, but a model that writes them
// often begins an inner block.
func afterLine(fence, line string) string {
	for _, c := range []string{"`", "~"} {
		rest := strings.TrimLeft(line, c)
		marks := line[:len(line)-len(rest)]
		switch {
		case len(marks) < len("```"):
		case fence == "" && !(c == "`" && strings.Contains(rest, c)):
			return marks
		case marks == fence && strings.TrimSpace(rest) == "":
			return ""
		}
	}
	return fence
}

// isQuoted reports whether a call after the beginning of a paragraph is quoted: the paragraph is a block quote, whose
// last lines need no sign in Markdown, or a quotation mark is open.
func isQuoted(paragraph string) bool {
	if strings.HasPrefix(strings.TrimSpace(paragraph), ">") || strings.Count(paragraph, `"`)%2 == 1 {
		return true
	}
	for _, q := range [][2]string{{"“", "”"}, {"«", "»"}} {
		if strings.Count(paragraph, q[0]) > strings.Count(paragraph, q[1]) {
			return true
		}
	}
	return false
}

// inElement reports whether a text ends in an HTML element with a text of somebody else.
func inElement(text string) bool {
	for _, name := range []string{"pre", "blockquote", "code", "example", "q"} {
		if i := lastFold(text, "<"+name); i >= 0 && indexFold(text[i:], "</"+name) < 0 {
			if rest := text[i+1+len(name):]; strings.HasPrefix(rest, ">") || strings.HasPrefix(rest, " ") {
				return true
			}
		}
	}
	return false
}

// lastFold returns the offset of the last occurrence of a word, or -1. The case of letters does not matter.
func lastFold(s, word string) int {
	for last := -1; ; {
		i := indexFold(s[last+1:], word)
		if i < 0 {
			return last
		}
		last += 1 + i
	}
}

// block splits the first block from a text that begins with a mark. rest is empty or begins with the same mark.
func block(f form, text string) (inner, rest string, closed bool, err error) {
	if !hasPrefixFold(text, f.open) {
		return "", "", false, &NoCallError{Why: "there is text after the call"}
	}
	inner = text[len(f.open):]
	end := -1
	if f.close != "" {
		end = indexFold(inner, f.close)
	}
	if end < 0 {
		return strings.TrimSpace(inner), "", false, nil
	}
	rest = strings.TrimSpace(inner[end+len(f.close):])
	return strings.TrimSpace(inner[:end]), strings.TrimSpace(Strip(rest)), true, nil
}

// readBlock reads the calls of one block. A list of Mistral, and the text between DeepSeek's marks, may contain several
// calls. Other blocks contain one.
func readBlock(f form, inner string, closed bool, tools []tenon.Tool) (calls []Call, err error) {
	var parts []string
	inner = fullBars.Replace(inner)
	const open = "<｜tool▁call▁begin｜>"
	switch {
	case strings.Contains(inner, open):
		for p := range strings.SplitSeq(inner, open) {
			if p = strings.TrimSpace(p); p != "" {
				parts = append(parts, p)
			}
		}
	case strings.HasPrefix(inner, "[") && json.Valid([]byte(inner)):
		for e := range rawjson.Elements([]byte(inner)) {
			parts = append(parts, string(e))
		}
	default:
		parts = []string{inner}
	}
	if len(parts) == 0 || len(parts) > maxSlips {
		return nil, &NoCallError{Why: "the text between the marks is not a call"}
	}
	for _, p := range parts {
		c, err := f.read(p, closed, tools)
		if errors.Is(err, ErrNone) {
			err = &NoCallError{Why: "the text after " + f.open + " is not a call"}
		}
		if err != nil {
			return nil, err
		}
		if !closed && slices.Contains(c.Repairs, BracketAdded) {
			return nil, &NoCallError{Why: "the call ends before its arguments are complete"}
		}
		c.Text = p
		calls = append(calls, c)
	}
	return calls, nil
}

// readWholes reads a text that consists only of calls: an object, a list of objects (Mistral), or a list with one call
// in code (Llama 4).
func readWholes(text string, tools []tenon.Tool) (calls []Call, err error) {
	if !strings.HasPrefix(text, "[") {
		c, err := readWhole(text, tools)
		if err != nil {
			return nil, err
		}
		return []Call{c}, nil
	}
	if strings.HasSuffix(text, ")]") {
		c, err := readCode(text, tools)
		if err != nil {
			return nil, ErrNone
		}
		c.Text = text
		return []Call{c}, nil
	}
	if !json.Valid([]byte(text)) {
		return nil, ErrNone
	}
	for e := range rawjson.Elements([]byte(text)) {
		c, err := readWhole(string(e), tools)
		if err != nil || len(calls) == maxSlips {
			return nil, ErrNone
		}
		calls = append(calls, c)
	}
	if len(calls) == 0 {
		return nil, ErrNone
	}
	return calls, nil
}

// readWhole reads a text that consists only of the object of Llama's and Qwen's templates.
func readWhole(text string, tools []tenon.Tool) (Call, error) {
	if !strings.HasPrefix(text, "{") || !json.Valid([]byte(text)) {
		return Call{}, ErrNone
	}
	names, args := 0, 0
	for k, v := range rawjson.Fields([]byte(text)) {
		switch string(k) {
		case "name":
			if _, repair, ok := Name(rawjson.String(v), tools); !ok || repair != "" {
				return Call{}, ErrNone
			}
			names++
		case "arguments", "parameters":
			if v[0] != '{' {
				return Call{}, ErrNone
			}
			args++
		case "type":
			if rawjson.String(v) != "function" {
				return Call{}, ErrNone
			}
		default:
			return Call{}, ErrNone
		}
	}
	if names != 1 || args != 1 {
		return Call{}, ErrNone
	}
	c, err := Shape(json.RawMessage(text), tools)
	c.Text = text
	return c, err
}
