package catalog

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/internal/rawjson"
)

// maxSchemaBytes bounds one schema. A larger one would fill a model's context.
const maxSchemaBytes = 1 << 20

// wrapper is the name of the only property of a schema that wraps another schema.
const wrapper = "input"

// objectSchema returns the schema as the schema of an object, which every provider and MCP require. It reports
// whether it had to wrap the schema for that. The error says why no call can ever fit the schema.
func objectSchema(raw json.RawMessage) (out json.RawMessage, wrapped bool, err error) {
	raw = bytes.TrimSpace(raw)
	switch { // avoids a copy of raw for each schema
	case len(raw) == 0, string(raw) == "null", string(raw) == "true":
		return json.RawMessage(`{"type":"object"}`), false, nil
	case string(raw) == "false":
		return nil, false, errors.New("its schema is false: no arguments fit it")
	case len(raw) > maxSchemaBytes:
		return nil, false, fmt.Errorf("its schema has more than %d KiB", maxSchemaBytes>>10)
	case isPlainObject(raw):
		return raw, false, nil
	}
	var root any
	if err := json.Unmarshal(raw, &root); err != nil {
		return nil, false, fmt.Errorf("its schema is not JSON, or too deep: %v", err)
	}
	m, ok := root.(map[string]any)
	if !ok {
		return nil, false, fmt.Errorf("its schema is %s, not a JSON Schema", kind(root))
	}
	w := walker{left: maxSchemaNodes}
	if w.walk(root, 0) != nil {
		return nil, false, fmt.Errorf("its schema has more than %d levels or %d values", maxSchemaDepth, maxSchemaNodes)
	}
	if circle(m) {
		return nil, false, errors.New("its schema only refers to itself")
	}
	return objectRoot(raw, m)
}

// isPlainObject reports whether a schema certainly describes an object. It spares the decoding of most schemas.
func isPlainObject(raw []byte) bool {
	if rawjson.Check(raw, rawjson.Rules{Values: maxSchemaNodes, Depth: maxSchemaDepth}) != nil {
		return false
	}
	typed := 0
	for key, v := range rawjson.Fields(raw) {
		switch {
		case bytes.IndexByte(key, '\\') >= 0 || string(key) == "$ref":
			return false
		case string(key) == "type" && string(v) == `"object"`:
			typed++
		case string(key) == "type":
			return false
		}
	}
	return typed == 1
}

// CheckSchema returns an error that says what is wrong with a schema from a configuration for the arguments of a
// tool.
func CheckSchema(raw json.RawMessage) error {
	if _, ok := parseObject(raw); !ok {
		return errors.New("it is not a map")
	}
	out, wrapped, err := objectSchema(raw)
	switch {
	case err != nil:
		return err
	case wrapped:
		return errors.New("its type is not object")
	}
	_, err = compileWhole(out)
	return err
}

// objectRoot is objectSchema for a decoded schema.
func objectRoot(raw json.RawMessage, m map[string]any) (json.RawMessage, bool, error) {
	members := func() object { o, _ := parseObject(raw); return o }
	switch t := m["type"].(type) {
	case nil:
		if _, ok := m["type"]; ok {
			return nil, false, errors.New("the type of its schema is null, not a text")
		}
		return members().first("type", json.RawMessage(`"object"`)).raw(), false, nil
	case string:
		switch {
		case t == "object":
			return raw, false, nil
		case !slices.Contains(jsonTypes, t):
			return nil, false, fmt.Errorf("its schema has the type %q, which JSON Schema does not know", t)
		}
	case []any:
		if slices.Contains(t, any("object")) {
			return members().set("type", json.RawMessage(`"object"`)).raw(), false, nil
		}
	default:
		return nil, false, fmt.Errorf("the type of its schema is %s, not a text", kind(t))
	}
	o := members()
	outer := object{{"type", json.RawMessage(`"object"`)}}
	for _, k := range []string{"$schema", "$id", "$defs", "definitions"} { // targets of references stay at the root
		if v := o.get(k); v != nil {
			outer, o = append(outer, member{k, v}), o.without(k)
		}
	}
	outer = append(outer, member{"properties", object{{wrapper, o.raw()}}.raw()},
		member{"required", encode([]string{wrapper})})
	return outer.raw(), true, nil
}

