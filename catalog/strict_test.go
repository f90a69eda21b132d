package catalog

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/tenonhq/tenon"
)

// TestStrict holds which schemas a provider can be asked to hold calls to exactly.
func TestStrict(t *testing.T) {
	closed := func(props, required string) string {
		return `{"type":"object","properties":{` + props + `},"required":[` + required + `],"additionalProperties":false}`
	}
	for name, tt := range map[string]struct{ schema, at string }{
		"strict":             {closed(`"a":{"type":"string"}`, `"a"`), ""},
		"nothing":            {closed(``, ``), ""},
		"nested":             {closed(`"a":{"type":"array","items":`+closed(`"b":{"anyOf":[{"type":"string"},{"type":"null"}]}`, `"b"`)+`}`, `"a"`), ""},
		"optional":           {closed(`"a":{"type":"string"},"b":{}`, `"a"`), "/properties/b"},
		"open":               {`{"type":"object","properties":{}}`, ""},
		"optional below":     {closed(`"a":{"type":"array","items":`+closed(`"b":{}`, ``)+`}`, `"a"`), "/properties/a/items/properties/b"},
		"open in a branch":   {closed(`"a":{"anyOf":[{"type":"null"},{"type":"object","properties":{}}]}`, `"a"`), "/properties/a/anyOf/1"},
		"open in $defs":      {`{"type":"object","properties":{},"additionalProperties":false,"$defs":{"x/y":{"type":"object","properties":{}}}}`, "/$defs/x~1y"},
		"deep":               {strings.Repeat(`{"type":"object","required":["a"],"additionalProperties":false,"properties":{"a":`, 7) + `{}` + strings.Repeat(`}}`, 7), strings.Repeat("/properties/a", 6)},
		"true for an object": {closed(`"a":true`, `"a"`), ""},
	} {
		tool := tenon.Tool{Remote: "t", Input: json.RawMessage(tt.schema)}
		tool.Rules.Options = map[string]json.RawMessage{"openai": json.RawMessage(`{"strict":true,"x":1}`), "other": json.RawMessage(`{}`)}
		c := unstrict("openai", &tool, tool.Input)
		if name == "open" {
			if c == nil || c.Pointer != "" {
				t.Errorf("%s: %v", name, c)
			}
		} else if (c == nil) != (tt.at == "") || c != nil && c.Pointer != tt.at {
			t.Errorf("%s: %v, want one at %q", name, c, tt.at)
		}
		if unstrict("anthropic", &tool, tool.Input) != nil {
			t.Errorf("%s: a provider that has no such option", name)
		}
		if l := lax(tool); string(l.Rules.Options["openai"]) != `{"x":1}` || string(tool.Rules.Options["openai"]) != `{"strict":true,"x":1}` || len(l.Rules.Options) != 2 {
			t.Errorf("%s: %s", name, l.Rules.Options["openai"])
		}
	}
	s, _ := Build([]Source{{Server: "a", Options: map[string]json.RawMessage{"openai": json.RawMessage(`{"strict":true}`)}, Tools: []tenon.Tool{tool("x", "d", `{"type":"object","properties":{"a":{}}}`)}}})
	found := false
	for _, f := range s.Lint([]string{"openai"}) {
		found = found || f.Level == LevelWarn && strings.Contains(f.Message, "strict is not sent: additionalProperties is not false")
	}
	if !found {
		t.Error("lint says nothing of it")
	}
}
