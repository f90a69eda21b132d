package catalog

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// FuzzObject compares parseObject with the decoder that it replaces, and checks that an object is written as it was
// read.
func FuzzObject(f *testing.F) {
	for _, s := range []string{`{}`, ` {"a" : 1 , "b":{"c":[1,2,"}"]},"a":null}`, "{\"ä\\u00e4\\n\":\"x\",\"\xff\":1,\"\u2028\":2,\"\\b\":3}", `{"a":1`, `{"a":1}x`, `{"a":}`, `[]`, `"a"`, ` null`, ``, `{"a":-0.5e3,"":true}`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		got, ok := parseObject(raw)
		want, wanted := decodeObject(raw)
		if ok != wanted {
			t.Fatalf("%q: an object %v, want %v", raw, ok, wanted)
		}
		if diff := cmp.Diff(want, got, cmp.AllowUnexported(member{})); diff != "" {
			t.Fatalf("%q: %s", raw, diff)
		}
		if !ok || !json.Valid(raw) {
			return
		}
		again, ok := parseObject(got.raw())
		if diff := cmp.Diff(got, again, cmp.AllowUnexported(member{})); diff != "" || !ok {
			t.Fatalf("%q: written as %q: %s", raw, got.raw(), diff)
		}
	})
}
