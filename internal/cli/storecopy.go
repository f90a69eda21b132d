package cli

import (
	"github.com/spf13/cobra"

	"github.com/tenonhq/tenon/host"
)

func newStoreCopy(a *app) *cobra.Command {
	m := host.StoreCopy{}
	cmd := &cobra.Command{
		Use:   "copy",
		Short: "Move all runs to a store of another kind",
		Long: "Copies everything of a store into an empty one: sqlite is the file of this project, postgres the\n" +
			"database of store.postgres in tenon.yaml; any other name is the path of a file. Journals stay\n" +
			"equal byte for byte, and digests of all rows are compared in the end. tenon serve makes the\n" +
			"search index again.\n\n" +
			"Stop tenon serve first. The source is marked as moved before the first row is read, and refuses\n" +
			"every write from then on. The same command resumes a copy that was interrupted; --undo gives up\n" +
			"such a copy, so that the source can be used again. A complete copy is not taken back: copy it to\n" +
			"a new store instead.",
		Example: "  tenon store copy --from sqlite --to postgres\n" +
			"  tenon store copy --from postgres --to back.db\n" +
			"  tenon store copy --from sqlite --to postgres --undo",
		Args: args(0, 0, ""),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if m.From == "" || m.To == "" {
				return usage(cmd, "--from and --to name the two stores: sqlite, postgres, or the path of a file")
			}
			cfg, err := a.hostConfig(cmd.Context(), opening{})
			if err != nil {
				return err
			}
			for flag, name := range map[string]string{"--from": m.From, "--to": m.To} { // both are written to
				if name != host.CopySQLite && name != host.CopyPostgres {
					if err := a.mayWrite(flag, name, writtenFile); err != nil {
						return err
					}
				}
			}
			m.Progress = a.storeProgress()
			r, err := host.CopyStore(cmd.Context(), cfg, m)
			if err != nil {
				return err
			}
			if m.Undo {
				return a.did(r, "%s is used again; remove the incomplete copy %s", safeLine(r.From), safeLine(r.To))
			}
			return a.did(r, "%s copied to %s and verified; %s refuses writes from now on",
				plural(int(r.Rows("runs")), "run"), safeLine(r.To), safeLine(r.From))
		},
	}
	cmd.Flags().StringVar(&m.From, "from", "", "the store to copy: sqlite, postgres or a `FILE`")
	cmd.Flags().StringVar(&m.To, "to", "", "the empty store to fill: sqlite, postgres or a `FILE`")
	cmd.Flags().BoolVar(&m.Undo, "undo", false, "give up an incomplete copy: the source is used again")
	return cmd
}
