package rawjson_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/tenonhq/tenon/internal/rawjson"
)

// invalid has texts that are not valid JSON.
var invalid = []string{
	`01`, `-`, `-01`, `1.`, `1e`, `1e+`, `+1`, `.5`, `[1,]`, `{"a":1,}`, `{"a" 1}`, `{1:2}`, `tru`, `nul`, "\"\x01\"", `"\x"`, `"\u12g4"`,
	`"\u12`, `"\`, `"`, `{} {}`, ``, ` `, `[`, `{"a":`, `{"a`, "\v1", `[1 2]`, `{"a":1 "b":2}`, "\xff", `[1}`, `'a'`, "\ufeff1",
}

// shape describes a value as encoding/json reads it: the number of values, the depth, and the first duplicate key.
type shape struct {
	values, nested int
	twice          string // the first key that an object has twice
	isTwice        bool
}

func (s *shape) read(t *testing.T, dec *json.Decoder, nested int) {
	tok, err := dec.Token()
	if err != nil {
		t.Fatal(err)
	}
	s.values++
	if tok != json.Delim('{') && tok != json.Delim('[') {
		return
	}
	nested++
	s.nested = max(s.nested, nested)
	seen := map[string]bool{}
	for dec.More() {
		if tok == json.Delim('{') {
			k, err := dec.Token()
			if err != nil {
				t.Fatal(err)
			}
			if key := k.(string); seen[key] && !s.isTwice {
				s.twice, s.isTwice = key, true
			} else {
				seen[key] = true
			}
		}
		s.read(t, dec, nested)
	}
	if _, err = dec.Token(); err != nil {
		t.Fatal(err)
	}
}

// FuzzCheck compares Check with encoding/json: first the validity, then each rule at its limit and just below.
func FuzzCheck(f *testing.F) {
	for _, s := range slices.Concat(valid, invalid, duplicates()) {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		err := rawjson.Check(raw, rawjson.Rules{})
		if want := json.Valid(raw); (err == nil) != want {
			t.Fatalf("%q: %v, but encoding/json says %v", raw, err, want)
		}
		strict := rawjson.Rules{Depth: 512, UniqueKeys: true, UTF8: true}
		var at *rawjson.SyntaxError
		if err := rawjson.Check(raw, strict); err != nil && (!errors.As(err, &at) || at.Offset > len(raw)) {
			t.Fatalf("%q: %v is at no byte of it", raw, err)
		}
		if err != nil {
			return
		}
		dec := json.NewDecoder(bytes.NewReader(raw))
		dec.UseNumber()
		var s shape
		s.read(t, dec, 0)
		for _, c := range []struct {
			name  string
			rules rawjson.Rules
			ok    bool
		}{
			{"values", rawjson.Rules{Values: s.values}, true},
			{"too many values", rawjson.Rules{Values: s.values - 1}, s.values == 1}, // 0 is no limit
			{"depth", rawjson.Rules{Depth: s.nested}, true},
			{"too deep", rawjson.Rules{Depth: s.nested - 1}, s.nested <= 1},
			{"unique", rawjson.Rules{UniqueKeys: true}, !s.isTwice},
			{"UTF-8", rawjson.Rules{UTF8: true}, utf8.Valid(raw)},
			{"all", strict, !s.isTwice && utf8.Valid(raw) && s.nested <= 512},
		} {
			if err := rawjson.Check(raw, c.rules); (err == nil) != c.ok {
				t.Errorf("%s of %q: %v, but %+v", c.name, raw, err, s)
			}
		}
		if got, found := rawjson.Twice(raw); found != s.isTwice || got != s.twice {
			t.Errorf("%s: %q %v, want %q %v", raw, got, found, s.twice, s.isTwice)
		}
		var members [][2]string
		err = rawjson.CheckObject(raw, rawjson.Rules{}, func(k, v []byte) {
			members = append(members, [2]string{string(k), string(v)})
		})
		var want [][2]string
		for k, v := range rawjson.Members(raw) {
			want = append(want, [2]string{string(k), string(v)})
		}
		if (err == nil) != rawjson.IsObject(raw) || !slices.Equal(members, want) {
			t.Errorf("%s: checked the members %q %v, want %q", raw, members, err, want)
		}
	})
}

// duplicates returns values with duplicate keys, and values that only seem to have some.
func duplicates() []string {
	many := []byte("{")
	for i := range 200 {
		many = append(many, fmt.Sprintf(`"k%d":{"a":1,"k1":2},`, i)...)
	}
	nested := string(many) + `"n":` + string(many) + `"k7":1}}` // two open objects with many keys
	return []string{`{"a":1,"b":{"a":"a"},"c":["a","a",{"a":1}]}`, `{"a":1,"a":2}`,
		`[{"x":{"\u0061":1,"a":2}}]`, `[{"x":{"a":1,"\u0061":2}}]`, `{"a":"\"a\":1"}`, `{"":1,"":1}`,
		`{"a":{"b":1},"b":2}`, `[["a","a"],{"a":"b","b":"a"}]`, string(many) + `"z":1}`, string(many) + `"k199":1}`,
		string(many) + `"\u006b3":1}`, nested, `"a"`, "{\"\xff\":1,\"\xfe\":2}"}
}

// FuzzTwice runs the checks of [FuzzCheck] on inputs with many keys.
func FuzzTwice(f *testing.F) {
	for _, s := range duplicates() {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		got, found := rawjson.Twice(data)
		if !json.Valid(data) {
			return
		}
		dec := json.NewDecoder(bytes.NewReader(data))
		dec.UseNumber()
		var s shape
		if s.read(t, dec, 0); s.isTwice != found || s.twice != got {
			t.Errorf("%s: %q %v, want %q %v", data, got, found, s.twice, s.isTwice)
		}
	})
}

func TestCheckPosition(t *testing.T) {
	rules := rawjson.Rules{Depth: 3, Values: 8, UniqueKeys: true, UTF8: true}
	for _, c := range []struct {
		name, in, reason string
		offset           int
	}{
		{"empty", ``, "cut off", 0},
		{"no value", ` x`, "no JSON value", 1},
		{"no key", `{"a":1,}`, "no key", 7},
		{"no colon", `{"a" 1}`, "no colon", 5},
		{"no comma", `[1 2]`, "no comma", 3},
		{"cut off in a list", `[1`, "cut off", 2},
		{"cut off in a text", `["ab`, "cut off", 4},
		{"control character", "[\"a\nb\"]", "control character in a string", 3},
		{"bad escape", `["abcdefgh\x"]`, "bad escape", 10},
		{"bad number", `[-x]`, "bad number", 2},
		{"trailing data", `1 2`, "trailing data after the value", 2},
		{"too deep", `[[[[]]]]`, rawjson.ReasonDeep, 3},
		{"too many", `[1,2,3,4,5,6,7,8]`, "too many values", 15},
		{"duplicate", `{"a":{"b":1,"b":2}}`, rawjson.ReasonDuplicate, 13},
		{"UTF-8", "[\"é\xff\"]", rawjson.ReasonUTF8, 4},
		{"UTF-8 in a key", "{\"\xc3\":1}", rawjson.ReasonUTF8, 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			var got *rawjson.SyntaxError
			if err := rawjson.Check([]byte(c.in), rules); !errors.As(err, &got) {
				t.Fatalf("%q: %v", c.in, err)
			}
			if got.Reason != c.reason || got.Offset != c.offset {
				t.Errorf("%q: %v, want %s at byte %d", c.in, got, c.reason, c.offset)
			}
		})
	}
}

