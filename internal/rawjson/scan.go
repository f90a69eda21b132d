// Package rawjson reads and writes JSON without decoding it into Go values first.
//
// What tenon handles most are small objects of which it wants a few members: the
// events of a model's stream, the blocks of a tool's result. Decoding each into a
// struct costs more than all the rest, so whoever has checked that some bytes are JSON
// (once, with json.Valid or by encoding/json) steps over them with these functions,
// which take slices and copy nothing. None of them panics on bytes that are not JSON;
// what they then yield has no meaning.
//
// The adapters in model read and write their wires with it, the root package the results
// of tools, and package agent the events of its journals.
package rawjson

import (
	"bytes"
	"encoding/json"
	"iter"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Fields yields the members of a JSON object: the key without its quotes (an
// escaped key stays escaped) and the raw value. Anything else yields nothing.
func Fields(raw []byte) iter.Seq2[[]byte, []byte] {
	return func(yield func(key, val []byte) bool) {
		i := space(raw, 0)
		if i >= len(raw) || raw[i] != '{' {
			return
		}
		i = space(raw, i+1)
		for i < len(raw) && raw[i] == '"' {
			end := skipString(raw, i)
			key := raw[i+1 : max(end-1, i+1)]
			i = space(raw, end)
			if i >= len(raw) || raw[i] != ':' {
				return
			}
			i = space(raw, i+1)
			end = skip(raw, i)
			if !yield(key, raw[i:end]) {
				return
			}
			i = space(raw, end)
			if i >= len(raw) || raw[i] != ',' {
				return
			}
			i = space(raw, i+1)
		}
	}
}

// Members yields the members of a JSON object like [Fields], with keys that are
// decoded. A key that is there more than once comes more than once.
func Members(raw []byte) iter.Seq2[[]byte, []byte] {
	return func(yield func(key, val []byte) bool) {
		for key, val := range Fields(raw) {
			if bytes.IndexByte(key, '\\') >= 0 || !utf8.Valid(key) {
				key = []byte(DecodeBody(key))
			}
			if !yield(key, val) {
				return
			}
		}
	}
}

// Elements yields the raw elements of a JSON array. Anything else yields
// nothing.
func Elements(raw []byte) iter.Seq[[]byte] {
	return func(yield func(val []byte) bool) {
		i := space(raw, 0)
		if i >= len(raw) || raw[i] != '[' {
			return
		}
		i = space(raw, i+1)
		for i < len(raw) && raw[i] != ']' {
			end := skip(raw, i)
			if end == i || !yield(raw[i:end]) {
				return
			}
			i = space(raw, end)
			if i >= len(raw) || raw[i] != ',' {
				return
			}
			i = space(raw, i+1)
		}
	}
}

// Field returns the raw value of one member of a JSON object, or nil.
func Field(raw []byte, name string) []byte {
	for k, v := range Fields(raw) {
		if string(k) == name {
			return v
		}
	}
	return nil
}

// IsNull reports whether a raw value is absent or null.
func IsNull(raw []byte) bool { return len(raw) == 0 || raw[0] == 'n' }

// String decodes a JSON string; every other value is "".
func String(raw []byte) string {
	body := StringBody(raw)
	if bytes.IndexByte(body, '\\') < 0 && utf8.Valid(body) {
		return string(body)
	}
	var s string
	if json.Unmarshal(raw, &s) != nil {
		return ""
	}
	return s
}

// StringBody returns what stands between the quotes of a JSON string, still
// escaped; nil for every other value. Bodies may be joined: the pieces of a
// streamed string, put together before they are decoded, keep a character
// whose two \u escapes came in different pieces.
func StringBody(raw []byte) []byte {
	if len(raw) < 2 || raw[0] != '"' || raw[len(raw)-1] != '"' {
		return nil
	}
	return raw[1 : len(raw)-1]
}

// DecodeBody decodes joined bodies of [StringBody].
func DecodeBody(body []byte) string {
	if bytes.IndexByte(body, '\\') < 0 && utf8.Valid(body) {
		return string(body)
	}
	q := make([]byte, 0, len(body)+2)
	q = append(append(append(q, '"'), body...), '"')
	return String(q)
}

// Int decodes a JSON number that is a whole one; every other value is false.
func Int(raw []byte) (int, bool) {
	n, err := strconv.Atoi(string(raw))
	if err == nil {
		return n, true
	}
	f, err := strconv.ParseFloat(string(raw), 64)
	if err != nil || f != float64(int(f)) {
		return 0, false
	}
	return int(f), true
}

func space(b []byte, i int) int {
	for i < len(b) && (b[i] == ' ' || b[i] == '\n' || b[i] == '\r' || b[i] == '\t') {
		i++
	}
	return i
}

// skipString returns the index behind the string that starts at i.
func skipString(b []byte, i int) int {
	i++
	for {
		q := bytes.IndexByte(b[min(i, len(b)):], '"')
		if q < 0 {
			return len(b)
		}
		q += i
		slashes := 0
		for j := q - 1; j >= i && b[j] == '\\'; j-- {
			slashes++
		}
		i = q + 1
		if slashes%2 == 0 {
			return i
		}
		// An escaped quote; what precedes i is whole escapes, so counting from
		// here on is right.
	}
}

// skip returns the index behind the value that starts at i.
func skip(b []byte, i int) int {
	if i >= len(b) {
		return i
	}
	switch b[i] {
	case '"':
		return skipString(b, i)
	case '{', '[':
		depth := 0
		for i < len(b) {
			switch b[i] {
			case '"':
				i = skipString(b, i)
				continue
			case '{', '[':
				depth++
			case '}', ']':
				if depth--; depth == 0 {
					return i + 1
				}
			}
			i++
		}
		return i
	default:
		for i < len(b) && b[i] != ',' && b[i] != '}' && b[i] != ']' && b[i] > ' ' {
			i++
		}
		return i
	}
}

// AppendString appends s as a JSON string. Unlike encoding/json it does not
// escape <, > and &, which would cost tokens' worth of bytes in every request.
func AppendString(dst []byte, s string) []byte {
	const hex = "0123456789abcdef"
	if !utf8.ValidString(s) {
		s = strings.ToValidUTF8(s, "\ufffd")
	}
	dst = append(dst, '"')
	from := 0
	for i := 0; i < len(s); i++ {
		c := s[i]
		if c >= ' ' && c != '"' && c != '\\' {
			continue
		}
		dst = append(dst, s[from:i]...)
		from = i + 1
		switch c {
		case '"', '\\':
			dst = append(dst, '\\', c)
		case '\n':
			dst = append(dst, '\\', 'n')
		case '\r':
			dst = append(dst, '\\', 'r')
		case '\t':
			dst = append(dst, '\\', 't')
		default:
			dst = append(dst, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
		}
	}
	dst = append(dst, s[from:]...)
	return append(dst, '"')
}

// AppendRaw appends a JSON value without insignificant white space, or
// fallback where it is not valid JSON.
func AppendRaw(dst []byte, raw json.RawMessage, fallback string) []byte {
	if len(raw) == 0 || !json.Valid(raw) {
		return append(dst, fallback...)
	}
	var buf bytes.Buffer
	buf.Grow(len(raw))
	if json.Compact(&buf, raw) != nil {
		return append(dst, fallback...)
	}
	return append(dst, buf.Bytes()...)
}
