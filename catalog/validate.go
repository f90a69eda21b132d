package catalog

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/internal/rawjson"
)

// validator checks arguments against one tool's schema. A nil schema checks
// nothing: the tool's schema cannot be used, which is no reason to withhold it.
type validator struct {
	schema *jsonschema.Resolved
	names  []string // of the arguments, in order
	closed bool     // there are no others
}

// unknown returns the names that a closed schema does not have, sorted.
func (v *validator) unknown(args map[string]any) []string {
	if !v.closed {
		return nil
	}
	var list []string
	for k := range args {
		if !slices.Contains(v.names, k) {
			list = append(list, k)
		}
	}
	slices.Sort(list)
	return list
}

// Prepared is a call that may be judged and made.
type Prepared struct {
	Tool      *tenon.Tool     // nil where there is none of that name
	Arguments json.RawMessage // what the server gets, as long as nobody edits it; without a tool what was proposed
	Warning   error           // what does not fit, where the tool's rules only warn
}

// Prepare looks a call's tool up, checks the arguments against the schema that
// the model saw, and makes the arguments that the server gets: those that the
// configuration sets are in them. The error has code not_found if there is no
// such tool, invalid if the arguments are not a JSON object that fits. Its
// message is meant for a model, which can then do better; the tool is in
// Prepared nevertheless.
func (s *Snapshot) Prepare(c *tenon.ToolCall) (Prepared, error) {
	t, ok := s.Lookup(c.Name)
	if !ok {
		return Prepared{Arguments: c.Arguments}, s.noTool(c.Name)
	}
	p := Prepared{Tool: t, Arguments: c.Arguments}
	if len(p.Arguments) == 0 {
		p.Arguments = json.RawMessage("{}")
	}
	v, err := asObject(t, c, p.Arguments)
	if err != nil {
		return p, err
	}
	if t.Rules.Validate != ValidateOff {
		if err := s.fits(t, v); err != nil {
			if t.Rules.Validate != ValidateWarn {
				return p, err
			}
			p.Warning = err
		}
	}
	if p.Arguments, err = wire(t, p.Arguments); err != nil {
		return p, err
	}
	return p, nil
}

// maxNames bounds the names in a message about a tool that is not there.
const maxNames = 50

func (s *Snapshot) noTool(name string) error {
	names := s.Names()
	near := ""
	if n := tenon.Nearest(name, names); n != "" {
		near = fmt.Sprintf("; did you mean '%s'?", n)
	}
	more := ""
	if len(names) > maxNames {
		names, more = names[:maxNames], fmt.Sprintf(" and %d more", len(names)-maxNames)
	}
	return tenon.Errorf(tenon.CodeNotFound, "Tool '%s' not found among available tools: [%s]%s%s", tenon.Visible(name), strings.Join(names, ", "), more, near)
}

// asObject reads arguments as the one JSON object that they have to be.
func asObject(t *tenon.Tool, c *tenon.ToolCall, args json.RawMessage) (map[string]any, error) {
	if c.Malformed != "" {
		return nil, tenon.Errorf(tenon.CodeInvalid, "the arguments of tool '%s' are not valid JSON: %.200q. Send one JSON object that fits the schema %s", t.Name, c.Malformed, t.Input)
	}
	var v any
	if err := json.Unmarshal(args, &v); err != nil {
		return nil, tenon.Errorf(tenon.CodeInvalid, "the arguments of tool '%s' are not valid JSON: %w", t.Name, err)
	}
	m, ok := v.(map[string]any)
	if !ok {
		return nil, tenon.Errorf(tenon.CodeInvalid, "the arguments of tool '%s' are %s, expected a JSON object that fits the schema %s", t.Name, kind(v), t.Input)
	}
	if nesting(m) > maxNesting {
		return nil, tenon.Errorf(tenon.CodeInvalid, "the arguments of tool '%s' are nested deeper than %d levels; send them flatter, or as a text", t.Name, maxNesting)
	}
	if err := duplicateKey(args); err != nil {
		return nil, tenon.Errorf(tenon.CodeInvalid, "the arguments of tool '%s' are ambiguous: %w", t.Name, err)
	}
	return m, nil
}

// maxNesting bounds how deep arguments are nested. Peers refuse deeper messages, or
// drop them without a word; the envelope needs a few levels of its own.
const maxNesting = 500

