package tenon

import (
	"bytes"
	"cmp"
	"html"
	"slices"
)

// Encoders of URLs and HTML differ in the characters that they escape, and escapes have several spellings. So a text is
// decoded as often as maxDecoded, and every form of a secret is searched in what that gives.

const (
	maxDecoded = 3  // a URL within a URL within a URL
	maxEntity  = 10 // bytes of the longest escape of HTML that is decoded
)

// span is a part of a text.
type span struct{ from, to int }

// decoded masks the secrets of b that begin or end with, or contain, escapes of a URL or of HTML.
func (r *Redactor) decoded(b []byte) []byte {
	if len(r.forms) == 0 {
		return b
	}
	var found []span
	levels := [][]byte{b}
	for level := range maxDecoded {
		next, ok := decode(levels[level])
		if !ok {
			break
		}
		levels = append(levels, next)
		spans := r.spans(next)
		for from := level; from >= 0 && len(spans) > 0; from-- {
			encodedSpans(levels[from], spans)
		}
		found = append(found, spans...)
	}
	if len(found) == 0 {
		return b
	}
	slices.SortFunc(found, func(x, y span) int { return cmp.Compare(x.from, y.from) })
	out, end := make([]byte, 0, len(b)), 0
	for _, s := range found {
		if s.from >= end { // otherwise it continues the part before
			out = append(append(out, b[end:s.from]...), secretMask...)
		}
		end = max(end, s.to)
	}
	return append(out, b[end:]...)
}

// spans returns the parts of a text that are secrets, in their order and without overlaps.
func (r *Redactor) spans(b []byte) (list []span) {
	backslash := bytes.IndexByte(b, '\\') >= 0
	find := func(text []byte) {
		if !contains(b, text) {
			return
		}
		for at := 0; ; {
			i := bytes.Index(b[at:], text)
			if i < 0 {
				return
			}
			list = append(list, span{at + i, at + i + len(text)})
			at += i + len(text)
		}
	}
	for _, f := range r.forms {
		if !f.escaped || backslash {
			find(f.text)
		}
	}
	for _, text := range r.pluses {
		find(text)
	}
	slices.SortFunc(list, func(x, y span) int { return cmp.Compare(x.from, y.from) })
	joined := list[:0]
	for _, s := range list {
		if n := len(joined); n > 0 && s.from < joined[n-1].to {
			joined[n-1].to = max(joined[n-1].to, s.to)
		} else {
			joined = append(joined, s)
		}
	}
	return joined
}

// decode returns a text with the escapes of URLs and HTML decoded. It returns false if there are none.
func decode(b []byte) (out []byte, ok bool) {
	if bytes.IndexByte(b, '%') < 0 && bytes.IndexByte(b, '&') < 0 {
		return nil, false
	}
	for at := 0; ; {
		i := nextEscape(b[at:])
		if i < 0 {
			if ok {
				out = append(out, b[at:]...)
			}
			return out, ok
		}
		value, size := unescaped(b[at+i:])
		if size == 0 {
			value, size = string(b[at+i:at+i+1]), 1
		} else if !ok {
			ok, out = true, append(make([]byte, 0, len(b)), b[:at]...)
		}
		if ok {
			out = append(append(out, b[at:at+i]...), value...)
		}
		at += i + size
	}
}

// encodedSpans changes spans of decode(b), which are in their order and without overlaps, to spans of b.
func encodedSpans(b []byte, spans []span) {
	at, decoded := 0, 0                  // the same place in both texts
	move := func(to int, end bool) int { // if to is within the bytes of an escape, the whole escape belongs to the span
		for decoded < to {
			i := nextEscape(b[at:])
			if i < 0 || decoded+i >= to {
				at, decoded = at+to-decoded, to
				break
			}
			value, size := unescaped(b[at+i:])
			if size == 0 {
				value, size = " ", 1
			}
			if !end && decoded+i+len(value) > to {
				at, decoded = at+i, decoded+i
				return at
			}
			at, decoded = at+i+size, decoded+i+len(value)
		}
		return at
	}
	for i := range spans {
		spans[i] = span{move(spans[i].from, false), move(spans[i].to, true)}
	}
}

// nextEscape returns the index of the next byte that can begin an escape, or -1.
func nextEscape(b []byte) int {
	for i, c := range b {
		if c == '%' || c == '&' {
			return i
		}
	}
	return -1
}

// unescaped decodes the escape at the start of b. size is its length, or 0 if there is none.
func unescaped(b []byte) (value string, size int) {
	if b[0] == '%' {
		if len(b) < 3 {
			return "", 0
		}
		high, low := hexDigit(b[1]), hexDigit(b[2])
		if high < 0 || low < 0 {
			return "", 0
		}
		return string([]byte{byte(high<<4 | low)}), 3
	}
	end := bytes.IndexAny(b[1:min(len(b), maxEntity)], ";&%") + 1
	if end < 2 || b[end] != ';' {
		return "", 0
	}
	entity := string(b[:end+1])
	if value = html.UnescapeString(entity); value == entity {
		return "", 0
	}
	return value, end + 1
}

func hexDigit(c byte) int {
	switch {
	case '0' <= c && c <= '9':
		return int(c - '0')
	case 'a' <= c && c <= 'f':
		return int(c-'a') + 10
	case 'A' <= c && c <= 'F':
		return int(c-'A') + 10
	}
	return -1
}
