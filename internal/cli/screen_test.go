package cli

import (
	"bytes"
	"errors"
	"io"
	"log/slog"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/tenonhq/tenon"
)

func TestScreen(t *testing.T) {
	style := paint(true, red, "no")
	for _, tt := range []struct {
		name  string
		parts []string
		want  string
	}{
		{"plain", []string{"Grüße, 世界\n"}, "Grüße, 世界\n"},
		{"a style of ours", []string{style + " ok"}, "\x1b[31mno\x1b[0m ok"},
		{"SEC-F15_a style of a server", []string{"\x1b[31mno\x1b[0m"}, `\u{1b}[31mno\u{1b}[0m`},
		{"SEC-F15_direction", []string{"a\u202eb"}, `a\u{202e}b`},
		{"SEC-F15_a character in two parts", []string{"a\xe2\x80", "\xaeb"}, `a\u{202e}b`},
		{"SEC-F15_a character in four parts", []string{"\xf3", "\xa0", "\x81", "\x81x"}, `\u{e0041}x`},
		{"a harmless character in two parts", []string{"a\xc3", "\xa4b"}, "aäb"},
		{"half a character at the end", []string{"a\xe2\x80"}, `a\xe2\x80`},
		{"SEC-F15_C1 as a byte", []string{"a\x9b35mb"}, `a\x9b35mb`},
		{"a line break of other systems", []string{"a\r", "\nb"}, "a\nb"},
		{"SEC-F15_return over", []string{"safe\r", "rm"}, `safe\rrm`},
		{"return at the end", []string{"a\r"}, `a\r`},
		{"SEC-F15_another noncharacter", []string{"a\ufdefb"}, `a\u{fdef}b`},
		{"emoji", []string{"👨\u200d👩 ❤\ufe0f"}, "👨\u200d👩 ❤\ufe0f"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var b bytes.Buffer
			s := newScreen(&b)
			for _, p := range tt.parts {
				if n, err := s.Write([]byte(p)); n != len(p) || err != nil {
					t.Errorf("%d, %v", n, err)
				}
			}
			s.flush()
			if b.String() != tt.want {
				t.Errorf("%q, want %q", b.String(), tt.want)
			}
		})
	}
	closed, w := io.Pipe()
	_ = closed.Close()
	if _, err := newScreen(w).Write([]byte("a")); !errors.Is(err, io.ErrClosedPipe) {
		t.Errorf("error %v", err)
	}
	if s := newScreen(w); newScreen(s) != s {
		t.Error("a screen is on a screen")
	}
}

// FuzzScreen writes a text whole and in two parts. The output must be the same, and must not contain hidden characters.
func FuzzScreen(f *testing.F) {
	f.Add("a\u202e\U000e0041\r\n\x9b\xff", 3)
	f.Fuzz(func(t *testing.T, text string, at int) {
		at = min(max(at, 0), len(text))
		var one, two bytes.Buffer
		s := newScreen(&one)
		_, _ = s.Write([]byte(text))
		s.flush()
		s = newScreen(&two)
		_, _ = s.Write([]byte(text[:at]))
		_, _ = s.Write([]byte(text[at:]))
		s.flush()
		if one.String() != two.String() {
			t.Fatalf("%q: %q, and in two parts %q", text, one.String(), two.String())
		}
		shown := one.String()
		for _, style := range styles {
			shown = strings.ReplaceAll(shown, "\x1b["+style+"m", "")
		}
		if !utf8.ValidString(shown) || strings.ContainsFunc(shown, func(r rune) bool { return !isSafe(r) }) {
			t.Fatalf("%q became %q", text, shown)
		}
	})
}

// TestJSONLogIsVisible checks that JSON logs contain no hidden characters. They are not written through the screen,
// because JSON has its own escapes.
func TestJSONLogIsVisible(t *testing.T) {
	var b bytes.Buffer
	slog.New(slog.NewJSONHandler(jsonLines{&b}, nil)).Error("x\u202ey\u200b", "a\u2066", "z\U000e0041\u009b")
	if i := bytes.IndexFunc(b.Bytes(), func(r rune) bool { return tenon.IsHidden(r) && r != '\n' }); i >= 0 || !strings.Contains(b.String(), `x\u202ey\u200b`) || !strings.Contains(b.String(), `z\udb40\udc41`) {
		t.Errorf("SEC-F15: %q", b.String())
	}
}
