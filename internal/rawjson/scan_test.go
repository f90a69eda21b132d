package rawjson_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"testing"

	"github.com/tenonhq/tenon/internal/rawjson"
)

// FuzzFields holds the scanner to encoding/json over valid input, and to no
// panic over all input.
func FuzzFields(f *testing.F) {
	for _, s := range []string{`{"a":1,"b":[1,{"c":"\"]}"}],"d":null}`, ` { "a" : "x\\" , "b":{}} `, `[1,"a,b",[2]]`, `{"a"`, `"`, `{"\u0061":1}`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var got [][2]string
		for k, v := range rawjson.Fields(data) {
			got = append(got, [2]string{string(k), string(v)})
		}
		var members []any
		for k := range rawjson.Members(data) {
			members = append(members, string(k))
		}
		n := 0
		for range rawjson.Elements(data) {
			n++
		}
		_ = rawjson.String(data)
		if !json.Valid(data) {
			return
		}
		var list []json.RawMessage
		if json.Unmarshal(data, &list) == nil && len(list) != n {
			t.Errorf("%s has %d elements, found %d", data, len(list), n)
		}
		dec := json.NewDecoder(bytes.NewReader(data))
		if tok, err := dec.Token(); err != nil || tok != json.Delim('{') {
			return
		}
		for i := 0; dec.More(); i++ {
			k, err := dec.Token()
			if err != nil {
				t.Fatal(err)
			}
			var v json.RawMessage
			if err := dec.Decode(&v); err != nil {
				t.Fatal(err)
			}
			if i >= len(got) || rawjson.DecodeBody([]byte(got[i][0])) != k || members[i] != k || got[i][1] != string(v) {
				t.Fatalf("member %d of %s: %q", i, data, got)
			}
		}
	})
}

// FuzzTwice holds the search for keys that stand twice to a decoder's tokens.
func FuzzTwice(f *testing.F) {
	many := []byte("{")
	for i := range 40 {
		many = append(many, fmt.Sprintf(`"k%d":{"a":1},`, i)...)
	}
	for _, s := range []string{`{"a":1,"b":{"a":"a"},"c":["a","a",{"a":1}]}`, `{"a":1,"a":2}`, `[{"x":{"\u0061":1,"a":2}}]`, `{"a":"\"a\":1"}`, `{"":1,"":1}`,
		`{"a":{"b":1},"b":2}`, `[["a","a"],{"a":"b","b":"a"}]`, string(many) + `"z":1}`, string(many) + `"k39":1}`, `"a"`, "{\"\xff\":1,\"\xfe\":2}"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		got, found := rawjson.Twice(data)
		if !json.Valid(data) {
			return
		}
		dec := json.NewDecoder(bytes.NewReader(data))
		dec.UseNumber()
		if want, twice := twice(t, dec); twice != found || want != got {
			t.Errorf("%s: %q %v, want %q %v", data, got, found, want, twice)
		}
	})
}

// twice reads one value.
func twice(t *testing.T, dec *json.Decoder) (string, bool) {
	tok, err := dec.Token()
	if err != nil {
		t.Fatal(err)
	}
	if tok != json.Delim('{') && tok != json.Delim('[') {
		return "", false
	}
	seen := map[string]bool{}
	for dec.More() {
		if tok == json.Delim('{') {
			k, err := dec.Token()
			if err != nil {
				t.Fatal(err)
			}
			if seen[k.(string)] {
				return k.(string), true
			}
			seen[k.(string)] = true
		}
		if k, ok := twice(t, dec); ok {
			return k, true
		}
	}
	_, err = dec.Token()
	if err != nil {
		t.Fatal(err)
	}
	return "", false
}
