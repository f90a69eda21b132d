package catalog_test

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/catalog"
)

// TestHostileReferences calls tools whose schemas refer to themselves. A validator that follows these references never
// ends. So they are cut and reported, and the rest of the schema is still checked.
func TestHostileReferences(t *testing.T) {
	for name, schema := range map[string]string{
		"percent": `{"type":"object","properties":{"x":{"$ref":"#/$defs/a%41"},"n":{"type":"integer"}},"$defs":{"aA":{"$ref":"#/$defs/a%41"}}}`,
		"slash":   `{"type":"object","properties":{"x":{"$ref":"#%2F$defs/a"},"n":{"type":"integer"}},"$defs":{"a":{"$ref":"#%2F$defs/a"}}}`,
		"outside": `{"type":"object","properties":{"x":{"$ref":"file:///etc/passwd"},"n":{"type":"integer"}}}`,
	} {
		t.Run("RP-9_"+name, func(t *testing.T) {
			s, _ := catalog.Build([]catalog.Source{{Server: "s", Tools: []tenon.Tool{{Remote: "t", Input: json.RawMessage(schema)}}}})
			if _, err := s.Prepare(&tenon.ToolCall{Name: "t", Arguments: json.RawMessage(`{"x":1}`)}, nil); err != nil {
				t.Errorf("arguments that fit are refused: %v", err)
			}
			if _, err := s.Prepare(&tenon.ToolCall{Name: "t", Arguments: json.RawMessage(`{"n":"x"}`)}, nil); err == nil {
				t.Error("the rest of the schema is not checked")
			}
			tool, _ := s.Lookup("t")
			if list := s.Unchecked(tool); len(list) != 1 || list[0].Field != "input_schema" || !strings.HasSuffix(list[0].Pointer, "/$ref") {
				t.Errorf("reported: %v", list)
			}
			found := s.Lint(nil)
			if !slices.ContainsFunc(found, func(f catalog.Finding) bool {
				return f.Level == catalog.LevelWarn && strings.HasSuffix(f.Pointer, "/$ref")
			}) {
				t.Errorf("lint reports nothing: %v", found)
			}
			if v, err := catalog.NewValueSchema(json.RawMessage(schema)); err == nil {
				t.Errorf("a configuration can use the schema: %v", v.Check([]byte(`{"x":1}`)))
			}
		})
	}
}

// TestSchemaSpellings calls tools with each way to write $schema, and without $schema.
func TestSchemaSpellings(t *testing.T) {
	for _, dialect := range []string{"", "http://json-schema.org/draft-07/schema#", "http://json-schema.org/draft-07/schema",
		"https://json-schema.org/draft-07/schema#", "https://json-schema.org/draft/2020-12/schema",
		"https://json-schema.org/draft/2020-12/schema#", "http://json-schema.org/draft-04/schema#", "https://example.com/own"} {
		t.Run("RP-9_schema_spellings/"+dialect, func(t *testing.T) {
			schema := `{"$schema":` + strconv.Quote(dialect) + `,"type":"object","properties":{"n":{"type":"integer"}}}`
			if dialect == "" {
				schema = `{"type":"object","properties":{"n":{"type":"integer"}}}`
			}
			s, _ := catalog.Build([]catalog.Source{{Server: "s", Tools: []tenon.Tool{{Remote: "t", Input: json.RawMessage(schema)}}}})
			for args, ok := range map[string]bool{`{"n":1}`: true, `{"n":9007199254740993}`: true, `{"n":"1"}`: false} {
				if _, err := s.Prepare(&tenon.ToolCall{Name: "t", Arguments: json.RawMessage(args)}, nil); (err == nil) != ok {
					t.Errorf("%s: %v", args, err)
				}
			}
		})
	}
}

// TestFormats checks that formats of values are checked only if the server's configuration asks for it.
func TestFormats(t *testing.T) {
	for _, formats := range []bool{false, true} {
		s, _ := catalog.Build([]catalog.Source{{Server: "s", Formats: formats, Tools: []tenon.Tool{{Remote: "t",
			Input: json.RawMessage(`{"type":"object","properties":{"m":{"type":"string","format":"email"}}}`)}}}})
		_, err := s.Prepare(&tenon.ToolCall{Name: "t", Arguments: json.RawMessage(`{"m":"nobody"}`)}, nil)
		if (err != nil) != formats {
			t.Errorf("RP-9: formats %v: %v", formats, err)
		}
	}
}

// TestReferenceEscapes resolves a reference that is written with escape sequences.
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
