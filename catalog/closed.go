package catalog

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/internal/jsonschema"
)

// openKeywords are keywords that a strict schema cannot have (OpenAI, "Structured Outputs", supported schemas).
var openKeywords = []string{"allOf", "oneOf", "not", "if", "then", "else", "dependentRequired", "dependentSchemas",
	"patternProperties", "unevaluatedProperties", "unevaluatedItems", "propertyNames", "contains", "prefixItems"}

// closer makes a strict schema of one that describes the same arguments: objects that do not say what else they may
// have are closed, and arguments that may be absent may be null instead. [Snapshot.Prepare] leaves such nulls out.
type closer struct {
	changes []Change
	nodes   int
}

// closed returns a schema with which a provider guarantees that arguments fit exactly. ok is false if there is none:
// the schema has objects of any form, or keywords that strict schemas do not have.
func closed(schema json.RawMessage) (out json.RawMessage, changes []Change, ok bool) {
	root, isObject := parseObject(schema)
	if !isObject {
		return nil, nil, false
	}
	c := closer{nodes: maxSentNodes}
	root, ok = c.node(root, "", 0)
	if !ok {
		return nil, nil, false
	}
	if _, why := notStrict(root, "", 0); why != "" {
		return nil, nil, false
	}
	return root.raw(), c.changes, true
}

func (c *closer) node(o object, at string, depth int) (object, bool) {
	if c.nodes--; c.nodes < 0 || depth > strictDepth || slices.ContainsFunc(openKeywords, o.has) {
		return nil, false
	}
	if depth > 0 && !slices.ContainsFunc([]string{"type", "anyOf", "$ref", "enum", "const"}, o.has) {
		return nil, false // a schema that allows any value
	}
	props, has := parseObject(o.get("properties"))
	if has || text(o.get("type")) == "object" {
		switch {
		case string(o.get("additionalProperties")) == "false":
		case o.has("additionalProperties") || !has && depth > 0: // it allows any members
			return nil, false
		default:
			o = o.set("additionalProperties", json.RawMessage("false"))
			c.changes = append(c.changes, Change{at,
				"additionalProperties: false is added, because the tool is strict"})
		}
		var ok bool
		if o, ok = c.required(o, props, at, depth); !ok {
			return nil, false
		}
	}
	for _, key := range []string{"items"} {
		if o.has(key) {
			n, isObject := parseObject(o.get(key))
			if !isObject {
				return nil, false
			}
			n, ok := c.node(n, at+"/"+key, depth+1)
			if !ok {
				return nil, false
			}
			o = o.set(key, n.raw())
		}
	}
	if o.has("anyOf") {
		var branches []json.RawMessage
		if json.Unmarshal(o.get("anyOf"), &branches) != nil {
			return nil, false
		}
		for i, raw := range branches {
			n, isObject := parseObject(raw)
			if isObject {
				n, isObject = c.node(n, fmt.Sprintf("%s/anyOf/%d", at, i), depth)
			}
			if !isObject {
				return nil, false
			}
			branches[i] = n.raw()
		}
		o = o.set("anyOf", encode(branches))
	}
	return c.definitions(o, at, depth)
}

// required closes the properties of an object and makes all of them required.
func (c *closer) required(o, props object, at string, depth int) (object, bool) {
	required := texts(o.get("required"))
	props = slices.Clone(props)
	var names []string
	for i, p := range props {
		n, ok := parseObject(p.value)
		if !ok {
			return nil, false
		}
		here := at + "/properties/" + pointerKey(p.key)
		if n, ok = c.node(n, here, depth+1); !ok {
			return nil, false
		}
		if !slices.Contains(required, p.key) {
			n = nullable(n)
			c.changes = append(c.changes, Change{here, "it may be null instead of absent, because the tool is strict"})
		}
		props[i].value = n.raw()
		names = append(names, p.key)
	}
	if len(props) > 0 {
		o = o.set("properties", props.raw()).set("required", encode(names))
	}
	return o, true
}

