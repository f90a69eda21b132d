package jsonschema

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// check compiles a schema and checks values against it. values maps a value to a part of its error; "" means that it is
// valid.
func check(t *testing.T, schema string, o Options, values map[string]string) *Schema {
	t.Helper()
	s, err := Compile(json.RawMessage(schema), o)
	if err != nil {
		t.Fatalf("%s: %v", schema, err)
	}
	for value, want := range values {
		v, err := Decode([]byte(value))
		if err != nil {
			t.Fatal(err)
		}
		switch err := s.Validate(v); {
		case want == "" && err != nil:
			t.Errorf("%s: %.60s does not fit: %v", schema, value, err)
		case want != "" && (err == nil || !strings.Contains(err.Error(), want)):
			t.Errorf("%s: %.60s: %v, want %s", schema, value, err, want)
		}
	}
	return s
}

func TestSpellings(t *testing.T) {
	for _, name := range []string{
		"", "http://json-schema.org/draft-04/schema#", "http://json-schema.org/draft-04/schema",
		"http://json-schema.org/draft-06/schema#", "https://json-schema.org/draft-07/schema",
		"http://json-schema.org/draft-07/schema#", "http://json-schema.org/draft-07/schema",
		"HTTP://JSON-Schema.org/draft-07/schema/#", "https://json-schema.org/draft/2019-09/schema#",
		"https://json-schema.org/draft/2019-09/schema", "http://json-schema.org/draft/2020-12/schema",
		"https://json-schema.org/draft/2020-12/schema#", "https://json-schema.org/schema", "http://json-schema.org/schema#",
		" https://json-schema.org/draft/2020-12/schema ",
	} {
		t.Run("RP-9_schema_spellings/"+name, func(t *testing.T) {
			prefix := ""
			if name != "" {
				prefix = fmt.Sprintf(`"$schema":%q,`, name)
			}
			s := check(t, `{`+prefix+`"type":"object","properties":{"n":{"type":"integer"}},"required":["n"]}`, Options{},
				map[string]string{`{"n":1}`: "", `{"n":"x"}`: "at /n: it is a string, expected integer", `{}`: `missing: "n"`})
			if len(s.Unchecked()) > 0 {
				t.Errorf("reported: %v", s.Unchecked())
			}
		})
	}
	for _, name := range []string{`"http://json-schema.org/draft-03/schema#"`, `"https://example.com/own"`, `7`, `"file:///etc/passwd"`} {
		t.Run("RP-9_unknown_dialect/"+name, func(t *testing.T) {
			s := check(t, `{"$schema":`+name+`,"type":"integer"}`, Options{}, map[string]string{"1": "", `"x"`: "a string"})
			if len(s.Unchecked()) != 1 || s.Unchecked()[0].Pointer != "/$schema" {
				t.Errorf("reported: %v", s.Unchecked())
			}
		})
	}
	t.Run("RP-9_older_draft_without_schema", func(t *testing.T) {
		check(t, `{"type":"array","items":[{"type":"integer"}],"additionalItems":false}`, Options{},
			map[string]string{"[1]": "", `["x"]`: "at /0", "[1,2]": "too many"})
		check(t, `{"type":"number","minimum":3,"exclusiveMinimum":true}`, Options{}, map[string]string{"4": "", "3": "3 is not greater than 3"})
	})
}

