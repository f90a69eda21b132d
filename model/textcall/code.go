package textcall

import (
	"slices"
	"strings"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/internal/rawjson"
)

// readCode reads NAME({…}), NAME() and NAME(key=value, …), also within print(…) or [ and ]. The text must contain
// nothing else.
func readCode(text string, tools []tenon.Tool) (Call, error) {
	text = strings.TrimSuffix(strings.TrimSpace(text), ";")
	if inner, ok := strings.CutPrefix(text, "print("); ok && strings.HasSuffix(inner, ")") {
		text = inner[:len(inner)-1]
	}
	if inner, ok := strings.CutPrefix(text, "["); ok && strings.HasSuffix(inner, ")]") { // Llama 3.2 and 4, LFM2
		text = strings.TrimSpace(inner[:len(inner)-1])
	}
	name, rest, ok := strings.Cut(text, "(")
	if !ok || strings.ContainsAny(name, " \t\n{}[]\"<>") || name == "" {
		return Call{}, ErrNone
	}
	if _, _, ok := Name(name, tools); !ok { // Llama 3.1 writes NAME.call(…)
		name = strings.TrimSuffix(name, ".call")
	}
	if _, _, ok := Name(name, tools); !ok {
		if strings.HasSuffix(rest, ")") {
			return Call{}, Unknown(name, tools)
		}
		return Call{}, ErrNone
	}
	return Arguments(name, "("+rest, tools)
}

// Arguments reads a call from the name of a tool and its arguments in parentheses, with nothing after them.
func Arguments(name, text string, tools []tenon.Tool) (c Call, err error) {
	inner := strings.TrimSpace(strings.TrimPrefix(text, "("))
	r := &reader{text: inner, inCode: true}
	switch {
	case strings.HasPrefix(inner, "{"):
		object, n, repairs, err := Object(inner)
		if err != nil || strings.TrimSpace(inner[n:]) != ")" {
			return Call{}, &NoCallError{Why: "the arguments in parentheses are not one JSON object"}
		}
		c.Repairs = repairs
		err = c.complete(name, object, tools)
		return c, err
	default:
		if err := r.keywords(); err != nil {
			return Call{}, &NoCallError{Why: "the arguments in parentheses: " + err.Error()}
		}
	}
	c.Repairs = append(r.repairs, "the call was written as "+Bare(name)+"(…)")
	err = c.complete(name, r.out, tools)
	return c, err
}

// keywords reads key=value, … up to the closing parenthesis at the end of the text and writes an object.
func (r *reader) keywords() error {
	r.out = append(r.out, '{')
	var keys []string
	for r.next() != ')' {
		from := r.at
		for r.at < len(r.text) && isWord(r.text[r.at]) {
			r.at++
		}
		key := r.text[from:r.at]
		if key == "" || r.next() != '=' {
			return problem("a value has no name; write name=value")
		}
		if slices.Contains(keys, key) {
			return problem("a name occurs twice")
		}
		keys = append(keys, key)
		r.at++
		if len(r.out) > 1 {
			r.out = append(r.out, ',')
		}
		r.out = append(rawjson.AppendString(r.out, key), ':')
		if err := r.value(1); err != nil {
			return err
		}
		if c := r.next(); c == ',' {
			r.at++
		} else if c != ')' {
			return errComma
		}
	}
	r.at++
	if strings.TrimSpace(r.text[r.at:]) != "" {
		return problem("there is text after the closing parenthesis")
	}
	r.out = append(r.out, '}')
	return nil
}

func isWord(c byte) bool {
	return c == '_' || c == '-' || '0' <= c && c <= '9' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
}

// unfence returns the content of a code block if the text begins with one, and otherwise the text. rest is the text
// after the block.
func unfence(text string) (body, rest string) {
	text = strings.TrimSpace(text)
	inner, ok := strings.CutPrefix(text, "```")
	if !ok {
		return text, ""
	}
	language, inner, ok := strings.Cut(inner, "\n")
	if !ok || strings.ContainsAny(language, "{(`") {
		if i := strings.LastIndex(text, "```"); i >= len("```") {
			return strings.TrimSpace(text[3:i]), ""
		}
		return text, ""
	}
	if i := strings.LastIndex(inner, "```"); i >= 0 {
		return strings.TrimSpace(inner[:i]), strings.TrimSpace(inner[i+3:])
	}
	return strings.TrimSpace(inner), ""
}

// fenceLine reports whether a text ends with a line that opens a code block.
func fenceLine(text string) bool {
	line := strings.TrimSpace(text[strings.LastIndexByte(text, '\n')+1:])
	word, ok := strings.CutPrefix(line, "```")
	return ok && !strings.ContainsAny(word, " `")
}

// objectAt returns the offset of the first object, or list of objects, at the beginning of a line, or -1.
func objectAt(text string) int {
	for at := 0; at < len(text); {
		line := text[at:]
		trimmed := strings.TrimLeft(line, " \t")
		list, isList := strings.CutPrefix(trimmed, "[")
		if isList && strings.HasPrefix(strings.TrimLeft(list, " \t\r\n"), "{") || strings.HasPrefix(trimmed, "{") {
			return at + len(line) - len(trimmed)
		}
		i := strings.IndexByte(line, '\n')
		if i < 0 {
			break
		}
		at += i + 1
	}
	return -1
}

func indexFold(s, word string) int {
	for at := 0; at+len(word) <= len(s); at++ {
		i := strings.IndexByte(s[at:], word[0])
		if up := strings.ToUpper(word[:1])[0]; up != word[0] {
			if j := strings.IndexByte(s[at:], up); j >= 0 && (i < 0 || j < i) {
				i = j
			}
		}
		if i < 0 {
			return -1
		}
		at += i
		if hasPrefixFold(s[at:], word) {
			return at
		}
	}
	return -1
}
