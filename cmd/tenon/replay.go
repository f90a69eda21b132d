package main

import (
	"github.com/spf13/cobra"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/host"
)

func newRunsReplay(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "replay [RUN]",
		Short: "Fold a run's journal again and compare",
		Long: "Folds the journal of a run again with the logic that wrote it. Every step that was begun must be one that the\n" +
			"logic asks for at that place. Nothing is carried out: no model is asked, no tool is called. Ends with status 1\n" +
			"where the two differ. " + refHelp,
		Example: "  tenon runs replay -1",
		Args:    args(0, 1, ""),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.withOwnRun(cmd.Context(), args, func(h *host.Host, run tenon.Run) error {
				r, err := h.Replay(cmd.Context(), run.ID)
				if err != nil {
					return err
				}
				if r.Same || a.isJSON() {
					err = a.did(r, "%s: %d events, %d commands: the same", r.Run, r.Events, r.Commands)
				}
				if err != nil || r.Same {
					return err
				}
				return tenon.Errorf(tenon.CodeStore, "run %s is not what its journal says: %s", r.Run, r.Mismatch)
			})
		},
	}
}
