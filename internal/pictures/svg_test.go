package main

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tenonhq/tenon/internal/pty"
)

func TestSpans(t *testing.T) {
	for name, c := range map[string]struct {
		output string
		want   []span
	}{
		"plain":         {"one two", []span{{0, "one two", ""}}},
		"spaces around": {"  one  ", []span{{2, "one", ""}}},
		"two styles":    {"\x1b[32mok\x1b[0m done", []span{{0, "ok", "32"}, {3, "done", ""}}},
		"only spaces":   {"\x1b[32m   \x1b[0m", nil},
	} {
		t.Run(name, func(t *testing.T) {
			if d := cmp.Diff(c.want, spans(pty.Screen(c.output)[0]), cmp.AllowUnexported(span{})); d != "" {
				t.Error(d)
			}
		})
	}
}

func TestSVG(t *testing.T) {
	got := string(svg(pty.Screen("a < b & c\r\n\x1b[1;31mred\x1b[0m\r\n")))
	for _, want := range []string{"a &lt; b &amp; c</text>", `fill="#ff7b72"`, `font-weight="bold"`, "</svg>\n"} {
		if !strings.Contains(got, want) {
			t.Errorf("the picture has no %s:\n%s", want, got)
		}
	}
}
