package catalog

import (
	"bytes"
	"encoding/json"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// Nearly no schema names its parts by $anchor, and nobody that a schema is sent to follows
// one. References to anchors are therefore written as JSON pointers, which all follow, where
// a tool's schema comes in.

// valueKeys hold values and no schemas: what looks like a keyword there is none.
var valueKeys = []string{"const", "default", "enum", "examples"}

// withoutAnchors replaces references to anchors by pointers. It returns a schema without anchors, or an unreadable one,
// unchanged. An ambiguous anchor stays: it is a mistake of the schema, and following it is an error.
func withoutAnchors(raw json.RawMessage) json.RawMessage {
	if !bytes.Contains(raw, []byte(`"$anchor"`)) {
		return raw
	}
	at, nested := map[string]string{}, false
	found := func(o object, path string) object {
		nested = nested || path != "#" && o.has("$id") // a pointer would lead from there
		if name := text(o.get("$anchor")); name != "" {
			if _, twice := at[name]; twice {
				path = ""
			}
			at[name] = path
		}
		return o
	}
	if _, ok := eachSchema(raw, "#", 0, found); !ok || nested {
		return raw
	}
	out, ok := eachSchema(raw, "#", 0, func(o object, _ string) object {
		name, ok := strings.CutPrefix(text(o.get("$ref")), "#")
		if path := at[name]; ok && path != "" {
			return o.set("$ref", encode(path))
		}
		return o
	})
	if !ok {
		return raw
	}
	return out
}

// eachSchema passes every object of a schema through f, with its pointer, from the outside
// in; false where it is nested deeper than any schema that is used.
func eachSchema(raw json.RawMessage, at string, depth int, f func(o object, at string) object) (json.RawMessage, bool) {
	if depth > maxSchemaDepth {
		return nil, false
	}
	var list []json.RawMessage
	o, isObject := parseObject(raw)
	switch {
	case isObject:
		o = slices.Clone(f(o, at))
		for i, m := range o {
			if slices.Contains(valueKeys, m.key) {
				continue
			}
			v, ok := eachSchema(m.value, at+"/"+url.PathEscape(pointerKey(m.key)), depth+1, f)
			if !ok {
				return nil, false
			}
			o[i].value = v
		}
		return o.raw(), true
	case len(raw) > 0 && raw[0] == '[' && json.Unmarshal(raw, &list) == nil:
		for i, m := range list {
			v, ok := eachSchema(m, at+"/"+strconv.Itoa(i), depth+1, f)
			if !ok {
				return nil, false
			}
			list[i] = v
		}
		return encode(list), true
	}
	return raw, true
}
