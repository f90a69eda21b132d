package main

import (
	"github.com/spf13/cobra"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/host"
)

func newRunsExport(a *app) *cobra.Command {
	var asWorkflow bool
	var out string
	cmd := &cobra.Command{
		Use:   "export [RUN] --workflow [--out FILE]",
		Short: "Write the tool calls of a run as a workflow",
		Long: "Writes the tool calls that a run has made as a workflow file: tenon workflows run makes them again, with the same\n" +
			"arguments and in the same order, without a model. Calls of agents that the run asked are among them; those that were\n" +
			"refused are not. Tables that the run was given are inputs of the workflow, by their names: --in input_table_1=FILE. Looks\n" +
			"into tables become steps of SQL, which give all rows and not only those that the model was shown. What the configuration\n" +
			"sets in arguments is left to it. Arguments that a redact rule names are masked, and so are the values of configured\n" +
			"secrets. A whole session is written by: tenon sessions export.\n\n" + refHelp,
		Example: "  tenon runs export -1 --workflow --out audit.yaml\n  tenon workflows run audit.yaml -o json",
		Args:    args(0, 1, ""),
		RunE: func(cmd *cobra.Command, args []string) error {
			if !asWorkflow {
				return usage(cmd, "say what to write: --workflow")
			}
			return a.withOwnRun(cmd.Context(), args, func(h *host.Host, run tenon.Run) error {
				b, err := h.RunWorkflow(cmd.Context(), run.ID)
				if err != nil {
					return err
				}
				if out == "" || out == "-" {
					return a.write(b)
				}
				if err := writeFile(out, b); err != nil {
					return err
				}
				a.hint("%s is written; run it with: tenon workflows run %s", out, shellLine([]string{out}))
				return nil
			})
		},
	}
	cmd.Flags().BoolVar(&asWorkflow, "workflow", false, "as a workflow file")
	cmd.Flags().StringVar(&out, "out", "", "write to `FILE` (default: stdout)")
	return cmd
}
