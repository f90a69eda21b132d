package catalog

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/tenonhq/tenon"
)

// validator checks arguments against one tool's schema. A nil schema checks
// nothing: the tool's schema cannot be used, which is no reason to withhold it.
type validator struct {
	schema *jsonschema.Resolved
}

// Check says what is wrong with the arguments of a call: an *Error of code
// not_found if there is no such tool, invalid if the arguments are not a JSON
// object that fits the tool's schema. The messages are meant for a model, which
// can then do better.
func (s *Snapshot) Check(c *tenon.ToolCall) (*tenon.Tool, error) {
	t, ok := s.Lookup(c.Name)
	if !ok {
		return nil, tenon.Errorf(tenon.CodeNotFound, "Tool '%s' not found among available tools: [%s]", c.Name, strings.Join(s.Names(), ", "))
	}
	if c.Malformed != "" {
		return t, tenon.Errorf(tenon.CodeInvalid, "the arguments of tool '%s' are not valid JSON: %.200q. Send one JSON object that fits the schema %s", c.Name, c.Malformed, t.Input)
	}
	args := c.Arguments
	if len(args) == 0 {
		args = json.RawMessage("{}")
	}
	var v any
	if err := json.Unmarshal(args, &v); err != nil {
		return t, tenon.Errorf(tenon.CodeInvalid, "the arguments of tool '%s' are not valid JSON: %w", c.Name, err)
	}
	if _, ok := v.(map[string]any); !ok {
		return t, tenon.Errorf(tenon.CodeInvalid, "the arguments of tool '%s' are %s, expected a JSON object that fits the schema %s", c.Name, kind(v), t.Input)
	}
	if err := duplicateKey(args); err != nil {
		return t, tenon.Errorf(tenon.CodeInvalid, "the arguments of tool '%s' are ambiguous: %w", c.Name, err)
	}
	schema := s.validator(t).schema
	if schema == nil {
		return t, nil
	}
	if err := validate(schema, v); err != nil {
		return t, tenon.Errorf(tenon.CodeInvalid, "the arguments of tool '%s' do not fit its schema: %s. Expected: %s", c.Name, readable(err), t.Input)
	}
	return t, nil
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
	if len(t.Input) > 0 && string(t.Input) != "null" {
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
	var s jsonschema.Schema
	if err := json.Unmarshal(raw, &s); err != nil {
		return nil, err
	}
	return s.Resolve(nil)
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
	text := err.Error()
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
	type frame struct {
		object bool
		key    bool // the next token is a key
		seen   map[string]bool
	}
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	var stack []frame
	for {
		tok, err := dec.Token()
		if err != nil {
			return nil // the end; the syntax was checked before
		}
		if n := len(stack); n > 0 && stack[n-1].object {
			f := &stack[n-1]
			if k, ok := tok.(string); ok && f.key {
				if f.seen[k] {
					return errors.New("the key " + fmt.Sprintf("%q", k) + " stands twice")
				}
				f.seen[k] = true
				f.key = false
				continue
			}
			f.key = true
		}
		switch tok {
		case json.Delim('{'):
			stack = append(stack, frame{object: true, key: true, seen: map[string]bool{}})
		case json.Delim('['):
			stack = append(stack, frame{})
		case json.Delim('}'), json.Delim(']'):
			stack = stack[:len(stack)-1]
		}
	}
}
