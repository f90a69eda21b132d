package jsonschema

import (
	"fmt"
	"time"
)

// The work that one check may do, in steps of about a microsecond: a part for the schema, and a part for each value.
// A step can keep an error until the end, which is larger in deep values; so their steps count more.
const (
	freeSteps     = 1 << 16
	stepsPerValue = 6
	stepDepth     = 16
)

// maxBacktracking bounds the time of all patterns on the backtracking engine in one check.
const maxBacktracking = 100 * time.Millisecond

// limitReached is the panic that ends a check. The library cannot be cancelled.
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

// charge ends the check if it takes too many steps.
func (m *meter) charge(steps int) {
	if m.left -= steps * m.factor; m.left < 0 {
		panic(limitReached{"the schema applies too many times to it"})
	}
}

// backtracked adds the time of a pattern.
func (m *meter) backtracked(p *pattern, d time.Duration) {
	if m.slow += d; m.slow > maxBacktracking {
		panic(limitReached{fmt.Sprintf("the pattern %.100q takes too long", p.source)})
	}
}