// TestAllocations checks that Check and a walk allocate nothing. It does not cover the set of keys, because the race
// detector empties its pool at random; see BenchmarkTwice.
func TestAllocations(t *testing.T) {
	raw := []byte(`{"a":[1,{"b":"é\n` + strings.Repeat("x", 100) + `"}],"c":{` + strings.TrimSuffix(duplicates()[8][1:], "}") + `}}`)
	rules := rawjson.Rules{UTF8: true}
	walk := func() {
		if err := rawjson.Check(raw, rules); err != nil {
			t.Fatal(err)
		}
		for _, v := range rawjson.Members(raw) {
			for range rawjson.Elements(v) {
			}
		}
		for range rawjson.Strings(raw) {
		}
	}
	if n := testing.AllocsPerRun(100, walk); n > 0 {
		t.Errorf("%v allocations", n)
	}
}

// TestCheckForOthers checks the rules for decoders of other programs: long numbers, and halves of surrogate pairs.
func TestCheckForOthers(t *testing.T) {
	rules := rawjson.Rules{Number: 5, Surrogates: true}
	for name, tt := range map[string]struct{ raw, want, reason string }{
		"RP-18_number":      {`[12345,-1.25,1e+10]`, `[12345,-1.25,1e+10]`, ""},
		"RP-18_long_number": {`{"a":123456}`, `{"a":123456}`, rawjson.ReasonNumber},
		"RP-18_exponent":    {`[1.5e10]`, `[1.5e10]`, rawjson.ReasonNumber},
		"RP-18_pair":        {`"\ud83d\uDE00"`, `"\ud83d\uDE00"`, ""},
		"RP-18_high":        {`"a\ud83d"`, `"a\ufffd"`, ""},
		"RP-18_high_text":   {`"\uD83Dx"`, `"\ufffdx"`, ""},
		"RP-18_two_high":    {`"\ud83d\ud83d\ude00"`, `"\ufffd\ud83d\ude00"`, ""},
		"RP-18_low":         {`{"\ude00":"\udfff\ue000\ud7ff"}`, `{"\ufffd":"\ufffd\ue000\ud7ff"}`, ""},
		"RP-18_cut_off":     {`"\ud83d\u`, `"\ufffd\u`, "cut off"},
		"RP-18_no_hex":      {`"\ud83d\udxyz"`, `"\ufffd\udxyz"`, "bad escape"},
	} {
		t.Run(name, func(t *testing.T) {
			raw := []byte(tt.raw)
			reason := ""
			if err, ok := rawjson.Check(raw, rules).(*rawjson.SyntaxError); ok {
				reason = err.Reason
			}
			if string(raw) != tt.want || reason != tt.reason {
				t.Errorf("%s, %q; want %s, %q", raw, reason, tt.want, tt.reason)
			}
		})
	}
}
