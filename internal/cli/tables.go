package cli

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/config"
	"github.com/tenonhq/tenon/table"
)

func newTables(a *app) *cobra.Command {
	cmd := group("tables", "Arrow tables: show, query, pick, convert, concat, check", "table")
	cmd.AddCommand(newTablesShow(a), newTablesSchema(a), newTablesCount(a), newTablesQuery(a), newTablesPick(a),
		newTablesConvert(a), newTablesConcat(a),
		newTablesMigrate(a), newTablesCheck(a),
		newTablesDiff(a), newTablesRoundtrip(a))
	return cmd
}

const tablesHelp = "A table is an Arrow IPC file, an Arrow stream, or a .tooltable: a zip of a table and the\n" +
	"files of its tools. Without a zip the files are in the folder TABLE.filestore. The name - is stdin."

// tableOptions returns the configured options for reading tables.
func (a *app) tableOptions(cfg *config.Config) table.Options {
	return table.Options{Stdin: a.lines, Legacy: cfg.Tables.WithDefaults().Legacy.Read,
		Warn: func(text string) { a.note("%s", text) }}
}

// legacyRead is tableOptions for commands that show or convert a table. They may always read the deprecated type.
func (a *app) legacyRead(cfg *config.Config) table.Options {
	o := a.tableOptions(cfg)
	o.Legacy = table.LegacyAllow
	return o
}

// tablesConfig loads the configuration for its tables block, or the defaults without a configuration. It does not read
// the tables that the configuration names, because the command may examine a broken one.
func (a *app) tablesConfig(ctx context.Context) (*config.Config, error) {
	o := a.configOptions()
	o.NoTables = true
	return a.loadWith(ctx, o)
}

// tableOut holds the flags of commands that write a table.
type tableOut struct {
	out, layout, compress string
}

func (t *tableOut) flags(cmd *cobra.Command, layout bool) {
	cmd.Flags().StringVar(&t.out, "out", "", "`FILE` to write: .arrow, or .tooltable for a bundle; - is stdout, as "+
		"a stream")
	cmd.Flags().StringVar(&t.compress, "compress", "", "compress the table: `METHOD` lz4")
	if layout {
		cmd.Flags().StringVar(&t.layout, "layout", "", "`LAYOUT` of tools: seed9, java10, legacy6 (default: "+
			"tables.layout, else seed9)")
	}
}

func (t *tableOut) options(a *app, cfg *config.Config) (table.WriteOptions, error) {
	c := cfg.Tables.WithDefaults()
	o := table.WriteOptions{Layout: table.Layout(c.Layout), BatchRows: c.BatchRows, Stdout: beneath(a.out),
		Warn: func(text string) { a.note("%s", text) }}
	if t.layout != "" {
		o.Layout = table.Layout(t.layout)
	}
	switch t.compress {
	case "":
	case "lz4":
		o.LZ4 = true
	default:
		return o, tenon.Errorf(tenon.CodeInvalid, "--compress must be lz4, not '%s'", t.compress)
	}
	if t.out == "-" && a.outTTY {
		return o, tenon.Errorf(tenon.CodeInvalid, "a table is not written to a terminal; name a file, or pipe it to "+
			"another command")
	}
	return o, table.CheckLayout(o.Layout)
}

// oneStdin refuses stdin for more than one table. flag is the flag that names the tables, or "" for arguments.
func oneStdin(flag string, files []string) error {
	n := 0
	for _, f := range files {
		if f == "-" {
			n++
		}
	}
	if n > 1 {
		return tenon.Errorf(tenon.CodeInvalid, "stdin holds one table: %s is given %d times",
			strings.TrimSpace(flag+" -"), n)
	}
	return nil
}

// readTable opens a table and passes it to a function.
func (a *app) readTable(ctx context.Context, path string, legacy bool,
	do func(*config.Config, *table.Reader) error) (err error) {
	cfg, err := a.tablesConfig(ctx)
	if err != nil {
		return err
	}
	o := a.tableOptions(cfg)
	if legacy {
		o = a.legacyRead(cfg)
	}
	r, err := table.Open(ctx, path, o)
	if err != nil {
		return err
	}
	defer closing(r, &err)
	return do(cfg, r)
}

