package catalog

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/policy"
)

// overlay applies the entry of `tools` to the tool. Name, title and description are replaced by the configured ones.
// For arguments, arguments_mode decides how the entry changes the schema.
func (c *shaper) overlay() string {
	e := c.src.Entries[c.entry]
	c.t.Name = c.entry
	if !e.IsEnabled() {
		return fmt.Sprintf("tools.%s.enabled is false", c.entry)
	}
	c.t.Title = cmp.Or(e.Title, c.t.Title)
	c.t.Description = cmp.Or(e.Description, c.t.Description)
	r := &c.t.Rules
	c.t.Annotations = e.Annotations.Over(c.t.Annotations)
	if e.Validate != "" && e.Validate != ValidateError {
		r.Validate = e.Validate
	}
	r.Groups = slices.Clone(e.Groups)
	if !slices.Contains(e.States, "*") {
		r.States = slices.Clone(e.States)
	}
	r.NextState = e.NextState
	r.Defer = cmp.Or(e.Defer, r.Defer)
	var err error
	if r.Options, err = mergedOptions(r.Options, e.ProviderOptions); err != nil {
		c.broken = true
		return err.Error()
	}
	if !e.DescribesArguments() || e.ArgumentsMode == ArgumentsIgnore {
		return ""
	}
	return c.arguments(&e)
}

// arguments applies the arguments or the schema of an entry.
func (c *shaper) arguments(e *Tool) string {
	said := e.Schema
	if len(said) == 0 {
		said = c.argumentSchema(e)
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
		if drift := drift(c.t.Input, said, lifted(e)); len(drift) > 0 {
			c.broken = true
			return fmt.Sprintf("tools.%s.arguments differ from what the server has: %s", c.entry,
				strings.Join(drift, "; "))
		}
		return ""
	case c.t.Rules.Wrapped:
		c.broken = true
		return fmt.Sprintf("tools.%s.arguments: the server's schema has no named arguments; "+
			"use arguments_mode: replace", c.entry)
	}
	merged, lacking, err := overlaySchema(c.t.Input, said, lifted(e))
	if err != nil {
		c.broken = true
		return fmt.Sprintf("tools.%s.arguments: %v", c.entry, err)
	}
	if c.steps != nil {
		for _, name := range lacking {
			*c.steps = append(*c.steps, Step{"tools." + c.entry, stepArguments, name,
				noArgument(name, propertyNames(c.t.Input))})
		}
	}
	c.t.Input = merged
	return ""
}

// stepArguments is the field of a [Step] that leaves out a configured argument.
const stepArguments = "arguments"

// noArgument describes a configured argument that the server's tool does not have.
func noArgument(name string, has []string) string {
	near := ""
	if n := tenon.Nearest(name, has); n != "" {
		near = fmt.Sprintf(" (did you mean '%s'?)", n)
	}
	return fmt.Sprintf("left out: the server's tool has no argument '%s'%s; it has %s", name, near,
		strings.Join(has, ", "))
}

// Lacking returns the arguments that a server's tool with this input schema does not have, each with the most similar
// argument that it has, or "". A tool that takes any arguments lacks none.
func Lacking(input json.RawMessage, arguments []string) (names, similar []string) {
	root, _ := parseObject(input)
	has := propertyNames(input)
	if len(has) == 0 || takesMore(root) {
		return nil, nil
	}
	for _, a := range arguments {
		if !slices.Contains(has, a) {
			names, similar = append(names, a), append(similar, tenon.Nearest(a, has))
		}
	}
	return names, similar
}

// propertyNames returns the names of a schema's properties.
func propertyNames(schema json.RawMessage) []string {
	root, _ := parseObject(schema)
	props, _ := parseObject(root.get("properties"))
	return props.keys()
}

// argumentSchema returns a schema of the arguments of an entry. In mode replace, an argument for which the entry does
// not set required is required if the server requires it. In the other modes, the result is closed only if the
// properties of the server's schema are all of its arguments.
func (c *shaper) argumentSchema(e *Tool) json.RawMessage {
	if c.src.Static {
		return argumentSchema(e.Arguments, true)
	}
	root, _ := parseObject(c.t.Input)
	if e.ArgumentsMode == ArgumentsReplace {
		required, yes := texts(root.get("required")), true
		args := slices.Clone(e.Arguments)
		for i, a := range args {
			if a.Required == nil && !c.t.Rules.Wrapped && slices.Contains(required, a.Name) {
				args[i].Required = &yes
			}
		}
		return argumentSchema(args, true)
	}
	said := argumentSchema(e.Arguments, false)
	if isComposed(root) {
		over, _ := parseObject(said)
		said = over.without("additionalProperties").raw()
	}
	return said
}

