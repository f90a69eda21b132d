package catalog

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
)

// node adapts the keywords of one schema, but not of the schemas in it.
func (p *porter) node(o object, at string) (object, error) {
	o = p.draft(o, at)
	if p.items && isArray(o) && !o.has("items") { // also beside prefixItems: recorded
		o = o.set("items", json.RawMessage("{}"))
		p.note(at, "items that take any value are added to an array")
	}
	if p.maxItems > 0 {
		if n, err := strconv.Atoi(string(o.get("maxItems"))); err == nil && n > p.maxItems-p.sum {
			o = o.without("maxItems")
			p.note(at+"/maxItems", "taken off: the sum of all maxItems is over %d", p.maxItems)
		} else if err == nil {
			p.sum += max(n, 0)
		}
	}
	if p.only == nil {
		return o, nil
	}
	return p.subset(o, at)
}

// isArray reports whether a node may be an array.
func isArray(o object) bool {
	return text(o.get("type")) == "array" || slices.Contains(texts(o.get("type")), "array")
}

// draft replaces keywords of older drafts by keywords of draft 2020-12, with which providers check schemas.
func (p *porter) draft(o object, at string) object {
	before := len(p.changes)
	defer func() { p.drafted = p.drafted || len(p.changes) > before }()
	if list := o.get("items"); len(list) > 0 && list[0] == '[' {
		rest := o.get("additionalItems")
		o = o.without("items", "additionalItems").set("prefixItems", list)
		if rest != nil {
			o = o.set("items", rest)
		}
		p.note(at+"/items", "a list of items (draft 7) is written as prefixItems")
	}
	for _, b := range [][2]string{{"exclusiveMinimum", "minimum"}, {"exclusiveMaximum", "maximum"}} {
		switch v := string(o.get(b[0])); {
		case v == "true" && o.has(b[1]):
			o = o.set(b[0], o.get(b[1])).without(b[1])
		case v == "true" || v == "false":
			o = o.without(b[0])
		default:
			continue
		}
		p.note(at+"/"+b[0], "true or false (draft 4) is written as a number")
	}
	if v := string(o.get("required")); v == "true" || v == "false" {
		o = o.without("required")
		p.note(at+"/required", "true or false (draft 3) is taken off; a call without the parameter is refused by us")
	}
	return o
}

var geminiFormats = []string{"enum", "date-time", "int32", "int64", "float", "double"}

// subset converts keywords to the form of Gemini's parameters, and removes keywords that have no such form.
func (p *porter) subset(o object, at string) (object, error) {
	if v := o.get("const"); v != nil {
		o = o.without("const")
		if v[0] == '"' {
			o = o.set("enum", json.RawMessage("["+string(v)+"]")).set("type", encode("string"))
			p.note(at+"/const", "written as an enum of one value")
		} else {
			p.note(at+"/const", "taken off")
		}
	}
	if v := o.get("oneOf"); v != nil && !o.has("anyOf") {
		o = o.without("oneOf").set("anyOf", v)
		p.note(at+"/oneOf", "written as anyOf")
	}
	if v := o.get("allOf"); v != nil {
		o = p.unite(o, "allOf").without("allOf")
		p.note(at+"/allOf", "the properties of its branches are merged")
	}
	if v := o.get("type"); len(v) > 0 && v[0] == '[' {
		o = p.types(o, texts(v), at)
	}
	for _, b := range [][2]string{{"exclusiveMinimum", "minimum"}, {"exclusiveMaximum", "maximum"}} {
		if v := o.get(b[0]); v != nil {
			o = o.without(b[0])
			if !o.has(b[1]) {
				o = o.set(b[1], v)
			}
			p.note(at+"/"+b[0], "written as %s", b[1])
		}
	}
	if v := o.get("prefixItems"); v != nil {
		o = o.without("prefixItems").set("items", json.RawMessage("{}"))
		p.note(at+"/prefixItems", "taken off: items of any kind are described")
	}
	if f := text(o.get("format")); f != "" && !slices.Contains(geminiFormats, f) {
		o = o.without("format")
		p.note(at+"/format", "%q is not taken", f)
	}
	var values []json.RawMessage
	if json.Unmarshal(o.get("enum"), &values) == nil {
		for _, v := range values {
			if len(v) == 0 || v[0] != '"' {
				o = o.without("enum")
				p.note(at+"/enum", "taken off: only texts are taken")
				break
			}
		}
	}
	for _, m := range o {
		if !slices.Contains(p.only, m.key) && m.key != "$defs" && m.key != "definitions" {
			o = o.without(m.key)
			p.note(at+"/"+pointerKey(m.key), "taken off")
		}
	}
	if o.has("required") && !o.has("properties") {
		o = o.without("required")
		p.note(at+"/required", "taken off: there are no properties")
	}
	return o, nil
}

// types writes a list of types as one that may be null, or as branches.
func (p *porter) types(o object, types []string, at string) object {
	if slices.Contains(types, "null") {
		types = slices.DeleteFunc(types, func(t string) bool { return t == "null" })
		o = o.set("nullable", json.RawMessage("true"))
	}
	o = o.without("type")
	switch {
	case len(types) == 1:
		o = o.set("type", encode(types[0]))
	case len(types) > 1 && !o.has("anyOf"):
		branches := make([]json.RawMessage, len(types))
		for i, t := range types {
			branches[i] = json.RawMessage(fmt.Sprintf(`{"type":%q}`, t))
		}
		o = o.set("anyOf", encode(branches))
	}
	p.note(at+"/type", "a list of types is written as nullable or anyOf")
	return o
}
