package catalog

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/tenonhq/tenon"
)

// strictKey is an option of OpenAI. It forces the arguments of a model to fit the schema exactly. OpenAI refuses the
// whole request if the schema is not suitable.
const strictKey = "strict"

// strictDepth is the greatest nesting of objects and arrays in a strict schema. OpenAI was observed to refuse deeper
// schemas.
const strictDepth = 5

// strictly returns the schema for a tool that asks to be strict, and the changes. It closes the schema if that is
// possible; otherwise why says why not.
func strictly(provider string, t *tenon.Tool, schema json.RawMessage) (_ json.RawMessage, changes []Change,
	why *Change) {
	if d, ok := dialects[provider]; !ok || !d.strict || !isStrict(t) {
		return schema, nil, nil
	}
	root, _ := parseObject(schema)
	at, reason := notStrict(root, "", 0)
	if reason == "" {
		return schema, nil, nil
	}
	if out, changes, ok := closed(schema); ok {
		return out, changes, nil
	}
	return schema, nil, &Change{at, "provider_options.openai.strict is not sent: " + reason}
}

// lax returns a copy of a tool that does not ask to be strict.
func lax(t tenon.Tool) tenon.Tool {
	var options map[string]json.RawMessage
	if json.Unmarshal(t.Rules.Options["openai"], &options) != nil {
		return t // unreachable: isStrict has decoded the options
	}
	delete(options, strictKey)
	t.Rules.Options = maps.Clone(t.Rules.Options)
	t.Rules.Options["openai"] = encode(options)
	return t
}

// notStrict finds a part that a strict schema must not have: an open object, an argument that is not required, or too
// deep a nesting.
func notStrict(o object, at string, depth int) (pointer, why string) {
	if depth > strictDepth {
		return at, fmt.Sprintf("the schema is nested deeper than %d levels", strictDepth)
	}
	props, isObject := parseObject(o.get("properties"))
	if isObject || text(o.get("type")) == "object" {
		if string(o.get("additionalProperties")) != "false" {
			return at, "additionalProperties is not false"
		}
		required := texts(o.get("required"))
		for _, p := range props {
			if !slices.Contains(required, p.key) {
				return at + "/properties/" + pointerKey(p.key), "it is not required"
			}
		}
	}
	for _, p := range props {
		if node, ok := parseObject(p.value); ok {
			if pointer, why = notStrict(node, at+"/properties/"+pointerKey(p.key), depth+1); why != "" {
				return pointer, why
			}
		}
	}
	if items, ok := parseObject(o.get("items")); ok {
		if pointer, why = notStrict(items, at+"/items", depth+1); why != "" {
			return pointer, why
		}
	}
	var branches []json.RawMessage
	if json.Unmarshal(o.get("anyOf"), &branches) == nil {
		for i, raw := range branches {
			if node, ok := parseObject(raw); ok {
				if pointer, why = notStrict(node, fmt.Sprintf("%s/anyOf/%d", at, i), depth); why != "" {
					return pointer, why
				}
			}
		}
	}
	for _, key := range []string{"$defs", "definitions"} {
		defs, _ := parseObject(o.get(key))
		for _, d := range defs {
			if node, ok := parseObject(d.value); ok {
				if pointer, why = notStrict(node, at+"/"+key+"/"+pointerKey(d.key), depth+1); why != "" {
					return pointer, why
				}
			}
		}
	}
	return "", ""
}
