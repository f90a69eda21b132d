package catalog

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/tenonhq/tenon"
)

// maxAnswerBytes bounds a JSON text that is held to a schema.
const maxAnswerBytes = 4 << 20

// ValueSchema is a JSON Schema of any type that JSON texts are held to. It is safe for concurrent use.
type ValueSchema struct {
	raw      json.RawMessage
	resolved *jsonschema.Resolved
}

// NewValueSchema reads a JSON Schema of any type. References that lead out of it are never
// fetched. Errors have code invalid.
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
	r, err := compile(raw)
	if err != nil {
		return bad("%w", err)
	}
	return &ValueSchema{raw: raw, resolved: r}, nil
}

// Raw returns the schema as it was given.
func (s *ValueSchema) Raw() json.RawMessage { return s.raw }

// Check holds a JSON text to the schema: one value, in which no key stands twice. The
// error says what does not fit, and where; its code is invalid.
func (s *ValueSchema) Check(text []byte) error {
	text = bytes.TrimSpace(text)
	if len(text) > maxAnswerBytes {
		return tenon.Errorf(tenon.CodeInvalid, "it has more than %d MiB", maxAnswerBytes>>20)
	}
	d := json.NewDecoder(bytes.NewReader(text))
	var v any
	err := d.Decode(&v)
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		err = errors.New("it ends too early")
	}
	if err == nil {
		if _, more := d.Token(); !errors.Is(more, io.EOF) {
			err = errors.New("there is more than one value")
		}
	}
	if err != nil {
		return tenon.Errorf(tenon.CodeInvalid, "it is not JSON: %w", err)
	}
	if err := duplicateKey(text); err != nil {
		return tenon.Errorf(tenon.CodeInvalid, "it is ambiguous: %w", err)
	}
	if err := validate(s.resolved, v); err != nil {
		return tenon.Errorf(tenon.CodeInvalid, "it does not fit the schema: %s", readable(err))
	}
	return nil
}
