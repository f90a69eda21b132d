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
	"slices"
	_ "time/tzdata" // time zones of schedules, for images without the files of the system

	"github.com/tenonhq/tenon/host"
	"github.com/tenonhq/tenon/internal/deepstack"
	"github.com/tenonhq/tenon/internal/garbage"
)

// Program is what a program adds to the command line. The zero value adds nothing.
type Program struct {
	// Cluster opens the cluster that engine.temporal names; see [host.Config]. With it there is the verb worker.
	Cluster func(ctx context.Context, c host.ClusterConfig) (host.Cluster, error)
}

// Main runs the command line of this process, os.Args, with its standard streams. It returns the exit status.
func Main(p Program) int {
	beQuick()
	a := newApp(stdio{in: os.Stdin, out: os.Stdout, err: os.Stderr})
	a.program = p
	return a.main(context.Background(), os.Args[1:])
}

// beQuick prepares the process for a command that ends soon.
func beQuick() {
	deepstack.Main()
	// Every verb but serve and worker ends soon and needs little garbage collection. This is decided before the
	// arguments are parsed. Another argument with such a name only costs a little time.
	if !slices.Contains(os.Args, "serve") && !slices.Contains(os.Args, "worker") {
		garbage.Late(os.LookupEnv)
	}
}
