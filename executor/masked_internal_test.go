package executor

import (
	"strings"
	"testing"

	"github.com/tenonhq/tenon"
)

// TestMaskedDeltas checks that a secret in pieces of an answer is masked wherever the pieces end, and that everything
// else arrives.
func TestMaskedDeltas(t *testing.T) {
	r := new(tenon.Redactor)
	r.Add(tenon.NewSecret("TOP-secret-123"))
	for name, tt := range map[string]struct {
		pieces []string // with ~ at the beginning: reasoning
		want   string
	}{
		"whole":            {[]string{"a TOP-secret-123 b"}, "a *** b"},
		"divided":          {[]string{"a TO", "P-secret-12", "3 b"}, "a *** b"},
		"letter by letter": {strings.Split("a TOP-secret-123 b", ""), "a *** b"},
		"only begun":       {[]string{"a TOP-sec", "ond"}, "a TOP-second"},
		"begun at the end": {[]string{"a TOP-sec"}, "a TOP-sec"},
		"another kind":     {[]string{"a TOP-", "~TOP-secret-123", "secret-123"}, "a TOP-~***secret-123"},
		"twice":            {[]string{"TOP-secret-123TOP-sec", "ret-123"}, "******"},
	} {
		t.Run("SEC-G10_"+name, func(t *testing.T) {
			var got strings.Builder
			m := &maskedDeltas{redactor: r, pass: func(d tenon.Delta) {
				if d.Kind == tenon.DeltaThinking {
					got.WriteByte('~')
				}
				got.WriteString(d.Text)
			}}
			for _, p := range tt.pieces {
				d := tenon.Delta{Kind: tenon.DeltaText, Text: p}
				if text, ok := strings.CutPrefix(p, "~"); ok {
					d = tenon.Delta{Kind: tenon.DeltaThinking, Text: text}
				}
				m.add(d)
			}
			m.end()
			if got.String() != tt.want {
				t.Errorf("%q, want %q", got.String(), tt.want)
			}
		})
	}
}
