package catalog

import (
	"bytes"
	"encoding/json"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// Few schemas name their parts with $anchor, and providers and models do not follow references to such names. So when
// tenon receives a tool's schema, it replaces these references by JSON pointers, which all readers of schemas follow.

// valueKeys are keywords whose values are not schemas: a key within them is never a keyword.
var valueKeys = []string{"const", "default", "enum", "examples"}

// withoutAnchors replaces references to anchors by pointers. It returns a schema without anchors, or an unreadable one,
// unchanged. An ambiguous anchor stays: it is a mistake of the schema, and following it is an error.
func withoutAnchors(raw json.RawMessage) json.RawMessage {
	if !bytes.Contains(raw, []byte(`"$anchor"`)) {
		return raw
	}
	at, nested := map[string]string{}, false
	found := func(o object, path string) object {
		nested = nested || path != "#" && o.has("$id") // a pointer cannot lead into a schema that has an identity
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

// eachSchema replaces every object of a schema, outer ones first, by the result of f, which also gets the JSON
// pointer to the object. It returns false if the schema is nested deeper than maxSchemaDepth.
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