// definitions closes the schemas under $defs and definitions.
func (c *closer) definitions(o object, at string, depth int) (object, bool) {
	for _, key := range []string{"$defs", "definitions"} {
		defs, has := parseObject(o.get(key))
		if !has {
			continue
		}
		defs = slices.Clone(defs)
		for i, d := range defs {
			n, ok := parseObject(d.value)
			if ok {
				n, ok = c.node(n, at+"/"+key+"/"+pointerKey(d.key), depth+1)
			}
			if !ok {
				return nil, false
			}
			defs[i].value = n.raw()
		}
		o = o.set(key, defs.raw())
	}
	return o, true
}

// nullable returns a schema that also allows null.
func nullable(o object) object {
	if takesNull(o) {
		return o
	}
	kind := text(o.get("type"))
	if kind != "" && !o.has("enum") && !o.has("const") && !o.has("anyOf") && !o.has("$ref") {
		return o.set("type", encode([]string{kind, "null"}))
	}
	var rest object
	for _, key := range []string{"description", "title"} {
		if v := o.get(key); v != nil {
			rest, o = rest.set(key, v), o.without(key)
		}
	}
	return rest.set("anyOf", encode([]json.RawMessage{o.raw(), json.RawMessage(`{"type":"null"}`)}))
}

// takesNull reports whether a schema allows null.
func takesNull(o object) bool {
	compiled, err := jsonschema.Compile(o.raw(), jsonschema.Options{})
	if err != nil {
		return false
	}
	null, err := jsonschema.Decode(json.RawMessage("null"))
	return err == nil && compiled.Validate(null) == nil
}

// isStrict reports whether the options of a tool ask for arguments that fit the schema exactly.
func isStrict(t *tenon.Tool) bool {
	options, ok := parseObject(t.Rules.Options["openai"])
	return ok && string(options.get(strictKey)) == "true"
}

// withoutNulls removes arguments that are null only because the strict schema requires them. Such an argument may be
// absent in the original schema, which does not allow null.
func withoutNulls(t *tenon.Tool, args json.RawMessage) json.RawMessage {
	root, ok := parseObject(t.Input)
	if !ok || !isStrict(t) {
		return args
	}
	out, changed := dropNulls(root, root, args, 0)
	if !changed {
		return args
	}
	return out
}

func dropNulls(root, schema object, value json.RawMessage, depth int) (json.RawMessage, bool) {
	if depth > strictDepth {
		return value, false
	}
	if ref := text(schema.get("$ref")); ref != "" {
		p := porter{root: root}
		if target, ok := p.find(ref); ok {
			schema = target
		}
	}
	if items, ok := parseObject(schema.get("items")); ok {
		var list []json.RawMessage
		if json.Unmarshal(value, &list) != nil {
			return value, false
		}
		changed := false
		for i := range list {
			var one bool
			list[i], one = dropNulls(root, items, list[i], depth+1)
			changed = changed || one
		}
		if !changed {
			return value, false
		}
		return encode(list), true
	}
	props, hasProps := parseObject(schema.get("properties"))
	members, isObject := parseObject(value)
	if !hasProps || !isObject {
		return value, false
	}
	required := texts(schema.get("required"))
	var kept object
	changed := false
	for _, m := range members {
		sub, known := parseObject(props.get(m.key))
		if known && string(m.value) == "null" && !slices.Contains(required, m.key) && !fitsNull(root, sub) {
			changed = true
			continue
		}
		if known {
			v, one := dropNulls(root, sub, m.value, depth+1)
			m.value, changed = v, changed || one
		}
		kept = append(kept, m)
	}
	if !changed {
		return value, false
	}
	return kept.raw(), true
}

// fitsNull reports whether a part of a schema allows null.
func fitsNull(root, part object) bool {
	for _, k := range []string{"$defs", "definitions"} { // targets of the part's references
		if d := root.get(k); d != nil && !part.has(k) {
			part = part.set(k, d)
		}
	}
	return takesNull(part)
}