func TestKeywords(t *testing.T) {
	for _, tt := range []struct {
		name, schema string
		values       map[string]string
	}{
		{"RP-9_recursion", `{"type":"object","properties":{"child":{"$ref":"#"},"n":{"type":"integer"}},"additionalProperties":false}`,
			map[string]string{`{"child":{"child":{"n":1}}}`: "", `{"child":{"child":{"n":"x"}}}`: "at /child/child/n", `{"child":{"x":1}}`: `unknown properties: "x"`}},
		{"RP-9_dynamicRef", `{"$schema":"https://json-schema.org/draft/2020-12/schema","$id":"https://example.com/strict-tree","$dynamicAnchor":"node","$ref":"tree",
			"unevaluatedProperties":false,"$defs":{"tree":{"$id":"https://example.com/tree","$dynamicAnchor":"node","type":"object",
			"properties":{"data":true,"children":{"type":"array","items":{"$dynamicRef":"#node"}}}}}}`,
			map[string]string{`{"children":[{"data":1}]}`: "", `{"children":[{"daat":1}]}`: "at /children/0/daat"}},
		{"RP-9_nested_id", `{"$id":"https://example.com/root","properties":{"a":{"$ref":"other"}},"$defs":{"o":{"$id":"other","type":"integer"}}}`,
			map[string]string{`{"a":1}`: "", `{"a":"x"}`: "at /a"}},
		{"RP-9_anchor", `{"properties":{"a":{"$ref":"#here"}},"$defs":{"x":{"$anchor":"here","type":"integer"}}}`,
			map[string]string{`{"a":1}`: "", `{"a":"x"}`: "at /a"}},
		{"RP-9_multipleOf", `{"multipleOf":0.01}`, map[string]string{"19.99": "", "4.35": "", "0.07": "", "1.001": "1.001 is not a multiple of 0.01"}},
		{"RP-9_numbers_as_written", `{"maximum":9007199254740992}`, map[string]string{"9007199254740992": "", "9007199254740993": "9007199254740993 is greater"}},
		{"RP-9_const_as_written", `{"const":9007199254740993}`, map[string]string{"9007199254740993": "", "9007199254740992": "expected 9007199254740993", "9007199254740993.0": ""}},
		{"RP-9_large_number", `{"type":"number"}`, map[string]string{"1e400": "", "1e1000000": "limits", strings.Repeat("9", 2000): "limits"}},
		{"RP-9_look-ahead", `{"pattern":"^(?=.*[a-z])(?=.*[0-9]).{4,}$"}`, map[string]string{`"abc1"`: "", `"abcd"`: "does not match"}},
		{"RP-9_back_reference", `{"pattern":"^(a|b)\\1$"}`, map[string]string{`"aa"`: "", `"ab"`: "does not match"}},
		{"RP-9_ecma_space", `{"pattern":"^\\s$"}`, map[string]string{`"\u00a0"`: "", `"\ufeff"`: "", `"x"`: "does not match"}},
		{"RP-9_ecma_end", `{"pattern":"^a$"}`, map[string]string{`"a"`: "", `"a\n"`: "does not match"}},
		{"RP-9_ecma_escapes", `{"pattern":"^\\u0041\\ud83d\\ude00[\\u{42}\\b[]\\cA$"}`, map[string]string{`"A😀B\u0001"`: "", `"A😀C\u0001"`: "does not match"}},
		{"RP-9_python_pattern", `{"pattern":"\\A(?P<x>a+)\\Z"}`, map[string]string{`"aa"`: "", `"ab"`: "does not match"}},
		{"RP-9_format_is_annotation", `{"$schema":"http://json-schema.org/draft-07/schema#","format":"email"}`, map[string]string{`"nobody"`: ""}},
		{"RP-9_catastrophic_pattern", `{"pattern":"^(?=a)(a+)+$"}`, map[string]string{`"aaa"`: "", `"` + strings.Repeat("a", 40) + `!"`: "takes too long"}},
		{"choices", `{"anyOf":[{"type":"string"},{"type":"null"},{"type":"object","properties":{"a":{"type":"integer"}},"required":["a"]}]}`,
			map[string]string{"1": "expected null or object or string", `{"a":"x"}`: "at /a: it is a string", "null": ""}},
		{"several", `{"items":{"type":"string"}}`, map[string]string{"[1,2,3,4,5,6,7]": "at /0: it is a number, expected string; at /1: it is a number, expected string; at /2: it is a number, expected string; 2 more"}},
		{"prefix and items", `{"prefixItems":[{"type":"string"}],"items":{"type":"integer"},"unevaluatedItems":false}`, map[string]string{`["a",1]`: "", `["a","b"]`: "at /1"}},
		{"additional", `{"properties":{"a":true},"additionalProperties":{"type":"integer"},"unevaluatedProperties":false}`, map[string]string{`{"a":"x","b":1}`: "", `{"b":"x"}`: "at /b"}},
		{"unevaluated through allOf", `{"allOf":[{"additionalProperties":{"type":"integer"}}],"unevaluatedProperties":false}`, map[string]string{`{"b":1}`: ""}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if s := check(t, tt.schema, Options{}, tt.values); len(s.Unchecked()) > 0 {
				t.Errorf("reported: %v", s.Unchecked())
			}
		})
	}
	t.Run("RP-9_format_is_assertion", func(t *testing.T) {
		for _, schema := range []string{`{"format":"email"}`, `{"$schema":"http://json-schema.org/draft-07/schema#","format":"email"}`} {
			check(t, schema, Options{Formats: true}, map[string]string{`"a@b.c"`: "", `"nobody"`: "format email"})
		}
		check(t, `{"format":"regex"}`, Options{Formats: true}, map[string]string{`"a+"`: "", `"a("`: "format regex"})
		check(t, `{"format":"idn-email"}`, Options{Formats: true}, map[string]string{`"ä@b.c"`: "", `"ä"`: "format idn-email"})
	})
}

