package cli

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestUX9_AtWords checks that lines are broken at words, and that words which do not fit stay whole.
func TestUX9_AtWords(t *testing.T) {
	for name, tt := range map[string]struct {
		line string
		want []string
	}{
		"short":       {"one two", []string{"one two"}},
		"exact":       {"one two three four x", []string{"one two three four x"}},
		"long":        {"one two three four five six", []string{"one two three four", "five six"}},
		"at the end":  {"one two three four xy", []string{"one two three four", "xy"}},
		"indented":    {"  one two three four five", []string{"  one two three four", "  five"}},
		"a long word": {"see https://example.org/a/b/c now", []string{"see", "https://example.org/a/b/c", "now"}},
		"only one":    {"https://example.org/a/b/c", []string{"https://example.org/a/b/c"}},
		"columns":     {"name    what it is, in full", []string{"name    what it is,", "in full"}},
		"wide":        {"東京 大阪 京都 名古屋 札幌", []string{"東京 大阪 京都", "名古屋 札幌"}},
		"blanks":      {"one two three four          ", []string{"one two three four"}},
		"empty":       {"", []string{""}},
	} {
		t.Run(name, func(t *testing.T) {
			if d := cmp.Diff(tt.want, brokenAtWords(tt.line, 20)); d != "" {
				t.Error(d)
			}
		})
	}
}
