package react

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"sync"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/internal/rawjson"
	"github.com/tenonhq/tenon/model"
)

// toolset contains the tools of a prompt, as values for templates and as the text that most templates use.
type toolset struct {
	values []map[string]any
	list   string
	names  string
}

// toolCache caches the toolsets of the last few snapshots. All runs of a snapshot share its slice,
// whose address identifies it.
type toolCache struct {
	mu   sync.Mutex
	ring [4]struct {
		tools []tenon.Tool
		set   *toolset
	}
	next int
}

func (c *toolCache) get(tools []tenon.Tool) *toolset {
	if len(tools) == 0 {
		return &toolset{}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, e := range c.ring {
		if len(e.tools) == len(tools) && &e.tools[0] == &tools[0] {
			return e.set
		}
	}
	set := describe(tools)
	c.ring[c.next].tools, c.ring[c.next].set = tools, set
	c.next = (c.next + 1) % len(c.ring)
	return set
}

func describe(tools []tenon.Tool) *toolset {
	set := &toolset{}
	var list, names strings.Builder
	for i := range tools {
		t := &tools[i]
		args := arguments(t.Input)
		values := make([]map[string]any, len(args))
		description := oneLine(t.Description)
		list.WriteString("- **" + t.Name + "**")
		if description != "" {
			list.WriteString(": " + description)
		}
		list.WriteByte('\n')
		for j, a := range args {
			list.WriteString(a.line())
			values[j] = map[string]any{"name": a.name, "type": a.typ,
				"description": a.description, "required": a.required}
		}
		if shape := wholeShape(t.Input, len(args)); shape != "" {
			list.WriteString("  - Args: " + shape + "\n")
		}
		if i > 0 {
			names.WriteString(", ")
		}
		names.WriteString(t.Name)
		tool := map[string]any{"name": t.Name, "description": description, "arguments": values}
		set.values = append(set.values, tool)
	}
	set.list, set.names = strings.TrimSuffix(list.String(), "\n"), names.String()
	return set
}

// wholeShape returns the shape of all arguments of a tool with the given number of properties. It returns "" if the
// properties describe the arguments completely.
func wholeShape(schema json.RawMessage, properties int) string {
	rest := schema
	if properties > 0 { // only the keywords that the properties do not cover
		var root map[string]json.RawMessage
		if !slices.ContainsFunc([]string{"$ref", "allOf", "anyOf", "oneOf"},
			func(key string) bool { return has(schema, key) }) || json.Unmarshal(schema, &root) != nil {
			return ""
		}
		delete(root, "properties")
		rest, _ = json.Marshal(root)
	}
	s := &shapes{root: schema}
	if shape := s.of(rest, 0); shape != "object" && shape != "any" && !strings.HasPrefix(shape, "any | ") {
		return shape
	}
	return ""
}

// argument is one property of a tool's input schema.
type argument struct {
	name, typ, description string
	required               bool
}

// line returns the line for the argument in a prompt.
func (a argument) line() string {
	s := "  - Optional: "
	if a.required {
		s = "  - Required: "
	}
	s += string(rawjson.AppendString(nil, model.Visible(a.name))) + " (" + a.typ + ")"
	if a.description != "" {
		s += ": " + a.description
	}
	return s + "\n"
}

// arguments returns the properties of a schema in order. It returns nil for an invalid schema.
func arguments(schema json.RawMessage) []argument {
	if !json.Valid(schema) {
		return nil
	}
	required := map[string]bool{}
	for name := range rawjson.Elements(rawjson.Field(schema, "required")) {
		required[rawjson.String(name)] = true
	}
	s := &shapes{root: schema}
	var args []argument
	for key, raw := range rawjson.Fields(rawjson.Field(schema, "properties")) {
		description := oneLine(rawjson.String(rawjson.Field(raw, "description")))
		a := argument{name: unquote(key), typ: s.of(raw, 0), description: description}
		a.required = required[a.name]
		if !a.required {
			if d := rawjson.Field(raw, "default"); len(d) > 0 && len(d) <= maxValue {
				a.typ += ", default " + compact(d)
			}
		}
		args = append(args, a)
	}
	return args
}

// The limits of the description of an argument: the nesting depth and the bytes of its shape, the
// number of alternatives, and the bytes of a default value.
const (
	maxDepth  = 4
	maxShape  = 600
	maxValues = 20
	maxValue  = 60
)

// shapes formats the values that a schema allows.
type shapes struct {
	root json.RawMessage // the schema that "#/…" refers to
	hops int             // number of references followed
}

// of returns the shape of a schema: string, integer | null, array of string, "a" | "b", {"id":
// integer, "tags"?: array of string}. If the shape exceeds the limits, it returns only the type.
func (s *shapes) of(schema json.RawMessage, depth int) string {
	plain := typeOf(schema)
	if depth >= maxDepth {
		return plain
	}
	shape := plain
	deeper := func(v json.RawMessage) string { return s.of(v, depth+1) }
	switch {
	case has(schema, "$ref"):
		target := s.follow(rawjson.String(rawjson.Field(schema, "$ref")))
		if target == nil {
			return plain
		}
		shape = s.of(target, depth+1)
	case has(schema, "const"):
		shape = compact(rawjson.Field(schema, "const"))
	case has(schema, "enum"):
		shape = alternatives(rawjson.Field(schema, "enum"), compact)
	case has(schema, "anyOf"):
		shape = alternatives(rawjson.Field(schema, "anyOf"), deeper)
	case has(schema, "oneOf"):
		shape = alternatives(rawjson.Field(schema, "oneOf"), deeper)
	case has(schema, "allOf") && !has(schema, "properties"):
		shape = together(rawjson.Field(schema, "allOf"), deeper)
	case plain == "array" && has(schema, "items"):
		shape = "array"
		if of := s.of(rawjson.Field(schema, "items"), depth+1); of != "any" {
			shape = "array of " + of
		}
	case plain == "object" && has(schema, "properties"):
		shape = s.object(schema, depth)
	}
	if shape == "" || len(shape) > maxShape {
		return plain
	}
	return shape
}

func (s *shapes) object(schema json.RawMessage, depth int) string {
	required := map[string]bool{}
	for name := range rawjson.Elements(rawjson.Field(schema, "required")) {
		required[rawjson.String(name)] = true
	}
	var parts []string
	size := 0
	for key, raw := range rawjson.Fields(rawjson.Field(schema, "properties")) {
		name := unquote(key)
		part := string(rawjson.AppendString(nil, model.Visible(name)))
		if !required[name] {
			part += "?"
		}
		part += ": " + s.of(raw, depth+1)
		parts = append(parts, part)
		size += len(part)
		if size > maxShape {
			return ""
		}
	}
	if len(parts) == 0 {
		return "object"
	}
	return "{" + strings.Join(parts, ", ") + "}"
}

// maxHops bounds the references that are followed for one tool.
const maxHops = 100

// follow returns the target of a reference within the schema, or nil.
func (s *shapes) follow(ref string) json.RawMessage {
	path, ok := strings.CutPrefix(ref, "#/")
	s.hops++
	if !ok || s.hops > maxHops {
		return nil
	}
	at := s.root
	for _, step := range strings.Split(path, "/") {
		if at = rawjson.Field(at, strings.NewReplacer("~1", "/", "~0", "~").Replace(step)); at == nil {
			return nil
		}
	}
	return at
}

// alternatives joins the distinct shapes of a list.
func alternatives(list json.RawMessage, shape func(json.RawMessage) string) string {
	var parts []string
	seen := map[string]bool{}
	for v := range rawjson.Elements(list) {
		p := shape(v)
		switch {
		case seen[p]:
			continue
		case len(parts) == maxValues:
			return strings.Join(append(parts, "…"), " | ")
		}
		seen[p] = true
		parts = append(parts, p)
	}
	return strings.Join(parts, " | ")
}

// together joins the shapes of schemas that must all be met.
func together(list json.RawMessage, shape func(json.RawMessage) string) string {
	var parts []string
	for v := range rawjson.Elements(list) {
		if p := shape(v); p != "any" && p != "object" && len(parts) < maxValues {
			parts = append(parts, p)
		}
	}
	return strings.Join(parts, " & ")
}

// typeOf returns the type of a schema, or any.
func typeOf(schema json.RawMessage) string {
	t := rawjson.Field(schema, "type")
	switch {
	case len(t) > 0 && t[0] == '[':
		return alternatives(t, func(v json.RawMessage) string { return oneLine(rawjson.String(v)) })
	case len(t) > 0 && t[0] == '"':
		return oneLine(rawjson.String(t))
	case has(schema, "properties"):
		return "object"
	}
	return "any"
}

func has(schema json.RawMessage, key string) bool { return len(rawjson.Field(schema, key)) > 0 }

// unquote decodes a key that rawjson.Fields returned.
func unquote(key []byte) string {
	if !strings.Contains(string(key), `\`) {
		return string(key)
	}
	return rawjson.String([]byte(`"` + string(key) + `"`))
}

// compact returns a value on one line, with invisible characters escaped.
func compact(raw json.RawMessage) string {
	var b bytes.Buffer
	if json.Compact(&b, raw) != nil {
		return oneLine(string(raw))
	}
	return model.Visible(b.String())
}

// oneLine returns a text as one line, so that it cannot imitate other lines of a prompt. Runs of
// white space become one space, and invisible characters are escaped.
func oneLine(s string) string {
	return strings.Join(strings.Fields(model.Visible(s)), " ")
}