func newTablesSchema(a *app) *cobra.Command {
	var storage, metadata bool
	cmd := &cobra.Command{
		Use:   "schema TABLE [--storage] [--metadata]",
		Short: "Show the columns of a table",
		Long: "Prints a line for each column except the row ids: its name and its type. For a tool column this is\n" +
			"the logical type with its metadata; --storage shows the stored struct instead. --metadata adds the\n" +
			"metadata of the table.\n\n" +
			tablesHelp,
		Example: "  tenon tables schema tools.arrow\n  tenon tables schema tools.arrow --storage --metadata",
		Args:    args(1, 1, "the table"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.readTable(cmd.Context(), args[0], true, func(_ *config.Config, r *table.Reader) error {
				if a.isJSON() {
					cols := r.Columns()
					if cols == nil {
						cols = []table.Column{}
					}
					return a.printJSON(map[string]any{"columns": cols, "row_id": r.HasRowID(),
						"metadata": r.Metadata()})
				}
				var b strings.Builder
				for _, c := range r.Columns() {
					what := c.Type
					if c.Logical != "" && !storage {
						what = c.Logical + " " + c.Metadata
					}
					fmt.Fprintf(&b, "%s: %s\n", a.outStyle(bold, safeLine(c.Name)), safeLine(what))
				}
				if metadata {
					m := r.Metadata()
					for _, k := range slices.Sorted(maps.Keys(m)) {
						fmt.Fprintf(&b, "%s = %s\n", a.outStyle(dim, safeLine(k)), safeLine(m[k]))
					}
				}
				return a.write([]byte(b.String()))
			})
		},
	}
	cmd.Flags().BoolVar(&storage, "storage", false, "show the stored types")
	cmd.Flags().BoolVar(&metadata, "metadata", false, "also show the metadata of the table")
	return cmd
}

func newTablesCount(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "count TABLE",
		Short: "Print the number of rows of a table",
		Long: "Reads the whole table and prints the number of its rows; with -o json also the number of rows of\n" +
			"its first 1000 batches.\n\n" +
			tablesHelp,
		Example: "  tenon tables count tools.arrow",
		Args:    args(1, 1, "the table"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.readTable(cmd.Context(), args[0], true, func(_ *config.Config, r *table.Reader) error {
				n, batches, err := r.Count(cmd.Context())
				if err != nil {
					return err
				}
				if a.isJSON() {
					if batches == nil {
						batches = []int64{}
					}
					return a.printJSON(map[string]any{"rows": n, "batches": batches})
				}
				return a.printText(strconv.FormatInt(n, 10))
			})
		},
	}
}

func newTablesConcat(a *app) *cobra.Command {
	t := &tableOut{}
	cmd := &cobra.Command{
		Use:   "concat TABLE... --out FILE",
		Short: "Write the rows of several tables as one table",
		Long: "Writes the rows of several tables, one table after the other. Columns with the same name become\n" +
			"one column. If each table has one tool column, these become one column too, whatever their\n" +
			"layouts. A column that a table lacks is missing in its rows. Equal row ids get the suffix _dup.\n" +
			"Tools of unknown kinds are kept. Files of the tools are copied.\n\n" +
			tablesHelp,
		Example: "  tenon tables concat workflows.arrow tools.arrow --out all.arrow\n" +
			"  tenon tools list --url $URL --out - | tenon tables concat - mine.arrow --out all.tooltable",
		Args: args(1, -1, "a table"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.concat(cmd, args, t, false)
		},
	}
	t.flags(cmd, true)
	return cmd
}

func newTablesMigrate(a *app) *cobra.Command {
	t := &tableOut{}
	cmd := &cobra.Command{
		Use:   "migrate TABLE --out FILE [--layout LAYOUT]",
		Short: "Write a tool table in another layout",
		Long: "Writes a table of the deprecated type WorkflowToolValueFactory, or of another layout, in the\n" +
			"layout of --layout. The table itself is never changed. Layout legacy6 holds only workflow tools.\n\n" +
			tablesHelp,
		Example: "  tenon tables migrate old.arrow --out new.arrow\n  tenon tables migrate new.arrow --layout " +
			"legacy6 --out old.arrow",
		Args: args(1, 1, "the table"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.concat(cmd, args, t, true)
		},
	}
	t.flags(cmd, true)
	return cmd
}

func (a *app) concat(cmd *cobra.Command, paths []string, t *tableOut, legacy bool) (err error) {
	if t.out == "" {
		return usage(cmd, "--out is missing")
	}
	if err := oneStdin("", paths); err != nil {
		return usage(cmd, "%s", err)
	}
	cfg, err := a.tablesConfig(cmd.Context())
	if err != nil {
		return err
	}
	o, err := t.options(a, cfg)
	if err != nil {
		return err
	}
	read := a.tableOptions(cfg)
	if legacy {
		read = a.legacyRead(cfg)
	}
	var in []*table.Reader
	defer func() {
		for _, r := range in {
			e := r.Close()
			if err == nil {
				err = e
			}
		}
	}()
	for _, p := range paths {
		r, err := table.Open(cmd.Context(), p, read)
		if err != nil {
			return err
		}
		in = append(in, r)
	}
	n, err := table.Concat(cmd.Context(), t.out, in, o)
	if err != nil {
		return err
	}
	return a.wrote(t.out, n)
}

// wrote prints the path and the number of rows of a table that was written.
func (a *app) wrote(path string, rows int64) error {
	if path == "-" {
		return nil
	}
	if a.isJSON() {
		return a.printJSON(map[string]any{"file": path, "rows": rows})
	}
	a.hint("%s: %s", path, plural(int(rows), "row"))
	return nil
}

