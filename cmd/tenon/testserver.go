package main

import (
	"github.com/spf13/cobra"
	"github.com/tenonhq/tenon/internal/testserver"
)

func newTestserver(a *app) *cobra.Command {
	return &cobra.Command{
		Use:                "testserver",
		Short:              "The MCP server for tests: answers, and fails on demand",
		Hidden:             true,
		DisableFlagParsing: true,
		RunE: func(cmd *cobra.Command, args []string) error {
			return testserver.Run(cmd.Context(), args, a.in, a.out, a.err)
		},
	}
}
