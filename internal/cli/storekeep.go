package cli

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/host"
)

// shownProblems bounds the problems and losses that are listed as text.
const shownProblems = 50

// keeper returns the keeper of the store. It opens no store.
func (a *app) keeper(ctx context.Context) (*host.StoreKeeper, error) {
	cfg, err := a.hostConfig(ctx, opening{})
	if err != nil {
		return nil, err
	}
	return host.KeepStore(cfg)
}

// storeProgress returns a function that shows the progress of a long operation on a terminal.
func (a *app) storeProgress() host.StoreProgress {
	if !a.errTTY || a.quiet {
		return nil
	}
	begun, last := time.Now(), time.Time{}
	return func(step string, done, of int64) {
		if now := time.Now(); now.Sub(begun) < time.Second || now.Sub(last) < time.Second {
			return
		}
		last = time.Now()
		if of > 0 {
			a.note("%s: %d%%", step, min(100, 100*done/of))
		} else {
			a.note("%s …", step)
		}
	}
}

func newStoreCheck(a *app) *cobra.Command {
	var quick bool
	cmd := &cobra.Command{
		Use:   "check",
		Short: "Find damage in the store",
		Long: "Reads the whole store and finds damage: changed rows and blobs, indexes that do not match their\n" +
			"tables, journals with gaps, a log that SQLite would ignore. It also reads the ledger, which records\n" +
			"revoked and used permissions in the user's state folder. It changes nothing, and works next to a\n" +
			"running tenon serve. The exit status is 1 if there is damage.",
		Example: "  tenon store check\n  tenon store check --quick\n  tenon store check -o json",
		Args:    args(0, 0, ""),
		RunE: func(cmd *cobra.Command, _ []string) error {
			k, err := a.keeper(cmd.Context())
			if err != nil {
				return err
			}
			r, err := k.Check(cmd.Context(), quick, a.storeProgress())
			if err != nil {
				return err
			}
			if a.isJSON() {
				err = a.printJSON(r)
			} else {
				err = a.write([]byte(reportText(r)))
			}
			if err != nil || r.OK() {
				return err
			}
			if r.LedgerOnly() {
				return reported{tenon.Errorf(tenon.CodeStore, "the ledger is damaged")}
			}
			return reported{tenon.Errorf(tenon.CodeStore, "store %s is damaged", r.Path)}
		},
	}
	cmd.Flags().BoolVar(&quick, "quick", false, "read only the log, the schema and the newest rows")
	return cmd
}

// reportText returns a report as text.
func reportText(r *host.StoreReport) string {
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	line("store  %s", safeLine(r.Path))
	read := fmt.Sprintf("%s, %s and %s were compared with their checksums", plural(int(r.Runs), "journal"),
		plural(int(r.Rows), "row"), plural(int(r.Blobs), "blob"))
	if r.Quick {
		read = fmt.Sprintf("the newest %s were compared with their checksums", plural(int(r.Rows), "row"))
	}
	if r.OK() {
		line("No damage: %s.", read)
	} else {
		line("%s; %s.", plural(len(r.Problems)+r.More, "problem"), read)
	}
	for i, p := range r.Problems {
		if i == shownProblems {
			line("  … %d more; -o json lists them", len(r.Problems)+r.More-i)
			break
		}
		line("  %s", safeLine(p.String()))
	}
	if r.Unsummed > 0 {
		line("%s of an older release have no checksum yet; tenon serve computes them.", plural(int(r.Unsummed), "row"))
	}
	if r.Ledger > 0 {
		line("The ledger was read: %s.", plural(int(r.Ledger), "row"))
	}
	if r.LedgerUnsummed > 0 {
		line("%s of the ledger, from an older tenon, have no checksum yet; the next run computes them.",
			plural(int(r.LedgerUnsummed), "row"))
	}
	if r.Free > r.Bytes/4 && r.Free > 1<<20 {
		line("%d MB are unused; tenon store compact gives them back.", r.Free>>20)
	}
	switch {
	case r.LedgerOnly():
		line("The store has no damage. 'tenon store repair --ledger' corrects damaged rows of the ledger. Otherwise " +
			"put back a backup of it, or end all processes of tenon and move it away. Without it, only the store " +
			"says what was revoked or used.")
	case !r.OK():
		line("Save the rest with 'tenon store repair', or put back a backup with 'tenon store restore'.")
	}
	return b.String()
}

func newStoreBackup(a *app) *cobra.Command {
	var noKeys bool
	cmd := &cobra.Command{
		Use:   "backup FOLDER",
		Short: "Copy the store into a new folder",
		Long: "Copies the store, its blobs and the files of its keys into a new folder, next to a running tenon\n" +
			"serve. The copy has every run that ended before. It is checked, and nothing is kept of a damaged\n" +
			"store. The folder contains everything that the store has: protect it like the store and its keys.\n\n" +
			"The key is the one that this command finds: run it as the user of tenon serve, with its HOME and\n" +
			"XDG_STATE_HOME. If another key signed the store, there is no backup; --no-keys leaves the key out.",
		Example: "  tenon store backup ~/backups/monday\n  tenon store backup --no-keys monday",
		Args:    args(1, 1, "FOLDER"),
		RunE: func(cmd *cobra.Command, got []string) error {
			k, err := a.keeper(cmd.Context())
			if err != nil {
				return err
			}
			if err := a.mayWrite("FOLDER", got[0], writtenFolder); err != nil {
				return err
			}
			info, err := k.Backup(cmd.Context(), got[0], !noKeys, a.storeProgress())
			if err != nil {
				return err
			}
			if info.NoKey != "" {
				a.note("the key that signs the store is not in the backup: %s", safeLine(info.NoKey))
			}
			verb := "are"
			if info.Runs == 1 {
				verb = "is"
			}
			return a.did(info, "%s %s in %s; put it back with 'tenon store restore'",
				plural(int(info.Runs), "run"), verb, safeLine(got[0]))
		},
	}
	cmd.Flags().BoolVar(&noKeys, "no-keys", false, "leave out the keys that sign and decrypt the store")
	return cmd
}

