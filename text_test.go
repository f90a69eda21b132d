package tenon_test

import (
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
