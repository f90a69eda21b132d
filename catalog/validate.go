package catalog

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/internal/jsonschema"
	"github.com/tenonhq/tenon/internal/rawjson"
	"github.com/tenonhq/tenon/policy"
)

// validator checks arguments against the schema of one tool. A nil schema checks nothing: the tool's schema cannot be
// used, but the tool is offered nevertheless. [Snapshot.Unchecked] reports such a schema.
type validator struct {
	schema *jsonschema.Schema
	names  []string // names of the arguments, in order
	closed bool     // the schema allows only these names

	once sync.Once
	keys *keyCheck // made by the first arguments that need it
}

// unknown returns the names that a closed schema does not allow, sorted.
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

// Prepared is a call that is ready for the policy, and then for the server.
type Prepared struct {
	Tool      *tenon.Tool     // nil if no tool has the name
	Arguments json.RawMessage // for the server, before any edits of a person; without a tool, the original ones
	Warning   error           // a misfit for which the tool's rules only warn
}

// Prepare looks up the tool of a call, checks the arguments, and adds the arguments that the configuration sets. The
// arguments must be one JSON object that fits the schema that the model saw. No key may be a duplicate or a lookalike
// of another (see keys.go), even if the schema check is off; read are the keys that the effective rules read (see
// [policy.Layers.Reads]). The error has code not_found if there is no such tool, else invalid. Its message is for a
// model, which can then correct the call. In case of an error, Prepared contains the tool nevertheless.
func (s *Snapshot) Prepare(c *tenon.ToolCall, read policy.Keys) (Prepared, error) {
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
	if isStrict(t) {
		p.Arguments = withoutNulls(t, p.Arguments)
		if v, err = asObject(t, c, p.Arguments); err != nil {
			return p, err
		}
	}
	if t.Rules.Validate != ValidateOff {
		if err := s.fits(t, v); err != nil {
			if t.Rules.Validate != ValidateWarn {
				return p, err
			}
			p.Warning = err
		}
	}
	if err := s.lookalikes(t, v, read); err != nil {
		return p, err
	}
	if p.Arguments, err = wire(t, p.Arguments); err != nil {
		return p, err
	}
	return p, s.fitsFloors(t, p.Arguments)
}

// maxNames bounds the number of names in a message about an unknown tool.
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
	return tenon.Errorf(tenon.CodeNotFound, "Tool '%s' not found among available tools: [%s]%s%s", tenon.Visible(name),
		strings.Join(names, ", "), more, near)
}

// asObject decodes arguments, which must be one JSON object.
func asObject(t *tenon.Tool, c *tenon.ToolCall, args json.RawMessage) (map[string]any, error) {
	if c.Malformed != "" {
		return nil, tenon.Errorf(tenon.CodeInvalid,
			"the arguments of tool '%s' are not valid JSON: %.200q. Send one JSON object that fits the schema %s",
			t.Name, c.Malformed, t.Input)
	}
	v, err := jsonschema.Decode(args)
	if err != nil {
		return nil, tenon.Errorf(tenon.CodeInvalid, "the arguments of tool '%s' are not valid JSON: %w", t.Name, err)
	}
	if !utf8.Valid(args) { // invalid UTF-8 could look different to a rule and to the server
		return nil, tenon.Errorf(tenon.CodeInvalid, "the arguments of tool '%s' are not valid UTF-8", t.Name)
	}
	m, ok := v.(map[string]any)
	if !ok {
		return nil, tenon.Errorf(tenon.CodeInvalid,
			"the arguments of tool '%s' are %s, expected a JSON object that fits the schema %s", t.Name, kind(v),
			t.Input)
	}
	if nesting(m) > maxNesting {
		return nil, tenon.Errorf(tenon.CodeInvalid,
			"the arguments of tool '%s' are nested deeper than %d levels; send them flatter, or as a text", t.Name,
			maxNesting)
	}
	if err := duplicateKey(args); err != nil {
		return nil, tenon.Errorf(tenon.CodeInvalid, "the arguments of tool '%s' are ambiguous: %w", t.Name, err)
	}
	return m, nil
}

