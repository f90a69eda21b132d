package policy

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
)

// decoded is the reference implementation of decode.
func decoded(raw []byte) (map[string]any, bool) {
	var args map[string]any
	d := json.NewDecoder(strings.NewReader(string(raw)))
	d.UseNumber()
	if d.Decode(&args) != nil {
		return nil, false
	}
	for k, v := range args {
		args[k] = numbers(v)
	}
	return args, true
}

// FuzzDecode compares the two ways of decoding arguments.
func FuzzDecode(f *testing.F) {
	for _, s := range []string{`{"a":1,"b":[1.5,-0,1e3,18446744073709551615,1e999,null,true,false],"c":{"d":"é\n"}}`,
		`{"a":1,"a":{"b":2}}`, `{"a":{"b":1,"b":2},"\u0061":[]}`, "{\"\xff\":\"\xff\"}", `{"a":"\ud800"}`, `{} {}`,
		`{"a":}`, `[1]`, `null`, ` { } `, `{"a":` + strings.Repeat("[", 40) + strings.Repeat("]", 40) + `}`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		got, err := decode(raw)
		want, ok := decoded(raw)
		if len(raw) == 0 || (err == nil) != ok {
			if len(raw) > 0 {
				t.Fatalf("%q: %v, want an error: %t", raw, err, !ok)
			}
			return
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%q: %#v, want %#v", raw, got, want)
		}
	})
}
