package textcall

import (
	"bytes"
	"encoding/json"
	"html"
	"slices"
	"strings"
	"unicode"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/internal/lazyregexp"
	"github.com/tenonhq/tenon/internal/rawjson"
)

// key identifies a call by its name and its arguments, whatever their form is.
func (c Call) key() string {
	d := json.NewDecoder(bytes.NewReader(c.Args))
	d.UseNumber()
	var v any
	if d.Decode(&v) != nil {
		return c.Name
	}
	b, _ := json.Marshal(v) // decoded JSON always encodes, with sorted members
	return c.Name + " " + string(b)
}

// prefixes are the beginnings of lines that tools and quotations add: numbers of lines, and the signs of
// differences and of quotations.
var prefixes = lazyregexp.New(`(?m)^[ \t]*(?:\d+[ \t]*[:|\t→][ \t]?|[+\->|]+[ \t]?)`)

// containsCall reports whether a text contains a call in any form that matches. The beginnings of its lines that tools
// add do not matter.
func containsCall(text string, tools []tenon.Tool, match func(Call) bool) bool {
	return anyForm(text, func(text string) bool {
		s := newSearch(text, tools, match)
		return s.objects() || s.marks() || s.code()
	})
}

// suggestsCall reports whether a text contains a call as an object or between the marks of a chat template that
// matches.
func suggestsCall(text string, tools []tenon.Tool, match func(Call) bool) bool {
	return anyForm(text, func(text string) bool {
		s := newSearch(text, tools, match)
		return s.objects() || s.marks()
	})
}

// anyForm reports whether a text, or the text without the beginnings of lines that tools add, is found.
func anyForm(text string, find func(string) bool) bool {
	if find(text) {
		return true
	}
	bare := prefixes().ReplaceAllString(text, "")
	return bare != text && find(bare)
}

// searchFactor bounds the search for calls: it reads at most so many times the length of a text.
const searchFactor = 64

func newSearch(text string, tools []tenon.Tool, match func(Call) bool) *search {
	return &search{text: text, match: match, tools: tools, left: searchFactor*len(text) + 4096}
}

// search looks for calls in a text.
type search struct {
	text  string
	match func(Call) bool
	tools []tenon.Tool
	left  int // bytes that may still be read
}

func (s *search) is(c Call, err error) bool { return err == nil && s.match(c) }

// objects looks for objects with the members of a call.
func (s *search) objects() bool {
	for at := 0; s.left > 0; at++ {
		i := strings.IndexByte(s.text[at:], '{')
		if i < 0 {
			return false
		}
		at += i
		r := &reader{text: s.text[at:]}
		err := r.value(0)
		s.left -= r.at + 1
		if err == nil && json.Valid(r.out) && s.is(Shape(r.out, s.tools)) {
			return true
		}
	}
	return false
}

// marks looks for calls between the marks of a chat template.
func (s *search) marks() bool {
	for _, f := range forms() {
		for rest := s.text; s.left > 0; {
			i := indexFold(rest, f.open)
			if i < 0 {
				break
			}
			rest = rest[i+len(f.open):]
			inner := rest
			if end := indexFold(rest, f.close); f.close != "" && end >= 0 {
				inner = rest[:end]
			}
			s.left -= len(inner) + 1
			if s.is(f.read(strings.TrimSpace(inner), true, s.tools)) {
				return true
			}
		}
	}
	return false
}

// maxParentheses bounds the closing parentheses that are tried as the end of a call.
const maxParentheses = 8

// code looks for NAME(…).
func (s *search) code() bool {
	for _, t := range s.tools {
		for rest := s.text; s.left > 0; {
			i := strings.Index(rest, t.Name+"(")
			if i < 0 {
				break
			}
			rest = rest[i+len(t.Name):]
			for n, end := 0, 0; n < maxParentheses; n++ {
				j := strings.IndexByte(rest[end:], ')')
				if j < 0 {
					break
				}
				end += j + 1
				s.left -= end
				if s.is(Arguments(t.Name, rest[:end], s.tools)) {
					return true
				}
			}
		}
	}
	return false
}

