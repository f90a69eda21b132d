package main

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
	cmd := group("tables", "Arrow tables of tools, data and conversations: show, query, join, check, compare", "table")
	cmd.AddCommand(newTablesShow(a), newTablesSchema(a), newTablesCount(a), newTablesQuery(a), newTablesConcat(a), newTablesMigrate(a), newTablesCheck(a),
		newTablesDiff(a), newTablesRoundtrip(a))
	return cmd
}

const tablesHelp = "A table is an Arrow IPC file, an Arrow stream, or a .tooltable: a zip of a table with the files of its tools.\n" +
	"Without a zip these lie in a folder, TABLE.filestore. The name - is stdin."

// tableOptions says how tables are read, as it is configured.
func (a *app) tableOptions(cfg *config.Config) table.Options {
	return table.Options{Stdin: a.lines, Legacy: cfg.Tables.WithDefaults().Legacy.Read, Warn: func(text string) { a.note("%s", text) }}
}

// legacyRead is tableOptions for verbs that may read the deprecated type whatever is
// configured: those that show what a table is, or make another one of it.
func (a *app) legacyRead(cfg *config.Config) table.Options {
	o := a.tableOptions(cfg)
	o.Legacy = table.LegacyAllow
	return o
}

// tablesConfig loads the configuration for its block tables; without one the
// defaults hold. The tables that it names may be those that are looked at because
// something is wrong with them.
func (a *app) tablesConfig(ctx context.Context) (*config.Config, error) {
	o := a.configOptions()
	o.NoTables = true
	return a.loadWith(ctx, o)
}

// tableOut is the flags of verbs that write a table.
type tableOut struct {
	out, layout, compress string
}

func (t *tableOut) flags(cmd *cobra.Command, layout bool) {
	cmd.Flags().StringVar(&t.out, "out", "", "`FILE` to write: .arrow, or .tooltable for a bundle; - is stdout, as a stream")
	cmd.Flags().StringVar(&t.compress, "compress", "", "compress the table: `METHOD` lz4")
	if layout {
		cmd.Flags().StringVar(&t.layout, "layout", "", "`LAYOUT` of tools: seed9, java10, legacy6 (default: tables.layout, else seed9)")
	}
}

func (t *tableOut) options(a *app, cfg *config.Config) (table.WriteOptions, error) {
	c := cfg.Tables.WithDefaults()
	o := table.WriteOptions{Layout: table.Layout(c.Layout), BatchRows: c.BatchRows, Stdout: a.out, Warn: func(text string) { a.note("%s", text) }}
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
		return o, tenon.Errorf(tenon.CodeInvalid, "a table is not written to a terminal: name a file, or send it to another command")
	}
	return o, table.CheckLayout(o.Layout)
}

// oneStdin refuses stdin for more than one table. Flag is the one that names the tables, if one
// does.
func oneStdin(flag string, files []string) error {
	n := 0
	for _, f := range files {
		if f == "-" {
			n++
		}
	}
	if n > 1 {
		return tenon.Errorf(tenon.CodeInvalid, "stdin is one table: %s is given %d times", strings.TrimSpace(flag+" -"), n)
	}
	return nil
}

