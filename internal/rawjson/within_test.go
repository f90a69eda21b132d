package rawjson_test

import (
	"encoding/json"
	"testing"

	"github.com/tenonhq/tenon/internal/rawjson"
)

// FuzzWithin holds Within to encoding/json: the same bytes are JSON, and of as many
// values, as deep.
func FuzzWithin(f *testing.F) {
	for _, s := range []string{`{}`, ` [ ] `, `{"a":[1,-0.5e+3,{"b":null}],"a":true}`, `"\u00e9\n\ud800"`, "\"\xff\"", `01`, `-`, `1.`, `1e`, `[1,]`, `{"a":1,}`, `{"a" 1}`, `tru`, `nul`,
		"\"\x01\"", `"\x"`, `"\u12g4"`, `"`, `[[[[[[]]]]]]`, `{} {}`, ``, `[`, `{"a":`, "1 ", "\v1", `{"a":"b\"c"}`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		const deepest = 8
		if !json.Valid(raw) {
			if rawjson.Within(raw, 1<<20, 1<<10) {
				t.Fatalf("%q is taken for JSON", raw)
			}
			return
		}
		values, depth := 0, 0
		var walk func(v json.RawMessage, at int)
		walk = func(v json.RawMessage, at int) {
			values, depth = values+1, max(depth, at)
			for e := range rawjson.Elements(v) {
				walk(e, at+1)
			}
			for _, e := range rawjson.Fields(v) {
				walk(e, at+1)
			}
		}
		walk(raw, 0)
		if got, want := rawjson.Within(raw, 1<<20, deepest), depth <= deepest; got != want {
			t.Errorf("%q is %d deep: within %d: %v", raw, depth, deepest, got)
		}
		if !rawjson.Within(raw, values, depth) || rawjson.Within(raw, values-1, depth) || depth > 0 && rawjson.Within(raw, values, depth-1) {
			t.Errorf("%q: %d values, %d deep, are not what it is held to", raw, values, depth)
		}
	})
}
