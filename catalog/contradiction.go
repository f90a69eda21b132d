package catalog

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"

	"github.com/tenonhq/tenon"
)

// Contradiction returns why no call, or no call without the argument, can fit what the entry says about it: allowed
// values or a default of another type, or a default that is not allowed. It returns "" if there is no such thing.
func (a Argument) Contradiction() string {
	for _, v := range a.Enum {
		if !isOfType(v, a.Type) {
			return "its type is " + a.Type + ", and the allowed value " + shown(v) + " is not"
		}
	}
	switch {
	case len(a.Default) == 0:
	case !isOfType(a.Default, a.Type):
		return "its type is " + a.Type + ", and the default " + shown(a.Default) + " is not"
	case len(a.Enum) > 0 && !slices.ContainsFunc(a.Enum,
		func(v json.RawMessage) bool { return sameValue(v, a.Default) }):
		return "the default " + shown(a.Default) + " is not one of its allowed values"
	}
	return ""
}

// contradictions returns the contradictions of a tool's parameters, by name.
func contradictions(t *tenon.Tool) (names, whys []string) {
	root, _ := parseObject(t.Input)
	properties, _ := parseObject(root.get("properties"))
	for _, p := range properties {
		var a Argument
		s, _ := parseObject(p.value)
		if len(s.get("type")) > 0 && s.get("type")[0] == '"' {
			a.Type = strings.Trim(string(s.get("type")), `"`)
		}
		if json.Unmarshal(s.get("enum"), &a.Enum) != nil {
			a.Enum = nil // compiling the schema reports it
		}
		a.Default = s.get("default")
		if why := a.Contradiction(); why != "" {
			names, whys = append(names, p.key), append(whys, why)
		}
	}
	return names, whys
}

// isOfType reports whether a JSON value is of a type of JSON Schema. Every value is of the type "", and of an unknown
// type.
func isOfType(v json.RawMessage, name string) bool {
	v = bytes.TrimSpace(v)
	if len(v) == 0 {
		return true
	}
	number := v[0] == '-' || '0' <= v[0] && v[0] <= '9'
	switch name {
	case "string":
		return v[0] == '"'
	case "number":
		return number
	case "integer":
		whole, fraction, _ := strings.Cut(string(v), ".")
		return number && whole != "" && strings.Trim(fraction, "0") == ""
	case "boolean":
		return v[0] == 't' || v[0] == 'f'
	case "object":
		return v[0] == '{'
	case "array":
		return v[0] == '['
	case "null":
		return v[0] == 'n'
	}
	return true
}

// sameValue reports whether two JSON values are written alike, but for space and the form of numbers.
func sameValue(a, b json.RawMessage) bool {
	var x, y any
	if json.Unmarshal(a, &x) != nil || json.Unmarshal(b, &y) != nil {
		return false
	}
	p, err := json.Marshal(x)
	q, err2 := json.Marshal(y)
	return err == nil && err2 == nil && bytes.Equal(p, q)
}

// shown returns a JSON value for an error.
func shown(v json.RawMessage) string { return tenon.Visible(shorten(string(v), 60)) }
