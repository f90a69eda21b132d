package catalog

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/internal/jsonschema"
)

// maxAnswerBytes bounds a JSON text that is checked against a schema.
const maxAnswerBytes = 4 << 20

// ValueSchema is a JSON Schema of any type against which JSON texts are checked. It is safe for concurrent use.
type ValueSchema struct {
	raw    json.RawMessage
	schema *jsonschema.Schema
}

// NewValueSchema reads a JSON Schema of any type. References to other documents are never fetched. Errors have code
// invalid.
func NewValueSchema(raw json.RawMessage) (*ValueSchema, error) {
	raw = bytes.TrimSpace(raw)
	bad := func(format string, args ...any) (*ValueSchema, error) {
		return nil, tenon.Errorf(tenon.CodeInvalid, "the schema cannot be used: "+format, args...)
	}
	var root any
	switch err := json.Unmarshal(raw, &root); {
	case len(raw) > maxSchemaBytes:
		return bad("it has more than %d KiB", maxSchemaBytes>>10)
	case err != nil:
		return bad("it is not JSON: %w", err)
	}
	m, ok := root.(map[string]any)
	if !ok {
		return bad("it is %s, not a map", kind(root))
	}
	w := walker{left: maxSchemaNodes}
	if w.walk(root, 0) != nil {
		return bad("it has more than %d levels or %d values", maxSchemaDepth, maxSchemaNodes)
	}
	if circle(m) {
		return bad("it only refers to itself")
	}
	schema, err := compileWhole(raw)
	if err != nil {
		return bad("%w", err)
	}
	return &ValueSchema{raw: raw, schema: schema}, nil
}

// Raw returns the schema as it was passed to NewValueSchema.
func (s *ValueSchema) Raw() json.RawMessage { return s.raw }

// Check checks a JSON text against the schema. The text must be a single value without duplicate keys. The error has
// code invalid; it says what does not fit, and where.
func (s *ValueSchema) Check(text []byte) error {
	text = bytes.TrimSpace(text)
	if len(text) > maxAnswerBytes {
		return tenon.Errorf(tenon.CodeInvalid, "it has more than %d MiB", maxAnswerBytes>>20)
	}
	v, err := jsonschema.Decode(text)
	if err != nil {
		return tenon.Errorf(tenon.CodeInvalid, "it is not JSON: %w", err)
	}
	if err := duplicateKey(text); err != nil {
		return tenon.Errorf(tenon.CodeInvalid, "it is ambiguous: %w", err)
	}
	if err := s.schema.Validate(v); err != nil {
		return tenon.Errorf(tenon.CodeInvalid, "it does not fit the schema: %w", err)
	}
	return nil
}

// compileWhole compiles a schema that a person or a program wrote for tenon. A part that cannot be used is an error.
func compileWhole(raw json.RawMessage) (*jsonschema.Schema, error) {
	s, err := jsonschema.Compile(raw, jsonschema.Options{})
	if err != nil {
		return nil, err
	}
	for _, u := range s.Unchecked() {
		return nil, fmt.Errorf("at %s: %s", cmp.Or(u.Pointer, "the root"), u.Reason)
	}
	return s, nil
}
