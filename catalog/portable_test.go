package catalog

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/tenonhq/tenon"
)

// TestPortable checks schemas that providers are known to reject, and schemas of other hosts that were refused.
func TestPortable(t *testing.T) {
	tree := `{"type":"object","properties":{"n":{"$ref":"#/$defs/node"}},"$defs":{"node":{"type":"object","properties":{"next":{"$ref":"#/$defs/node"}}}}}`
	deep := strings.Repeat(`{"type":"object","properties":{"a":`, 30) + `{}` + strings.Repeat(`}}`, 30)
	for _, tt := range []struct {
		name, provider, in, want, bad string
	}{
		{"as it is", "anthropic", `{"type":"object","properties":{"a":{"$ref":"#/$defs/x"}},"$defs":{"x":{"enum":[1,"b"]}}}`, `same`, ""},
		{"as it is", "openai", `{"type":"object","properties":{"a":{"$ref":"#/$defs/x"}},"$defs":{"x":{"enum":[1,"b"]}}}`, `same`, ""},
		{"no properties", "anthropic", `{"type":"object"}`, `{"type":"object","properties":{}}`, ""},
		{"no properties", "openai", `{"type":"object"}`, `same`, ""},
		{"no properties", "gemini", `{"type":"object"}`, `same`, ""},
		{"top-level anyOf", "openai", `{"type":"object","anyOf":[{"properties":{"a":{"type":"string"}},"required":["a"]},{"properties":{"b":{"type":"string"}},"required":["b"]}]}`,
			`{"type":"object","properties":{"a":{"type":"string"},"b":{"type":"string"}}}`, ""},
		{"top-level oneOf", "anthropic", `{"type":"object","properties":{"k":{}},"oneOf":[{"required":["k"]},{"required":["k"]}]}`, `{"type":"object","properties":{"k":{}},"required":["k"]}`, ""},
		{"top-level allOf", "anthropic", `{"type":"object","allOf":[{"$ref":"#/$defs/a"}],"$defs":{"a":{"properties":{"x":{}},"required":["x"]}}}`,
			`{"type":"object","$defs":{"a":{"properties":{"x":{}},"required":["x"]}},"properties":{"x":{}},"required":["x"]}`, ""},
		{"a root that is a reference", "openai", `{"type":"object","$ref":"#/$defs/a","$defs":{"a":{"type":"object","properties":{"x":{}}}}}`,
			`{"type":"object","properties":{"x":{}},"$defs":{"a":{"type":"object","properties":{"x":{}}}}}`, ""},
		{"references", GeminiSubset, `{"type":"object","properties":{"a":{"$ref":"#/$defs/x","description":"mine"}},"$defs":{"x":{"type":"string","description":"theirs"}}}`,
			`{"type":"object","properties":{"a":{"type":"string","description":"mine"}}}`, ""},
		{"recursion", GeminiSubset, tree, `{"type":"object","properties":{"n":{"type":"object","properties":{"next":{"type":"object"}}}}}`, ""},
		{"recursion", "anthropic", tree, `same`, ""},
		{"recursion", "gemini", tree, `same`, ""},
		{"a reference to nothing", "openai", `{"type":"object","properties":{"a":{"$ref":"http://x/y","description":"d"}}}`, `{"type":"object","properties":{"a":{"description":"d"}}}`, ""},
		{"references in a circle", "anthropic", `{"type":"object","properties":{"a":{"$ref":"#/$defs/a","title":"x"}},"$defs":{"a":{"$ref":"#/$defs/b"},"b":{"$ref":"#/$defs/a"}}}`,
			`{"type":"object","properties":{"a":{"title":"x"}},"$defs":{"a":{},"b":{}}}`, ""},
		{"a reference to itself", "gemini", `{"type":"object","properties":{"a":{"$ref":"#/properties/a"}}}`, `{"type":"object","properties":{"a":{}}}`, ""},
		{"an array without items", "openai", `{"type":"object","properties":{"a":{"type":"array"}}}`, `{"type":"object","properties":{"a":{"type":"array","items":{}}}}`, ""},
		{"too deep", "gemini", deep, "", "nested deeper than the 24 levels"},
		{"not too deep", "anthropic", deep, "same", ""},
		{"a parameter's name", "gemini", `{"type":"object","properties":{"a-b":{}}}`, "", "the name of the parameter 'a-b' is not taken"},
		{"a parameter's name", "anthropic", `{"type":"object","properties":{"a b":{}}}`, "", "the name of the parameter 'a b' is not taken"},
		{"a long name", "anthropic", `{"type":"object","properties":{"` + strings.Repeat("x", 65) + `":{}}}`, "", "is not taken"},
		{"the sum of maxItems", "gemini", `{"type":"object","properties":{"a":{"type":"array","items":{},"maxItems":900},"b":{"type":"array","items":{},"maxItems":100}}}`,
			`{"type":"object","properties":{"a":{"type":"array","items":{},"maxItems":900},"b":{"type":"array","items":{}}}}`, ""},
		{"maxItems that no sum can hold", "gemini", `{"type":"object","properties":{"a":{"type":"array","items":{},"maxItems":5},"b":{"type":"array","items":{},"maxItems":9223372036854775807},"c":{"type":"array","items":{},"maxItems":-9000},"d":{"type":"array","items":{},"maxItems":1000}}}`,
			`{"type":"object","properties":{"a":{"type":"array","items":{},"maxItems":5},"b":{"type":"array","items":{}},"c":{"type":"array","items":{},"maxItems":-9000},"d":{"type":"array","items":{}}}}`, ""},
		{"a name that one branch requires twice", "openai", `{"type":"object","properties":{"a":{}},"anyOf":[{"required":["a","a"]},{}]}`, `{"type":"object","properties":{"a":{}}}`, ""},
		{"draft 4", "anthropic", `{"type":"object","properties":{"a":{"minimum":1,"exclusiveMinimum":true,"required":true}}}`, `{"type":"object","properties":{"a":{"exclusiveMinimum":1}}}`, ""},
		{"draft 7 tuples", "anthropic", `{"type":"object","properties":{"a":{"type":"array","items":[{"type":"string"}],"additionalItems":false}}}`,
			`{"type":"object","properties":{"a":{"type":"array","prefixItems":[{"type":"string"}],"items":false}}}`, ""},
		{"nullable", GeminiSubset, `{"type":"object","properties":{"a":{"type":["string","null"],"format":"uri"},"b":{"const":"x"},"c":{"oneOf":[{"type":"string"},{"type":"integer"}]}},"additionalProperties":false}`,
			`{"type":"object","properties":{"a":{"nullable":true,"type":"string"},"b":{"enum":["x"],"type":"string"},"c":{"anyOf":[{"type":"string"},{"type":"integer"}]}}}`, ""},
		{"several types", GeminiSubset, `{"type":"object","properties":{"a":{"type":["string","integer"]},"n":{"enum":[1,2],"exclusiveMinimum":0}}}`,
			`{"type":"object","properties":{"a":{"anyOf":[{"type":"string"},{"type":"integer"}]},"n":{"minimum":0}}}`, ""},
		{"large integers stay", GeminiSubset, `{"type":"object","properties":{"a":{"$ref":"#/$defs/x"}},"$defs":{"x":{"maximum":9007199254740993}}}`, `{"type":"object","properties":{"a":{"maximum":9007199254740993}}}`, ""},
		{"unknown provider", "script", `{"type":"object","anyOf":[]}`, "same", ""},
	} {
		t.Run(tt.provider+" "+tt.name, func(t *testing.T) {
			got, changes, err := Portable(tt.provider, raw(tt.in))
			if tt.bad != "" {
				if err == nil || !strings.Contains(err.Error(), tt.bad) {
					t.Errorf("error %v, want %s", err, tt.bad)
				}
				return
			}
			want := tt.want
			if want == "same" {
				want = tt.in
			}
			if err != nil || string(got) != want {
				t.Errorf("got  %s\nwant %s\nerror %v", got, want, err)
			}
			if (len(changes) > 0) != (want != tt.in) {
				t.Errorf("changes %v", changes)
			}
		})
	}
}

