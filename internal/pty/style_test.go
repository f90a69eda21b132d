package pty

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestSpans(t *testing.T) {
	for name, c := range map[string]struct {
		output string
		want   []Span
	}{
		"plain":       {"one two", []Span{{0, 7, "one two", Style{}}}},
		"spaces":      {"  one  ", []Span{{2, 3, "one", Style{}}}},
		"two styles":  {"\x1b[1;32mok\x1b[m no", []Span{{0, 2, "ok", Style{Foreground: "2", Bold: true}}, {3, 2, "no", Style{}}}},
		"wide":        {"東x", []Span{{0, 3, "東x", Style{}}}},
		"background":  {"\x1b[44m a \x1b[49m", []Span{{0, 3, " a ", Style{Background: "4"}}}},
		"palette":     {"\x1b[38;5;208ma", []Span{{0, 1, "a", Style{Foreground: "208"}}}},
		"rgb":         {"\x1b[38:2:1:2:255ma", []Span{{0, 1, "a", Style{Foreground: "#0102ff"}}}},
		"bright":      {"\x1b[91;102ma", []Span{{0, 1, "a", Style{Foreground: "9", Background: "10"}}}},
		"ended":       {"\x1b[1;2;3;4;7;9;31m\x1b[22;23;24;27;29;39ma", []Span{{0, 1, "a", Style{}}}},
		"not a style": {"\x1b[38;5ma\x1b[38;2;9999;0;0mb\x1b[77mc", []Span{{0, 3, "abc", Style{}}}},
	} {
		t.Run(name, func(t *testing.T) {
			term := NewTerminal(9, 1)
			_, _ = term.Write([]byte(c.output))
			spans := term.Spans()[0]
			if d := cmp.Diff(c.want, spans); d != "" {
				t.Error(d)
			}
			again := NewTerminal(9, 1)
			for _, s := range spans {
				_, _ = again.Write([]byte("\x1b[1;" + string(rune('1'+s.Column)) + "H" + s.Style.SGR() + s.Text))
			}
			if d := cmp.Diff(spans, again.Spans()[0]); d != "" {
				t.Errorf("SGR: %s", d)
			}
		})
	}
}

// TestScreens checks that a program with the other screen gives the first one back.
func TestScreens(t *testing.T) {
	term := NewTerminal(5, 2)
	_, _ = term.Write([]byte("ab\x1b[?1049h\x1b[?25lxyz\x1b[2;5Hq"))
	if _, _, visible := term.Cursor(); visible {
		t.Error("the cursor is visible")
	}
	_, _ = term.Write([]byte("\x1b[?25h\x1b[?1049lc"))
	if d := cmp.Diff([]string{"abc", ""}, term.Lines()); d != "" {
		t.Error(d)
	}
	if row, column, visible := term.Cursor(); row != 0 || column != 3 || !visible {
		t.Errorf("the cursor is at %d, %d, visible %v", row, column, visible)
	}
}
