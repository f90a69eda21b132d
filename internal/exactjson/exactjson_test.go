package exactjson_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tenonhq/tenon/internal/exactjson"
)

type inner struct {
	Verdict string `json:"verdict"`
	Count   int    `json:"count"`
}

type Base struct {
	ID string `json:"id"`
}

type body struct {
	Base
	Decision string            `json:"decision"`
	One      *inner            `json:"one"`
	Many     []inner           `json:"many"`
	ByName   map[string]*inner `json:"by_name"`
	Free     map[string]any    `json:"free"`
	Raw      json.RawMessage   `json:"raw"`
	When     time.Time         `json:"when"`
	Data     []byte            `json:"data"`
	Plain    string
	Hidden   string `json:"-"`
}

func TestDecode(t *testing.T) {
	for _, tt := range []struct {
		name, in     string
		closed, open string // parts of the errors; "" = decodes
	}{
		{"exact", `{"id":"1","decision":"yes","one":{"verdict":"a","count":1},"many":[{"verdict":"b"}],"by_name":{"X":{"count":2}},"Plain":"x","data":"AAE=","when":"2026-11-21T08:00:00Z"}`, "", ""},
		{"null", `null`, "", ""},
		{"nulls", `{"one":null,"many":null,"by_name":{"a":null}}`, "", ""},
		{"free names", `{"free":{"a":1,"A":{"b":1,"B":2}},"raw":{"x":1,"X":2},"by_name":{"a":{},"A":{}}}`, "", ""},
		{"another case", `{"Decision":"yes"}`, `the field "Decision" has to be written "decision"`, "has to be written"},
		{"upper case", `{"DECISION":"yes"}`, "has to be written", "has to be written"},
		{"both cases", `{"decision":"no","Decision":"yes"}`, "has to be written", "has to be written"},
		{"Kelvin sign", `{"by_name":{"a":{"verdict":"x","Count":1}}}`, `"Count" in by_name.a has to be written "count"`, "has to be written"},
		{"long s", `{"deciſion":"yes"}`, "has to be written", "has to be written"},
		{"escaped", `{"\u0044ecision":"yes"}`, "has to be written", "has to be written"},
		{"in a pointer", `{"one":{"Verdict":"a"}}`, `in one has to be written "verdict"`, "has to be written"},
		{"in a list", `{"many":[{},{"VERDICT":"a"}]}`, `in many.1 has to be written "verdict"`, "has to be written"},
		{"in an embedded struct", `{"ID":"a"}`, `written "id"`, "has to be written"},
		{"without a tag", `{"plain":"a"}`, `written "Plain"`, "has to be written"},
		{"unknown", `{"decison":"yes"}`, `unknown field "decison"; did you mean "decision"?`, ""},
		{"RP-4 unknown unlike all", `{"zzzzzz":1}`, `unknown field "zzzzzz"; the fields are `, ""},
		{"unknown inside", `{"many":[{"x":1}]}`, `unknown field "x" in many.0`, ""},
		{"a field that is not one of JSON", `{"Hidden":"a"}`, `unknown field "Hidden"`, ""},
		{"hidden characters", `{"decision\u200b":"yes"}`, `unknown field "decision\\u{200b}"`, ""},
		{"twice", `{"decision":"no","decision":"yes"}`, "the key 'decision' is there twice", "there twice"},
		{"twice, escaped", `{"decision":"no","\u0064ecision":"yes"}`, "there twice", "there twice"},
		{"twice in a list", `{"many":[{"count":1,"count":2}]}`, "there twice", "the key 'count' in many.0 is there twice"},
		{"twice in a map", `{"by_name":{"a":{},"\u0061":{}}}`, "there twice", "the key 'a' in by_name is there twice"},
		{"twice in raw JSON", `{"raw":{"a":[{"b":1,"b":2}]}}`, "the key 'b' is there twice", ""},
		{"twice in what is not read", `{"x":{"b":1,"b":2},"x":1}`, "there twice", ""},
		{"another type", `{"decision":7}`, "cannot unmarshal number", "cannot unmarshal number"},
		{"a list in place of an object", `[{"Decision":"x"}]`, "cannot unmarshal array", "cannot unmarshal array"},
		{"two values", `{} {}`, "after top-level value", "after top-level value"},
		{"cut off", `{"decision":`, "unexpected end", "unexpected end"},
		{"empty", ``, "unexpected end", "unexpected end"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			for _, way := range []struct {
				name   string
				decode func([]byte, any) error
				want   string
			}{{"closed", exactjson.Decode, tt.closed}, {"open", exactjson.DecodeOpen, tt.open}} {
				var got, want body
				err := way.decode([]byte(tt.in), &got)
				switch {
				case way.want == "" && err != nil, way.want != "" && (err == nil || !strings.Contains(err.Error(), way.want)):
					t.Errorf("%s: error %v, want %q", way.name, err, way.want)
				case err == nil:
					if err := json.Unmarshal([]byte(tt.in), &want); err != nil {
						t.Fatal(err)
					}
					if diff := cmp.Diff(want, got); diff != "" {
						t.Errorf("%s: %s", way.name, diff)
					}
				}
			}
		})
	}
	var typed *json.UnmarshalTypeError
	if err := exactjson.Decode([]byte(`{"one":{"count":"x"}}`), new(body)); !errors.As(err, &typed) || typed.Field != "one.count" {
		t.Errorf("error %v", err)
	}
}

// FuzzDecode checks that whatever is decoded reads the same without regard to case: no two of
// its names are one to encoding/json.
func FuzzDecode(f *testing.F) {
	for _, s := range []string{`{"decision":"a","one":{"verdict":"b"}}`, `{"Decision":"a"}`, `{"many":[{"count":1},{"x":{}}]}`, `{"by_name":{"a":{"verdict":"b"}},"free":{"a":1,"A":2}}`, `{"id":"x"}`, "{\"\xff\":1}", `null`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		var got, plain, again body
		if exactjson.DecodeOpen(raw, &got) != nil {
			return
		}
		if err := json.Unmarshal(raw, &plain); err != nil {
			t.Fatalf("%q is no JSON for others: %v", raw, err)
		}
		b, err := json.Marshal(plain)
		if err != nil {
			return // a time that JSON has no form for
		}
		if err := exactjson.Decode(b, &again); err != nil {
			t.Errorf("%q became %s: %v", raw, b, err)
		}
	})
}

func TestDecodeNear(t *testing.T) {
	for in, want := range map[string]string{
		`{"decison":"yes"}`:                  `unknown field "decison"; did you mean "decision"?`,
		`{"many":[{"verdct":"a"}]}`:          `unknown field "verdct" in many.0; did you mean "verdict"?`,
		`{"decison":"yes","decision":"no"}`:  "",
		`{"decision":"no","decison":"yes"}`:  "",
		`{"zzzzzz":1,"one":{"yyyyyyyyy":1}}`: "",
		`{"Decision":"yes"}`:                 "has to be written",
	} {
		err := exactjson.DecodeNear([]byte(in), &body{})
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %v", in, err)
		}
	}
}
