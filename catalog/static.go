package catalog

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/policy"
)

// overlay puts the entry of `tools` over the tool. Name, title and description
// are the configuration's; the arguments stand to the schema as arguments_mode
// says.
func (c *shaper) overlay() string {
	e := c.src.Entries[c.entry]
	c.t.Name = c.entry
	if !e.IsEnabled() {
		return fmt.Sprintf("tools.%s.enabled is false", c.entry)
	}
	if e.Title != "" {
		c.t.Title = e.Title
	}
	if e.Description != "" {
		c.t.Description = e.Description
	}
	c.t.Annotations = e.Annotations.Over(c.t.Annotations)
	r := &c.t.Rules
	if e.Validate != "" && e.Validate != ValidateError {
		r.Validate = e.Validate
	}
	r.Groups = slices.Clone(e.Groups)
	if !slices.Contains(e.States, "*") {
		r.States = slices.Clone(e.States)
	}
	r.NextState = e.NextState
	if e.Defer != nil {
		r.Defer = e.Defer
	}
	r.Options = mergeOptions(r.Options, e.ProviderOptions)
	if len(e.Arguments) == 0 && len(e.Schema) == 0 || e.ArgumentsMode == ArgumentsIgnore {
		return ""
	}
	return c.arguments(&e)
}

// arguments applies the arguments, or the schema, of an entry.
func (c *shaper) arguments(e *Tool) string {
	said := e.Schema
	if len(said) == 0 {
		said = argumentSchema(e.Arguments, c.src.Static || e.ArgumentsMode == ArgumentsReplace)
	}
	said, wrapped, err := objectSchema(said)
	if err == nil && wrapped {
		err = fmt.Errorf("it is not a schema of an object")
	}
	if err != nil {
		c.broken = true
		return fmt.Sprintf("tools.%s.schema: %v", c.entry, err)
	}
	switch mode := e.ArgumentsMode; {
	case c.src.Static, mode == ArgumentsReplace:
		c.t.Input, c.t.Rules.Wrapped = said, false
		return ""
	case mode == ArgumentsCheck:
		if drift := drift(c.t.Input, said); len(drift) > 0 {
			c.broken = true
			return fmt.Sprintf("tools.%s.arguments differ from what the server has: %s", c.entry, strings.Join(drift, "; "))
		}
		return ""
	case c.t.Rules.Wrapped:
		c.broken = true
		return fmt.Sprintf("tools.%s.arguments: the server's schema has no named arguments; use arguments_mode: replace", c.entry)
	}
	merged, err := overlaySchema(c.t.Input, said)
	if err != nil {
		c.broken = true
		return fmt.Sprintf("tools.%s.arguments: %v", c.entry, err)
	}
	c.t.Input = merged
	return ""
}

// argumentSchema makes a schema of arguments, in their order. It takes no other
// arguments: the list is what there is. Alone, a schema says every type; over
// another one it says those that are written.
func argumentSchema(args []Argument, alone bool) json.RawMessage {
	props := object{}
	var required []string
	for _, a := range args {
		p := object{}
		if typ := a.Type; typ != "" {
			p = append(p, member{"type", encode(typ)})
		} else if alone {
			p = append(p, member{"type", encode("string")})
		}
		if a.Description != "" {
			p = append(p, member{"description", encode(a.Description)})
		}
		if len(a.Enum) > 0 {
			p = append(p, member{"enum", encode(a.Enum)})
		}
		if len(a.Default) > 0 {
			p = append(p, member{"default", a.Default})
		}
		props = append(props, member{a.Name, p.raw()})
		if a.Required != nil && *a.Required {
			required = append(required, a.Name)
		}
	}
	root := object{{"type", encode("object")}, {"properties", props.raw()}}
	if len(required) > 0 {
		root = append(root, member{"required", encode(required)})
	}
	return append(root, member{"additionalProperties", json.RawMessage("false")}).raw()
}