// nesting counts the levels of objects and lists in a decoded value.
func nesting(v any) int {
	deepest := 0
	switch v := v.(type) {
	case map[string]any:
		for _, e := range v {
			deepest = max(deepest, nesting(e))
		}
	case []any:
		for _, e := range v {
			deepest = max(deepest, nesting(e))
		}
	default:
		return 0
	}
	return deepest + 1
}

// fits checks arguments against the schema. Names that are not there come first:
// they are what a model gets wrong most, and it can put them right.
func (s *Snapshot) fits(t *tenon.Tool, v map[string]any) error {
	check := s.validator(t)
	if unknown := check.unknown(v); len(unknown) > 0 {
		var b strings.Builder
		for i, u := range unknown {
			if i > 0 {
				b.WriteString(", ")
			}
			fmt.Fprintf(&b, "unknown argument '%s'", tenon.Visible(shorten(u, 100)))
			if n := tenon.Nearest(u, check.names); n != "" {
				fmt.Fprintf(&b, " (did you mean '%s'?)", n)
			}
		}
		expected := strings.Join(check.names, ", ")
		if expected == "" {
			expected = "no arguments"
		}
		return tenon.Errorf(tenon.CodeInvalid, "%s; expected %s", b.String(), expected)
	}
	if check.schema == nil {
		return nil
	}
	if err := validate(check.schema, v); err != nil {
		return tenon.Errorf(tenon.CodeInvalid, "the arguments of tool '%s' do not fit its schema: %s. Expected: %s", t.Name, readable(err), t.Input)
	}
	return nil
}

// wire makes the arguments that the server gets of those that the model gave.
func wire(t *tenon.Tool, args json.RawMessage) (json.RawMessage, error) {
	r := &t.Rules
	if len(r.Fixed) == 0 && len(r.Hidden) == 0 && !r.Wrapped {
		return args, nil
	}
	o, ok := parseObject(args)
	if !ok {
		return nil, tenon.Errorf(tenon.CodeInvalid, "the arguments of tool '%s' are not a JSON object", t.Name)
	}
	fixed, _ := parseObject(r.Fixed)
	for _, m := range o {
		if fixed.has(m.key) || slices.Contains(r.Hidden, m.key) {
			return nil, tenon.Errorf(tenon.CodeInvalid, "unknown argument '%s': the tool '%s' does not take it here", tenon.Visible(m.key), t.Name)
		}
	}
	if r.Wrapped {
		if v := o.get(wrapper); v != nil {
			return v, nil
		}
		return json.RawMessage("null"), nil
	}
	o = append(o, fixed...)
	if len(fixed) == 0 {
		return args, nil // nothing is added: the bytes stay as they are
	}
	return o.raw(), nil
}

// CheckEdited checks arguments that a person wrote in place of those that
// [Snapshot.Prepare] made: with what the configuration sets in them, unchanged.
// Errors are those of Prepare.
func (s *Snapshot) CheckEdited(c *tenon.ToolCall) error {
	t, ok := s.Lookup(c.Name)
	if !ok {
		return s.noTool(c.Name)
	}
	args := c.Arguments
	if t.Rules.Wrapped {
		args = object{{wrapper, args}}.raw()
	}
	o, isObject := parseObject(args)
	if fixed, _ := parseObject(t.Rules.Fixed); isObject && len(fixed) > 0 {
		for _, m := range fixed {
			if v := o.get(m.key); v == nil || !sameJSON(string(v), string(m.value)) {
				return tenon.Errorf(tenon.CodeInvalid, "argument '%s' of tool '%s' is set to %s by the configuration and cannot be changed", m.key, t.Name, m.value)
			}
			o = o.without(m.key)
		}
		args = o.raw()
	}
	_, err := s.Prepare(&tenon.ToolCall{Name: c.Name, Arguments: args})
	return err
}

// Given is what a caller gives so that a tool is called with some arguments: without what the
// configuration puts in, the reverse of what [Snapshot.Prepare] does.
func Given(t *tenon.Tool, args json.RawMessage) json.RawMessage {
	if t.Rules.Wrapped {
		return object{{wrapper, args}}.raw()
	}
	fixed, _ := parseObject(t.Rules.Fixed)
	o, ok := parseObject(args)
	if !ok || len(fixed) == 0 {
		return args
	}
	for _, m := range fixed {
		o = o.without(m.key)
	}
	return o.raw()
}

