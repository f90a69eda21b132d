package eval_test

import (
	"testing"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/eval"
)

// TestRepeatIsBounded checks that the number of attempts is checked before memory is allocated for them.
func TestRepeatIsBounded(t *testing.T) {
	many := make([]eval.Case, 1001)
	for name, c := range map[string]struct {
		suite eval.Suite
		o     eval.Options
		want  tenon.Code
	}{
		"negative":             {eval.Suite{Cases: many[:1]}, eval.Options{Repeat: -1}, tenon.CodeInvalid},
		"huge":                 {eval.Suite{Cases: many[:1]}, eval.Options{Repeat: 1 << 40}, tenon.CodeInvalid},
		"negative concurrency": {eval.Suite{Cases: many[:1]}, eval.Options{Concurrency: -1}, tenon.CodeInvalid},
		"many in all":          {eval.Suite{Cases: many}, eval.Options{Repeat: 1000}, tenon.CodeTooLarge},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := eval.Run(t.Context(), &c.suite, c.o); tenon.ErrorCode(err) != c.want {
				t.Errorf("%v", err)
			}
		})
	}
}
