package react

import (
	"bytes"
	"encoding/json"
	"strings"
	"sync"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/internal/rawjson"
	"github.com/tenonhq/tenon/model"
)

// toolset is what a prompt says about tools: for the templates as values, and as
// the text that nearly every one of them wants.
type toolset struct {
	values []map[string]any
	list   string
	names  string
}

// toolCache keeps the toolsets of the last few snapshots. A snapshot's slice is the
// same for all its runs, so its address tells it.
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
			values[j] = map[string]any{"name": a.name, "type": a.typ, "description": a.description, "required": a.required}
		}
		if len(args) == 0 {
			if shape := (&shapes{root: t.Input}).of(t.Input, 0); shape != "object" && shape != "any" {
				list.WriteString("  - Args: " + shape + "\n")
			}
		}
		if i > 0 {
			names.WriteString(", ")
		}
		names.WriteString(t.Name)
		set.values = append(set.values, map[string]any{"name": t.Name, "description": description, "arguments": values})
	}
	set.list, set.names = strings.TrimSuffix(list.String(), "\n"), names.String()
	return set
}

// argument is one property of a tool's input schema.
type argument struct {
	name, typ, description string
	required               bool
}

// line is what the prompt says about it.
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

// arguments reads the properties of a schema, in its order. What is not valid JSON
// has none.
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
		a := argument{name: unquote(key), typ: s.of(raw, 0), description: oneLine(rawjson.String(rawjson.Field(raw, "description")))}
		if a.required = required[a.name]; !a.required {
			if d := rawjson.Field(raw, "default"); len(d) > 0 && len(d) <= maxValue {
				a.typ += ", default " + compact(d)
			}
		}
		args = append(args, a)
	}
	return args
}

// The bounds of what is said about one argument: the depth and the bytes of its
// shape, its values, the bytes of one of them.
const (
	maxDepth  = 4
	maxShape  = 600
	maxValues = 20
	maxValue  = 60
)

// shapes says in a few words what values a schema allows.
type shapes struct {
	root json.RawMessage // where "#/…" points into
	hops int             // references that were followed
}

// of returns the shape of a schema: string, integer | null, array of string,
// "a" | "b", {"id": integer, "tags"?: array of string}. Past the bounds it is the
// type alone.
func (s *shapes) of(schema json.RawMessage, depth int) string {
	plain := typeOf(schema)
	if depth >= maxDepth {
		return plain
	}
	shape := plain
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
		shape = alternatives(rawjson.Field(schema, "anyOf"), func(v json.RawMessage) string { return s.of(v, depth+1) })
	case has(schema, "oneOf"):
		shape = alternatives(rawjson.Field(schema, "oneOf"), func(v json.RawMessage) string { return s.of(v, depth+1) })
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
		if size += len(part); size > maxShape {
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

// follow returns what a reference within the schema names, or nil.
func (s *shapes) follow(ref string) json.RawMessage {
	path, ok := strings.CutPrefix(ref, "#/")
	if s.hops++; !ok || s.hops > maxHops {
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

// alternatives joins different shapes.
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

// typeOf is the schema's type, or any.
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

// unquote decodes a key as rawjson.Fields has it.
func unquote(key []byte) string {
	if !strings.Contains(string(key), `\`) {
		return string(key)
	}
	return rawjson.String([]byte(`"` + string(key) + `"`))
}

// compact is a value on one line, with what a person could not see shown.
func compact(raw json.RawMessage) string {
	var b bytes.Buffer
	if json.Compact(&b, raw) != nil {
		return oneLine(string(raw))
	}
	return model.Visible(b.String())
}

// oneLine makes a text harmless for a prompt of lines: line breaks and runs of
// spaces become one space, invisible characters are shown.
func oneLine(s string) string {
	return strings.Join(strings.Fields(model.Visible(s)), " ")
}