// validator compiles a tool's schema at its first use.
func (s *Snapshot) validator(t *tenon.Tool) *validator {
	s.mu.Lock()
	defer s.mu.Unlock()
	if v, ok := s.schemas[t.Name]; ok {
		return v
	}
	if s.schemas == nil {
		s.schemas = make(map[string]*validator)
	}
	v := &validator{}
	s.schemas[t.Name] = v
	if root, ok := parseObject(t.Input); ok {
		props, _ := parseObject(root.get("properties"))
		v.names = props.keys()
		v.closed = string(root.get("additionalProperties")) == "false" && !root.has("patternProperties")
		v.schema, _ = compile(t.Input) // unusable: arguments go to the server unchecked
	}
	return v
}

// compile reads a JSON Schema. References that lead out of the schema are never
// fetched; such a schema is not usable.
func compile(raw json.RawMessage) (r *jsonschema.Resolved, err error) {
	defer func() {
		if p := recover(); p != nil { // the schema came from a server: nothing in it may panic
			r, err = nil, fmt.Errorf("schema: %v", p)
		}
	}()
	if err := bounded(raw); err != nil {
		return nil, err
	}
	if s := plainSchema(raw); s != nil {
		return s.Resolve(nil)
	}
	var s jsonschema.Schema
	if err := json.Unmarshal(raw, &s); err != nil {
		return nil, err
	}
	// The library takes a key in any case of letters, and joins what stands twice: what
	// counts is the schema as it has read it.
	read, err := json.Marshal(&s)
	if err != nil {
		return nil, err
	}
	if err := bounded(read); err != nil {
		return nil, err
	}
	return s.Resolve(nil)
}

// plainSchema reads a schema that has only the keywords which most tools get by
// with, and returns nil for any other. To read such a one in the general way
// means to learn about the sixty fields of a Schema first, which takes longer
// than all else that a short run does with its tools.
func plainSchema(raw json.RawMessage) *jsonschema.Schema {
	o, ok := parseObject(raw)
	if !ok {
		return nil
	}
	s := &jsonschema.Schema{}
	for _, m := range o {
		var to any
		switch m.key {
		case "$schema":
			to = &s.Schema
		case "type":
			to = &s.Type
		case "title":
			to = &s.Title
		case "description":
			to = &s.Description
		case "required":
			to = &s.Required
		case "properties":
			props, ok := parseObject(m.value)
			if !ok {
				return nil
			}
			s.Properties = make(map[string]*jsonschema.Schema, len(props))
			for _, p := range props {
				if s.Properties[p.key] = plainSchema(p.value); s.Properties[p.key] == nil {
					return nil
				}
			}
			continue
		case "additionalProperties":
			if string(m.value) != "false" {
				return nil
			}
			s.AdditionalProperties = &jsonschema.Schema{Not: &jsonschema.Schema{}} // nothing fits it
			continue
		default:
			return nil
		}
		if string(m.value) == "null" || json.Unmarshal(m.value, to) != nil {
			return nil
		}
	}
	return s
}

func validate(r *jsonschema.Resolved, v any) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = nil // a defect of the schema, not of the arguments
		}
	}()
	return r.Validate(v)
}

// readable turns the library's chain of locations into one path and the reason.
func readable(err error) string {
	text := strings.ReplaceAll(err.Error(), "<invalid reflect.Value>", "null")
	parts := strings.Split(text, ": ")
	path := ""
	for len(parts) > 1 && strings.HasPrefix(parts[0], "validating ") {
		if p := strings.TrimPrefix(parts[0], "validating "); p != "root" {
			path = strings.ReplaceAll(p, "/properties", "")
		}
		parts = parts[1:]
	}
	text = strings.Join(parts, ": ")
	if path == "" {
		return text
	}
	return "at " + path + ": " + text
}

func kind(v any) string {
	switch v.(type) {
	case nil:
		return "null"
	case bool:
		return "a boolean"
	case float64:
		return "a number"
	case string:
		return "a string"
	case []any:
		return "an array"
	}
	return "an object"
}

// duplicateKey refuses objects in which a key stands twice: what the policy saw
// and what the server takes must be the same value.
func duplicateKey(raw []byte) error {
	if k, twice := rawjson.Twice(raw); twice {
		return fmt.Errorf("the key %q stands twice", k)
	}
	return nil
}
