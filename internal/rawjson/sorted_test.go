package rawjson_test

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/tenonhq/tenon/internal/rawjson"
)

func isSet(key []byte) bool { return string(key) == "enum" || string(key) == "type" }

// decodedAndSorted is the reference implementation of AppendSorted.
func decodedAndSorted(t *testing.T, raw []byte) []byte {
	t.Helper()
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		t.Fatal(err)
	}
	var sort func(v any)
	encode := func(v any) []byte {
		b, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	sort = func(v any) {
		switch v := v.(type) {
		case []any:
			for _, e := range v {
				sort(e)
			}
		case map[string]any:
			for k, e := range v {
				if list, ok := e.([]any); ok && isSet([]byte(k)) {
					slices.SortFunc(list, func(a, b any) int { return bytes.Compare(encode(a), encode(b)) })
				}
				sort(e)
			}
		}
	}
	sort(v)
	return encode(v)
}

var sortedSeeds = []string{
	`{"b":1,"a":{"d":[3,2,1],"c":null},"aa":true}`, ` { "a" : [ 1 , 2 ] , "A" : "x" } `,
	`{"enum":["b","a",1,10,2,null,true,"a"],"type":["null","string"]}`,
	`{"a":"<b>&\u2028é\"\\\/\n","\u0061b":"\ud83d\ude00","c<":1.0e+5}`, `{"enum":["<","é","\u00e9","a"]}`,
	`{"enum":[{"b":1,"a":2}]}`, `{"enum":[["b"],["a"]]}`, `{"a":1,"a":2}`, `{"a":1,"\u0061":2}`,
	`[]`, `{}`, `"x"`, `-0.0`, `null`, "\"\xff\"", "{\"\xff\":1}", "\"\u2028\"", "\"\x7f\"",
	strings.Repeat("[", 50) + strings.Repeat("]", 50), `{"type":{"type":["b","a"]}}`, `{"enum":{"enum":[]}}`,
	`{"enum":["\ud800","b"]}`, `{"a":`, `1 2`, ``,
}

// FuzzSorted compares AppendSorted with its reference implementation.
func FuzzSorted(f *testing.F) {
	for _, s := range sortedSeeds {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		got, ok := rawjson.AppendSorted([]byte("before"), raw, isSet)
		if !ok {
			return
		}
		if !json.Valid(raw) {
			t.Fatalf("accepted %q, which is not valid", raw)
		}
		if want := "before" + string(decodedAndSorted(t, raw)); string(got) != want {
			t.Errorf("%q: %q, want %q", raw, got, want)
		}
	})
}

// TestSortedTakes checks that typical definitions are written without encoding/json.
func TestSortedTakes(t *testing.T) {
	for i, s := range sortedSeeds {
		_, ok := rawjson.AppendSorted(nil, []byte(s), isSet)
		refused := slices.Contains([]int{5, 6, 7, 8, 18, 22, 23, 24}, i)
		if ok == refused {
			t.Errorf("%d %s: %v", i, s, ok)
		}
	}
}
