package catalog

import (
	"bytes"
	"encoding/json"
	"reflect"
	"testing"

	"github.com/google/jsonschema-go/jsonschema"
)

// What plainSchema reads is what the library reads; what it cannot read it
// leaves to the library.
func TestPlainSchema(t *testing.T) {
	for _, tc := range []struct {
		name, schema string
		plain        bool
	}{
		{"empty", `{}`, true},
		{"object", `{"type":"object","properties":{"a":{"type":"string","description":"A"},"b":{"type":"number"}},"required":["a"]}`, true},
		{"closed", `{"$schema":"https://json-schema.org/draft/2020-12/schema","title":"T","type":"object","properties":{},"additionalProperties":false}`, true},
		{"nested", `{"type":"object","properties":{"a":{"type":"object","properties":{"b":{"type":"array"}},"required":[]}}}`, true},
		{"types", `{"type":["string","null"]}`, false},
		{"open", `{"additionalProperties":true}`, false},
		{"reference", `{"properties":{"a":{"$ref":"#/$defs/a"}},"$defs":{"a":{"type":"string"}}}`, false},
		{"other case", `{"Type":"object"}`, false},
		{"true", `true`, false},
		{"property is true", `{"properties":{"a":true}}`, false},
		{"no string", `{"type":1}`, false},
		{"null", `{"required":null}`, false},
		{"unknown keyword", `{"type":"object","x-order":1}`, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got := plainSchema(json.RawMessage(tc.schema))
			if (got != nil) != tc.plain {
				t.Fatalf("plain is %v, want %v", got != nil, tc.plain)
			}
			if got == nil {
				return
			}
			var want jsonschema.Schema
			if err := json.Unmarshal([]byte(tc.schema), &want); err != nil {
				t.Fatal(err)
			}
			if !reflect.DeepEqual(got, &want) {
				t.Errorf("it is read as %+v, want %+v", got, &want)
			}
		})
	}
}

// TestIsASCII tries each byte at each place of texts of all lengths that are looked at
// eight bytes at a time.
func TestIsASCII(t *testing.T) {
	for n := range 20 {
		for at := range n {
			for c := range 256 {
				text := bytes.Repeat([]byte{0x7e}, n)
				text[at] = byte(c)
				if got := isASCII(text); got != (c < 0x7f) {
					t.Fatalf("%q: %v", text, got)
				}
			}
		}
	}
}