// readTable opens a table and does something with it.
func (a *app) readTable(ctx context.Context, path string, legacy bool, do func(*config.Config, *table.Reader) error) (err error) {
	cfg, err := a.tablesConfig(ctx)
	if err != nil {
		return err
	}
	o := a.tableOptions(cfg)
	if legacy {
		o = a.legacyRead(cfg)
	}
	r, err := table.Open(path, o)
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
		Long: "Prints a line for each column beside the row ids: its name and its type. Of a tool column it is the logical type,\n" +
			"with what the table says of it; --storage shows the struct that is stored. --metadata adds what the table says\n" +
			"about itself.\n\n" + tablesHelp,
		Example: "  tenon tables schema tools.arrow\n  tenon tables schema tools.arrow --storage --metadata",
		Args:    args(1, 1, "the table"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.readTable(cmd.Context(), args[0], true, func(_ *config.Config, r *table.Reader) error {
				if a.isJSON() {
					cols := r.Columns()
					if cols == nil {
						cols = []table.Column{}
					}
					return a.printJSON(map[string]any{"columns": cols, "row_id": r.HasRowID(), "metadata": r.Metadata()})
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
	cmd.Flags().BoolVar(&storage, "storage", false, "the types that are stored")
	cmd.Flags().BoolVar(&metadata, "metadata", false, "also what the table says about itself")
	return cmd
}

func newTablesCount(a *app) *cobra.Command {
	return &cobra.Command{
		Use:     "count TABLE",
		Short:   "Print the number of rows of a table",
		Long:    "Reads the whole table and prints the number of its rows; with -o json also the rows of its batches, the first 1000.\n\n" + tablesHelp,
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
		Long: "Joins tables row after row. Columns of one name become one, and so do the tool columns of tables that have one each,\n" +
			"whatever layouts they are stored in. What a table does not have is missing in its rows; equal row ids get _dup.\n" +
			"Tools of kinds that are not known are kept. Files of the tools go with them.\n\n" + tablesHelp,
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
		Long: "Writes a table of the deprecated type WorkflowToolValueFactory, or of any other layout, in the layout that is\n" +
			"asked for. The table itself is never changed. legacy6 holds workflow tools alone.\n\n" + tablesHelp,
		Example: "  tenon tables migrate old.arrow --out new.arrow\n  tenon tables migrate new.arrow --layout legacy6 --out old.arrow",
		Args:    args(1, 1, "the table"),
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
			if e := r.Close(); err == nil {
				err = e
			}
		}
	}()
	for _, p := range paths {
		r, err := table.Open(p, read)
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

// wrote tells of a table that was written.
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

// wroteBeside says what was written beside a result, which has stdout to itself.
func (a *app) wroteBeside(path string, rows int64) {
	if path != "-" {
		a.hint("%s: %s", path, plural(int(rows), "row"))
	}
}

func newTablesCheck(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "check TABLE",
		Short: "Check that a table is whole and its tools are sound",
		Long: "Reads the whole table. Of each tool it checks that the fields of its kind are set and those of the other are not, its\n" +
			"schema, address, ports, and the files of its workflow with their checksums. It prints ok; what is wrong is told\n" +
			"with row and field, and ends with status 2.\n\n" + tablesHelp,
		Example: "  tenon tables check tools.arrow",
		Args:    args(1, 1, "the table"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.readTable(cmd.Context(), args[0], true, func(_ *config.Config, r *table.Reader) error {
				flaws, err := r.Check(cmd.Context())
				if err != nil {
					return err
				}
				if a.isJSON() {
					if flaws == nil {
						flaws = []table.Flaw{}
					}
					if err := a.printJSON(map[string]any{"ok": len(flaws) == 0, "flaws": flaws}); err != nil {
						return err
					}
				}
				if len(flaws) == 0 {
					if a.isJSON() {
						return nil
					}
					return a.printText("ok")
				}
				for _, f := range flaws {
					a.note("%s: %s", r.Name(), safeLine(f.String()))
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
		Long: "Compares columns, row ids and every cell as it is stored, and prints identical, or what differs with status 1. How\n" +
			"rows are cut into batches and compressed does not count. --semantic compares what the tools of two tables mean,\n" +
			"whatever the layout, and prints same tools.\n\n" + tablesHelp,
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
	cmd.Flags().BoolVar(&semantic, "semantic", false, "what the tools mean, not how they are stored")
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
			b.WriteString(safeLine(d) + "\n") // names in it are anybody's
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
		Long: "Decodes every tool, encodes it again in its own layout, and prints identical, or what differs with status 1.\n\n" +
			tablesHelp,
		Example: "  tenon tables roundtrip tools.arrow",
		Args:    args(1, 1, "the table"),
		RunE: func(cmd *cobra.Command, args []string) error {
			cfg, err := a.tablesConfig(cmd.Context())
			if err != nil {
				return err
			}
			list, err := table.Roundtrip(cmd.Context(), args[0], a.legacyRead(cfg), table.WriteOptions{BatchRows: cfg.Tables.BatchRows})
			if err != nil {
				return err
			}
			return a.differences(list, "identical")
		},
	}
}
