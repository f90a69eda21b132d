// Command tenon connects agents to tools on the command line. It is a surface: each verb loads the configuration, opens
// a host.Host, calls one or two of its methods and prints the result. It contains no logic about runs.
//
//	main ─► run (testable: arguments and streams in, exit status out)
//	          └► newRoot: one command a verb, one file a verb
//	                └► app.open ─► host.Open ─► … ─► app.drive (follows a run)
//
// Results go to stdout and everything else to stderr. With -o json or jsonl stdout contains only JSON, also on failure.
// One table maps error codes to exit statuses (exit.go). Text from servers and models is escaped before it reaches a
// terminal (escape.go).
//
// The help of a verb is in its cobra.Command. docs/reference/cli is generated from it (reference_test.go), and the
// scripts in testdata/script test the verbs as a shell would call them.
package main

import (
	"context"
	"os"
	"slices"
	_ "time/tzdata" // time zones of schedules, for images without the files of the system

	"github.com/tenonhq/tenon/internal/garbage"
)

func main() {
	// Every verb but serve ends soon and needs little garbage collection. This is decided before the arguments are
	// parsed. Another argument named serve only costs a little time.
	if !slices.Contains(os.Args, "serve") {
		garbage.Late(os.LookupEnv)
	}
	os.Exit(run(context.Background(), os.Args[1:], stdio{in: os.Stdin, out: os.Stdout, err: os.Stderr}))
}
