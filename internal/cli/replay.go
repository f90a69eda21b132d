package cli

import (
	"github.com/spf13/cobra"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/host"
)

func newRunsReplay(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "replay [RUN]",
		Short: "Replay a run's journal and compare",
		Long: "Folds the journal of a run again with the logic that wrote it, and checks that the logic requests\n" +
			"the same steps in the same order. No model is asked and no tool is called. The exit status is 1\n" +
			"if the steps differ. " + refHelp,
		Example: "  tenon runs replay -1",
		Args:    args(0, 1, ""),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.withOwnRun(cmd.Context(), args, func(h *host.Host, run tenon.Run) error {
				r, err := h.Runs().Open(run.ID).Replay(cmd.Context())
				if err != nil {
					return err
				}
				if r.Same || a.isJSON() {
					err = a.did(r, "%s: %s, %s: the same", r.Run, plural(r.Events, "event"),
						plural(r.Commands, "command"))
				}
				if err != nil || r.Same {
					return err
				}
				return tenon.Errorf(tenon.CodeStore, "run %s does not match its journal: %s", r.Run, r.Mismatch)
			})
		},
	}
}