var jsonTypes = []string{"string", "number", "integer", "boolean", "object", "array", "null"}

// circle reports whether a schema is a reference that leads only back to the schema.
func circle(root map[string]any) bool {
	w := walker{root: root}
	node := root
	for range 100 {
		ref, ok := node["$ref"].(string)
		if !ok || len(node) > 1 && !onlyDefs(node) {
			return false
		}
		next, ok := w.find(ref)
		if !ok {
			return false
		}
		if node, ok = next.(map[string]any); !ok {
			return false
		}
	}
	return true
}

func onlyDefs(node map[string]any) bool {
	for k := range node {
		if k != "$ref" && k != "$defs" && k != "definitions" && k != "$schema" {
			return false
		}
	}
	return true
}

// visibleSchema makes hidden characters visible in the texts of a schema. Hidden characters in names, and in values
// that a call has to repeat, are an error.
func visibleSchema(raw json.RawMessage) (json.RawMessage, error) {
	if !suspicious(raw) {
		return raw, nil
	}
	var root any
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	if d.Decode(&root) != nil {
		return raw, nil // the next step reports the error
	}
	if clean, err := visibleValue(root, "", 0); err != nil {
		return nil, err
	} else if clean {
		return raw, nil
	}
	return json.RawMessage(encode(root)), nil
}

// suspicious reports whether raw JSON may contain a hidden character, escaped or not. Few schemas do, and an exact
// check takes longer.
func suspicious(raw []byte) bool {
	if bytes.IndexByte(raw, '\\') < 0 && isASCII(raw) {
		return false
	}
	if bytes.Contains(raw, []byte(`\u`)) || !utf8.Valid(raw) {
		return true
	}
	return bytes.ContainsFunc(raw, func(r rune) bool { return r >= 0x7f && tenon.IsHidden(r) })
}

// isASCII reports whether all bytes are below 0x7f. It checks eight bytes at a time.
func isASCII(b []byte) bool {
	const ones, highs = 0x0101010101010101, 0x8080808080808080
	for ; len(b) >= 8; b = b[8:] {
		if w := binary.LittleEndian.Uint64(b); (w|(w+ones))&highs != 0 { // only 0xff carries, and it is found
			return false
		}
	}
	return !slices.ContainsFunc(b, func(c byte) bool { return c >= 0x7f })
}

// visibleValue makes hidden characters visible in the texts of a schema, in place. It reports whether there was
// nothing to change.
func visibleValue(v any, key string, depth int) (clean bool, err error) {
	if depth > maxSchemaDepth {
		return true, nil // the next step refuses the schema
	}
	clean = true
	switch v := v.(type) {
	case map[string]any:
		for k, e := range v {
			if tenon.Visible(k) != k {
				return false, fmt.Errorf("its schema has a name with hidden characters: %s", tenon.Visible(k))
			}
			if s, ok := e.(string); ok {
				shown := tenon.Visible(s)
				if shown == s {
					continue
				}
				if k != "description" && k != "title" && k != "$comment" {
					return false, fmt.Errorf("its schema has a value with hidden characters in %s: %s", k, shown)
				}
				v[k], clean = shown, false
				continue
			}
			same, err := visibleValue(e, k, depth+1)
			if err != nil {
				return false, err
			}
			clean = clean && same
		}
	case []any:
		for _, e := range v {
			if s, ok := e.(string); ok && tenon.Visible(s) != s {
				return false, fmt.Errorf("its schema has a value with hidden characters in %s: %s", key,
					tenon.Visible(s))
			}
			same, err := visibleValue(e, key, depth+1)
			if err != nil {
				return false, err
			}
			clean = clean && same
		}
	}
	return clean, nil
}

// shorten shortens a text for a message.
func shorten(s string, n int) string {
	if utf8.RuneCountInString(s) <= n {
		return s
	}
	return strings.TrimRight(string([]rune(s)[:n]), " ") + "…"
}
