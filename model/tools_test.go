package model_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/catalog"
	"github.com/tenonhq/tenon/config"
	"github.com/tenonhq/tenon/model"
)

// dialectOf returns the name of the schema rules for a wire format.
var dialectOf = map[string]string{"anthropic": "anthropic", "chat": "openai", "responses": "openai", "gemini": "gemini"}

// sentTools offers a server's tools to a model. It returns the name, description and schema of each
// tool in the adapter's request.
func sentTools(t *testing.T, wire string, src catalog.Source) []map[string]any {
	t.Helper()
	snapshot, problems := catalog.Build([]catalog.Source{src})
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	tools, out := snapshot.For(dialectOf[wire])
	if len(out) > 0 {
		t.Fatal(out)
	}
	c := send(t, wire, model.Config{}, &tenon.Request{Messages: []*tenon.Message{tenon.UserMessage("q")}, Tools: tools, Sampling: tenon.Sampling{MaxTokens: 7}})
	var body struct{ Tools []map[string]any }
	if err := json.Unmarshal(c.body, &body); err != nil {
		t.Fatalf("%v: %s", err, c.body)
	}
	var list []map[string]any
	for _, tool := range body.Tools {
		if f, ok := tool["function"].(map[string]any); ok {
			tool = f
		}
		if fs, ok := tool["functionDeclarations"].([]any); ok {
			for _, f := range fs {
				list = append(list, f.(map[string]any))
			}
			continue
		}
		list = append(list, tool)
	}
	return list
}

func schemaOf(tool map[string]any) any {
	for _, k := range []string{"input_schema", "parameters", "parametersJsonSchema"} {
		if v, ok := tool[k]; ok {
			return v
		}
	}
	return nil
}

func canonical(t *testing.T, raw string) any {
	t.Helper()
	var v any
	if err := json.Unmarshal([]byte(raw), &v); err != nil {
		t.Fatal(err)
	}
	return v
}

// Test_KN21_SchemaReachesTheModel checks that each adapter sends the schema of the server
// unchanged.
func Test_KN21_SchemaReachesTheModel(t *testing.T) {
	const schema = `{"type":"object","properties":{"unit":{"enum":["C","F"]},"at":{"$ref":"#/$defs/place"},"list":{"type":"array","items":{"type":"object","properties":{"n":{"type":"integer","minimum":1}}}}},"required":["at"],"$defs":{"place":{"type":"object","properties":{"city":{"type":"string","description":"Straße & <b>"}}}},"additionalProperties":false}`
	src := catalog.Source{Server: "w", Tools: []tenon.Tool{
		{Remote: "forecast", Description: "The weather", Input: json.RawMessage(schema)},
		{Remote: "text", Description: "Not an object's", Input: json.RawMessage(`{"type":"string"}`)}}}
	for wire := range dialectOf {
		t.Run(wire, func(t *testing.T) {
			tools := sentTools(t, wire, src)
			got := []any{tools[0]["name"], tools[0]["description"], schemaOf(tools[0]), tools[1]["name"], schemaOf(tools[1])}
			want := []any{"forecast", "The weather", canonical(t, schema), "text", canonical(t, `{"type":"object","properties":{"input":{"type":"string"}},"required":["input"]}`)}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// Test_RA57_EmptySchema checks that only the Anthropic adapter adds the members that Anthropic
// requires.
func Test_RA57_EmptySchema(t *testing.T) {
	src := catalog.Source{Server: "w", Tools: []tenon.Tool{{Remote: "ping", Description: "Pings", Input: json.RawMessage(`{"type":"object"}`)}}}
	for wire := range dialectOf {
		want := `{"type":"object"}`
		if wire == "anthropic" {
			want = `{"type":"object","properties":{}}`
		}
		if diff := cmp.Diff(canonical(t, want), schemaOf(sentTools(t, wire, src)[0])); diff != "" {
			t.Errorf("%s: %s", wire, diff)
		}
	}
}

// Test_AI19_ProviderOptions checks that a tool's options for a provider are sent only to this provider.
func Test_AI19_ProviderOptions(t *testing.T) {
	src := catalog.Source{Server: "w", Options: map[string]json.RawMessage{"openai": json.RawMessage(`{"strict":true}`)},
		Tools: []tenon.Tool{{Remote: "ping", Input: json.RawMessage(`{"type":"object","properties":{},"additionalProperties":false}`)}, {Remote: "pong", Input: json.RawMessage(`{"type":"object"}`)}},
		Entries: map[string]catalog.Tool{"pong": {RemoteName: "pong", ProviderOptions: map[string]json.RawMessage{
			"openai": json.RawMessage(`{"strict":false}`), "anthropic": json.RawMessage(`{"defer_loading":true}`)}}}}
	for wire, want := range map[string][2][2]any{ // ping and pong: strict, defer_loading
		"chat":      {{true, nil}, {false, nil}},
		"responses": {{true, nil}, {false, nil}},
		"anthropic": {{nil, nil}, {nil, true}},
		"gemini":    {{nil, nil}, {nil, nil}},
	} {
		for i, tool := range sentTools(t, wire, src) {
			if got := [2]any{tool["strict"], tool["defer_loading"]}; got != want[i] || tool["name"] == "stolen" {
				t.Errorf("%s: %v has %v, want %v", wire, tool["name"], got, want[i])
			}
		}
	}
	_, err := config.Parse("tenon.yaml", []byte("servers:\n  s: {command: x, provider_options: {opnai: {strict: true}}}\n"), config.Options{Dir: t.TempDir()})
	if tenon.ErrorCode(err) != tenon.CodeConfig || !strings.Contains(err.Error(), "no provider 'opnai'") {
		t.Errorf("an unknown provider: %v", err)
	}
}
