package catalog

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/policy"
)

// TestLookalikesOfReadKeys checks keys that a rule reads, but that the schema may not name. Every other spelling of
// such a key is refused.
func TestLookalikesOfReadKeys(t *testing.T) {
	read := policy.Keys{"path": nil, "opts": {"root": nil}}
	for _, tt := range []struct {
		name, schema, args string
		want               string // part of the error; "" = passes
	}{
		{"SEC-G2_no properties", `{"type":"object"}`, `{"path":"/srv/x/a","Path":"/etc/passwd"}`, "write 'path'"},
		{"SEC-G2_empty properties", `{"type":"object","properties":{}}`, `{"path":"/srv/x/a","Path":"/etc/passwd"}`, "write 'path'"},
		{"SEC-G2_additionalProperties", `{"type":"object","additionalProperties":true}`, `{"path":"a","PATH":"b"}`, "write 'path'"},
		{"SEC-G2_patternProperties", `{"type":"object","patternProperties":{".*":{}}}`, `{"path":"a","Path":"b"}`, "write 'path'"},
		{"SEC-G2_propertyNames", `{"type":"object","propertyNames":{"pattern":".*"}}`, `{"path":"a","Path":"b"}`, "write 'path'"},
		{"SEC-G2_NUL", `{"type":"object"}`, `{"path":"a","path\u0000":"b"}`, "holds a NUL"},
		{"SEC-G2_full width", `{"type":"object"}`, `{"path":"a","\uff50ath":"b"}`, "write 'path'"},
		{"SEC-G2_zero width", `{"type":"object"}`, `{"path":"a","path\u200b":"b"}`, "write 'path'"},
		{"SEC-G2_trailing space", `{"type":"object"}`, `{"path":"a","path ":"b"}`, "write 'path'"},
		{"SEC-G2_leading space", `{"type":"object"}`, `{"path":"a"," path":"b"}`, "write 'path'"},
		{"SEC-G2_the lookalike alone", `{"type":"object"}`, `{"Path":"/etc/passwd"}`, "which a rule reads"},
		{"SEC-G2_the lookalike alone, with a space", `{"type":"object"}`, `{"path ":"/etc/passwd"}`, "which a rule reads"},
		{"SEC-G2_beside other properties", `{"properties":{"mode":{}}}`, `{"Path":"/etc/passwd"}`, "which a rule reads"},
		{"SEC-G2_two keys that no rule reads", `{"type":"object"}`, `{"a":1,"A":2}`, "differ only in"},
		{"SEC-G2_a NUL in a key that no rule reads", `{"type":"object"}`, `{"a\u0000":1}`, "holds a NUL"},
		{"SEC-G2_in an object that a rule reads", `{"type":"object"}`, `{"opts":{"root":"a","Root":"b"}}`, "ambiguous at opts: "},
		{"SEC-G2_in a list that a rule reads", `{"type":"object"}`, `{"opts":[{"Root":"b"}]}`, "ambiguous at opts.0: "},
		{"SEC-G2_in a free-form object of a schema", `{"properties":{"opts":{"type":"object"}}}`, `{"opts":{"Root":"b"}}`, "ambiguous at opts: "},

		{"the key itself", `{"type":"object"}`, `{"path":"a","opts":{"root":"b"}}`, ""},
		{"keys that differ", `{"type":"object"}`, `{"path":"a","paths":"b","p ath":"c"}`, ""},
		{"a schema that names the other spelling", `{"properties":{"Path":{}}}`, `{"Path":"a"}`, ""},
		{"a schema that names both", `{"properties":{"Path":{},"path":{}}}`, `{"Path":"a","path":"b"}`, ""},
		{"a free-form object that no rule reads", `{"type":"object"}`, `{"env":{"a":1,"A":2,"a\u0000":3}}`, ""},
		{"free-form below what a rule reads", `{"type":"object"}`, `{"path":{"a":1,"A":2},"opts":{"root":{"b":1,"B":2}}}`, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s, _ := Build([]Source{{Server: "s", Tools: []tenon.Tool{{Remote: "x", Input: json.RawMessage(tt.schema)}}}})
			if len(s.Tools()) == 0 {
				t.Fatalf("the tool is withheld: %v", s.Withheld())
			}
			c := &tenon.ToolCall{Name: "x", Arguments: json.RawMessage(tt.args)}
			_, err := s.Prepare(c, read)
			edited := s.CheckEdited(c, read)
			switch {
			case tt.want == "" && (err != nil || edited != nil):
				t.Errorf("refused: %v, %v", err, edited)
			case tt.want != "" && (tenon.ErrorCode(err) != tenon.CodeInvalid || tenon.ErrorCode(edited) != tenon.CodeInvalid):
				t.Errorf("errors %v, %v", err, edited)
			case tt.want != "" && !strings.Contains(err.Error(), tt.want):
				t.Errorf("error %v; want %q", err, tt.want)
			}
		})
	}
}
