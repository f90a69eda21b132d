package rawjson

import (
	"bytes"
	"encoding/json"
	"slices"
	"unicode/utf8"
)

// Limits of [AppendSorted]. Larger values are left to encoding/json.
const (
	sortedValues = 10_000
	sortedDepth  = 32
)

// AppendSorted appends a JSON value as encoding/json writes it after decoding with UseNumber: members sorted
// by key, strings with its escapes, no white space. The elements of arrays under a key for which isSet is
// true are sorted by their bytes.
//
// It works without decoding and reports false for values that it does not support. These are invalid, large
// or deep values, duplicate keys, and sets with elements that are objects or arrays. The caller must then
// decode the value; the appended bytes are undefined.
func AppendSorted(dst []byte, raw []byte, isSet func(key []byte) bool) ([]byte, bool) {
	if Check(raw, Rules{Values: sortedValues, Depth: sortedDepth}) != nil {
		return dst, false
	}
	s := sorter{isSet: isSet}
	return s.value(dst, raw[space(raw, 0):], false)
}

// sorter writes one value.
type sorter struct {
	isSet   func(key []byte) bool
	members []keyed  // members of all enclosing objects
	set     [][]byte // elements of the current set
}

type keyed struct{ key, value []byte }

// value appends the valid value at the start of raw.
func (s *sorter) value(dst, raw []byte, set bool) ([]byte, bool) {
	switch raw[0] {
	case '{':
		return s.object(dst, raw)
	case '[':
		if set {
			return s.sortedSet(dst, raw)
		}
		dst = append(dst, '[')
		first := true
		for e := range Elements(raw) {
			if !first {
				dst = append(dst, ',')
			}
			first = false
			var ok bool
			if dst, ok = s.value(dst, e, false); !ok {
				return dst, false
			}
		}
		return append(dst, ']'), true
	case '"':
		return appendText(dst, raw[:skip(raw, 0)]), true
	}
	return append(dst, raw[:skip(raw, 0)]...), true
}

func (s *sorter) object(dst, raw []byte) ([]byte, bool) {
	base := len(s.members)
	for k, v := range Members(raw) {
		s.members = append(s.members, keyed{k, v})
	}
	slices.SortFunc(s.members[base:], func(a, b keyed) int { return bytes.Compare(a.key, b.key) })
	dst = append(dst, '{')
	n := len(s.members)
	for i := base; i < n; i++ {
		m := s.members[i]
		if i > base {
			if bytes.Equal(s.members[i-1].key, m.key) {
				return dst, false
			}
			dst = append(dst, ',')
		}
		dst = append(appendKey(dst, m.key), ':')
		var ok bool
		if dst, ok = s.value(dst, m.value, s.isSet(m.key)); !ok {
			return dst, false
		}
	}
	s.members = s.members[:base]
	return append(dst, '}'), true
}

// sortedSet appends an array, sorted by the encoding of its elements.
func (s *sorter) sortedSet(dst, raw []byte) ([]byte, bool) {
	s.set = s.set[:0]
	for e := range Elements(raw) {
		switch {
		case e[0] == '{', e[0] == '[':
			return dst, false
		case e[0] == '"' && !isPlainText(e):
			e = appendText(nil, e)
		}
		s.set = append(s.set, e)
	}
	slices.SortFunc(s.set, bytes.Compare)
	dst = append(dst, '[')
	for i, e := range s.set {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(dst, e...)
	}
	return append(dst, ']'), true
}

// appendText appends a JSON string as encoding/json would write it again.
func appendText(dst, raw []byte) []byte {
	if isPlainText(raw) {
		return append(dst, raw...)
	}
	var text string
	_ = json.Unmarshal(raw, &text) // raw is valid
	b, _ := json.Marshal(text)     // a string always encodes
	return append(dst, b...)
}

// appendKey appends a decoded key.
func appendKey(dst, key []byte) []byte {
	if isPlain(key) {
		return append(append(append(dst, '"'), key...), '"')
	}
	b, _ := json.Marshal(string(key)) // a string always encodes
	return append(dst, b...)
}

func isPlainText(raw []byte) bool { return isPlain(raw[1 : len(raw)-1]) }

// isPlain reports whether encoding/json writes a string unchanged, without escapes for JSON, HTML or
// JavaScript.
func isPlain(text []byte) bool {
	wide := false
	for _, c := range text {
		if c < ' ' || c == '"' || c == '\\' || c == '<' || c == '>' || c == '&' {
			return false
		}
		wide = wide || c >= utf8.RuneSelf
	}
	return !wide || utf8.Valid(text) && !bytes.Contains(text, []byte("\u2028")) &&
		!bytes.Contains(text, []byte("\u2029"))
}
