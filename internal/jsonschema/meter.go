package jsonschema

import (
	"fmt"
	"time"
)

// The limit of the work of one check, in steps of about a microsecond: freeSteps, and stepsPerValue for each value. A
// step may keep an error until the end of the check. Such an error is larger for a deep value, so steps in deep values
// cost more.
const (
	freeSteps     = 1 << 16
	stepsPerValue = 6
	stepDepth     = 16
)

// maxBacktracking bounds the time of all patterns on the backtracking engine in one check.
const maxBacktracking = 100 * time.Millisecond

// limitReached is the value of the panic that ends a check, because the library has no way to cancel one.
type limitReached struct{ reason string }

// meter counts the work of one check.
type meter struct {
	left   int
	factor int
	slow   time.Duration
}

func (m *meter) reset(e extent) {
	m.left, m.factor, m.slow = freeSteps+stepsPerValue*e.values, 1+e.depth/stepDepth, 0
}

// charge counts steps. It ends the check if they exceed the limit.
func (m *meter) charge(steps int) {
	if m.left -= steps * m.factor; m.left < 0 {
		panic(limitReached{"the schema applies too many times to it"})
	}
}

// backtracked counts the time of a match on the backtracking engine.
func (m *meter) backtracked(p *pattern, d time.Duration) {
	if m.slow += d; m.slow > maxBacktracking {
		panic(limitReached{fmt.Sprintf("the pattern %.100q takes too long", p.source)})
	}
}
