package textcall

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/tenonhq/tenon/internal/rawjson"
)

// BracketAdded is the repair of an object without its end.
const BracketAdded = "a closing bracket was added at the end"

// maxDepth bounds the nesting of objects that need corrections.
const maxDepth = 64

// Object reads the JSON object at the beginning of a text and returns it as valid JSON on one line, with its length in
// the text. These errors are corrected, each with a line in repairs: single and typographic quotes, line breaks in
// strings, a comma before a closing bracket, True, False and None, and brackets that are missing at the end of the
// text. Other errors are not corrected, because the result would be a guess about the content.
func Object(text string) (object json.RawMessage, n int, repairs []string, err error) {
	r := &reader{text: text}
	if err := r.value(0); err != nil {
		return nil, 0, nil, fmt.Errorf("%w at byte %d", err, r.at)
	}
	if !json.Valid(r.out) || r.out[0] != '{' {
		return nil, 0, nil, errNoObject
	}
	return r.out, r.at, r.repairs, nil
}

// reader reads one value and writes it in valid JSON.
type reader struct {
	text    string
	at      int
	out     []byte
	repairs []string
	inCode  bool // a parenthesis ends a value
	inText  bool // the reader is in a string
}

type problem string

func (p problem) Error() string { return string(p) }

const (
	errNoObject = problem("there is no JSON object")
	errDepth    = problem("the object is nested too deeply")
	errEnd      = problem("the text ends before the object does")
	errString   = problem("a string does not end where its value ends")
	errEscape   = problem("a string has an unknown escape")
	errKey      = problem("a key is not in quotes")
	errColon    = problem("a colon is missing after a key")
	errComma    = problem("a comma is missing")
	errValue    = problem("a value is neither a string, a number, a list, an object, true, false nor null")
)

func (r *reader) repaired(what string) {
	if !slices.Contains(r.repairs, what) {
		r.repairs = append(r.repairs, what)
	}
}

func (r *reader) space() {
	for r.at < len(r.text) && strings.IndexByte(" \t\r\n", r.text[r.at]) >= 0 {
		r.at++
	}
}

// next returns the next byte after white space, or 0 at the end.
func (r *reader) next() byte {
	r.space()
	if r.at < len(r.text) {
		return r.text[r.at]
	}
	return 0
}

func (r *reader) value(depth int) error {
	if depth > maxDepth {
		return errDepth
	}
	switch c := r.next(); {
	case c == 0:
		return errEnd
	case c == '{':
		return r.list(depth, '}')
	case c == '[' && depth > 0:
		return r.list(depth, ']')
	case depth == 0:
		return errNoObject
	case r.quote() != "":
		return r.string()
	}
	return r.word()
}

// list reads an object or a list up to its closing bracket.
func (r *reader) list(depth int, end byte) error {
	r.out = append(r.out, r.text[r.at])
	r.at++
	for first := true; ; first = false {
		c := r.next()
		if !first && c == ',' {
			r.at++
			if c = r.next(); c == 0 {
				return errEnd // a comma at the end means that a member is missing
			}
			if c == end {
				r.repaired("a comma before a closing bracket was removed")
			} else {
				r.out = append(r.out, ',')
			}
		} else if !first && c != end && c != 0 {
			return errComma
		}
		switch {
		case c == end:
			r.at++
			r.out = append(r.out, end)
			return nil
		case c == 0 && first:
			return errEnd
		case c == 0:
			r.repaired(BracketAdded)
			r.out = append(r.out, end)
			return nil
		case end == '}':
			if r.quote() == "" {
				return errKey
			}
			if err := r.string(); err != nil {
				return err
			}
			if c := r.next(); c == 0 {
				return errEnd
			} else if c != ':' {
				return errColon
			}
			r.at++
			r.out = append(r.out, ':')
		}
		if err := r.value(depth + 1); err != nil {
			return err
		}
	}
}

// quotes maps the quotation marks that begin a string to the marks that end it.
var quotes = map[string]string{`"`: `"`, "'": "'", "“": "”“", "”": "”", "„": "“”", "‘": "’‘", "’": "’", "‚": "‘’"}

// quote returns the quotation mark at the reader's position, or "".
func (r *reader) quote() string {
	_, n := utf8.DecodeRuneInString(r.text[r.at:])
	if q := r.text[r.at : r.at+n]; quotes[q] != "" {
		return q
	}
	return ""
}

// string reads a string. The next character must be one that can follow a string in JSON. Otherwise, a quotation mark
// within the string was mistaken for its end.
func (r *reader) string() error {
	open := r.quote()
	ends := quotes[open]
	if open != `"` {
		r.repaired("quotation marks were replaced by \"")
	}
	r.at += len(open)
	r.inText = true
	r.out = append(r.out, '"')
	for r.at < len(r.text) {
		c, n := utf8.DecodeRuneInString(r.text[r.at:])
		piece := r.text[r.at : r.at+n]
		switch {
		case c == utf8.RuneError && n < 2:
			return errValue
		case strings.Contains(ends, piece):
			r.at += n
			r.inText = false
			r.out = append(r.out, '"')
			if c := r.next(); strings.IndexByte(",:}]\x00", c) < 0 && !(r.inCode && c == ')') {
				return errString
			}
			return nil
		case c == '\\':
			if err := r.escape(); err != nil {
				return err
			}
			continue
		case c == '"':
			r.out = append(r.out, `\"`...)
		case c < ' ':
			r.repaired("a control character in a string was escaped")
			s := rawjson.AppendString(nil, piece)
			r.out = append(r.out, s[1:len(s)-1]...)
		default:
			r.out = append(r.out, piece...)
		}
		r.at += n
	}
	return errEnd
}

func (r *reader) escape() error {
	rest := r.text[r.at:]
	if len(rest) < 2 {
		return errEnd
	}
	switch c := rest[1]; {
	case c == '\'':
		r.repaired("an escaped ' was replaced")
		r.out = append(r.out, '\'')
	case strings.IndexByte(`"\/bfnrt`, c) >= 0:
		r.out = append(r.out, rest[:2]...)
	case c == 'u' && len(rest) >= 6:
		r.out = append(r.out, rest[:6]...) // the caller checks the digits
		r.at += 4
	default:
		return errEscape
	}
	r.at += 2
	return nil
}

// word reads a number or a constant.
func (r *reader) word() error {
	from := r.at
	for r.at < len(r.text) && strings.IndexByte(" \t\r\n,:}]", r.text[r.at]) < 0 &&
		!(r.inCode && r.text[r.at] == ')') {
		r.at++
	}
	word := r.text[from:r.at]
	python := map[string]string{"True": "true", "False": "false", "None": "null"}
	if as := python[word]; as != "" {
		r.repaired(word + " was replaced by " + as)
		word = as
	}
	if !json.Valid([]byte(word)) {
		r.at = from
		return errValue
	}
	r.out = append(r.out, word...)
	return nil
}
