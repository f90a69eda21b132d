package catalog

import (
	"crypto/sha256"
	"encoding/json"
	"sync"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/internal/jsonschema"
)

// maxCompiled bounds the compiled schemas that a snapshot and its successors keep.
const maxCompiled = 4096

// compiled keeps compiled schemas by their digests. Snapshots that follow each other share it, because most tools stay
// the same. It is safe for concurrent use; nil keeps nothing.
type compiled struct {
	mu   sync.Mutex
	seen map[compiledKey]compiledSchema
}

type compiledKey struct {
	digest  [sha256.Size]byte
	formats bool
}

type compiledSchema struct {
	schema *jsonschema.Schema
	err    error
}

func newCompiled() *compiled { return &compiled{seen: map[compiledKey]compiledSchema{}} }

// get compiles a schema, or returns the same schema as before.
func (c *compiled) get(raw json.RawMessage, formats bool) (*jsonschema.Schema, error) {
	if c == nil {
		return jsonschema.Compile(raw, jsonschema.Options{Formats: formats})
	}
	key := compiledKey{sha256.Sum256(raw), formats}
	c.mu.Lock()
	known, ok := c.seen[key]
	c.mu.Unlock()
	if ok {
		return known.schema, known.err
	}
	s, err := jsonschema.Compile(raw, jsonschema.Options{Formats: formats})
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.seen) >= maxCompiled {
		clear(c.seen) // rare, and a schema costs a tenth of a millisecond
	}
	c.seen[key] = compiledSchema{s, err}
	return s, err
}

// CheckResult checks a structured result against the output schema of its tool. A tool without a usable schema takes
// any. The error, of code invalid, says what does not fit.
func (s *Snapshot) CheckResult(t *tenon.Tool, structured json.RawMessage) error {
	if len(t.Output) == 0 {
		return nil
	}
	schema, err := s.compiled.get(t.Output, t.Rules.Formats)
	if err != nil {
		return nil // Unchecked reports it
	}
	v, err := jsonschema.Decode(structured)
	if err == nil {
		err = schema.Validate(v)
	}
	if err != nil {
		return tenon.Errorf(tenon.CodeInvalid, "%w", err)
	}
	return nil
}

// Unchecked is a part of a tool's schema that no call is checked against.
type Unchecked struct {
	Field string `json:"field"` // input_schema or output_schema
	jsonschema.Unchecked
}

// Unchecked returns the parts of a tool's schemas that calls and results are not checked against, and why.
func (s *Snapshot) Unchecked(t *tenon.Tool) []Unchecked {
	var list []Unchecked
	for _, f := range []struct {
		name string
		raw  json.RawMessage
	}{{"input_schema", t.Input}, {"output_schema", t.Output}} {
		if len(f.raw) == 0 {
			continue
		}
		schema, err := s.compiled.get(f.raw, t.Rules.Formats)
		if err != nil {
			list = append(list, Unchecked{f.name, jsonschema.Unchecked{Reason: err.Error()}})
			continue
		}
		for _, u := range schema.Unchecked() {
			list = append(list, Unchecked{f.name, u})
		}
	}
	return list
}
