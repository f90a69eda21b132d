package catalog

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/tenonhq/tenon"
)

// TestStrict checks which schemas qualify for strict tool calls, in which a provider guarantees that arguments fit the
// schema.
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
		at, why := notStrict(mustObject(tool.Input), "", 0)
		if name == "open" {
			if why == "" || at != "" {
				t.Errorf("%s: %q %q", name, at, why)
			}
		} else if (why == "") != (tt.at == "") || at != tt.at {
			t.Errorf("%s: %q, want one at %q", name, at, tt.at)
		}
		if _, changes, why := strictly("anthropic", &tool, tool.Input); changes != nil || why != nil {
			t.Errorf("%s: a provider that has no such option", name)
		}
		if l := lax(tool); string(l.Rules.Options["openai"]) != `{"x":1}` || string(tool.Rules.Options["openai"]) != `{"strict":true,"x":1}` || len(l.Rules.Options) != 2 {
			t.Errorf("%s: %s", name, l.Rules.Options["openai"])
		}
	}
	s, _ := Build([]Source{{Server: "a", Options: map[string]json.RawMessage{"openai": json.RawMessage(`{"strict":true}`)}, Tools: []tenon.Tool{tool("x", "d", `{"type":"object","additionalProperties":true}`)}}})
	found := false
	for _, f := range s.Lint([]string{"openai"}) {
		found = found || f.Level == LevelWarn && strings.Contains(f.Message, "strict is not sent: additionalProperties is not false")
	}
	if !found {
		t.Error("lint says nothing of it")
	}
}

// TestRP16Closed checks which schemas are closed for a strict tool, and that a call has no null that the server does
// not accept.
func TestRP16Closed(t *testing.T) {
	for name, tt := range map[string]struct{ schema, want string }{
		"open and optional": {`{"type":"object","properties":{"path":{"type":"string"},"head":{"type":"number","description":"n"}},"required":["path"]}`,
			`{"type":"object","properties":{"path":{"type":"string"},"head":{"type":["number","null"],"description":"n"}},"required":["path","head"],"additionalProperties":false}`},
		"no parameters": {`{"type":"object"}`, `{"type":"object","additionalProperties":false}`},
		"an enum": {`{"type":"object","properties":{"a":{"type":"string","enum":["x"],"description":"d"}}}`,
			`{"type":"object","properties":{"a":{"description":"d","anyOf":[{"type":"string","enum":["x"]},{"type":"null"}]}},"additionalProperties":false,"required":["a"]}`},
		"nested": {`{"type":"object","properties":{"e":{"type":"array","items":{"type":"object","properties":{"o":{"type":"string"}},"required":["o"]}}},"required":["e"],"additionalProperties":false}`,
			`{"type":"object","properties":{"e":{"type":"array","items":{"type":"object","properties":{"o":{"type":"string"}},"required":["o"],"additionalProperties":false}}},"required":["e"],"additionalProperties":false}`},
		"a free object":   {`{"type":"object","properties":{"a":{"type":"object"}}}`, ""},
		"open on purpose": {`{"type":"object","additionalProperties":true}`, ""},
		"a map":           {`{"type":"object","properties":{"a":{"type":"object","additionalProperties":{"type":"string"}}}}`, ""},
		"allOf":           {`{"type":"object","properties":{"a":{"allOf":[{"type":"string"}]}}}`, ""},
		"any value":       {`{"type":"object","properties":{"a":{}}}`, ""},
		"too deep":        {strings.Repeat(`{"type":"object","properties":{"a":`, 7) + `{"type":"string"}` + strings.Repeat(`}}`, 7), ""},
	} {
		out, changes, ok := closed(json.RawMessage(tt.schema))
		if string(out) != tt.want || ok != (tt.want != "") || ok && len(changes) == 0 {
			t.Errorf("%s: %s, %v", name, out, changes)
		}
	}
	s, problems := Build([]Source{{Server: "fs", Options: map[string]json.RawMessage{
		"openai": json.RawMessage(`{"function":{"strict":true}}`), "google": json.RawMessage(`{"grounding":false}`)},
		Tools: []tenon.Tool{tool("read", "d", `{"type":"object","properties":{"path":{"type":"string"},"head":{"type":"number"},"or":{"type":["string","null"]}},"required":["path"]}`)}}})
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	tools, out := s.For("openai")
	if len(tools) != 1 || len(out) != 0 || !strings.Contains(string(tools[0].Input), `"head":{"type":["number","null"]}`) ||
		string(tools[0].Rules.Options["openai"]) != `{"strict":true}` || string(tools[0].Rules.Options["gemini"]) != `{}` {
		t.Errorf("%+v, %v", tools, out)
	}
	found := 0
	for _, f := range s.Lint([]string{"openai"}) {
		if f.Level == LevelInfo && strings.Contains(f.Message, "because the tool is strict") {
			found++
		}
	}
	if found != 3 {
		t.Errorf("lint has %d findings", found)
	}
	p, err := s.Prepare(&tenon.ToolCall{Name: "read", Arguments: json.RawMessage(`{"path":"a","head":null,"or":null}`)}, nil)
	if err != nil || string(p.Arguments) != `{"path":"a","or":null}` {
		t.Errorf("%s, %v", p.Arguments, err)
	}
	if _, err := s.Prepare(&tenon.ToolCall{Name: "read", Arguments: json.RawMessage(`{"path":null}`)}, nil); err == nil {
		t.Error("a required argument that is null was taken")
	}
}

