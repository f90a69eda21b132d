package catalog

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestReadWords(t *testing.T) {
	const add = `{"type":"object","properties":{"a":{"type":"number","description":"the first"},"b":{"type":"integer"}},
		"required":["a"]}`
	const mixed = `{"type":"object","properties":{"any":{},"text":{"type":"string"},"flag":{"type":"boolean"},
		"both":{"type":["string","number"]},"maybe":{"anyOf":[{"type":"integer"},{"type":"null"}]},
		"list":{"type":"array","items":{"type":"string"}},"object":{"type":"object"},"level":{"enum":[1,2,"high"]},
		"ref":{"$ref":"#/$defs/n"}},"$defs":{"n":{"type":"integer","minimum":3}}}`
	tests := map[string]struct {
		schema string
		words  []Word
		want   string // the object; after "!", the whole error
	}{
		"UX-7_none":             {mixed, nil, `{}`},
		"UX-7_number":           {add, []Word{{Key: "a", Text: "2"}}, `{"a":2}`},
		"UX-7_exact number":     {add, []Word{{Key: "a", Text: "9007199254740993.10"}}, `{"a":9007199254740993.10}`},
		"UX-7_text stays":       {mixed, []Word{{Key: "text", Text: "2"}}, `{"text":"2"}`},
		"UX-7_any stays text":   {mixed, []Word{{Key: "any", Text: "true"}}, `{"any":"true"}`},
		"UX-7_both stays text":  {mixed, []Word{{Key: "both", Text: "2"}}, `{"both":"2"}`},
		"UX-7_json wins":        {mixed, []Word{{Key: "both", Text: "2", JSON: true}}, `{"both":2}`},
		"UX-7_boolean":          {mixed, []Word{{Key: "flag", Text: "true"}}, `{"flag":true}`},
		"UX-7_branch":           {mixed, []Word{{Key: "maybe", Text: "7"}}, `{"maybe":7}`},
		"UX-7_null":             {mixed, []Word{{Key: "maybe", Text: "null"}}, `{"maybe":null}`},
		"UX-7_list":             {mixed, []Word{{Key: "list", Text: `["x"]`}}, `{"list":["x"]}`},
		"UX-7_object":           {mixed, []Word{{Key: "object", Text: `{"x":1}`}}, `{"object":{"x":1}}`},
		"UX-7_enum number":      {mixed, []Word{{Key: "level", Text: "2"}}, `{"level":2}`},
		"UX-7_enum text":        {mixed, []Word{{Key: "level", Text: "high"}}, `{"level":"high"}`},
		"UX-7_reference":        {mixed, []Word{{Key: "ref", Text: "3"}}, `{"ref":3}`},
		"UX-7_no schema":        {``, []Word{{Key: "x", Text: "1"}}, `{"x":"1"}`},
		"UX-7_unusable schema":  {`{"type":"object","properties":{"x":7}}`, []Word{{Key: "x", Text: "1"}}, `{"x":"1"}`},
		"UX-7_additional":       {`{"properties":{},"additionalProperties":true}`, []Word{{Key: "x", Text: "1"}}, `{"x":"1"}`},
		"UX-7_additional typed": {`{"additionalProperties":{"type":"integer"}}`, []Word{{Key: "x", Text: "1"}}, `{"x":1}`},
		"UX-7_pattern":          {`{"patternProperties":{"^x":{"type":"integer"}}}`, []Word{{Key: "xy", Text: "1"}}, `{"xy":1}`},
		"UX-7_elsewhere":        {`{"properties":{},"allOf":[{"properties":{"x":{}}}]}`, []Word{{Key: "x", Text: "1"}}, `{"x":"1"}`},

		"UX-7_wrong type": {add, []Word{{Key: "a", Text: "x"}}, `!argument 'a': 'x' is not a number`},
		"UX-7_fraction":   {add, []Word{{Key: "a", Text: "1"}, {Key: "b", Text: "1.5"}}, `!argument 'b': it is a number, expected integer`},
		"UX-7_list as text": {mixed, []Word{{Key: "list", Text: "x"}},
			`!argument 'list': 'x' is not an array; write it as JSON: list:='["…"]'`},
		"UX-7_too small":  {mixed, []Word{{Key: "ref", Text: "1"}}, `!argument 'ref': 1 is less than 3`},
		"UX-7_wrong enum": {mixed, []Word{{Key: "level", Text: "low"}}, `!argument 'level': it is "low", expected one of [1,2,"high"]`},
		"UX-7_missing":    {add, []Word{{Key: "b", Text: "1"}}, `!argument 'a' is missing: a number, the first`},
		"UX-7_unknown":    {mixed, []Word{{Key: "txet", Text: "x"}}, `!unknown argument 'txet'; did you mean 'text'?`},
		"UX-7_unknown letter": {add, []Word{{Key: "a", Text: "1"}, {Key: "c", Text: "x"}},
			`!unknown argument 'c'; there are: a, b`},
		"UX-7_anything": {`{"type":"object"}`, []Word{{Key: "x", Text: "1"}}, `{"x":"1"}`},
		"UX-7_none declared": {`{"type":"object","properties":{}}`, []Word{{Key: "x", Text: "1"}},
			`!unknown argument 'x': the tool declares none`},
		"UX-7_closed with branches": {`{"properties":{"ab":{}},"additionalProperties":false,"allOf":[{}]}`,
			[]Word{{Key: "ba", Text: "1"}}, `!unknown argument 'ba'; did you mean 'ab'?`},
		"UX-7_a typo is one mistake": {`{"properties":{"location":{"type":"string"}},"required":["location"]}`,
			[]Word{{Key: "locatoin", Text: "x"}}, `!unknown argument 'locatoin'; did you mean 'location'?`},
		"UX-7_several": {add, []Word{{Key: "b", Text: "x"}, {Key: "zzzzz", Text: "1"}}, "!3 mistakes in the arguments:\n" +
			"  argument 'b': 'x' is not a whole number\n  unknown argument 'zzzzz'; there are: a, b\n" +
			"  argument 'a' is missing: a number, the first"},
		"UX-7_hidden characters": {`{"properties":{}}`, []Word{{Key: "x\x1b[31m", Text: "1"}},
			`!unknown argument 'x\u{1b}[31m': the tool declares none`},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := ReadWords(json.RawMessage(tt.schema), tt.words)
			if want, bad := strings.CutPrefix(tt.want, "!"); bad {
				if err == nil || err.Error() != want {
					t.Fatalf("got %s, %v; want the error %s", got, err, want)
				}
				return
			}
			if err != nil || string(got) != tt.want {
				t.Fatalf("got %s, %v; want %s", got, err, tt.want)
			}
		})
	}
}

func FuzzReadWords(f *testing.F) {
	f.Add(`{"properties":{"a":{"type":"number"}}}`, "a", "2", false)
	f.Add(`{"patternProperties":{"(":{}}}`, "a", `{"a":`, true)
	f.Fuzz(func(t *testing.T, schema, key, text string, isJSON bool) {
		if isJSON && !json.Valid([]byte(text)) {
			t.Skip()
		}
		got, err := ReadWords(json.RawMessage(schema), []Word{{Key: key, Text: text, JSON: isJSON}})
		if err == nil && !json.Valid(got) {
			t.Fatalf("%s is not JSON", got)
		}
	})
}
