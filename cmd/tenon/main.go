// Command tenon connects agents to tools on the command line. Package internal/cli has all verbs; docs/reference/cli
// has their help. This file is all of the program, so that other programs can have the same verbs:
//
//	os.Args ─► cli.Main ─► a verb ─► host.Open ─► … ─► exit status
//
// The default program links everything for an installation on one machine, or one with PostgreSQL. Large or rarely
// used dependencies are linked by programs in nested modules.
//
// Results go to stdout and everything else to stderr. Exit statuses are in docs/reference/cli/exit-codes.md. The build
// information that tenon version prints is written by the Go toolchain into each program (internal/cli/version.go).
package main

import (
	"os"

	"github.com/tenonhq/tenon/internal/cli"
	"github.com/tenonhq/tenon/internal/quick"
)

func main() { os.Exit(cli.Main(cli.Program{Processors: quick.Processors})) }