// TestRP16Options checks the accepted forms of provider options, and that an error names any other option.
func TestRP16Options(t *testing.T) {
	for text, want := range map[string]string{
		`{"openai":{"function":{"strict":true}},"google":{"grounding":false}}`: `{"gemini":{},"openai":{"strict":true}}`,
		`{"openai":{"strict":true,"function":{"strict":true,"x":1}}}`:          `{"openai":{"strict":true,"x":1}}`,
		`{"anthropic":{"cache_control":{"type":"ephemeral"}}}`:                 `{"anthropic":{"cache_control":{"type":"ephemeral"}}}`,
		`{"google":{"behavior":"BLOCKING"}}`:                                   `{"gemini":{"behavior":"BLOCKING"}}`,
		`{"google":{"grounding":true}}`:                                        "provider_options.google.grounding: tools cannot be grounded",
		`{"openai":{"function":{"strict":"yes"}}}`:                             "provider_options.openai.strict: must be true or false",
		`{"openai":{"function":{"name":"x"}}}`:                                 "provider_options.openai.name: tenon sets it",
		`{"openai":{"strict":false,"function":{"strict":true}}}`:               "provider_options.openai.function.strict: differs",
		`{"openai":{"function":1}}`:                                            "provider_options.openai.function: must be a map",
		`{"google":{},"gemini":{}}`:                                            "provider_options.google: gemini has options already",
		`{"mistral":{}}`:                                                       "provider_options.mistral: no such provider",
		`{"openai":[]}`:                                                        "provider_options.openai: must be a map",
	} {
		var in map[string]json.RawMessage
		if err := json.Unmarshal([]byte(text), &in); err != nil {
			t.Fatal(err)
		}
		out, err := NormalOptions(in)
		got := string(encode(out))
		if err != nil {
			got = err.Error()
		}
		if !strings.HasPrefix(got, want) {
			t.Errorf("%s: %s", text, got)
		}
	}
	// A Go function can set options, too. If an option cannot be sent, the tool is left out.
	s, problems := Build([]Source{{Server: "a", Transform: []Transform{{Func: func(t tenon.Tool) *tenon.Tool {
		t.Rules.Options = map[string]json.RawMessage{"openai": json.RawMessage(`{"function":{"strict":true}}`)}
		if t.Remote == "bad" {
			t.Rules.Options = map[string]json.RawMessage{"google": json.RawMessage(`{"grounding":1}`)}
		}
		return &t
	}}}, Tools: []tenon.Tool{tool("good", "d", `{"type":"object"}`), tool("bad", "d", `{"type":"object"}`)}}})
	if len(s.Tools()) != 1 || string(s.Tools()[0].Rules.Options["openai"]) != `{"strict":true}` || len(problems) != 1 ||
		!strings.Contains(problems[0].Error(), "google.grounding") {
		t.Errorf("%v, %v", s.Tools(), problems)
	}
}
