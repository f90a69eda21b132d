// Package first does the part of package quick that cannot wait for package os: it imports only package runtime, so
// that Go initializes it before nearly all others.
//
// It gives the goroutine of function main room on its stack, and lets the process begin with one processor. Packages
// are initialized one after the other, so a second processor would only wake up to find no work. It would also get
// memory for each size of object, and giving it up later costs half a megabyte.
//
// The command line uses all processors again, unless the command is tenon run, which uses them if it has several
// servers (internal/cli). With package quick, the peak of tenon run fell from 39.8 to 38.4 MB, and its CPU time by a
// seventh (medians of 16 runs in turns, at a load of 8 to 12).
package first

import (
	"runtime"

	"github.com/tenonhq/tenon/internal/deepstack"
)

// Processors is the number of processors that Go would have used.
var Processors = begin()

func begin() int {
	deepstack.Main()
	return runtime.GOMAXPROCS(1)
}
