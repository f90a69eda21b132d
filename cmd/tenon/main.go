// Command tenon joins agents to tools on the command line. It is a surface: every
// verb loads the configuration, opens a host.Host, calls one or two of its
// methods and prints what comes back. No logic about runs lives here.
//
//	main ─► run (testable: arguments and streams in, exit status out)
//	          └► newRoot: one command a verb, one file a verb
//	                └► app.open ─► host.Open ─► … ─► app.drive (follows a run)
//
// Results go to stdout and everything else to stderr. With -o json or jsonl
// there is nothing but JSON on stdout, also on failure. Error codes become exit
// statuses in one table (exit.go). What comes from servers and models is escaped
// before it reaches a terminal (escape.go).
package main

import (
	"context"
	"os"
	"slices"

	"github.com/tenonhq/tenon/internal/garbage"
)

func main() {
	// serve stays, and so would its garbage. That is asked before anything is read: an argument
	// that only looks so costs a little time.
	if !slices.Contains(os.Args, "serve") {
		garbage.Late(os.LookupEnv)
	}
	os.Exit(run(context.Background(), os.Args[1:], stdio{in: os.Stdin, out: os.Stdout, err: os.Stderr}))
}
