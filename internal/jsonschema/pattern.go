package jsonschema

import (
	"errors"
	"fmt"
	"regexp"
	"sync"
	"time"

	"github.com/dlclark/regexp2/v2"
	validator "github.com/santhosh-tekuri/jsonschema/v6"
)

// maxPattern bounds the bytes of a pattern.
const maxPattern = 10_000

// matchTimeout bounds one match on the backtracking engine. clockTick is the resolution of the engine's clock.
const (
	matchTimeout = 10 * time.Millisecond
	clockTick    = 2 * time.Millisecond
)

// startClock sets the resolution before the first use of the engine's clock, which all patterns share.
var startClock = sync.OnceFunc(func() { regexp2.SetTimeoutCheckPeriod(clockTick) })

// pattern is a regular expression of ECMA-262. At most one of the engines is set; none is if the pattern is bad.
type pattern struct {
	source string
	linear *regexp.Regexp
	back   *regexp2.Regexp
	bad    error
	work   *meter
}

// pattern implements [validator.RegexpEngine]. It never fails: a bad pattern is reported, and the rest of the schema
// is still checked.
func (m *meter) pattern(source string) (validator.Regexp, error) { return newPattern(source, m), nil }

func newPattern(source string, m *meter) *pattern {
	p := &pattern{source: source, work: m}
	if len(source) > maxPattern {
		p.bad = fmt.Errorf("it has more than %d bytes", maxPattern)
		return p
	}
	if translated, ok := translate(source); ok {
		var err error
		if p.linear, err = regexp.Compile(translated); err == nil {
			return p
		}
		p.linear = nil
	}
	startClock()
	var first error
	for _, options := range []regexp2.RegexOptions{regexp2.ECMAScript | regexp2.Unicode, regexp2.ECMAScript,
		regexp2.None} { // regexp2.None accepts patterns of other languages, such as (?P<name>…) and \Z
		back, err := regexp2.Compile(source, options)
		if err == nil {
			back.MatchTimeout = matchTimeout
			p.back = back
			return p
		}
		first = errors.Join(first, err)
	}
	p.bad = fmt.Errorf("%s", oneLine(first.(interface{ Unwrap() []error }).Unwrap()[0]))
	return p
}

// String returns the pattern as it was written.
func (p *pattern) String() string { return p.source }

// MatchString implements [validator.Regexp]. A pattern that takes too long ends the check.
func (p *pattern) MatchString(s string) bool {
	switch {
	case p.linear != nil:
		p.work.charge(1 + len(s)/64)
		return p.linear.MatchString(s)
	case p.back == nil:
		return true // a bad pattern has no effect; see hardener.patterns
	}
	p.work.charge(10 + len(s)/16)
	begun := time.Now()
	ok, err := p.back.MatchString(s)
	if err != nil {
		panic(limitReached{fmt.Sprintf("the pattern %.100q takes too long", p.source)})
	}
	p.work.backtracked(p, time.Since(begun))
	return ok
}
