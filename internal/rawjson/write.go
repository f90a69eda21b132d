package rawjson

import (
	"bytes"
	"encoding/json"
	"strings"
	"unicode/utf8"
)

// AppendString appends s as a JSON string. Unlike encoding/json it does not escape <, > and &, which would
// enlarge every request.
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

// AppendRaw appends a JSON value without insignificant white space. If it is not valid JSON, it appends
// fallback.
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