// overlaySchema puts what an entry says of single parameters over the schema
// that was discovered. A parameter that the server does not have is an error,
// unless its schema is open; whether one is required only ever becomes stricter.
func overlaySchema(found, said json.RawMessage) (json.RawMessage, error) {
	root, _ := parseObject(found)
	over, _ := parseObject(said)
	props, _ := parseObject(root.get("properties"))
	required := texts(root.get("required"))
	saidProps, _ := parseObject(over.get("properties"))
	names := props.keys()
	for _, p := range saidProps {
		if len(names) > 0 && !slices.Contains(names, p.key) && !takesMore(root) {
			return nil, fmt.Errorf("the server's tool has no argument '%s'; it has %s", p.key, strings.Join(names, ", "))
		}
		mine, ok := parseObject(props.get(p.key))
		if !ok {
			props = props.set(p.key, p.value)
			continue
		}
		theirs, ok := parseObject(p.value)
		if !ok {
			return nil, fmt.Errorf("argument '%s' is not described by an object", p.key)
		}
		for _, m := range theirs {
			mine = mine.set(m.key, m.value)
		}
		props = props.set(p.key, mine.raw())
	}
	for _, r := range texts(over.get("required")) {
		if !slices.Contains(required, r) {
			required = append(required, r)
		}
	}
	for _, m := range over {
		if !slices.Contains([]string{"type", "properties", "required", "additionalProperties"}, m.key) {
			root = root.set(m.key, m.value)
		}
	}
	root = root.set("properties", props.raw())
	if !root.has("additionalProperties") && !root.has("patternProperties") && over.has("additionalProperties") {
		root = root.set("additionalProperties", over.get("additionalProperties"))
	}
	return withParameters(root, props, required), nil
}

// takesMore reports whether a schema says itself that it takes parameters that
// it does not name.
func takesMore(root object) bool {
	more := string(root.get("additionalProperties"))
	return more != "" && more != "false" || root.has("patternProperties")
}

// drift says how two schemas of an object differ: names, types, what is
// required.
func drift(found, said json.RawMessage) []string {
	root, _ := parseObject(found)
	over, _ := parseObject(said)
	props, _ := parseObject(root.get("properties"))
	saidProps, _ := parseObject(over.get("properties"))
	required, saidRequired := texts(root.get("required")), texts(over.get("required"))
	var list []string
	for _, p := range saidProps {
		if !props.has(p.key) {
			near := ""
			if n := tenon.Nearest(p.key, props.keys()); n != "" {
				near = fmt.Sprintf(" (did you mean '%s'?)", n)
			}
			list = append(list, fmt.Sprintf("the server has no argument '%s'%s", p.key, near))
			continue
		}
		mine, _ := parseObject(p.value)
		theirs, _ := parseObject(props.get(p.key))
		a, b := string(theirs.get("type")), string(mine.get("type"))
		if a != "" && b != "" && !sameJSON(a, b) {
			list = append(list, fmt.Sprintf("argument '%s' is %s, not %s", p.key, a, b))
		}
	}
	for _, p := range props {
		if !saidProps.has(p.key) {
			list = append(list, fmt.Sprintf("the server's argument '%s' is not described", p.key))
		}
	}
	for _, r := range saidRequired {
		if props.has(r) && !slices.Contains(required, r) {
			list = append(list, fmt.Sprintf("argument '%s' is not required", r))
		}
	}
	return list
}

// sameJSON compares values: 1 is 1.0, and 9007199254740993 is no other number.
func sameJSON(a, b string) bool {
	x, err := policy.DecodeValue(json.RawMessage(a))
	y, err2 := policy.DecodeValue(json.RawMessage(b))
	if err != nil || err2 != nil {
		return a == b
	}
	return string(encode(x)) == string(encode(y))
}

// mergeOptions lays a tool's provider options over those of its server, key by
// key.
func mergeOptions(base, over map[string]json.RawMessage) map[string]json.RawMessage {
	if len(over) == 0 {
		return base
	}
	out := make(map[string]json.RawMessage, len(base)+len(over))
	for p, v := range base {
		out[p] = v
	}
	for p, v := range over {
		mine, ok := parseObject(out[p])
		theirs, isObject := parseObject(v)
		if !ok || !isObject {
			out[p] = v
			continue
		}
		for _, m := range theirs {
			mine = mine.set(m.key, m.value)
		}
		out[p] = mine.raw()
	}
	return out
}
