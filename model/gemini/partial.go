package gemini

import (
	"slices"
	"strconv"
	"strings"

	"github.com/tenonhq/tenon/internal/rawjson"
	"github.com/tenonhq/tenon/model"
)

// The limits of arguments that arrive in pieces. The provider chooses the paths, and a large list
// index must not allocate much memory.
const (
	maxDepth  = 64
	maxValues = 1 << 14
)

// partial assembles arguments from pieces such as {"jsonPath":"$.a.b[0]", "stringValue":"x"}.
// Strings with the same path are concatenated; other values replace the previous one.
type partial struct {
	root   value
	values int // number of objects, lists and leaves
}

// value is a JSON value under construction: an object, a list, or a leaf.
type value struct {
	names []string // member names of an object, in order of arrival
	kids  []*value // members or elements
	list  bool
	str   []byte // JSON string body
	text  bool   // the value is a string, even if str is empty
	raw   []byte // number, bool, null
	open  bool   // more pieces of the string follow
}

// add adds one piece.
func (p *partial) add(piece []byte) error {
	var path string
	var str, raw []byte
	more := false
	for k, v := range rawjson.Fields(piece) {
		switch string(k) {
		case "jsonPath":
			path = rawjson.String(v)
		case "stringValue":
			str = v
		case "numberValue", "boolValue":
			raw = v
		case "nullValue":
			raw = []byte("null")
		case "willContinue":
			more = string(v) == "true"
		}
	}
	v, err := p.walk(path)
	if err != nil {
		return err
	}
	v.open = more
	switch {
	case str != nil:
		v.text = true
		v.str = append(v.str, rawjson.StringBody(str)...)
	case raw != nil:
		v.raw = append(v.raw[:0], raw...)
	}
	return nil
}

// walk returns the value at a path such as $.recipe.steps[3] or $['a b']. It creates missing
// values.
func (p *partial) walk(path string) (*value, error) {
	v := &p.root
	rest, ok := strings.CutPrefix(path, "$")
	if !ok {
		return nil, model.Broken("arguments have the invalid path %q", path)
	}
	for depth := 0; rest != ""; depth++ {
		if depth == maxDepth {
			return nil, model.Broken("arguments are nested more than %d deep", maxDepth)
		}
		var key string
		switch {
		case rest[0] == '.':
			end := strings.IndexAny(rest[1:], ".[")
			if end < 0 {
				end = len(rest) - 1
			}
			key, rest = rest[1:1+end], rest[1+end:]
		case rest[0] == '[':
			end := strings.IndexByte(rest, ']')
			if len(rest) > 1 && (rest[1] == '\'' || rest[1] == '"') {
				end = strings.Index(rest, rest[1:2]+"]")
				if end <= 1 {
					return nil, model.Broken("arguments have the invalid path %q", path)
				}
				key, rest = rest[2:end], rest[end+2:]
				break
			}
			n, err := strconv.Atoi(rest[1:max(end, 1)])
			if err != nil || n < 0 {
				return nil, model.Broken("arguments have the invalid path %q", path)
			}
			if v, err = p.element(v, n); err != nil {
				return nil, err
			}
			rest = rest[end+1:]
			continue
		default:
			return nil, model.Broken("arguments have the invalid path %q", path)
		}
		var err error
		if v, err = p.member(v, key); err != nil {
			return nil, err
		}
	}
	return v, nil
}

// grow adds n to the number of values and checks its limit.
func (p *partial) grow(n int) error {
	if n > maxValues-p.values {
		return model.Broken("arguments have more than %d values", maxValues)
	}
	p.values += n
	return nil
}

func (p *partial) member(v *value, name string) (*value, error) {
	for i, n := range v.names {
		if n == name && i < len(v.kids) {
			return v.kids[i], nil
		}
	}
	if err := p.grow(1); err != nil {
		return nil, err
	}
	if v.list {
		*v = value{}
	}
	kid := &value{}
	v.names, v.kids = append(v.names, name), append(v.kids, kid)
	return kid, nil
}

func (p *partial) element(v *value, n int) (*value, error) {
	if !v.list {
		*v = value{list: true}
	}
	if n >= len(v.kids) {
		if err := p.grow(min(n-len(v.kids), maxValues) + 1); err != nil { // min prevents overflow
			return nil, err
		}
	}
	for len(v.kids) <= n {
		v.kids = append(v.kids, &value{})
	}
	return v.kids[n], nil
}

// isOpen reports whether pieces of a string are missing.
func (v *value) isOpen() bool { return v.open || slices.ContainsFunc(v.kids, (*value).isOpen) }

// json returns the arguments as an object.
func (p *partial) json() []byte {
	if !p.root.list && len(p.root.kids) == 0 && !p.root.text && p.root.raw == nil {
		return []byte("{}")
	}
	return p.root.append(nil)
}

func (v *value) append(dst []byte) []byte {
	switch {
	case v.list:
		dst = append(dst, '[')
		for i, k := range v.kids {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = k.append(dst)
		}
		return append(dst, ']')
	case len(v.kids) > 0:
		dst = append(dst, '{')
		for i, k := range v.kids {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = append(rawjson.AppendString(dst, v.names[i]), ':')
			dst = k.append(dst)
		}
		return append(dst, '}')
	case v.text:
		return append(append(append(dst, '"'), v.str...), '"')
	case v.raw != nil:
		return append(dst, v.raw...)
	}
	return append(dst, "null"...)
}
