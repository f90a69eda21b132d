package catalog

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/tenonhq/tenon"
)

type lookalikeCase struct {
	name, schema, args string
	want               string // part of the error; "" = passes
}

// The schemas of TestLookalikeKeys. It checks that arguments are refused if a rule and a server may read them
// differently, because they have keys that look alike.
const (
	openSchema   = `{"type":"object","properties":{"amount":{"type":"number"},"to":{"type":"string"}}}`
	closedSchema = `{"type":"object","properties":{"amount":{"type":"number"}},"additionalProperties":false}`
	freeSchema   = `{"type":"object","additionalProperties":{"type":"object"}}`
	treeSchema   = `{"type":"object","properties":{"filter":{"$ref":"#/$defs/f"}},"$defs":{"f":{"type":"object","properties":{"op":{"type":"string"},"of":{"type":"array","items":{"$ref":"#/$defs/f"}}}}}}`
)

// within returns the schema of an object with one property, in, whose schema is inner.
func within(inner string) string { return `{"type":"object","properties":{"in":` + inner + `}}` }

var lookalikes = []lookalikeCase{
	{"SEC-F8_case", openSchema, `{"amount":1,"Amount":1000}`, "write 'amount'"},
	{"SEC-F8_case, without the key itself", openSchema, `{"AMOUNT":1000}`, "write 'amount'"},
	{"SEC-F8_case, escaped", openSchema, `{"amount":1,"\u0041mount":1000}`, "write 'amount'"},
	{"SEC-F8_case, in a closed schema", closedSchema, `{"amount":1,"Amount":1000}`, "did you mean 'amount'"},
	{"SEC-F8_trailing NUL", openSchema, `{"amount":1,"amount\u0000":1000}`, "holds a NUL"},
	{"SEC-F8_cut at a NUL", openSchema, `{"amount":1,"amount\u0000x":1000}`, "holds a NUL"},
	{"SEC-F8_leading NUL", openSchema, `{"amount":1,"\u0000amount":1000}`, "holds a NUL"},
	{"SEC-F8_another key with a NUL", openSchema, `{"other\u0000":1}`, "expected keys: amount, to"},
	{"SEC-F8_zero width space", openSchema, `{"amount":1,"amount\u200b":1000}`, `'amount\u{200b}'`},
	{"SEC-F8_zero width joiner", openSchema, `{"amount":1,"a\u200dmount":1000}`, "write 'amount'"},
	{"SEC-F8_byte order mark", openSchema, `{"amount":1,"\ufeffamount":1000}`, "write 'amount'"},
	{"SEC-F8_soft hyphen", openSchema, `{"amount":1,"am\u00adount":1000}`, "write 'amount'"},
	{"SEC-F8_direction mark", openSchema, `{"amount":1,"\u202eamount":1000}`, "write 'amount'"},
	{"SEC-F8_variation selector", openSchema, `{"amount":1,"amount\ufe0f":1000}`, "write 'amount'"},
	{"SEC-F8_tag", openSchema, `{"amount":1,"amount\udb40\udc61":1000}`, "write 'amount'"},
	{"SEC-F8_control character", openSchema, `{"amount":1,"amount\u0008":1000}`, "write 'amount'"},
	{"SEC-F8_line break", openSchema, `{"amount":1,"amount\n":1000}`, "write 'amount'"},
	{"SEC-F8_spaces at the ends", openSchema, `{"amount":1," amount ":1000}`, "write 'amount'"},
	{"SEC-F8_no-break space", openSchema, `{"amount":1,"amount\u00a0":1000}`, "write 'amount'"},
	{"SEC-F8_full width", openSchema, `{"amount":1,"\uff41\uff4d\uff4f\uff55\uff4e\uff54":1000}`, "write 'amount'"},
	{"SEC-F8_mathematical letters", openSchema, `{"to":"a","𝐭𝐨":"b"}`, "write 'to'"},
	{"SEC-F8_ligature", `{"properties":{"file":{}}}`, `{"file":"a","ﬁle":"b"}`, "write 'file'"},
	{"SEC-F8_long s", `{"properties":{"sum":{}}}`, `{"sum":1,"ſum":2}`, "write 'sum'"},
	{"SEC-F8_Kelvin sign", `{"properties":{"key":{}}}`, "{\"key\":1,\"\u212aey\":2}", "write 'key'"},
	{"SEC-F8_dotted capital I", `{"properties":{"id":{}}}`, `{"id":1,"İd":2}`, "write 'id'"},
	{"SEC-F8_dotless i", `{"properties":{"id":{}}}`, `{"id":1,"ıd":2}`, "write 'id'"},
	{"SEC-F8_composed and decomposed", `{"properties":{"é":{}}}`, "{\"é\":1,\"e\u0301\":2}", "write 'é'"},
	{"SEC-F8_lone surrogate", openSchema, `{"amount":1,"amount\ud800":1000}`, "write 'amount'"},
	{"SEC-F8_two keys of no name", openSchema, `{"note":"a","Note":"b"}`, "'Note' and 'note' differ only in"},
	{"SEC-F8_two disguises of no name", openSchema, `{"note\u200b":"a","note\u200c":"b"}`, "differ only in"},

	{"SEC-F8_in an object", within(openSchema), `{"in":{"amount":1,"Amount":2}}`, "ambiguous at in: the key 'Amount'"},
	{"SEC-F8_in a list", within(`{"type":"array","items":` + openSchema + `}`), `{"in":[{"amount":1},{"Amount":2}]}`, "ambiguous at in.1: "},
	{"SEC-F8_in a list of lists", within(`{"items":{"items":` + openSchema + `}}`), `{"in":[1,[],[2,{"Amount":2}]]}`, "ambiguous at in.2.1: "},
	{"SEC-F8_in a tuple", within(`{"prefixItems":[{},` + openSchema + `],"items":` + within(openSchema) + `}`), `{"in":[{"Amount":2},{"Amount":2}]}`, "ambiguous at in.1: "},
	{"SEC-F8_behind a tuple", within(`{"prefixItems":[{}],"items":` + openSchema + `}`), `{"in":[0,{"Amount":2}]}`, "ambiguous at in.1: "},
	{"SEC-F8_in a tuple of draft 7", within(`{"items":[` + openSchema + `],"additionalItems":` + openSchema + `}`), `{"in":[{},{"Amount":2}]}`, "ambiguous at in.1: "},
	{"SEC-F8_behind a reference", `{"properties":{"in":{"$ref":"#/$defs/x"}},"$defs":{"x":` + openSchema + `}}`, `{"in":{"Amount":2}}`, "write 'amount'"},
	{"SEC-F8_behind an escaped reference", `{"properties":{"in":{"$ref":"#/$defs/x~1y%20z"}},"$defs":{"x/y z":` + openSchema + `}}`, `{"in":{"Amount":2}}`, "write 'amount'"},
	{"SEC-F8_behind an anchor", `{"properties":{"in":{"$ref":"#x"}},"$defs":{"d":{"$anchor":"x","properties":{"amount":{}}}}}`, `{"in":{"Amount":2}}`, "write 'amount'"},
	{"SEC-F8_behind a dynamic anchor", `{"properties":{"in":{"$dynamicRef":"#x"}},"$defs":{"d":{"$dynamicAnchor":"x","properties":{"amount":{}}}}}`, `{"in":{"Amount":2}}`, "write 'amount'"},
	{"SEC-F8_in a schema that refers to itself", treeSchema, `{"filter":{"op":"and","of":[{"op":"or","of":[{"op":"a","OP":"b"}]}]}}`, "ambiguous at filter.of.0.of.0: "},
	{"SEC-F8_allOf", `{"allOf":[{"properties":{"amount":{}}},{"properties":{"to":{}}}]}`, `{"amount":1,"To":2}`, "write 'to'"},
	{"SEC-F8_anyOf", within(`{"anyOf":[{"type":"null"},` + openSchema + `]}`), `{"in":{"Amount":2}}`, "write 'amount'"},
	{"SEC-F8_oneOf in anyOf", within(`{"anyOf":[{"oneOf":[` + openSchema + `]}]}`), `{"in":{"Amount":2}}`, "write 'amount'"},
	{"SEC-F8_then", within(`{"if":{},"then":` + openSchema + `}`), `{"in":{"Amount":2}}`, "write 'amount'"},
	{"SEC-F8_dependentSchemas", `{"dependentSchemas":{"to":` + openSchema + `}}`, `{"to":"x","Amount":2}`, "write 'amount'"},
	{"SEC-F8_dependencies of draft 7", `{"dependencies":{"to":["amount"]}}`, `{"to":"x","Amount":2}`, "write 'amount'"},
	{"SEC-F8_required alone", `{"required":["amount"]}`, `{"amount":1,"Amount":2}`, "write 'amount'"},
	{"SEC-F8_names of keys", `{"propertyNames":{"enum":["amount","Amounts"]}}`, `{"amounts":1}`, "'amounts'"},
	{"SEC-F8_patternProperties", `{"patternProperties":{"^x-":` + openSchema + `}}`, `{"x-a":{"Amount":2}}`, "ambiguous at x-a: "},
	{"SEC-F8_pattern that is not one of Go's", `{"patternProperties":{"(?=x)":` + openSchema + `}}`, `{"x":{"Amount":2}}`, "ambiguous at x: "},
	{"SEC-F8_additionalProperties", `{"properties":{"a":{}},"additionalProperties":` + openSchema + `}`, `{"b":{"Amount":2}}`, "ambiguous at b: "},
	{"SEC-F8_unevaluatedProperties", `{"properties":{"a":{}},"unevaluatedProperties":` + openSchema + `}`, `{"b":{"Amount":2}}`, "ambiguous at b: "},
	{"SEC-F8_deep below additionalProperties", `{"additionalProperties":{"additionalProperties":` + openSchema + `}}`, `{"a":{"b":{"Amount":2}}}`, "ambiguous at a.b: "},
}

