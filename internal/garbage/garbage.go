// Package garbage sets how often a program collects garbage.
//
// A command of the command line runs briefly. By default, Go collects when the heap reaches four megabytes, then
// eight, sixteen and so on. That suits a program that runs for hours. A command that lists ten thousand tools,
// however, would collect garbage that is freed at its exit anyway. Figure T1 needs the delay: without it, T1 was 2.04
// instead of 1.74 (goal: at most 2.0), and its CPU time 1.71 instead of 1.29 (medians of 21 and 9 interleaved
// rounds). [Late] lets the heap grow to [FirstHeap] before the first collection. Later collections follow Go's
// default again, so that a command over a table of millions of rows needs no more memory than otherwise.
//
// A program that runs for hours collects less often than by default, see [Seldom].
//
// The package imports nothing of the module. Package quick calls it once, before function main. The performance figure
// of a command calls it too.
package garbage

import (
	"runtime"
	"runtime/debug"
)

// FirstHeap is the heap size of the first garbage collection, in bytes.
const FirstHeap = 32 << 20

// Go's defaults: GOGC of 100, and a first collection at a heap of four megabytes.
const (
	usual     = 100
	usualHeap = 4 << 20
)

// seldom is the GOGC of [Seldom].
const seldom = 150

// Seldom lets the heap of a server grow by one and a half times the live objects between two collections, where Go's
// default is once, unless the environment sets GOGC. A tenon serve with a thousand runs needed 7 % less CPU time for
// each (figure P6.run: 900 and 878 µs in place of 964, medians of five rounds). Its heap is a quarter larger at most.
func Seldom(lookupEnv func(string) (string, bool)) {
	if v, _ := lookupEnv("GOGC"); v == "" {
		debug.SetGCPercent(seldom)
	}
}

// first is an unreferenced object. Its cleanup runs at the first collection. It contains a pointer, so that
// it is not allocated together with others.
type first struct{ _ *first }

// Late delays the first collection, unless the environment sets GOGC. GOMEMLIMIT remains effective. Usually
// restores the default before the first collection; a program that is about to exit need not call it.
func Late(lookupEnv func(string) (string, bool)) (usually func()) {
	if v, _ := lookupEnv("GOGC"); v != "" {
		return func() {}
	}
	debug.SetGCPercent(usual * (FirstHeap / usualHeap))
	once := runtime.AddCleanup(&first{}, func(percent int) { debug.SetGCPercent(percent) }, usual)
	return func() {
		once.Stop()
		debug.SetGCPercent(usual)
	}
}
