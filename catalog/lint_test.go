package catalog

import (
	"strings"
	"testing"

	"github.com/tenonhq/tenon"
)

// TestLintOfSchemas checks that lint describes the schema that the model gets, not a schema from before all transforms.
func TestLintOfSchemas(t *testing.T) {
	args := []Argument{{Name: "account_id", Description: "Bank account identifier"}}
	for _, tt := range []struct {
		name   string
		static bool
		entry  *Tool
		input  string
		want   string // part of the only finding about the schema; "" means no finding
	}{
		{"RP-19_static_arguments", true, &Tool{Arguments: args}, "", ""},
		{"RP-19_static_without_arguments", true, &Tool{}, "", `no arguments; it is sent as {"type":"object"}`},
		{"RP-19_overlay_of_no_schema", false, &Tool{Arguments: args}, "null", ""},
		{"RP-19_replaced", false, &Tool{Arguments: args, ArgumentsMode: ArgumentsReplace}, `{"properties":{}}`,
			`it is sent as {"type":"object","properties":{"account_id"`},
		{"RP-19_no_type", false, nil, `{"properties":{"a":{"type":"string"}}}`,
			`'object' alone; it is sent as {"type":"object","properties":{"a"`},
		{"RP-19_anchors", false, nil, `{"type":"object","properties":{"a":{"$ref":"#x"}},"$defs":{"x":{"$anchor":"x"}}}`,
			"they are sent as JSON pointers"},
		{"wrapped", false, nil, `{"type":"string"}`, `not one of an object; it is sent as {"type":"object","properties"`},
		{"an object", false, nil, balance, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			src := Source{Server: "s", Static: tt.static}
			if tt.entry != nil {
				tt.entry.RemoteName = "x"
				src.Entries = map[string]Tool{"x": *tt.entry}
			}
			if !tt.static {
				src.Tools = []tenon.Tool{tool("x", "described", tt.input)}
			}
			s, problems := Build([]Source{src})
			if len(problems) > 0 || len(s.Tools()) != 1 {
				t.Fatalf("withheld %v, problems %v", s.Withheld(), problems)
			}
			var found []string
			for _, f := range s.Lint(nil) {
				if f.Pointer == "" && strings.Contains(f.Message, "sent as") {
					found = append(found, f.Message)
				}
			}
			switch {
			case tt.want == "" && len(found) > 0:
				t.Errorf("lint: %q, sent: %s", found, s.Tools()[0].Input)
			case tt.want != "" && (len(found) != 1 || !strings.Contains(found[0], tt.want)):
				t.Errorf("lint: %q, want %q", found, tt.want)
			}
		})
	}
}

// TestLintLacking checks that an argument that the server lacks withholds no tool, and that lint names it.
func TestLintLacking(t *testing.T) {
	s, problems := Build([]Source{{Server: "s", Tools: []tenon.Tool{tool("x", "described", balance)},
		Entries: map[string]Tool{"x": {RemoteName: "x", Arguments: []Argument{{Name: "acount_id"}}}}}})
	if len(problems) > 0 || len(s.Tools()) != 1 {
		t.Fatalf("withheld %v, problems %v", s.Withheld(), problems)
	}
	const want = "has a configured argument that is left out: the server's tool has no argument 'acount_id' (did you mean 'account_id'?)"
	for _, f := range s.Lint(nil) {
		if f.Level == LevelWarn && strings.Contains(f.Message, want) {
			return
		}
	}
	t.Errorf("RP-18_lint_lacking: lint does not say: %s; it says %v", want, s.Lint(nil))
}

// TestLintOfContradictions checks that lint names parameters whose values or default no call can have.
func TestLintOfContradictions(t *testing.T) {
	s, _ := Build([]Source{{Server: "s", Tools: []tenon.Tool{{Remote: "x", Description: "d", Input: []byte(
		`{"type":"object","properties":{"a":{"type":"integer","enum":["b"]},"c":{"type":"number","enum":[1,2.5],"default":2.5}}}`)}}}})
	var got []string
	for _, f := range s.Lint(nil) {
		if strings.Contains(f.Message, "contradicts") {
			got = append(got, f.Level+" "+f.Pointer+" "+f.Message)
		}
	}
	t.Run("RP-19_contradiction", func(t *testing.T) {
		want := `warn /properties/a has a parameter that contradicts itself: its type is integer, and the allowed value "b" is not`
		if len(got) != 1 || got[0] != want {
			t.Errorf("%q", got)
		}
	})
}