// notLookalikes are cases with other outcomes: the keys are accepted, or a third key is refused because the schema
// names two that look alike.
var notLookalikes = []lookalikeCase{
	{"as the schema names them", openSchema, `{"amount":1,"to":"x"}`, ""},
	{"another key", openSchema, `{"amount":1,"note":"x"}`, ""},
	{"a schema that names both", `{"properties":{"amount":{},"Amount":{}}}`, `{"amount":1,"Amount":2}`, ""},
	{"a schema that names both, in branches", `{"properties":{"amount":{}},"anyOf":[{"properties":{"Amount":{}}},{}]}`, `{"amount":1,"Amount":2}`, ""},
	{"a third one beside both", `{"properties":{"amount":{},"Amount":{}}}`, `{"amount":1,"AMOUNT":2}`, "differs from"},
	{"free-form values", freeSchema, `{"a":{"b":1,"B":2,"b\u0000":3},"c":{}}`, ""},
	{"free-form in an object", within(`{"type":"object"}`), `{"in":{"a":1,"A":2}}`, ""},
	{"free-form by patterns, in an object", within(`{"patternProperties":{"^[aA]$":{}}}`), `{"in":{"a":1,"A":2}}`, ""},
	{"a value that looks like a key", openSchema, `{"to":"Amount"}`, ""},
	{"a Cyrillic letter", openSchema, "{\"\u0430mount\":1}", ""},
	{"the same key in two objects", within(openSchema), `{"in":{"amount":1},"amount":2,"Amounts":3}`, ""},
	{"names of what must not be", within(`{"not":{"required":["amount"]}}`), `{"in":{"a":1,"A":2}}`, ""},
	{"a reference that leads out", within(`{"$ref":"http://127.0.0.1:1/x"}`), `{"in":{"a":1,"A":2}}`, ""},
	{"a reference that leads nowhere", within(`{"$ref":"#/nowhere"}`), `{"in":{"a":1,"A":2}}`, ""},
	{"a reference to itself", within(`{"$ref":"#/properties/in"}`), `{"in":{"a":1,"A":2}}`, ""},
	{"keywords of other types", `{"type":"object","properties":7,"required":"a","allOf":{},"items":3,"patternProperties":[],"dependencies":1}`, `{"a":{"b":[{"c":{}}]}}`, ""},
}

