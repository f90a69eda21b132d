// Package spread works on long lists on all cores.
//
// A server may have ten thousand tools. Reading a definition, shaping it and encoding it for pinning are pure
// functions of that one tool. Code that does this for a whole list uses [Map]. Most lists are short; Map
// handles them in the calling goroutine.
//
// The package imports nothing of the module. Package mcp reads the definitions of a server with it, catalog
// shapes the tools, and host encodes them for pinning.
//
// All goroutines have ended when Map returns. Their number is less than GOMAXPROCS.
package spread

import (
	"runtime"
	"sync"
)

// Map splits a list into one part for each core, calls do for all parts concurrently, and returns the results in the
// order of the parts. Each part has at least least elements, unless the list is shorter. from is the index of the first
// element of a part. An empty list has no parts.
func Map[T, R any](list []T, least int, do func(from int, part []T) R) []R {
	n := len(list)
	parts := min(max(n/max(least, 1), 1), runtime.GOMAXPROCS(0), n)
	out := make([]R, parts)
	work := func(i int) {
		from, to := i*n/parts, (i+1)*n/parts
		out[i] = do(from, list[from:to])
	}
	var wg sync.WaitGroup
	for i := 1; i < parts; i++ {
		wg.Go(func() { work(i) })
	}
	if parts > 0 {
		work(0)
	}
	wg.Wait()
	return out
}
