// Package quick prepares the process of a command that ends soon, before most other packages are initialized.
//
// The packages of the command line allocate about five megabytes while they are initialized, above all descriptors of
// protocol buffers and JSON schemas. Go's first garbage collection comes at four, so that each command made one before
// its main function began. It reads all variables of the program, and halves the stack that was just enlarged.
// A main function passes Processors to the command line. Importing the package does the rest.
//
// Go initializes packages in the order of their paths, each after its imports. This one imports little, so that it
// comes before nearly all that are not of the standard library. It is an exception to the rule that packages of this
// module do nothing when they are initialized, which figures P12.cpu and P12.mem need.
package quick

import (
	"os"
	"slices"

	"github.com/tenonhq/tenon/internal/garbage"
	"github.com/tenonhq/tenon/internal/quick/first"
)

// Processors is the number of processors that Go uses by default. Main functions pass it to the command line, because
// the process begins with one; see package first.
var Processors = prepare(os.Args)

// prepare decides before the arguments are parsed. Every verb but serve and worker ends soon and needs little garbage
// collection. Another argument with such a name only costs a little time.
func prepare(args []string) int {
	if slices.Contains(args, "serve") || slices.Contains(args, "worker") {
		garbage.Seldom(os.LookupEnv)
	} else {
		garbage.Late(os.LookupEnv)
	}
	return first.Processors
}
