package textcall

import (
	"bytes"
	"encoding/json"
	"strings"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/internal/lazyregexp"
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

// containsCall reports whether a text contains one of the wanted calls in any form. The beginnings of its lines that
// tools add do not matter.
func containsCall(text string, wanted map[string]bool, tools []tenon.Tool) bool {
	if searchCalls(text, wanted, tools) {
		return true
	}
	bare := prefixes().ReplaceAllString(text, "")
	return bare != text && searchCalls(bare, wanted, tools)
}

// searchFactor bounds the search for calls: it reads at most so many times the length of a text.
const searchFactor = 64

func searchCalls(text string, wanted map[string]bool, tools []tenon.Tool) bool {
	s := search{text: text, wanted: wanted, tools: tools, left: searchFactor*len(text) + 4096}
	return s.objects() || s.marks() || s.code()
}

// search looks for calls in a text.
type search struct {
	text   string
	wanted map[string]bool
	tools  []tenon.Tool
	left   int // bytes that may still be read
}

func (s *search) is(c Call, err error) bool { return err == nil && s.wanted[c.key()] }

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
