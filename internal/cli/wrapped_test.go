package cli

import (
	"bytes"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestWrapped checks that the important column is never cut: it is wrapped next to the other columns, or below them.
func TestWrapped(t *testing.T) {
	what := "has parameters without a description, " + strings.Repeat("word ", 12) + "end"
	for name, tt := range map[string]struct{ tool, want string }{
		"beside": {"add", "TOOL  WHAT\nadd   has parameters without a description, word word word word word word word word word word word\n" +
			"      word end\nx\n"},
		"below": {strings.Repeat("n", 60), "TOOL\n    WHAT\n" + strings.Repeat("n", 60) +
			"\n    has parameters without a description, word word word word word word word word word word word\n    word end\nx\n"},
	} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			a := newApp(stdio{in: strings.NewReader(""), out: &out, err: io.Discard})
			a.outTTY = true // a terminal without a known size has 100 columns
			if err := a.wrapped([]string{"tool", "what"}, [][]string{{tt.tool, what}, {"x", ""}}); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, out.String()); diff != "" {
				t.Error(diff)
			}
		})
	}
}
