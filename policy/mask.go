package policy

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"

	"github.com/tenonhq/tenon/internal/rawjson"
)

// Masked replaces the value of a member that a redact rule names.
const Masked = `"***"`

// Mask returns valid JSON in which the values of all members with these names are masked, at any depth. Upper and
// lower case do not matter. All other bytes are kept.
func Mask(raw []byte, names []string) []byte {
	if len(names) == 0 {
		return raw
	}
	var out []byte
	done := 0 // number of bytes of raw that are already in out
	for t := range rawjson.Strings(raw) {
		if t.Value < done || !IsNamed(string(rawjson.Key(raw[t.From:t.To])), names) {
			continue
		}
		out = append(append(out, raw[done:t.Value]...), Masked...)
		done = rawjson.End(raw, t.Value)
	}
	if out == nil {
		return raw
	}
	return append(out, raw[done:]...)
}

// MaskText is [Mask] for a text that is a JSON object or array. It returns any other text unchanged.
func MaskText(text string, names []string) string {
	trimmed := strings.TrimSpace(text)
	if len(names) == 0 || trimmed == "" || trimmed[0] != '{' && trimmed[0] != '[' || !json.Valid([]byte(text)) {
		return text
	}
	return string(Mask([]byte(text), names))
}

// holders are the members of events, requests and messages that contain the arguments of a call, as JSON or as a text
// with JSON.
var holders = []string{"arguments", "args", "input", "after", "before"}

// MaskArguments returns valid JSON in which the named members of the arguments of all calls are masked.
func MaskArguments(raw []byte, names []string) []byte {
	if len(names) == 0 {
		return raw
	}
	var out []byte
	done := 0  // number of bytes of raw that are already in out
	clean := 0 // up to here, no member has one of the names; texts may still contain JSON
	for t := range rawjson.Strings(raw) {
		if t.Value < done || !slices.Contains(holders, string(rawjson.Key(raw[t.From:t.To]))) {
			continue
		}
		var value, masked []byte
		switch c := raw[min(t.Value, len(raw)-1)]; {
		case c == '"':
			value = raw[t.Value:rawjson.End(raw, t.Value)]
			masked = maskQuoted(value, names)
		case (c == '{' || c == '[') && t.Value >= clean:
			clean = rawjson.End(raw, t.Value)
			value = raw[t.Value:clean]
			masked = Mask(value, names)
		}
		if !bytes.Equal(masked, value) {
			out = append(append(out, raw[done:t.Value]...), masked...)
			done = t.Value + len(value)
		}
	}
	if out == nil {
		return raw
	}
	return append(out, raw[done:]...)
}

// maskQuoted is [MaskText] for a text within JSON.
func maskQuoted(raw []byte, names []string) []byte {
	text, ok := rawjson.ParseString(raw)
	if clean := MaskText(text, names); ok && clean != text {
		b, _ := json.Marshal(clean) // a string can always be encoded
		return b
	}
	return raw
}

// IsNamed reports whether names contains the name of a member or a column. Upper and lower case do not matter.
func IsNamed(key string, names []string) bool {
	return slices.ContainsFunc(names, func(n string) bool { return strings.EqualFold(n, key) })
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