// TestReferenceBomb translates a schema of ten lines that would have 10^12 nodes without references.
func TestReferenceBomb(t *testing.T) {
	var b strings.Builder
	b.WriteString(`{"type":"object","properties":{"a":{"$ref":"#/$defs/d0"}},"$defs":{`)
	for i := range 12 {
		one := fmt.Sprintf(`{"$ref":"#/$defs/d%d"}`, i+1)
		fmt.Fprintf(&b, `"d%d":{"type":"object","properties":{"a":%[2]s,"b":%[2]s,"c":%[2]s,"d":%[2]s,"e":%[2]s,"f":%[2]s,"g":%[2]s,"h":%[2]s,"i":%[2]s,"j":%[2]s}},`, i, one)
	}
	b.WriteString(`"d12":{"type":"string"}}}`)
	if _, _, err := Portable(GeminiSubset, raw(b.String())); err == nil || !strings.Contains(err.Error(), "nodes") {
		t.Errorf("error %v", err)
	}
	if out, _, err := Portable("anthropic", raw(b.String())); err != nil || string(out) != b.String() {
		t.Errorf("where references are taken nothing is followed: %v", err)
	}
}

func TestFor(t *testing.T) {
	s, _ := Build([]Source{{Server: "t", Tools: []tenon.Tool{tool("a", "", `{"type":"object"}`), tool("b", "", `{"type":"object","properties":{"a b":{}}}`), tool("c", "", `{"type":"object","properties":{}}`)}}})
	got, out := s.For("anthropic")
	if len(got) != 2 || string(got[0].Input) != `{"type":"object","properties":{}}` || got[1].Name != "c" || len(out) != 1 || out[0].Remote != "b" {
		t.Errorf("%v, withheld %v", got, out)
	}
	if again, _ := s.For("anthropic"); &again[0] != &got[0] {
		t.Error("made twice")
	}
	if string(s.Tools()[0].Input) != `{"type":"object"}` {
		t.Error("the snapshot has changed")
	}
	same, _ := s.For("script")
	if all, _ := s.For(""); &same[0] != &all[0] {
		t.Error("nothing to change, and yet copied")
	}
	if none, _ := must(func() (*Snapshot, error) { s, _ := Build(nil); return s, nil }()).For("openai"); len(none) != 0 {
		t.Error("tools of nowhere")
	}
}

func FuzzPortable(f *testing.F) {
	f.Add("gemini", `{"type":"object","properties":{"a":{"$ref":"#/$defs/x"}},"$defs":{"x":{"allOf":[{"$ref":"#"}]}}}`)
	f.Add(GeminiSubset, `{"type":["object","null"],"items":[{}],"const":1,"enum":[null],"exclusiveMinimum":true}`)
	f.Add("openai", `{"$ref":"#/a/0","a":[{"$ref":"#"}]}`)
	f.Fuzz(func(t *testing.T, provider, schema string) {
		if !json.Valid([]byte(schema)) {
			return
		}
		object, _, err := objectSchema([]byte(schema))
		if err != nil {
			return
		}
		if out, _, err := Portable(provider, object); err == nil && !json.Valid(out) {
			t.Errorf("not JSON: %s", out)
		}
	})
}