func newStoreRestore(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "restore FOLDER",
		Short: "Put back a backup where no store is",
		Long: "Puts the store of a backup in its place, after a check, and the keys of the backup where none are.\n" +
			"It overwrites nothing: move an existing store away first. If a key differs, the runs are foreign\n" +
			"until 'tenon store adopt', and encrypted values cannot be read.",
		Example: "  tenon store restore ~/backups/monday",
		Args:    args(1, 1, "FOLDER"),
		RunE: func(cmd *cobra.Command, got []string) error {
			k, err := a.keeper(cmd.Context())
			if err != nil {
				return err
			}
			info, kept, err := k.Restore(cmd.Context(), got[0], a.storeProgress())
			if err != nil {
				return err
			}
			for _, path := range kept {
				a.note("the key %s stays as it is: the backup has another one", path)
			}
			if info.NoKey != "" {
				a.note("the backup has no key that signs the store: %s", safeLine(info.NoKey))
			}
			return a.did(info, "%s of %s restored to %s", plural(int(info.Runs), "run"),
				info.Created.Format(time.DateTime), safeLine(k.Path()))
		},
	}
}

func newStoreRepair(a *app) *cobra.Command {
	var ledger bool
	cmd := &cobra.Command{
		Use:   "repair [FILE]",
		Short: "Save what is whole of a damaged store",
		Long: "Recovers the whole rows of a damaged store into a new file (default: the store's name with\n" +
			".repaired) and names what was lost. The damaged store stays as it is. A run with an incomplete\n" +
			"journal is kept up to the gap and never resumes. Stop tenon serve first. --ledger instead corrects\n" +
			"the damaged rows of the ledger, where it is: a call with a damaged row is never made again, and of\n" +
			"a budget or rate the store's own amount counts.",
		Example: "  tenon store repair\n  tenon store repair saved.db\n  tenon store repair --ledger",
		Args:    args(0, 1, "at most one FILE"),
		RunE: func(cmd *cobra.Command, got []string) error {
			k, err := a.keeper(cmd.Context())
			if err != nil {
				return err
			}
			if ledger {
				if len(got) > 0 {
					return usage(cmd, "the ledger is repaired where it is; leave out FILE")
				}
				return a.repairLedger(cmd.Context(), k)
			}
			out := k.Path() + ".repaired"
			if len(got) > 0 {
				out = got[0]
			}
			if err := a.mayWrite("FILE", out, writtenFile); err != nil {
				return err
			}
			r, err := k.Repair(cmd.Context(), out, a.storeProgress())
			if err != nil {
				return err
			}
			if a.isJSON() {
				return a.printJSON(r)
			}
			return a.write([]byte(repairText(k.Path(), r)))
		},
	}
	cmd.Flags().BoolVar(&ledger, "ledger", false, "correct the damaged rows of the ledger instead")
	return cmd
}

// repairLedger corrects the rows of the ledger, and says which.
func (a *app) repairLedger(ctx context.Context, k *host.StoreKeeper) error {
	done, err := k.RepairLedger(ctx)
	if err != nil {
		return err
	}
	for i, text := range done {
		done[i] = safeLine(text)
	}
	text := "no row of the ledger is damaged"
	if len(done) > 0 {
		text = plural(len(done), "row") + " of the ledger corrected:\n  " + strings.Join(done, "\n  ")
	}
	return a.did(map[string]any{"ledger": append([]string{}, done...)}, "%s", text)
}

// repairText returns the result of a repair as text, with the commands that put the new store in place.
func repairText(path string, r *host.StoreRepair) string {
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	line("%s and %s are in %s", plural(int(r.Runs), "run"), plural(int(r.Rows), "row"), safeLine(r.Path))
	if len(r.Lost) == 0 {
		line("Nothing was lost.")
	} else {
		line("Lost:")
	}
	for i, l := range r.Lost {
		if i == shownProblems {
			line("  … %d more; -o json lists them", len(r.Lost)+r.More-i)
			break
		}
		line("  %s", safeLine(l))
	}
	name := filepath.Base(path)
	line("The damaged store is unchanged. To use the new one, in %s:", safeLine(filepath.Dir(path)))
	line("  mkdir damaged && mv %s %s-* damaged", safeLine(name), safeLine(name))
	line("  mv %s %s", safeLine(r.Path), safeLine(name))
	return b.String()
}

func newStoreCompact(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "compact",
		Short: "Give unused space back",
		Long: "Writes the store's file again without its unused space. Next to a running tenon serve it does so\n" +
			"with a store of up to 256 MB: runs can read meanwhile, and wait with their writes.",
		Example: "  tenon store compact",
		Args:    args(0, 0, ""),
		RunE: func(cmd *cobra.Command, _ []string) error {
			k, err := a.keeper(cmd.Context())
			if err != nil {
				return err
			}
			c, err := k.Compact(cmd.Context(), a.storeProgress())
			if err != nil {
				return err
			}
			return a.did(c, "%d bytes, before %d", c.After, c.Before)
		},
	}
}