// maxNesting is the maximum nesting of arguments. Peers refuse deeper messages, or drop them silently. The envelope
// adds a few levels.
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

// fits checks arguments against the schema. It reports unknown names first: they are the most frequent mistake of
// models, and a model can correct them.
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
		expected := cmp.Or(strings.Join(check.names, ", "), "no arguments")
		return tenon.Errorf(tenon.CodeInvalid, "%s; expected %s", b.String(), expected)
	}
	if check.schema == nil {
		return nil
	}
	switch err := check.schema.Validate(v); {
	case errors.Is(err, jsonschema.ErrLimit):
		return tenon.Errorf(tenon.CodeInvalid, "the arguments of tool '%s' cannot be checked against its schema: %w",
			t.Name, err)
	case err != nil:
		return tenon.Errorf(tenon.CodeInvalid, "%w", &Misfit{Tool: t.Name, Err: err, Schema: t.Input})
	}
	return nil
}

// Misfit is the error of arguments that do not fit the schema of their tool. Its text repeats the schema for a model.
// A surface for people prints Err, which names the mistakes.
type Misfit struct {
	Tool   string
	Err    error
	Schema json.RawMessage
}

// Error implements error.
func (m *Misfit) Error() string {
	return fmt.Sprintf("the arguments of tool '%s' do not fit its schema: %v. Expected: %s", m.Tool, m.Err, m.Schema)
}

// Unwrap returns Err, which names the mistakes.
func (m *Misfit) Unwrap() error { return m.Err }

// wire converts the arguments of the model to the arguments for the server.
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
			return nil, tenon.Errorf(tenon.CodeInvalid, "unknown argument '%s': the tool '%s' does not take it here",
				tenon.Visible(m.key), t.Name)
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
		return args, nil // nothing is added, so keep the bytes
	}
	return o.raw(), nil
}

// CheckEdited checks arguments that a person edited after [Snapshot.Prepare] made them. Arguments that the
// configuration sets must be present, once and unchanged. It returns the same errors as Prepare.
func (s *Snapshot) CheckEdited(c *tenon.ToolCall, read policy.Keys) error {
	t, ok := s.Lookup(c.Name)
	if !ok {
		return s.noTool(c.Name)
	}
	args := c.Arguments
	if err := duplicateKey(args); err != nil { // before fixed arguments are removed
		return tenon.Errorf(tenon.CodeInvalid, "the arguments of tool '%s' are ambiguous: %w", t.Name, err)
	}
	if t.Rules.Wrapped {
		args = object{{wrapper, args}}.raw()
	}
	o, isObject := parseObject(args)
	if fixed, _ := parseObject(t.Rules.Fixed); isObject && len(fixed) > 0 {
		for _, m := range fixed {
			if v := o.get(m.key); v == nil || !sameJSON(string(v), string(m.value)) {
				return tenon.Errorf(tenon.CodeInvalid,
					"argument '%s' of tool '%s' is set to %s by the configuration and cannot be changed", m.key, t.Name,
					m.value)
			}
			o = o.without(m.key)
		}
		args = o.raw()
	}
	_, err := s.Prepare(&tenon.ToolCall{Name: c.Name, Arguments: args}, read)
	return err
}

// Given returns the arguments that a caller passes so that the server gets args: args without the values that the
// configuration sets. It is the reverse of [Snapshot.Prepare].
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

// validator returns the validator of a tool, which the first call compiles.
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
		v.schema, _ = s.compiled.get(t.Input, t.Rules.Formats) // on an error nothing is checked
	}
	return v
}

func kind(v any) string {
	switch v.(type) {
	case nil:
		return "null"
	case bool:
		return "a boolean"
	case float64, json.Number:
		return "a number"
	case string:
		return "a string"
	case []any:
		return "an array"
	}
	return "an object"
}

// duplicateKey returns an error if an object has a key twice: the policy and the server could see different values.
func duplicateKey(raw []byte) error {
	if k, twice := rawjson.Twice(raw); twice {
		return fmt.Errorf("the key %q stands twice", k)
	}
	return nil
}
