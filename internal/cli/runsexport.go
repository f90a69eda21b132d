package cli

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
		Short: "Export the tool calls of a run as a workflow",
		Long: "Writes the tool calls of a run as a workflow file. tenon workflows run repeats the calls with the\n" +
			"same arguments and in the same order, without a model. The file includes the calls of agents that\n" +
			"the run asked, and omits refused calls. Input tables of the run become inputs of the workflow\n" +
			"with the same names: --in input_table_1=FILE. Queries of tables become SQL steps, which return\n" +
			"all rows, not only the rows that the model saw. Arguments that the configuration sets are\n" +
			"omitted. Arguments that a redact rule names, and the values of configured secrets, are masked. To\n" +
			"export a whole session, use tenon sessions export.\n\n" + refHelp,
		Example: "  tenon runs export -1 --workflow --out audit.yaml\n  tenon workflows run audit.yaml -o json",
		Args:    args(0, 1, ""),
		RunE: func(cmd *cobra.Command, args []string) error {
			if !asWorkflow {
				return usage(cmd, "the format is missing: --workflow")
			}
			return a.withOwnRun(cmd.Context(), args, func(h *host.Host, run tenon.Run) error {
				b, err := h.Runs().Open(run.ID).Data().Export(cmd.Context())
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
	cmd.Flags().BoolVar(&asWorkflow, "workflow", false, "write a workflow file")
	cmd.Flags().StringVar(&out, "out", "", "write to `FILE` (default: stdout)")
	return cmd
}
