package policy

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
)

// Masked stands in the place of a value that a redact rule names.
const Masked = `"***"`

// maxMasked bounds how deep JSON within texts of JSON is looked into.
const maxMasked = 4

// Mask returns valid JSON with the values of all members of these names masked, at
// any depth; upper and lower case are alike. Everything else stays byte for byte.
func Mask(raw []byte, names []string) []byte {
	return rewrite(raw, func(key string, value []byte) []byte {
		if IsNamed(key, names) {
			return []byte(Masked)
		}
		return nil
	})
}

// MaskText does so for a text that is JSON as a whole, an object or a list; any other
// has no members.
func MaskText(text string, names []string) string {
	if trimmed := strings.TrimSpace(text); len(names) == 0 || trimmed == "" || trimmed[0] != '{' && trimmed[0] != '[' || !json.Valid([]byte(text)) {
		return text
	}
	return string(Mask([]byte(text), names))
}

// holders are the members of events, requests and messages that hold the arguments
// of a call, as JSON or as a text of JSON.
var holders = []string{"arguments", "args", "input", "after", "before"}

// MaskArguments returns valid JSON with the arguments of calls masked that these names
// name, wherever calls stand in it.
func MaskArguments(raw []byte, names []string) []byte { return maskArguments(raw, names, 0) }

func maskArguments(raw []byte, names []string, depth int) []byte {
	if len(names) == 0 || depth > maxMasked {
		return raw
	}
	return rewrite(raw, func(key string, value []byte) []byte {
		if !slices.Contains(holders, key) {
			return nil
		}
		switch value[0] {
		case '{', '[':
			return Mask(value, names)
		case '"':
			var text string
			if json.Unmarshal(value, &text) != nil {
				return nil
			}
			if clean := MaskText(text, names); clean != text {
				b, _ := json.Marshal(clean) // a text always encodes
				return b
			}
		}
		return nil
	})
}

// IsNamed reports whether a redact rule of these names is about a member or a column;
// upper and lower case are alike.
func IsNamed(key string, names []string) bool {
	return slices.ContainsFunc(names, func(n string) bool { return strings.EqualFold(n, key) })
}

// rewrite puts what swap returns in the place of members' values, nil for the value
// as it is: then its own members are looked at.
func rewrite(raw []byte, swap func(key string, value []byte) []byte) []byte {
	var out []byte
	done := 0
	d := json.NewDecoder(bytes.NewReader(raw))
	var objects []bool // whether what is open is an object
	isKey := false
	for {
		if isKey && d.More() {
			t, err := d.Token()
			if err != nil {
				return raw
			}
			key, _ := t.(string)
			start := int(d.InputOffset())
			for start < len(raw) && (raw[start] == ':' || raw[start] <= ' ') {
				start++
			}
			end := start + valueLen(raw[start:])
			if end > len(raw) || end == start {
				return raw
			}
			if b := swap(key, raw[start:end]); b != nil && !bytes.Equal(b, raw[start:end]) {
				out = append(append(out, raw[done:start]...), b...)
				done = end
				var skipped json.RawMessage
				if d.Decode(&skipped) != nil {
					return raw
				}
				continue
			}
		}
		t, err := d.Token()
		if err != nil {
			break
		}
		switch t {
		case json.Delim('{'):
			objects = append(objects, true)
		case json.Delim('['):
			objects = append(objects, false)
		case json.Delim('}'), json.Delim(']'):
			objects = objects[:len(objects)-1]
		}
		isKey = len(objects) > 0 && objects[len(objects)-1]
	}
	if out == nil {
		return raw
	}
	return append(out, raw[done:]...)
}

// valueLen is the length of the JSON value at the start of b.
func valueLen(b []byte) int {
	depth := 0
	for i := 0; i < len(b); i++ {
		switch b[i] {
		case '"':
			for i++; i < len(b) && b[i] != '"'; i++ {
				if b[i] == '\\' {
					i++
				}
			}
			if depth == 0 {
				return i + 1
			}
		case '{', '[':
			depth++
		case '}', ']':
			if depth--; depth == 0 {
				return i + 1
			} else if depth < 0 {
				return i
			}
		case ',', ' ', '\n', '\t', '\r':
			if depth == 0 {
				return i
			}
		}
	}
	return len(b)
}

// Redacted returns the names of all redact rules, sorted.
func (r *Rules) Redacted() []string {
	var names []string
	add := func(b Block) {
		for _, n := range b.Redact {
			if !slices.Contains(names, n) {
				names = append(names, n)
			}
		}
	}
	add(r.Defaults)
	for _, blocks := range []map[string]Block{r.Servers, r.Groups, r.Agents} {
		for _, b := range blocks {
			add(b)
		}
	}
	for _, b := range r.Tools {
		add(b)
	}
	slices.Sort(names)
	return names
}
