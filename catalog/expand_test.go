package catalog_test

import (
	"encoding/json"
	"testing"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/catalog"
)

// TestHostileReferences calls tools whose schemas refer to themselves in ways that only the
// validator sees: it would follow them until the process ends.
func TestHostileReferences(t *testing.T) {
	for name, schema := range map[string]string{
		"percent":         `{"type":"object","properties":{"x":{"$ref":"#/$defs/a%41"}},"$defs":{"a%41":{},"aA":{"$ref":"#/$defs/a%41"}}}`,
		"slash":           `{"type":"object","properties":{"x":{"$ref":"#%2F$defs/a"}},"$defs":{"a":{"$ref":"#%2F$defs/a"}}}`,
		"case of letters": `{"type":"object","properties":{"x":{"$REF":"#/properties/x"}}}`,
		"twice":           `{"type":"object","minProperties":0,"properties":{"x":{"$ref":"#/properties/x"}},"properties":{"y":{}}}`,
		"dynamic":         `{"type":"object","properties":{"x":{"$dynamicREF":"#/properties/x"}}}`,
	} {
		t.Run(name, func(t *testing.T) {
			s, _ := catalog.Build([]catalog.Source{{Server: "s", Tools: []tenon.Tool{{Remote: "t", Input: json.RawMessage(schema)}}}})
			if _, err := s.Prepare(&tenon.ToolCall{Name: "t", Arguments: json.RawMessage(`{"x":1}`)}); err != nil {
				t.Errorf("arguments are not checked against such a schema: %v", err)
			}
			if v, err := catalog.NewValueSchema(json.RawMessage(schema)); err == nil {
				t.Errorf("the schema can be used: %v", v.Check([]byte(`{"x":1}`)))
			}
		})
	}
}

// TestReferenceEscapes follows references that are written with escapes.
func TestReferenceEscapes(t *testing.T) {
	v, err := catalog.NewValueSchema(json.RawMessage(`{"$ref":"#/$defs/a%20b~1c%25","$defs":{"a b/c%":{"type":"integer"}}}`))
	if err != nil {
		t.Fatal(err)
	}
	if err := v.Check([]byte(`"x"`)); tenon.ErrorCode(err) != tenon.CodeInvalid {
		t.Errorf("a text fits: %v", err)
	}
	got, _, err := catalog.Portable(catalog.GeminiSubset, json.RawMessage(`{"type":"object","properties":{"p":{"$ref":"#/$defs/a%20b"}},"$defs":{"a b":{"type":"integer"}}}`))
	if want := `{"type":"object","properties":{"p":{"type":"integer"}}}`; err != nil || string(got) != want {
		t.Errorf("%s (%v), want %s", got, err, want)
	}
}
