// Package cli is the command line of tenon. It is a surface: each verb loads the configuration, opens a host.Host,
// calls one or two of its methods and prints the result. It contains no logic about runs. It is a package and not part
// of main, so that several programs can have all verbs: cmd/tenon, and programs in nested modules that link more.
//
//	Main ─► run (testable: arguments and streams in, exit status out)
//	          └► newRoot: one command a verb, one file a verb
//	                └► app.open ─► host.Open ─► … ─► app.drive (follows a run)
//
// Results go to stdout and everything else to stderr. With -o json or jsonl stdout contains only JSON, also on failure.
// One table maps error codes to exit statuses (exit.go). Text from servers and models is escaped before it reaches a
// terminal (escape.go).
//
// The help of a verb is in its cobra.Command. docs/reference/cli is generated from it (reference_test.go), and the
// scripts in testdata/script test the verbs as a shell would call them.
package cli

import (
	"context"
	"os"
	"runtime"
	_ "time/tzdata" // time zones of schedules, for images without the files of the system

	"github.com/tenonhq/tenon/host"
)

// Program is what a program adds to the command line. The zero value adds nothing.
type Program struct {
	// Cluster opens the cluster that engine.temporal names; see [host.Config]. With it there is the verb worker.
	Cluster func(ctx context.Context, c host.ClusterConfig) (host.Cluster, error)
	// Processors is the number of processors of all commands but a run with at most one server; 0 leaves GOMAXPROCS as
	// it is. See package quick.
	Processors int
}

// Main runs the command line of this process, os.Args, with its standard streams. It returns the exit status.
func Main(p Program) int {
	if n := p.Processors; n > 0 && (len(os.Args) < 2 || os.Args[1] != "run") {
		runtime.GOMAXPROCS(n)
	}
	a := newApp(stdio{in: os.Stdin, out: os.Stdout, err: os.Stderr})
	a.program = p
	return a.main(context.Background(), os.Args[1:])
}
