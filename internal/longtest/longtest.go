// Package longtest skips long tests, so that go test ./... takes some minutes on two processors. Long tests run
// only with TENON_LONG=1, which make check and .ci/run set:
//
//	func TestMigrationKilled(t *testing.T) {
//		longtest.Skip(t)
//		…
//	}
//
// A test whose cases are generated runs a part of them otherwise:
//
//	for seed := range longtest.Times(70, 700) {
//
// A script of internal/cli begins with
//
//	[!long] skip 'TENON_LONG=1 runs it'
//
// The race detector (make race) runs without the long tests, because their cases pass through code that the others
// run, too. Campaigns of hours have more variables, which make soak sets.
package longtest

import (
	"os"
	"testing"
)

// On reports whether long tests run.
func On() bool {
	return os.Getenv("TENON_LONG") == "1"
}

// Skip skips t, unless long tests run.
func Skip(t testing.TB) {
	t.Helper()
	if !On() {
		t.Skip("a long test: TENON_LONG=1 runs it, as make check does")
	}
}

// Times returns many if long tests run, otherwise few.
func Times(few, many int) int {
	if On() {
		return many
	}
	return few
}
