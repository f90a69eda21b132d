package catalog

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/tenonhq/tenon"
)

func TestAnchors(t *testing.T) {
	deep := `{"$anchor":"a","x":` + strings.Repeat(`{"items":`, 100) + `1` + strings.Repeat(`}`, 100) + `}`
	for _, c := range []struct{ name, in, want string }{
		{"none", `{"properties": {"a": {"$ref": "#/$defs/a"}}}`, `{"properties": {"a": {"$ref": "#/$defs/a"}}}`},
		{"one", `{"properties":{"a":{"$ref":"#who"}},"$defs":{"p":{"$anchor":"who","type":"string"}}}`,
			`{"properties":{"a":{"$ref":"#/$defs/p"}},"$defs":{"p":{"$anchor":"who","type":"string"}}}`},
		{"key that needs escapes", `{"items":{"$ref":"#w"},"$defs":{"a/b~c%d é":{"$anchor":"w"}}}`, `{"items":{"$ref":"#/$defs/a~1b~0c%25d%20%C3%A9"},"$defs":{"a/b~c%d é":{"$anchor":"w"}}}`},
		{"in a list", `{"anyOf":[{"$anchor":"w","n":9007199254740993},{"$ref":"#w"}]}`, `{"anyOf":[{"$anchor":"w","n":9007199254740993},{"$ref":"#/anyOf/0"}]}`},
		{"the root", `{"$anchor":"w","items":{"$ref":"#w"}}`, `{"$anchor":"w","items":{"$ref":"#"}}`},
		{"two of a name", `{"allOf":[{"$anchor":"w"},{"$anchor":"w"},{"$ref":"#w"}]}`, `{"allOf":[{"$anchor":"w"},{"$anchor":"w"},{"$ref":"#w"}]}`},
		{"nothing there", `{"allOf":[{"$anchor":"w"},{"$ref":"#v"}]}`, `{"allOf":[{"$anchor":"w"},{"$ref":"#v"}]}`},
		{"values are none", `{"default":{"$anchor":"w"},"items":{"$anchor":"w"},"not":{"$ref":"#w"},"const":{"$ref":"#w"}}`,
			`{"default":{"$anchor":"w"},"items":{"$anchor":"w"},"not":{"$ref":"#/items"},"const":{"$ref":"#w"}}`},
		{"too deep", deep, deep},
		{"no JSON", `{"$anchor"`, `{"$anchor"`},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := string(withoutAnchors(json.RawMessage(c.in))); got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
		})
	}
}

// TestAnchorCounts checks that a reference to an anchor counts when arguments are checked.
func TestAnchorCounts(t *testing.T) {
	s := tenon.Tool{Remote: "t", Input: json.RawMessage(`{"type":"object","properties":{"a":{"$ref":"#who"}},"$defs":{"p":{"$anchor":"who","type":"integer"}}}`)}
	snapshot, errs := Merge([]*Listing{Shape(Source{Server: "s", Tools: []tenon.Tool{s}})})
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	if _, err := snapshot.Prepare(&tenon.ToolCall{Name: "t", Arguments: json.RawMessage(`{"a":"one"}`)}, nil); err == nil {
		t.Error("a text is taken for the integer of the anchor")
	}
	if _, err := snapshot.Prepare(&tenon.ToolCall{Name: "t", Arguments: json.RawMessage(`{"a":1}`)}, nil); err != nil {
		t.Error(err)
	}
}
