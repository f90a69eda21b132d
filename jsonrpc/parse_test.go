package jsonrpc

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestParse(t *testing.T) {
	for _, c := range []struct {
		name, in string
		ok       bool
	}{
		{"answer", `{"jsonrpc":"2.0","id":1,"result":{"a":[1,2.50,-0,1e9,true,null,"x\u00e9"]}}`, true},
		{"request", ` {"id":"a","method":"ping"} `, true},
		{"notice", `{"method":"x","params":{}}`, true},
		{"error", `{"id":null,"error":{"code":-1,"message":"m"}}`, true},
		{"W3_banner", `Server ready`, false},
		{"W16_truncated", `{"id":1,"result":{"con`, false},
		{"W16_object_id", `{"id":{},"result":1}`, false},
		{"W17_duplicate", `{"id":1,"id":1,"result":1}`, false},
		{"W17_duplicate_nested", `{"id":1,"result":{"a":{"b":1,"b":2}}}`, false},
		{"W17_duplicate_escaped", `{"id":1,"result":{"a":1,"\u0061":2}}`, false},
		{"W17_same_key_elsewhere", `{"id":1,"result":{"a":{"id":1},"id":2}}`, true},
		{"W18_case", `{"id":1,"Result":1}`, false},
		{"W19_invalid_utf8", "{\"id\":1,\"result\":\"\xff\"}", false},
		{"W19_nul_escaped", `{"id":1,"result":"\u0000"}`, true},
		{"L7_deep", `{"id":1,"result":` + strings.Repeat("[", 2_000_000), false},
		{"L7_within", `{"id":1,"result":` + strings.Repeat("[", 500) + strings.Repeat("]", 500) + `}`, true},
		{"version_1", `{"jsonrpc":"1.0","id":1,"method":"x"}`, false},
		{"version_number", `{"jsonrpc":2.0,"id":1,"method":"x"}`, false},
		{"version_1_notice", `{"jsonrpc":"1.0","method":"x"}`, false},
		{"version_1_answer", `{"jsonrpc":"1.0","id":1,"result":1}`, true}, // the answer is of use anyway
		{"both", `{"id":1,"method":"x","result":1}`, false},
		{"neither", `{"id":1}`, false},
		{"tail", `{"id":1,"result":1}x`, false},
		{"control", "{\"id\":1,\"result\":\"a\nb\"}", false},
		{"leading_zero", `{"id":1,"result":01}`, false},
		{"comma", `{"id":1,"result":[1,]}`, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			var m Message
			if err := Parse([]byte(c.in), &m); (err == nil) != c.ok {
				t.Fatal(err)
			}
		})
	}
	t.Run("W17_many_keys", func(t *testing.T) {
		var b strings.Builder
		b.WriteString(`{"id":1,"result":{`)
		for i := range 1000 {
			b.WriteString(`"k` + strings.Repeat("x", i%7) + string(rune('0'+i%10)) + `_` +
				json.Number(strings.Repeat("1", 1+i/100)).String() + `":1,`)
		}
		b.WriteString(`"z":1}}`)
		var m Message
		if Parse([]byte(b.String()), &m) == nil {
			t.Fatal("duplicates among many keys were accepted")
		}
	})
	t.Run("W4_raw", func(t *testing.T) {
		const want = `{"id": 9007199254740993, "v": 1.0}`
		var m Message
		if err := Parse([]byte(`{"id":1,"result":`+want+`}`), &m); err != nil || string(m.Result) != want {
			t.Fatal(err, string(m.Result))
		}
	})
}

func TestScanID(t *testing.T) {
	for in, want := range map[string]int64{
		`{"jsonrpc":"2.0","id":7,"result":{"con`: 7,
		`{"id":"7","result":[[[`:                 7,
		`{"result":{"id":9},"id":3}`:             3,
		`{"id":7`:                                0,
		`{"id":7,"method":"x","params":{`:        0, // a request of the peer
		`{"method":"x","id":7}`:                  0,
		`{"id":-1,"result":1`:                    0,
		`hello`:                                  0,
	} {
		if got, ok := ScanID([]byte(in)); ok != (want != 0) || ok && got != want {
			t.Errorf("%s: %d, want %d", in, got, want)
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, s := range []string{`{"id":1,"result":{"a":"\u00e9\n","b":[1.5e3]}}`, `{"method":"x","params":[]}`,
		`{"a":{"b":1,"b":2}}`, `{"a":[1,[2],"]"],"b":[3]}`, `[`, `{"id":"\ud800","result":1}`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		ScanID(b) // must not panic
		if Valid(b) == nil && (!json.Valid(b) || !utf8.Valid(b)) {
			t.Fatalf("accepted %q, which encoding/json refuses", b)
		}
		var m Message
		if Parse(b, &m) == nil && Valid(b) != nil {
			t.Fatalf("Parse and Valid differ on %q", b)
		}
	})
}

// TestParseForOthers checks that a message that many SDKs cannot read is refused, or changed so that they can.
func TestParseForOthers(t *testing.T) {
	var m Message
	b := []byte(`{"jsonrpc":"2.0","id":1,"result":{"text":"cut \ud83d"}}`)
	if err := Parse(b, &m); err != nil || string(m.Result) != `{"text":"cut \ufffd"}` {
		t.Errorf("RP-18_surrogate: %s, %v", m.Result, err)
	}
	long := `{"jsonrpc":"2.0","id":1,"result":` + strings.Repeat("9", maxNumber)
	if err := Parse([]byte(long+"}"), &m); err != nil {
		t.Errorf("RP-18_number: %v", err)
	}
	if err := Parse([]byte(long+"9}"), &m); err == nil || !strings.Contains(err.Error(), "too long") {
		t.Errorf("RP-18_long_number: %v", err)
	}
}
