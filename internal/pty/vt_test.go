package pty

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestTerminal(t *testing.T) {
	for name, c := range map[string]struct{ output, want string }{
		"addresses":          {"\x1b[2;3Hb\x1b[1;1Ha", "a\n  b\n"},
		"wraps":              {"123456", "12345\n6\n"},
		"a wide character":   {"1234東", "1234\n東\n"},
		"combining":          {"e\u0301x", "e\u0301x\n\n"},
		"scrolls":            {"a\r\nb\r\nc\r\nd", "b\nc\nd"},
		"a region":           {"a\r\nb\r\nc\x1b[2;3r\x1b[3;1H\nd", "a\nc\nd"},
		"erases the line":    {"abc\x1b[1;2H\x1b[K", "a\n\n"},
		"erases below":       {"a\r\nb\r\nc\x1b[2;1H\x1b[J", "a\n\n"},
		"erases characters":  {"abcde\x1b[1;2H\x1b[2X", "a  de\n\n"},
		"deletes characters": {"abcde\x1b[1;2H\x1b[2P", "ade\n\n"},
		"inserts characters": {"abc\x1b[1;2H\x1b[1@", "a bc\n\n"},
		"inserts a line":     {"a\r\nb\x1b[1;1H\x1b[L", "\na\nb"},
		"deletes a line":     {"a\r\nb\x1b[1;1H\x1b[M", "b\n\n"},
		"repeats":            {"-\x1b[3b", "----\n\n"},
		"titles and styles":  {"\x1b]0;title\a\x1b[1;31ma\x1b[0m\x1b[?25h", "a\n\n"},
		"up at the top":      {"a\x1b[1;1H\x1bM", "\na\n"},
	} {
		t.Run(name, func(t *testing.T) {
			whole, parts := NewTerminal(5, 3), NewTerminal(5, 3)
			_, _ = whole.Write([]byte(c.output))
			for i := range len(c.output) {
				_, _ = parts.Write([]byte(c.output[i : i+1]))
			}
			if d := cmp.Diff(c.want, strings.Join(whole.Lines(), "\n")); d != "" {
				t.Error(d)
			}
			if d := cmp.Diff(whole.Lines(), parts.Lines()); d != "" {
				t.Errorf("byte by byte: %s", d)
			}
		})
	}
}

func FuzzTerminal(f *testing.F) {
	f.Add("\x1b[2;3Hb\x1b[1;1Ha\x1b[L\x1b[99M\x1b[r\x1b[3;2r\x1b[S\x1b[5b東")
	f.Fuzz(func(t *testing.T, s string) {
		term := NewTerminal(7, 4)
		_, _ = term.Write([]byte(s))
		if n := len(term.Lines()); n != 4 {
			t.Errorf("%d lines", n)
		}
	})
}