// Copied reports whether the text of a call occurs in a message that the model did not write, such as a tool result.
// The model then only quotes the call. The comparison ignores spaces, quotation marks, and escapes of JSON and HTML.
// It also compares names and arguments with all calls in these messages, because the model may write the call in
// another form.
func Copied(calls []Call, messages []*tenon.Message, tools []tenon.Tool) bool {
	wanted := map[string]bool{}
	for _, c := range calls {
		wanted[c.key()] = true
	}
	has := func(text string) bool {
		if containsCall(text, tools, func(c Call) bool { return wanted[c.key()] }) {
			return true
		}
		text = essence(text)
		return slices.ContainsFunc(calls, func(c Call) bool { return strings.Contains(text, essence(c.Text)) })
	}
	for _, m := range messages {
		for _, p := range m.Parts {
			if m.Role == tenon.RoleUser && p.Type == tenon.PartText && has(p.Text) {
				return true
			}
			if p.Result == nil {
				continue
			}
			for _, c := range p.Result.Content {
				if has(c.Text) {
					return true
				}
			}
		}
	}
	return false
}

// Quoted reports whether a tool result in the messages contains one of the calls: its text, an object, a form of a chat
// template, or code that has arguments. Unlike [Copied], it ignores the user's words, for models that can only call
// tools in text.
func Quoted(calls []Call, messages []*tenon.Message, tools []tenon.Tool) bool {
	wanted, full := map[string]bool{}, false
	for _, c := range calls {
		wanted[c.key()] = true
		full = full || string(c.Args) != "{}"
	}
	match := func(c Call) bool { return wanted[c.key()] }
	for _, m := range messages {
		for _, p := range m.Parts {
			if p.Result == nil {
				continue
			}
			for _, c := range p.Result.Content {
				text := essence(c.Text)
				isIn := func(c Call) bool { return c.Text != "" && strings.Contains(text, essence(c.Text)) }
				if suggestsCall(c.Text, tools, match) || full && containsCall(c.Text, tools, match) ||
					slices.ContainsFunc(calls, isIn) {
					return true
				}
			}
		}
	}
	return false
}

// IsSame reports whether two calls have the same name and arguments, whatever their spelling.
func IsSame(a, b Call) bool { return a.key() == b.key() }

// Suggested reports whether a tool result contains a call of one of the same tools in the form of a call, with whatever
// arguments. The model then follows the result's words, even if it fills in other arguments. A call that only repeats
// one that the model has made, and the definitions of found tools, are no suggestion. A result that describes a call in
// words or as code is not recognized, and the user's own messages may contain examples.
func Suggested(calls []Call, messages []*tenon.Message, tools []tenon.Tool) bool {
	names, made := map[string]bool{}, map[string]bool{}
	for _, c := range calls {
		names[c.Name] = true
	}
	for _, m := range messages {
		for _, c := range m.Calls() {
			made[Call{Name: c.Name, Args: c.Arguments}.key()] = true
		}
	}
	match := func(c Call) bool { return names[c.Name] && !made[c.key()] && !isSchema(c.Args) }
	for _, m := range messages {
		for _, p := range m.Parts {
			if p.Result == nil || len(p.Result.Found) > 0 {
				continue
			}
			for _, c := range p.Result.Content {
				if suggestsCall(c.Text, tools, match) {
					return true
				}
			}
		}
	}
	return false
}

// isSchema reports whether the arguments of a call are the schema of a tool, as in a list of tools.
func isSchema(args json.RawMessage) bool {
	return !rawjson.IsNull(rawjson.Field(args, "properties")) || !rawjson.IsNull(rawjson.Field(args, "$schema"))
}

// essence returns a text in lower case without spaces, quotation marks, backslashes and the escapes of HTML and JSON.
func essence(text string) string {
	text = strings.NewReplacer(`\n`, "", `\r`, "", `\t`, "", `\u003c`, "<", `\u003e`, ">", `\u0026`, "&", `\u0022`, "",
		`\u0027`, "").Replace(text)
	text = html.UnescapeString(text)
	return strings.ToLower(strings.Map(func(r rune) rune {
		if unicode.IsSpace(r) || strings.ContainsRune("\"'`\\“”‘’", r) {
			return -1
		}
		return r
	}, text))
}
