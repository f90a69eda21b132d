// Package jsonschema checks JSON values against untrusted JSON Schemas of the drafts 4, 6, 7, 2019-09 and 2020-12.
//
// The validator is a library that passes the public test suite (github.com/santhosh-tekuri/jsonschema). This package
// adds what a host needs around it:
//
//   - A schema never causes a network or file access. References that lead out of it are reported, not followed.
//   - Every spelling of `$schema` is accepted, and `$schema` may be absent. An unknown dialect is reported, and read as
//     2020-12.
//   - A wrong keyword is ignored and reported ([Schema.Unchecked]); the rest of its schema is checked.
//   - For any schema, the work of one check is bounded: its steps, its memory, and the time of patterns.
//   - Patterns follow ECMA-262. RE2 runs them where it can express them, otherwise a backtracking engine does.
//   - Numbers are compared as they are written, so that `multipleOf: 0.01` is exact.
//
// Only package catalog imports this package. No other package imports the libraries, and none of their panics leaves
// this package.
package jsonschema

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	validator "github.com/santhosh-tekuri/jsonschema/v6"
)

// Limits of a schema: the bytes, values and levels of its JSON text.
const (
	MaxBytes = 1 << 20
	MaxNodes = 20_000
	MaxDepth = 64
)

// ErrLimit is wrapped by errors about values that are too large to check, or whose check takes too long.
var ErrLimit = errors.New("it cannot be checked within the limits")

// Options control how a schema is read.
type Options struct {
	// Formats makes `format` an assertion. Otherwise it is an annotation, as in 2020-12.
	Formats bool
	// Draft is the draft of a schema without `$schema`: 4, 6, 7, 2019 or 2020. If it is 0, the draft is 2020, or an
	// older one if the schema is only valid in the older one.
	Draft int
	// Documents are other schemas, by absolute URL, to which references may lead. Nothing else is ever loaded.
	Documents map[string]json.RawMessage
}

// Unchecked is a part of a schema that checks ignore.
type Unchecked struct {
	Pointer string `json:"pointer"` // JSON pointer (RFC 6901) to the keyword; "" is the whole schema
	Reason  string `json:"reason"`
}

// Schema is a compiled JSON Schema. It is safe for concurrent use.
type Schema struct {
	root      *validator.Schema
	unchecked []Unchecked

	mu   sync.Mutex // protects meter, since the library has no state for a single check
	work *meter
}

// Compile reads a JSON Schema. It fails only if no part of the schema can be used: if the schema is not JSON, is
// neither an object nor a boolean, or exceeds the limits. All other mistakes are reported by [Schema.Unchecked].
func Compile(raw json.RawMessage, o Options) (s *Schema, err error) {
	defer func() {
		if p := recover(); p != nil { // a schema from a server must not crash the process
			s, err = nil, fmt.Errorf("the schema cannot be read: %v", p)
		}
	}()
	if len(raw) > MaxBytes {
		return nil, fmt.Errorf("the schema has more than %d KiB", MaxBytes>>10)
	}
	doc, err := Decode(raw)
	if err != nil {
		return nil, fmt.Errorf("the schema is not JSON: %w", err)
	}
	switch doc.(type) {
	case map[string]any, bool:
	default:
		return nil, errors.New("the schema is neither an object nor a boolean")
	}
	e := measure(doc, MaxNodes)
	switch {
	case e.values > MaxNodes || e.depth > MaxDepth+1:
		return nil, fmt.Errorf("the schema has more than %d levels or %d values", MaxDepth, MaxNodes)
	case e.number != "":
		return nil, fmt.Errorf("the number %.40s in the schema has more than %d digits or a larger exponent", e.number,
			maxNumberText)
	}
	b := &builder{options: o, doc: doc, work: &meter{}}
	root, err := b.build()
	if err != nil {
		return nil, err
	}
	b.harden()
	slices.SortStableFunc(b.unchecked, func(a, b Unchecked) int { return strings.Compare(a.Pointer, b.Pointer) })
	return &Schema{root: root, unchecked: slices.Compact(b.unchecked), work: b.work}, nil
}

// Unchecked returns the parts of the schema that checks ignore, sorted by pointer.
func (s *Schema) Unchecked() []Unchecked { return s.unchecked }

// Validate checks a value that [Decode] returned. The error says what does not fit, and where. It wraps [ErrLimit] if
// the check would take too long.
func (s *Schema) Validate(v any) (err error) {
	e := measure(v, maxValues)
	if err := checkExtent(e); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.work.reset(e)
	defer func() {
		switch p := recover().(type) {
		case nil:
		case limitReached:
			err = fmt.Errorf("%w: %s", ErrLimit, p.reason)
		default:
			err = fmt.Errorf("%w: %v", ErrLimit, p)
		}
	}()
	if err := s.root.Validate(v); err != nil {
		var wrong *validator.ValidationError
		if errors.As(err, &wrong) {
			return errors.New(explain(wrong))
		}
		return err
	}
	return nil
}