// TestUnchecked compiles schemas with mistakes. The mistake is reported, and the rest of the schema is checked.
func TestUnchecked(t *testing.T) {
	for _, tt := range []struct {
		name, schema, pointer, reason string
		o                             Options
		values                        map[string]string
	}{
		{name: "RP-9_external_reference", schema: `{"properties":{"a":{"$ref":"https://example.com/s.json#/x"},"b":{"type":"integer"}}}`,
			pointer: "/properties/a/$ref", reason: "it leads out of the schema", values: map[string]string{`{"a":1,"b":2}`: "", `{"b":"x"}`: "at /b"}},
		{name: "RP-9_file_reference", schema: `{"$ref":"file:///etc/passwd","required":["a"]}`, pointer: "/$ref", reason: "it leads out of the schema",
			values: map[string]string{`{}`: "missing"}},
		{name: "RP-9_missing_reference", schema: `{"properties":{"a":{"$ref":"#/$defs/none"},"b":{"type":"integer"}}}`,
			pointer: "/properties/a/$ref", reason: "it leads to nothing", values: map[string]string{`{"a":1}`: "", `{"b":"x"}`: "at /b"}},
		{name: "RP-9_missing_anchor", schema: `{"properties":{"a":{"$ref":"#none"},"b":{"type":"integer"}}}`,
			pointer: "/properties/a/$ref", reason: "it leads to nothing", values: map[string]string{`{"a":1}`: "", `{"b":"x"}`: "at /b"}},
		{name: "RP-9_circle", schema: `{"properties":{"a":{"$ref":"#/properties/a"},"b":{"type":"integer"}}}`,
			pointer: "/properties/a/$ref", reason: "back to itself", values: map[string]string{`{"a":1}`: "", `{"b":"x"}`: "at /b"}},
		{name: "RP-9_circle_of_two", schema: `{"$ref":"#/$defs/a","$defs":{"a":{"allOf":[{"$ref":"#/$defs/b"}]},"b":{"$ref":"#/$defs/a"}}}`,
			pointer: "/$defs/", reason: "back to itself", values: map[string]string{`{}`: ""}},
		{name: "RP-9_wrong_keyword", schema: `{"properties":{"a":{"type":"text"},"b":{"type":"integer","required":true}},"required":["b"]}`,
			pointer: "/properties/a/type", reason: "not valid", values: map[string]string{`{"a":1,"b":2}`: "", `{"b":"x"}`: "at /b", `{}`: "missing"}},
		{name: "RP-9_wrong_pattern", schema: `{"properties":{"a":{"pattern":"a("},"b":{"type":"integer"}}}`,
			pointer: "/properties/a/pattern", reason: "cannot be used", values: map[string]string{`{"a":"x"}`: "", `{"b":"x"}`: "at /b"}},
		{name: "RP-9_wrong_pattern_of_properties", schema: `{"patternProperties":{"a(":{"type":"integer"}},"additionalProperties":false}`,
			pointer: "/patternProperties", reason: "cannot be used", values: map[string]string{`{"x":"y"}`: ""}},
		{name: "RP-9_unknown_format", schema: `{"properties":{"a":{"format":"postcode"}}}`, o: Options{Formats: true},
			pointer: "/properties/a/format", reason: "not known", values: map[string]string{`{"a":"x"}`: ""}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := check(t, tt.schema, tt.o, tt.values)
			list := s.Unchecked()
			if len(list) == 0 || !strings.HasPrefix(list[0].Pointer, tt.pointer) || !strings.Contains(list[0].Reason, tt.reason) {
				t.Errorf("reported: %v, want %s: %s", list, tt.pointer, tt.reason)
			}
		})
	}
}

// hostile returns schemas with which a simple checker needs very much time or memory.
func hostile() map[string]string {
	double := func(format string, levels int) string {
		var defs []string
		for i := range levels {
			defs = append(defs, fmt.Sprintf(`"a%d":`+format, i, i+1, i+1))
		}
		return `{"$ref":"#/$defs/a0","$defs":{` + strings.Join(defs, ",") + fmt.Sprintf(`,"a%d":{"type":"integer"}}}`, levels)
	}
	return map[string]string{
		"allOf":         double(`{"allOf":[{"$ref":"#/$defs/a%d"},{"$ref":"#/$defs/a%d"}]}`, 50),
		"anyOf":         double(`{"anyOf":[{"$ref":"#/$defs/a%d"},{"$ref":"#/$defs/a%d"}]}`, 50),
		"not":           double(`{"not":{"dependentSchemas":{"x":{"$ref":"#/$defs/a%d"},"y":{"$ref":"#/$defs/a%d"}}}}`, 40),
		"items":         double(`{"items":{"anyOf":[{"$ref":"#/$defs/a%d"},{"$ref":"#/$defs/a%d"}]}}`, 40),
		"recursive two": `{"items":{"$ref":"#"},"contains":{"$ref":"#"},"unevaluatedItems":{"$ref":"#"},"minContains":0,"type":"array"}`,
		"many enums":    `{"items":{"anyOf":[{"enum":[` + strings.Repeat(`"some text",`, 9000) + `1]},{"enum":[` + strings.Repeat(`"some text",`, 9000) + `1]}]}}`,
		"many patterns": `{"allOf":[` + strings.Repeat(`{"items":{"pattern":"(x+x+)+y"}},`, 4000) + `{}]}`,
		"unique":        `{"allOf":[` + strings.Repeat(`{"uniqueItems":true},`, 6000) + `{}]}`,
	}
}

