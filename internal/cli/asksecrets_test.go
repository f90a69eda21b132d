package cli

import (
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/internal/tui"
)

// TestUX10_HiddenLine checks the keys of a hidden question in plain lines: Esc cancels it, and a key such as an arrow
// is no part of the text.
func TestUX10_HiddenLine(t *testing.T) {
	for name, tt := range map[string]struct{ typed, want, rest string }{
		"a line":      {"sk-1\r", "sk-1", ""},
		"two lines":   {"sk-1\nmore\n", "sk-1", "more\n"},
		"corrected":   {"sk-x\x7f1é\x08\r", "sk-1", ""},
		"cleared":     {"wrong\x15sk-1\r", "sk-1", ""},
		"too much":    {"\x7f\x7fsk-1\r", "sk-1", ""},
		"an arrow":    {"\x1b[A", "", ""},
		"Esc":         {"sk-1\x1b", "Esc", ""},
		"Ctrl-C":      {"sk-1\x03", "Ctrl-C", ""},
		"Ctrl-D":      {"\x04", "", ""},
		"without end": {"sk-1", "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLineReader(strings.NewReader(tt.typed))
			got, err := l.hidden(t.Context())
			switch {
			case errors.Is(err, tui.ErrNoSecret):
				got = "Esc"
			case tenon.ErrorCode(err) == tenon.CodeCancelled:
				got = "Ctrl-C"
			case err != nil && !errors.Is(err, io.EOF):
				t.Fatal(err)
			}
			if got != tt.want || string(l.buf) != tt.rest {
				t.Errorf("%q, then %q; want %q, then %q", got, l.buf, tt.want, tt.rest)
			}
		})
	}
}
