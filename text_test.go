package tenon_test

import (
	"bytes"
	"cmp"
	"encoding/json"
	"reflect"
	"testing"

	"github.com/tenonhq/tenon"
)

func TestVisible(t *testing.T) {
	for _, tt := range []struct{ name, in, want string }{
		{"plain", "Grüße, 世界!\n\tok", "Grüße, 世界!\n\tok"},
		{"terminal sequences", "a\x1b[31mred\x1b[0m\x07", `a\u{1b}[31mred\u{1b}[0m\u{7}`},
		{"C1", "a\u009bb", `a\u{9b}b`},
		{"zero width", "a\u200bb\ufeffc", `a\u{200b}b\u{feff}c`},
		{"direction", "a\u202eb\u2066c", `a\u{202e}b\u{2066}c`},
		{"tags", "hi\U000e0041\U000e007f", `hi\u{e0041}\u{e007f}`},
		{"variation selectors", "x\ufe01\U000e0101", `x\u{fe01}\u{e0101}`},
		{"emoji stay", "👩\u200d💻 ❤\ufe0f", "👩\u200d💻 ❤\ufe0f"},
		{"line separators", "a\u2028b", `a\u{2028}b`},
		{"NUL", "a\x00b", `a\u{0}b`},
		{"soft hyphen", "a\u00adb", `a\u{ad}b`},
		{"Windows line break", "a\r\nb\rc", "a\r\nb\\u{d}c"},
		{"not UTF-8", "a\xffb", `a\xffb`},
		{"Mongolian selectors", "a\u180bb\u180e", `a\u{180b}b\u{180e}`},
		{"Khmer vowels", "a\u17b4", `a\u{17b4}`},
		{"noncharacters", "a\ufdd0\U0001fffe", `a\u{fdd0}\u{1fffe}`},
		{"unassigned tags", "a\U000e0002", `a\u{e0002}`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := tenon.Visible(tt.in); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

func TestVisibleJSON(t *testing.T) {
	for _, tt := range []struct{ name, in, want string }{
		{"nothing hidden", `{"a": "x\ty\u00e4 \"q\" \\", "n": 9007199254740993}`, ""},
		{"an escape sequence", `{"a":"\u001b[31mred"}`, `{"a":"\\u{1b}[31mred"}`},
		{"a raw tag character", "[\"a\U000e0041b\"]", `["a\\u{e0041}b"]`},
		{"escaped as two surrogates", `["a\udb40\udc41b", 1.50]`, `["a\\u{e0041}b", 1.50]`},
		{"the name of a member", `{"a\u200b":{"b\u202e":[1,"\b"]}, "c":  true}`,
			`{"a\\u{200b}":{"b\\u{202e}":[1,"\\u{8}"]}, "c":  true}`},
		{"emoji and joiners stay", `["👩\u200d👧 \u2764\ufe0f"]`, ""},
		{"base64 and markup stay", `{"data":"AAEC/+==","text":"<b>&amp;"}`, ""},
		{"beside markup", `["<b>\u0007"]`, `["<b>\\u{7}"]`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			want := cmp.Or(tt.want, tt.in)
			if got := string(tenon.VisibleJSON([]byte(tt.in))); got != want {
				t.Errorf("%s\nwant %s", got, want)
			}
		})
	}
}

func TestEscapeJSON(t *testing.T) {
	for _, tt := range []struct{ name, in, want string }{
		{"nothing hidden", `{"a": "x\ty\u00e4 \"q\" \\", "n": 9007199254740993}`, ""},
		{"white space stays", "{\n\t\"a\" : 1 }", ""},
		{"direction", "{\"a\u202e\":\"\u2066b\"}", `{"a\u202e":"\u2066b"}`},
		{"zero width", "[\"\u200b\u200d\"]", `["\u200b\u200d"]`},
		{"tag", "\"a\U000e0041\"", `"a\udb40\udc41"`},
		{"C1 and DEL", "\"\u009b\x7f\"", `"\u009b\u007f"`},
		{"behind a backslash", "\"\\\\\u202e\"", `"\\\u202e"`},
		{"escapes stay", `"\u202e\u001b"`, ""},
		{"not UTF-8", "\"a\x9bb\"", `"a\ufffdb"`},
		{"a replacement stays", "\"\ufffd\"", ""},
		{"a carriage return between values", "{\r\"a\":1}", "{ \"a\":1}"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			want := cmp.Or(tt.want, tt.in)
			if got := string(tenon.EscapeJSON([]byte(tt.in))); got != want {
				t.Errorf("%s\nwant %s", got, want)
			}
		})
	}
}

// FuzzEscapeJSON checks that EscapeJSON does not change the value of a text, and that its output has no invisible
// characters.
func FuzzEscapeJSON(f *testing.F) {
	for _, s := range []string{"{\"a\u202e\":[1,\"\\\\\u200b\"]}", "\"\U000e0041\"", `"\ud800"`, "\"\x9b\"", "[\r]", `"\`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		shown := tenon.EscapeJSON(raw)
		if !json.Valid(raw) {
			return
		}
		var before, after any
		if err := json.Unmarshal(raw, &before); err != nil {
			return // too large a number
		}
		if err := json.Unmarshal(shown, &after); err != nil {
			t.Fatalf("%q became %q: %v", raw, shown, err)
		}
		if !reflect.DeepEqual(before, after) {
			t.Errorf("%q became %q", raw, shown)
		}
		if i := bytes.IndexFunc(shown, func(r rune) bool { return tenon.IsHidden(r) && r != '\n' && r != '\t' }); i >= 0 {
			t.Errorf("%q hides something at %d", shown, i)
		}
	})
}

func FuzzVisibleJSON(f *testing.F) {
	for _, s := range []string{`{"a":"\u001b[0m","b":[1,"\\"]}`, "\"\U000e0041\"", `"\ud800"`, `{"\u200b":1}`,
		`"a`, `"\`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		clean := tenon.VisibleJSON(raw)
		if !json.Valid(raw) {
			return
		}
		if !json.Valid(clean) {
			t.Fatalf("%q became %q", raw, clean)
		}
		if again := tenon.VisibleJSON(clean); !bytes.Equal(again, clean) {
			t.Errorf("%q: %q, then %q", raw, clean, again)
		}
		var text string
		if json.Unmarshal(clean, &text) == nil && tenon.Visible(text) != text {
			t.Errorf("%q still has hidden characters", clean)
		}
	})
}
