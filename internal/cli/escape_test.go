package cli

import (
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

func TestSafeText(t *testing.T) {
	tests := map[string]struct{ in, text, line string }{
		"plain":             {"Grüße, 世界 👍", "Grüße, 世界 👍", "Grüße, 世界 👍"},
		"lines":             {"a\n\tb\r\nc", "a\n\tb\nc", `a\n\tb\r\nc`},
		"return over":       {"safe\rrm -rf", `safe\rrm -rf`, `safe\rrm -rf`},
		"colour":            {"\x1b[31mred", `\u{1b}[31mred`, `\u{1b}[31mred`},
		"title":             {"\x1b]0;x\a", `\u{1b}]0;x\u{7}`, `\u{1b}]0;x\u{7}`},
		"one byte CSI":      {"\u009b31m", `\u{9b}31m`, `\u{9b}31m`},
		"direction":         {"a\u202eb\u2066c", `a\u{202e}b\u{2066}c`, `a\u{202e}b\u{2066}c`},
		"zero width":        {"a\u200bb", `a\u{200b}b`, `a\u{200b}b`},
		"tag characters":    {"a\U000e0041", `a\u{e0041}`, `a\u{e0041}`},
		"emoji family":      {"👨‍👩", "👨‍👩", "👨‍👩"},
		"RP-28_profession":  {"👩🏽‍🔬❤️‍🔥", "👩🏽‍🔬❤️‍🔥", "👩🏽‍🔬❤️‍🔥"},
		"RP-28_joiner":      {"pass\u200dword 👨\u200d", "pass\u200dword 👨\u200d", `pass\u{200d}word 👨\u{200d}`},
		"RP-28_joiner_only": {"\u200d👨", "\u200d👨", `\u{200d}👨`},
		"invalid":           {"a\xffb", `a\xffb`, `a\xffb`},
		"replacement":       {"a\ufffdb", "a\ufffdb", "a\ufffdb"},
		"no-break space":    {"a\u00a0b", "a\u00a0b", `a\u{a0}b`},
		"line separator":    {"a\u2028b", `a\u{2028}b`, `a\u{2028}b`},
		"delete":            {"a\x7f", `a\u{7f}`, `a\u{7f}`},
		"backspace":         {"ab\b", `ab\u{8}`, `ab\u{8}`},
		"hangul filler":     {"a\u3164", `a\u{3164}`, `a\u{3164}`},
		"nothing":           {"", "", ""},
		"a long plain text": {strings.Repeat("x", 1000), strings.Repeat("x", 1000), strings.Repeat("x", 1000)},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if got := safeText(tt.in); got != tt.text {
				t.Errorf("safeText = %q, want %q", got, tt.text)
			}
			if got := safeLine(tt.in); got != tt.line {
				t.Errorf("safeLine = %q, want %q", got, tt.line)
			}
		})
	}
}

func FuzzSafeText(f *testing.F) {
	f.Add("a\x1b[2J\u202e\xff\r\n")
	f.Fuzz(func(t *testing.T, s string) {
		for _, r := range safeLine(s) {
			if unicode.IsControl(r) {
				t.Fatalf("%q is in %q", r, safeLine(s))
			}
		}
		text := safeText(s)
		if !utf8.ValidString(text) {
			t.Fatalf("%q is not UTF-8", text)
		}
		if strings.ContainsFunc(text, func(r rune) bool { return unicode.IsControl(r) && r != '\n' && r != '\t' }) {
			t.Fatalf("a control character is in %q", text)
		}
	})
}

func TestShorten(t *testing.T) {
	for in, want := range map[string]string{"abc": "abc", "abcd": "abcd", "abcde": "abc…", "日本語日本語": "日…", "日本": "日本"} {
		if got := shorten(in, 4); got != want {
			t.Errorf("shorten(%q) = %q, want %q", in, got, want)
		}
	}
}
