// Package spread works on long lists on all cores.
//
// A server may have ten thousand tools. Reading a definition, shaping it and making the
// form in which it is pinned are pure and know nothing of the other tools, so what
// does them for a whole list hands the list to [Map]. Nearly all lists are short; those
// are worked off where they are, without a goroutine.
//
// It stands below all other packages, and imports none: mcp reads definitions with it as
// they come from a server, catalog then shapes the tools, and host makes what is pinned
// of them. Whatever it runs has ended when it returns.
package spread

import (
	"runtime"
	"sync"
)

// Map cuts a list into one part for each core, none of fewer than least elements where the
// list has as many, calls do for all parts at a time and returns what it gave, in the
// order of the parts. From is the index of a part's first element. It returns when all
// are done. The empty list has no parts.
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
