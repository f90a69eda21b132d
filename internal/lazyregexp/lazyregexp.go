// Package lazyregexp compiles regular expressions at their first use.
//
// A package that compiles its expressions in package variables makes every command of tenon pay for them, whether or
// not it uses them: together some milliseconds and a megabyte. Packages write
//
//	var runShape = lazyregexp.New(`^run_[0-9a-z]{20}$`)
//
// and use runShape().MatchString. An expression with an error panics only at its first use, so a test of this package
// compiles the expressions of all packages. It belongs to no part of the way from configuration to wire: every package
// may import it, and it imports none.
package lazyregexp

import (
	"regexp"
	"sync"
)

// New returns a function that returns the compiled expression. It panics like [regexp.MustCompile], but at its first
// call. It is safe for concurrent use.
func New(expr string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(expr) })
}
