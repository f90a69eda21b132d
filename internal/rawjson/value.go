package rawjson

import (
	"bytes"
	"encoding/json"
	"strconv"
	"unicode/utf8"
)

// IsNull reports whether a raw value is absent or null.
func IsNull(raw []byte) bool { return len(raw) == 0 || raw[0] == 'n' }

// String decodes a JSON string. For other values it returns "".
func String(raw []byte) string {
	s, _ := ParseString(raw)
	return s
}

// ParseString decodes a JSON string. It reports false for other values.
func ParseString(raw []byte) (string, bool) {
	body := StringBody(raw)
	if body == nil {
		return "", false
	}
	if bytes.IndexByte(body, '\\') < 0 && utf8.Valid(body) {
		return string(body), true
	}
	var s string
	if json.Unmarshal(raw, &s) != nil {
		return "", false
	}
	return s, true
}

// StringBody returns the part between the quotes of a JSON string, without resolving escapes, or nil for
// other values. Bodies may be joined: the pieces of a streamed string must be joined before they are decoded,
// because the two \u escapes of one character may be in different pieces.
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

// Int decodes a JSON number that is an integer. It reports false for other values.
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
