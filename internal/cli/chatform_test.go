package cli

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tenonhq/tenon/internal/tui"
)

// TestInputsOf makes input forms for arguments from schemas.
func TestInputsOf(t *testing.T) {
	raw := func(s string) json.RawMessage { return json.RawMessage(s) }
	for name, tt := range map[string]struct {
		schema, args string
		want         []tui.Input
	}{
		"UX-3_types": {`{"type":"object","required":["path"],"properties":{"path":{"type":"string","description":"where\nmore"},
			"n":{"type":"integer"},"x":{"type":"number"},"on":{"type":"boolean"},"mode":{"type":"string","enum":["a","b"]}}}`,
			`{"path":"p","n":9007199254740993}`,
			[]tui.Input{{Name: "path", Type: "string", Help: "where", Required: true, Value: raw(`"p"`)},
				{Name: "n", Type: "integer", Value: raw(`9007199254740993`)}, {Name: "x", Type: "number"},
				{Name: "on", Type: "boolean"}, {Name: "mode", Type: "string", Choices: []string{"a", "b"}}}},
		"UX-3_other_values": {`{"properties":{"list":{"type":"array"},"any":true,"two":{"type":["string","null"]},
			"text":{"type":"string"},"level":{"type":"integer","enum":[1,2]}}}`, `{"more":{"a":1},"text":5,"list":[1]}`,
			[]tui.Input{{Name: "list", Value: raw(`[1]`)}, {Name: "any"}, {Name: "two"}, {Name: "text", Value: raw(`5`)},
				{Name: "level", Type: "integer"}, {Name: "more", Value: raw(`{"a":1}`)}}},
		"UX-3_no_schema":     {``, `{"a":1}`, nil},
		"UX-3_no_properties": {`{"type":"object"}`, `{"a":1}`, nil},
		"UX-3_no_object":     {`{"properties":{"a":{}}}`, `[1]`, nil},
	} {
		t.Run(name, func(t *testing.T) {
			if d := cmp.Diff(tt.want, inputsOf(raw(tt.schema), raw(tt.args))); d != "" {
				t.Error(d)
			}
		})
	}
}

// TestArgLines checks that each line of a multi-line text is shown on a separate line, so that no line looks like
// another argument.
func TestArgLines(t *testing.T) {
	for name, tt := range map[string]struct{ args, want string }{
		"UX-3_lines":   {`{"text":"one\n\"x\": 1\n","n":1}`, "{\n  \"text\": \"one\\n\"\n          \"\\\"x\\\": 1\\n\",\n  \"n\": 1\n}"},
		"UX-3_break":   {`{"text":"one\n"}`, "{\n  \"text\": \"one\\n\"\n}"},
		"UX-3_in_list": {`["a\nb"]`, "[\n  \"a\\n\"\n  \"b\"\n]"},
	} {
		t.Run(name, func(t *testing.T) {
			lines, _ := argBlock(json.RawMessage(tt.args), 80, "", true)
			var got string
			for i, l := range lines {
				if i > 0 {
					got += "\n"
				}
				got += l
			}
			if d := cmp.Diff(tt.want, got); d != "" {
				t.Error(d)
			}
		})
	}
}