// TestRP9Hostile checks values against hostile schemas: each check ends, without a panic.
func TestRP9Hostile(t *testing.T) {
	deep := strings.Repeat("[", 400) + strings.Repeat("]", 400)
	wide := "[" + strings.Repeat(`"xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx",`, 5_000) + "1]"
	for name, schema := range hostile() {
		t.Run("RP-9_"+name, func(t *testing.T) {
			s, err := Compile(json.RawMessage(schema), Options{})
			if err != nil {
				return // refused as a whole
			}
			for _, value := range []string{`"x"`, `{"x":1,"y":2}`, deep, wide} {
				v, err := Decode([]byte(value))
				if err != nil {
					t.Fatal(err)
				}
				if err := s.Validate(v); err != nil && len(err.Error()) > 5000 {
					t.Errorf("an error of %d bytes", len(err.Error()))
				}
			}
		})
	}
	t.Run("RP-9_limit", func(t *testing.T) {
		s, err := Compile(json.RawMessage(hostile()["allOf"]), Options{})
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Validate("x"); !errors.Is(err, ErrLimit) {
			t.Errorf("%v, want the limit", err)
		}
	})
	for name, schema := range map[string]string{
		"deep":    strings.Repeat(`{"not":`, 100) + "{}" + strings.Repeat("}", 100),
		"values":  `{"enum":[` + strings.Repeat("1,", 30_000) + "1]}",
		"bytes":   `{"description":"` + strings.Repeat("x", MaxBytes) + `"}`,
		"numbers": `{"minimum":1e999999999}`,
		"ids":     `{"$defs":{` + strings.Repeat(`"x":{"$id":"y"},`, 600) + `"z":{}}}`,
		"list":    `[]`,
		"text":    `"x"`,
		"nothing": ``,
	} {
		t.Run("RP-9_refused_"+name, func(t *testing.T) {
			if name == "ids" {
				var b strings.Builder
				for i := range 600 {
					fmt.Fprintf(&b, `"x%d":{"$id":"y%d"},`, i, i)
				}
				schema = `{"$defs":{` + b.String() + `"z":{}}}`
			}
			if _, err := Compile(json.RawMessage(schema), Options{}); err == nil {
				t.Error("the schema is used")
			}
		})
	}
}

func TestConcurrentChecks(t *testing.T) {
	s, err := Compile(json.RawMessage(`{"items":{"type":"integer"}}`), Options{})
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			v, want := []any{json.Number("1")}, true
			if i%2 == 0 {
				v, want = []any{"x"}, false
			}
			for range 200 {
				if err := s.Validate(v); (err == nil) != want {
					t.Errorf("%v: %v", v, err)
				}
			}
		})
	}
	all.Wait()
}

func TestTranslate(t *testing.T) {
	for in, want := range map[string]string{
		`^a.b$`:             `^a[^\n\r\x{2028}\x{2029}]b$`,
		`[^]`:               `[\x00-\x{10FFFF}]`,
		`\p{Script=Greek}`:  `\p{Greek}`,
		`[[:alpha:]]`:       `[\[:alpha:]]`,
		`(?=x)`:             "",
		`(a)\1`:             "",
		`[\S]`:              "",
		`\u{1F600}\0\x41\/`: `\x{1F600}\x00\x41\/`,
		`\`:                 "",
	} {
		got, ok := translate(in)
		if diff := cmp.Diff(want, got); diff != "" || ok != (want != "") {
			t.Errorf("%s: %v %s", in, ok, diff)
		}
	}
}

// FuzzCompile reads any schema and checks any value against it: nothing may panic or hang.
func FuzzCompile(f *testing.F) {
	f.Add(`{"type":"object","properties":{"a":{"$ref":"#"}}}`, `{"a":{"a":1}}`)
	f.Add(`{"$schema":"http://json-schema.org/draft-04/schema#","id":"x","items":[{}],"pattern":"(?!a)"}`, `["x"]`)
	f.Add(`{"$dynamicAnchor":"a","$dynamicRef":"#a","unevaluatedItems":false}`, `[1]`)
	f.Fuzz(func(_ *testing.T, schema, value string) {
		s, err := Compile(json.RawMessage(schema), Options{Formats: true})
		if err != nil {
			return
		}
		if v, err := Decode([]byte(value)); err == nil {
			_ = s.Validate(v)
		}
	})
}