// composing lists the keywords with which a schema describes arguments outside of its properties.
var composing = []string{"$ref", "$dynamicRef", "$recursiveRef", "allOf", "anyOf", "oneOf", "if", "then", "else",
	"dependentSchemas", "dependencies", "unevaluatedProperties"}

// isComposed reports whether a schema may have arguments that are not in its properties.
func isComposed(root object) bool { return slices.ContainsFunc(composing, root.has) }

// argumentSchema returns a schema of the arguments, in their order. It allows only these arguments. If alone is set,
// the schema has a type for each argument; otherwise it overlays another schema and has only the configured types.
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

// lifted returns the arguments that the entry declares with `required: false`.
func lifted(e *Tool) []string {
	if len(e.Schema) > 0 {
		return nil // a schema and a list of arguments exclude each other
	}
	var names []string
	for _, a := range e.Arguments {
		if a.Required != nil && !*a.Required {
			names = append(names, a.Name)
		}
	}
	return names
}

// overlaySchema overlays a discovered schema with a configured one, parameter by parameter. A parameter that the
// server does not have is left out and returned in lacking, unless the server's schema is open: a call with it would
// fail. optional lists the parameters that are not required, even if the server requires them.
func overlaySchema(found, said json.RawMessage, optional []string) (merged json.RawMessage, lacking []string,
	err error) {
	root, _ := parseObject(found)
	over, _ := parseObject(said)
	props, _ := parseObject(root.get("properties"))
	required := slices.DeleteFunc(texts(root.get("required")),
		func(name string) bool { return slices.Contains(optional, name) })
	saidProps, _ := parseObject(over.get("properties"))
	names := props.keys()
	for _, p := range saidProps {
		if len(names) > 0 && !slices.Contains(names, p.key) && !takesMore(root) {
			lacking = append(lacking, p.key)
			continue
		}
		mine, ok := parseObject(props.get(p.key))
		if !ok {
			props = props.set(p.key, p.value)
			continue
		}
		theirs, ok := parseObject(p.value)
		if !ok {
			return nil, nil, fmt.Errorf("argument '%s' is not described by an object", p.key)
		}
		for _, m := range theirs {
			mine = mine.set(m.key, m.value)
		}
		props = props.set(p.key, mine.raw())
	}
	for _, r := range texts(over.get("required")) {
		if !slices.Contains(required, r) && !slices.Contains(lacking, r) {
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
	return withParameters(root, props, required), lacking, nil
}

// takesMore reports whether a schema explicitly allows parameters that are not in its properties.
func takesMore(root object) bool {
	if isComposed(root) {
		return true
	}
	more := string(root.get("additionalProperties"))
	return more != "" && more != "false" || root.has("patternProperties")
}

// drift describes the differences between two schemas of an object: names, types and required parameters. optional is
// the same as for [overlaySchema].
func drift(found, said json.RawMessage, optional []string) []string {
	root, _ := parseObject(found)
	over, _ := parseObject(said)
	props, _ := parseObject(root.get("properties"))
	saidProps, _ := parseObject(over.get("properties"))
	required, saidRequired := texts(root.get("required")), texts(over.get("required"))
	var list []string
	for _, p := range saidProps {
		if !props.has(p.key) {
			if isComposed(root) {
				continue // another part of the schema may describe it
			}
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
	for _, name := range optional {
		if slices.Contains(required, name) {
			list = append(list, fmt.Sprintf("argument '%s' is required", name))
		}
	}
	return list
}

// sameJSON reports whether two values are equal: 1 equals 1.0, but 9007199254740993 does not equal 9007199254740992.
func sameJSON(a, b string) bool {
	x, err := policy.DecodeValue(json.RawMessage(a))
	y, err2 := policy.DecodeValue(json.RawMessage(b))
	if err != nil || err2 != nil {
		return a == b
	}
	return string(encode(x)) == string(encode(y))
}

// mergeOptions overlays the provider options of a server with the options of a tool, key by key.
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