// wroteBeside prints the same on stderr, because stdout has the result of the command.
func (a *app) wroteBeside(path string, rows int64) {
	if path != "-" {
		a.hint("%s: %s", path, plural(int(rows), "row"))
	}
}

func newTablesCheck(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "check TABLE",
		Short: "Check that a table and its tools are valid",
		Long: "Reads the whole table. For each tool it checks that its kind is known, that only the fields of its\n" +
			"kind are set, and that the schema, the address, the ports, and the files of its workflow with their\n" +
			"checksums are valid. The parameters and ports of a workflow must match its packed workflow, and\n" +
			"row ids must be unique. Other commands leave invalid rows out, with a warning.\n" +
			"Prints ok, or each error with row and field, and exits with status 2.\n\n" +
			tablesHelp,
		Example: "  tenon tables check tools.arrow",
		Args:    args(1, 1, "the table"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.readTable(cmd.Context(), args[0], true, func(_ *config.Config, r *table.Reader) error {
				flaws, failed := r.CheckWith(cmd.Context(), table.Checks{Tool: config.RowFlaw, Packed: packFlaws})
				if failed != nil && len(flaws) == 0 {
					return failed
				}
				if a.isJSON() {
					if flaws == nil {
						flaws = []table.Flaw{}
					}
					if err := a.printJSON(map[string]any{"ok": len(flaws) == 0, "flaws": flaws,
						"whole": failed == nil && len(flaws) < table.MaxFlaws}); err != nil {
						return err
					}
				}
				if len(flaws) == 0 {
					if a.isJSON() {
						return nil
					}
					if err := a.noteSecrets(cmd.Context(), args[0]); err != nil {
						return err
					}
					return a.printText("ok")
				}
				for _, f := range flaws {
					a.note("%s: %s", r.Name(), safeLine(f.String()))
				}
				switch {
				case failed != nil:
					return failed
				case len(flaws) == table.MaxFlaws:
					a.note("%s: the rows after these are not checked", r.Name())
				}
				return reported{tenon.Errorf(tenon.CodeInvalid, "%s: %s", r.Name(), plural(len(flaws), "flaw"))}
			})
		},
	}
}

func newTablesDiff(a *app) *cobra.Command {
	var semantic bool
	cmd := &cobra.Command{
		Use:   "diff TABLE TABLE [--semantic]",
		Short: "Compare two tables",
		Long: "Compares columns, row ids and stored cells. Prints identical, or the differences with status 1.\n" +
			"Batches and compression are ignored. --semantic compares the meaning of the tools in two tables\n" +
			"with any layouts, and prints same tools.\n\n" +
			tablesHelp,
		Example: "  tenon tables diff a.arrow b.arrow\n  tenon tables diff --semantic old.arrow new.arrow",
		Args:    args(2, 2, "a table"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := oneStdin("", args); err != nil {
				return usage(cmd, "%s", err)
			}
			compare, same := table.Diff, "identical"
			if semantic {
				compare, same = table.DiffTools, "same tools"
			}
			return a.readTable(cmd.Context(), args[0], true, func(_ *config.Config, x *table.Reader) error {
				return a.readTable(cmd.Context(), args[1], true, func(_ *config.Config, y *table.Reader) error {
					list, err := compare(cmd.Context(), x, y)
					if err != nil {
						return err
					}
					return a.differences(list, same)
				})
			})
		},
	}
	cmd.Flags().BoolVar(&semantic, "semantic", false, "compare the meaning of the tools, not their storage")
	return cmd
}

// differences prints what a comparison found.
func (a *app) differences(list []string, same string) error {
	switch {
	case a.isJSON():
		if list == nil {
			list = []string{}
		}
		if err := a.printJSON(map[string]any{"same": len(list) == 0, "differences": list}); err != nil {
			return err
		}
	case len(list) == 0:
		return a.printText(same)
	default:
		var b strings.Builder
		for _, d := range list {
			b.WriteString(safeLine(d) + "\n") // the names are from others
		}
		if err := a.write([]byte(b.String())); err != nil {
			return err
		}
	}
	if len(list) > 0 {
		return reported{errors.New("the tables differ")}
	}
	return nil
}

func newTablesRoundtrip(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "roundtrip TABLE",
		Short: "Read a table, write it again, and compare",
		Long: "Decodes every tool and encodes it again in its own layout. Prints identical, or the differences\n" +
			"with status 1.\n\n" +
			tablesHelp,
		Example: "  tenon tables roundtrip tools.arrow",
		Args:    args(1, 1, "the table"),
		RunE: func(cmd *cobra.Command, args []string) error {
			cfg, err := a.tablesConfig(cmd.Context())
			if err != nil {
				return err
			}
			list, err := table.Roundtrip(cmd.Context(), args[0], a.legacyRead(cfg),
				table.WriteOptions{BatchRows: cfg.Tables.BatchRows})
			if err != nil {
				return err
			}
			return a.differences(list, "identical")
		},
	}
}
