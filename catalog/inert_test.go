package catalog

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/tenonhq/tenon"
)

// TestFiltersThatMatchNothing checks that a glob of include or exclude that matches no tool is reported, unless the
// server's tools are not known.
func TestFiltersThatMatchNothing(t *testing.T) {
	for name, tc := range map[string]struct {
		src  Source
		want string // part of the only problem; "" for none
	}{
		"RP-16_typo":                 {Source{Exclude: []string{"write-x"}, Tools: []tenon.Tool{tool("write_x", "", "{}")}}, "servers.s.exclude 'write-x': no tool of the server matches 'write-x'"},
		"RP-16_braces":               {Source{Exclude: []string{"{write,delete}_*"}, Tools: []tenon.Tool{tool("write_x", "", "{}")}}, "braces have no meaning in a glob"},
		"RP-16_match":                {Source{Exclude: []string{"write_*"}, Tools: []tenon.Tool{tool("write_x", "", "{}")}}, ""},
		"RP-16_two match one":        {Source{Exclude: []string{"write_*", "*_x"}, Tools: []tenon.Tool{tool("write_x", "", "{}")}}, ""},
		"RP-16_not included either":  {Source{Include: []string{"read*"}, Exclude: []string{"write_*"}, Tools: []tenon.Tool{tool("write_x", "", "{}"), tool("read", "", "{}")}}, ""},
		"RP-16_no list of the tools": {Source{Exclude: []string{"write-x"}}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			tc.src.Server = "s"
			_, problems := Build([]Source{tc.src})
			switch {
			case tc.want == "" && len(problems) == 0:
			case tc.want == "" || len(problems) != 1 || !strings.Contains(problems[0].Error(), tc.want):
				t.Errorf("got %v, want %q", problems, tc.want)
			}
		})
	}
}

// TestNamesAndLint checks the messages about names that are too long, and the replacement of characters that names
// cannot contain.
func TestNamesAndLint(t *testing.T) {
	t.Run("RP-16_too long is no clash", func(t *testing.T) {
		long := strings.Repeat("n", 70)
		s, _ := Build([]Source{{Server: "s", Tools: []tenon.Tool{tool(long, "about", "{}")}}})
		var said []string
		for _, f := range s.Lint(nil) {
			said = append(said, f.Message)
		}
		if text := strings.Join(said, "\n"); !strings.Contains(text, "is longer than 64 characters") || strings.Contains(text, "clashes") {
			t.Errorf("got %s", text)
		}
	})
	t.Run("RP-16_one replacement for each character", func(t *testing.T) {
		s, _ := Build([]Source{{Server: "s", Tools: []tenon.Tool{tool("日本tool", "", "{}")}}})
		if got := s.Tools()[0].Name; got != "_--tool" {
			t.Errorf("got %s", got)
		}
	})
	t.Run("RP-16_draft of a tuple", func(t *testing.T) {
		schema := `{"$schema":"http://json-schema.org/draft-07/schema#","type":"object","properties":{"a":{"type":"array","items":[{"type":"string"},{"type":"number"}]}}}`
		got, _, err := Portable("anthropic", json.RawMessage(schema))
		if err != nil || strings.Contains(string(got), "draft-07") || !strings.Contains(string(got), "prefixItems") {
			t.Errorf("got %s %v", got, err)
		}
	})
}