func TestLookalikeKeys(t *testing.T) {
	for _, tt := range slices.Concat(lookalikes, notLookalikes) {
		t.Run(tt.name, func(t *testing.T) { checkLookalike(t, tt) })
	}
}

// checkLookalike checks the arguments of a case in each mode of validation, as a model's call and as a person's edit.
func checkLookalike(t *testing.T, tt lookalikeCase) {
	for _, mode := range []string{ValidateWarn, ValidateOff, ""} {
		s, _ := Build([]Source{{Server: "s", Tools: []tenon.Tool{{Remote: "x", Input: json.RawMessage(tt.schema)}}}})
		if len(s.Tools()) == 0 {
			t.Fatalf("the tool is withheld: %v", s.Withheld())
		}
		s = s.With(func(t *tenon.Tool) { t.Rules.Validate = mode })
		c := &tenon.ToolCall{Name: "x", Arguments: json.RawMessage(tt.args)}
		p, err := s.Prepare(c, nil)
		edited := s.CheckEdited(c, nil)
		if mode != "" && strings.Contains(tt.want, "did you mean") {
			tt.want = "write '" // without the check of the schema, the error suggests nothing
		}
		switch {
		case tt.want == "" && (err != nil || edited != nil || string(p.Arguments) != tt.args):
			t.Errorf("validate '%s': refused: %v, %v, or not the same bytes: %s", mode, err, edited, p.Arguments)
		case tt.want != "" && (tenon.ErrorCode(err) != tenon.CodeInvalid || tenon.ErrorCode(edited) != tenon.CodeInvalid):
			t.Fatalf("validate '%s': errors %v, %v", mode, err, edited)
		case tt.want != "" && mode == ValidateOff && (!strings.Contains(err.Error(), tt.want) || err.Error() != edited.Error()):
			t.Errorf("errors %v, %v; want %q", err, edited, tt.want)
		}
		if err != nil && tenon.Visible(err.Error()) != err.Error() {
			t.Errorf("the error hides something: %q", err)
		}
	}
}

