package tenon_test

import (
	"bytes"
	"encoding/json"
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
		{"the name of a member", `{"a\u200b":{"b\u202e":[1,"\b"]}, "c":  true}`, `{"a\\u{200b}":{"b\\u{202e}":[1,"\\u{8}"]}, "c":  true}`},
		{"emoji and joiners stay", `["👩\u200d👧 \u2764\ufe0f"]`, ""},
		{"base64 and markup stay", `{"data":"AAEC/+==","text":"<b>&amp;"}`, ""},
		{"beside markup", `["<b>\u0007"]`, `["<b>\\u{7}"]`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			want := tt.want
			if want == "" {
				want = tt.in
			}
			if got := string(tenon.VisibleJSON([]byte(tt.in))); got != want {
				t.Errorf("%s\nwant %s", got, want)
			}
		})
	}
}

func FuzzVisibleJSON(f *testing.F) {
	for _, s := range []string{`{"a":"\u001b[0m","b":[1,"\\"]}`, "\"\U000e0041\"", `"\ud800"`, `{"\u200b":1}`, `"a`, `"\`} {
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
			t.Errorf("%q still hides something", clean)
		}
	})
}
