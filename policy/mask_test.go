package policy

import (
	"bytes"
	"encoding/json"
	"testing"
)

func TestMask(t *testing.T) {
	names := []string{"pin", "Account_ID"}
	for _, tt := range []struct{ name, in, want string }{
		{"a member", `{"pin": 12 ,"n":9007199254740993}`, `{"pin": "***" ,"n":9007199254740993}`},
		{"deep, in a list, of any case", `[{"a":[{"PIN":"x","b":1.50},{"account_id":{"pin":1}}]},null]`, `[{"a":[{"PIN":"***","b":1.50},{"account_id":"***"}]},null]`},
		{"escaped name", `{"p\u0069n":"1","x":"pin"}`, `{"p\u0069n":"***","x":"pin"}`},
		{"several", `{"pin":[1,2,{"x":"}"}],"x":"\"pin\":1","pin":true}`, `{"pin":"***","x":"\"pin\":1","pin":"***"}`},
		{"nothing of that name", ` {"spin":1, "a" : {} , "b":[]} `, ` {"spin":1, "a" : {} , "b":[]} `},
		{"no object", `"pin"`, `"pin"`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := string(Mask([]byte(tt.in), names)); got != tt.want {
				t.Errorf("%s\nwant %s", got, tt.want)
			}
		})
	}
	call := `{"pin":"kept","message":{"parts":[{"call":{"name":"x","arguments":{"pin":1,"a":2}},"raw":{"input":{"pin":2}}},{"function":{"arguments":"{\"pin\":3}"}}]}}`
	want := `{"pin":"kept","message":{"parts":[{"call":{"name":"x","arguments":{"pin":"***","a":2}},"raw":{"input":{"pin":"***"}}},{"function":{"arguments":"{\"pin\":\"***\"}"}}]}}`
	if got := string(MaskArguments([]byte(call), names)); got != want {
		t.Errorf("%s\nwant %s", got, want)
	}
	if got := MaskText("pin: 12", names); got != "pin: 12" {
		t.Error(got)
	}
}

func FuzzMask(f *testing.F) {
	for _, s := range []string{`{"pin":1}`, `{"a":{"pin":[1,{"pin":"\\"}]},"pin":{}}`, `[]`, `{"pin":`, `{"pin":"\ud800"}`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		for _, mask := range []func([]byte, []string) []byte{Mask, MaskArguments} {
			clean := mask(raw, []string{"pin"})
			if !json.Valid(raw) {
				continue
			}
			if !json.Valid(clean) {
				t.Fatalf("%q became %q", raw, clean)
			}
			if again := mask(clean, []string{"pin"}); !bytes.Equal(again, clean) {
				t.Errorf("%q: %q, then %q", raw, clean, again)
			}
		}
		var v map[string]any
		if json.Unmarshal(Mask(raw, []string{"pin"}), &v) == nil && v["pin"] != nil && v["pin"] != "***" && json.Valid(raw) {
			t.Errorf("%q keeps %v", raw, v["pin"])
		}
	})
}
