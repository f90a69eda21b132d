package cli

import (
	"errors"
	"flag"

	"github.com/spf13/cobra"

	"github.com/tenonhq/tenon/internal/testserver"
)

// newTestserver is the server of the demo and of tests. Its flags are its own.
func newTestserver(a *app) *cobra.Command {
	return &cobra.Command{
		Use:                "testserver --stdio | --http ADDRESS",
		Short:              "Run the MCP server of the demo and the tests",
		Hidden:             true,
		DisableFlagParsing: true,
		RunE: func(cmd *cobra.Command, args []string) error {
			err := testserver.Run(cmd.Context(), args, a.in, beneath(a.out), beneath(a.err))
			if errors.Is(err, flag.ErrHelp) {
				return nil // already printed
			}
			return err
		},
	}
}