// TestLookalikesOfSetArguments checks keys that the configuration sets or hides. They count as named, although the
// model does not see them.
func TestLookalikesOfSetArguments(t *testing.T) {
	schema := `{"type":"object","properties":{"path":{"type":"string"},"root":{"type":"string"},"force":{"type":"boolean"}}}`
	s, problems := Build([]Source{{Server: "s", Tools: []tenon.Tool{{Remote: "x", Input: json.RawMessage(schema)}}, Transform: []Transform{
		{SetParams: map[string]json.RawMessage{"root": json.RawMessage(`"/w"`)}}, {HideParams: []string{"force"}}}}})
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	for _, tt := range []struct{ name, args, edited, want string }{
		{"SEC-F8_a set argument", `{"path":"a","Root":"/etc"}`, `{"path":"a","Root":"/etc","root":"/w"}`, "write 'root'"},
		{"SEC-F8_a set argument, invisible", `{"path":"a","root\u200b":"/etc"}`, `{"path":"a","root\u200b":"/etc","root":"/w"}`, "write 'root'"},
		{"SEC-F8_a hidden argument", `{"path":"a","FORCE":true}`, `{"path":"a","FORCE":true,"root":"/w"}`, "write 'force'"},
		{"SEC-F8_a set argument twice", `{"path":"a","root":"/etc"}`, `{"path":"a","root":"/w","root":"/etc"}`, ""},
		{"SEC-F8_a set argument twice, escaped", `{"path":"a","root":"/etc"}`, `{"path":"a","root":"/w","\u0072oot":"/etc"}`, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if p, err := s.Prepare(&tenon.ToolCall{Name: "x", Arguments: json.RawMessage(tt.args)}, nil); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error %v, want %q; would send %s", err, tt.want, p.Arguments)
			}
			if err := s.CheckEdited(&tenon.ToolCall{Name: "x", Arguments: json.RawMessage(tt.edited)}, nil); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("edited: error %v, want %q", err, tt.want)
			}
		})
	}
}

