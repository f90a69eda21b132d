// Package garbage puts off the first collection of garbage of a program that ends soon.
//
// A verb of the command line lives for a moment. Go collects first when the heap has four
// megabytes, then at eight, sixteen and so on, which is right for a program that goes on for
// hours; a verb that lists ten thousand tools spends a fifth of its time on garbage that
// would die with it. [Late] lets the heap grow to [FirstHeap] before anything is
// collected. What a verb keeps after that, and how often it collects, is Go's own rule
// again, so that a verb over a table of millions of rows stays as small as it would be.
//
// It stands below everything and imports nothing. main calls it, once, before anything
// else; the figure of a verb's time calls it for the verb that it plays. What serves for
// long does not.
package garbage

import (
	"runtime"
	"runtime/debug"
)

// FirstHeap is the size of the heap, in bytes, at which garbage is collected first.
const FirstHeap = 32 << 20

// usual is what Go begins with: a collection when the heap has doubled, and has four
// megabytes.
const (
	usual     = 100
	usualHeap = 4 << 20
)

// first is an object that nobody holds: the first collection finds it. It has a pointer, so
// that it does not share its memory with others.
type first struct{ _ *first }

// Late puts the first collection off, unless the environment sets GOGC: then somebody has
// decided. GOMEMLIMIT holds in any case. Usually ends it before its time; a program that
// ends anyway need not call it.
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
