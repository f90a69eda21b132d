package cli

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/internal/safezip"
	"github.com/tenonhq/tenon/table"
)

// dataFiles are the files of the input and output tables of an agent's run.
type dataFiles struct{ in, out []string }

func (d *dataFiles) flags(cmd *cobra.Command) {
	cmd.Flags().StringArrayVar(&d.in, "data-in", nil, "table of data for the agent, `FILE`.arrow; - is stdin; may "+
		"be repeated")
	d.outFlag(cmd)
}

func (d *dataFiles) outFlag(cmd *cobra.Command) {
	cmd.Flags().StringArrayVar(&d.out, "data-out", nil, "write the last table that the run has made to `FILE`.arrow; "+
		"if repeated, the last tables, oldest first")
}

func (d *dataFiles) check(cmd *cobra.Command, detach *detachFlags) error {
	files := map[string]bool{}
	for _, f := range d.out {
		if f == "-" || f == "" {
			return usage(cmd, "--data-out is a file; stdout has the answer")
		}
		if dir, ok := hasFolder(f); !ok {
			return usage(cmd, "--data-out %s: there is no folder %s", f, dir)
		}
		if files[filepath.Clean(f)] {
			return usage(cmd, "--data-out: two tables go to '%s'; name a separate file for each", f)
		}
		files[filepath.Clean(f)] = true
	}
	if err := oneStdin("--data-in", d.in); err != nil {
		return usage(cmd, "%s", err)
	}
	if err := neverInPlace(d.in, d.out); err != nil {
		return usage(cmd, "--data-out: %s", err)
	}
	if detach.detach && len(d.out) > 0 {
		return usage(cmd, "--data-out does not go with --detach, which does not wait for the run's end")
	}
	return nil
}

// open opens the tables for the question. Close closes them.
func (d *dataFiles) open(a *app) (list []*io.SectionReader, done func(), err error) {
	var all closers
	for _, f := range d.in {
		in, stop, err := a.openData("--data-in "+f, f)
		if err != nil {
			all.close()
			return nil, nil, err
		}
		list, all = append(list, in), append(all, stop)
	}
	return list, all.close, nil
}

// closers are functions that close files which were only read.
type closers []func()

func (c closers) close() {
	for _, done := range c {
		done()
	}
}

// openData opens an input table of a run. The argument what names it in messages. Stdin and pipes are copied to a
// temporary file without a name.
func (a *app) openData(what, file string) (in *io.SectionReader, done func(), err error) {
	from := io.Reader(a.lines)
	if file != "-" {
		f, err := os.Open(file)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil, nil, tenon.Errorf(tenon.CodeNotFound, "%s: there is no such table", what)
		case err != nil:
			return nil, nil, tenon.Errorf(tenon.CodeNotFound, "%s: %w", what, err)
		}
		st, err := f.Stat()
		switch {
		case err == nil && table.IsCSV(file):
			err = tenon.Errorf(tenon.CodeInvalid, "%s: %s", what, table.CSVRemedy)
		case err == nil && st.IsDir():
			err = tenon.Errorf(tenon.CodeInvalid, "%s is a folder; a table is a file", what)
		case err == nil && st.Mode().IsRegular():
			return io.NewSectionReader(f, 0, st.Size()), func() { _ = f.Close() }, nil
		}
		if err != nil {
			_ = f.Close() // nothing was read
			return nil, nil, err
		}
		defer f.Close() //nolint:errcheck // a pipe, which is read to its end
		from = f
	}
	spool, err := safezip.NewSpool(what, math.MaxInt64, safezip.From(from))
	if err != nil {
		return nil, nil, tenon.Errorf(tenon.CodeStore, "%s: %w", what, err)
	}
	return spool.Section(), func() { _ = spool.Close() }, nil
}

// write writes the last tables that the run has made, oldest first. If there are fewer tables than files, it writes
// empty tables to the remaining names, and leaves files that exist.
func (d *dataFiles) write(ctx context.Context, a *app, h desk, run tenon.Run) error {
	if len(d.out) == 0 || run.ID == "" {
		return nil
	}
	made, err := tablesOf(ctx, h, run.ID, roleStep)
	if err != nil {
		return err
	}
	made = made[max(len(made)-len(d.out), 0):]
	for i, file := range d.out {
		if i < len(made) {
			if err := a.writeData(ctx, h, run.ID, made[i], file); err != nil {
				return err
			}
			continue
		}
		if _, err := os.Lstat(file); err == nil {
			a.note("warning: the run has made %s, so %s is left as it was", plural(len(made), "table"), safeLine(file))
			continue
		}
		if err := table.WriteRows(ctx, file, nil, nil, table.WriteOptions{}); err != nil {
			return err
		}
		a.wroteBeside(file, 0)
	}
	return nil
}

// The roles of a run's tables: made by a step, or an output of a workflow.
const (
	roleStep   = "step"
	roleOutput = "output"
)

// tablesOf returns the tables of a run with one role, in their order.
func tablesOf(ctx context.Context, h desk, run, role string) (list []tenon.Table, err error) {
	all, err := h.Runs().Open(run).Data().Tables(ctx)
	for _, t := range all {
		if t.Role == role {
			list = append(list, t.Table)
		}
	}
	return list, err
}