// TestKeysOfHostileSchemas checks arguments against schemas of a hostile server. The check must end within its bounds,
// and must refuse what it cannot decide.
func TestKeysOfHostileSchemas(t *testing.T) {
	var wide, chain strings.Builder
	for i := range 300 {
		fmt.Fprintf(&wide, `"a%d":{"anyOf":[{"$ref":"#/$defs/a%d"},{"$ref":"#/$defs/a%d"}],"properties":{"k%d":{"$ref":"#/$defs/a%d"}}},`, i, (i*7+1)%300, (i*13+5)%300, i, (i*31+3)%300)
		fmt.Fprintf(&chain, `"b%d":{"patternProperties":{"%d":{"$ref":"#/$defs/b%d"}},"additionalProperties":{"$ref":"#/$defs/b%d"}},`, i, i%10, (i*7+1)%300, (i*3+1)%300)
	}
	schema := `{"type":"object","properties":{"wide":{"$ref":"#/$defs/a0"},"chain":{"anyOf":[{"$ref":"#/$defs/b0"},{"$ref":"#/$defs/b7"}]}},"$defs":{` + wide.String() + chain.String() + `"z":{}}}`
	s, _ := Build([]Source{{Server: "s", Tools: []tenon.Tool{{Remote: "x", Input: json.RawMessage(schema)}}}})
	var args strings.Builder
	for i := range 2000 {
		fmt.Fprintf(&args, `"%d":{"%d":{"%d":{"x":{"y":[]}}}},`, i*7919, i*31, i)
	}
	_, err := s.Prepare(&tenon.ToolCall{Name: "x", Arguments: json.RawMessage(`{"chain":{` + args.String() + `"z":{}}}`)}, nil)
	if err != nil && !strings.Contains(err.Error(), errIntricate) {
		t.Errorf("error %v", err)
	}
	if _, err := s.Prepare(&tenon.ToolCall{Name: "x", Arguments: json.RawMessage(`{"wide":{"K5":1}}`)}, nil); err == nil || !strings.Contains(err.Error(), "write 'k5'") {
		t.Errorf("error %v", err)
	}
	tool, _ := s.Lookup("x")
	if kept := s.validator(tool).keys.kept; kept > maxKeyKept {
		t.Errorf("%d nodes and names are kept, more than %d", kept, maxKeyKept)
	}
}

// TestKeysConcurrently checks calls of one tool at the same time, for the race detector.
func TestKeysConcurrently(t *testing.T) {
	s, _ := Build([]Source{{Server: "s", Tools: []tenon.Tool{{Remote: "x", Input: json.RawMessage(`{"properties":{"in":{"items":{"properties":{"amount":{}}}}}}`)}}}})
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			for range 50 {
				key := []string{"amount", "Amount"}[i%2]
				if _, err := s.Prepare(&tenon.ToolCall{Name: "x", Arguments: json.RawMessage(`{"in":[{"` + key + `":1}]}`)}, nil); (err == nil) != (key == "amount") {
					t.Errorf("%s: %v", key, err)
				}
			}
		})
	}
	wg.Wait()
}

func BenchmarkCheckNested(b *testing.B) {
	s, _ := Build([]Source{{Server: "w", Tools: []tenon.Tool{{Remote: "x",
		Input: json.RawMessage(`{"type":"object","properties":{"filter":{"type":"object","properties":{"from":{"type":"string"},"tags":{"type":"array","items":{"type":"object","properties":{"name":{"type":"string"}}}}}}}}`)}}}})
	c := &tenon.ToolCall{Name: "x", Arguments: json.RawMessage(`{"filter":{"from":"a","tags":[{"name":"a"},{"name":"b"}]}}`)}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := s.Prepare(c, nil); err != nil {
			b.Fatal(err)
		}
	}
}
