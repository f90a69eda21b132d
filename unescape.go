package tenon

import (
	"bytes"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"
)

// UnescapedJSON returns valid JSON with as few escapes as possible, so that unnecessary escapes cannot hide a text. It
// replaces \/ and \u escapes of printable characters by the characters. Members and numbers stay as they are. If there
// is nothing to replace, it returns raw itself.
func UnescapedJSON(raw []byte) []byte {
	if !bytes.Contains(raw, []byte(`\u`)) && !bytes.Contains(raw, []byte(`\/`)) {
		return raw
	}
	out := make([]byte, 0, len(raw))
	changed := false
	for i := 0; i < len(raw); {
		if raw[i] != '\\' || i+1 == len(raw) {
			out = append(out, raw[i])
			i++
			continue
		}
		r, size := rune(-1), 2
		switch raw[i+1] {
		case '/':
			r = '/'
		case 'u':
			r, size = unescapedRune(raw[i:])
		}
		if r < ' ' || r == '"' || r == '\\' || r == utf8.RuneError {
			size = min(size, len(raw)-i)
			out = append(out, raw[i:i+size]...)
		} else {
			out, changed = utf8.AppendRune(out, r), true
		}
		i += size
	}
	if !changed {
		return raw
	}
	return out
}

// unescapedRune reads the \u escape, or the pair of \u escapes, at the beginning of b. If there is none, r is -1.
func unescapedRune(b []byte) (r rune, size int) {
	unit := func(at int) rune {
		if len(b) < at+6 || b[at] != '\\' || b[at+1] != 'u' {
			return -1
		}
		n, err := strconv.ParseUint(string(b[at+2:at+6]), 16, 16)
		if err != nil {
			return -1
		}
		return rune(n) //nolint:gosec // 16 bits
	}
	r = unit(0)
	if r < 0 || !utf16.IsSurrogate(r) {
		return r, 6
	}
	if pair := utf16.DecodeRune(r, unit(6)); pair != utf8.RuneError {
		return pair, 12
	}
	return -1, 6
}
