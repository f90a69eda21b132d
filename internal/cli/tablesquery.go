package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/config"
	"github.com/tenonhq/tenon/internal/lazyregexp"
	"github.com/tenonhq/tenon/table"
)

func newTablesQuery(a *app) *cobra.Command {
	q := &tableQuery{app: a, show: tableShow{app: a, limit: -1}}
	cmd := &cobra.Command{
		Use:   "query SQL [NAME=TABLE]... [--param KEY=TEXT]... [--out FILE]",
		Short: "Query tables with SQL",
		Long: "Runs one SELECT in SQLite's SQL over the given tables, and prints the rows as tables show does, or\n" +
			"writes them as a table with --out. Without NAME= a table has the name of its file. The query reads\n" +
			"only these tables, and only the columns that it names.\n\n" +
			"Integers are exact, and an overflow is an error; in a query with floats SQL calculates with a float\n" +
			"instead, which is rounded. Decimals calculate as floats and are returned exactly. Dates and times\n" +
			"are texts in UTC, in the format of SQLite's functions. Booleans are 0 and 1; lists, structs and\n" +
			"tools are JSON; NaN is null. A column that is not computed keeps its type. Row ids are the column\n" +
			"\"<RowID>\", if a query names it.\n\n" +
			"--param KEY=TEXT gives the value of :KEY as a text, and KEY:=JSON gives any other value.\n\n" +
			tablesHelp,
		Example: "  tenon tables query 'SELECT city, sum(amount) AS total FROM sales GROUP BY city' sales.arrow\n" +
			"  tenon tables query 'SELECT * FROM a JOIN b USING (id) WHERE n > :least' a=x.arrow b=y.arrow --param " +
			"least:=3 --out j.arrow\n" +
			"  tenon tools list --out - | tenon tables query \"SELECT json_extract(Tools, '$.name') AS name " +
			"FROM t\" t=-",
		Args: args(1, -1, "the query"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if q.limit < 0 || q.limit == 0 && cmd.Flags().Changed("limit") || q.timeout <= 0 {
				return usage(cmd, "--limit is a number of rows above 0, --timeout a duration above 0")
			}
			if q.show.csv && (a.isJSON() || q.to.out != "") {
				return usage(cmd, "--csv cannot be combined with -o and --out")
			}
			files := make([]string, len(args)-1)
			for i, arg := range args[1:] {
				_, files[i] = named(arg)
			}
			if err := oneStdin("", files); err != nil {
				return usage(cmd, "%s", err)
			}
			if q.limit > 0 {
				q.show.limit = q.limit
			}
			ctx, cancel := context.WithTimeoutCause(cmd.Context(), q.timeout, fmt.Errorf("--timeout is %s", q.timeout))
			defer cancel()
			return q.run(ctx, args[0], args[1:])
		},
	}
	cmd.Flags().StringArrayVar(&q.params, "param", nil, "value of a parameter, `KEY=TEXT` or KEY:=JSON; may be "+
		"repeated")
	cmd.Flags().Int64Var(&q.limit, "limit", 0, "at most `N` rows (default: all)")
	cmd.Flags().DurationVar(&q.timeout, "timeout", 5*time.Minute, "end the query after this `TIME`")
	cmd.Flags().BoolVar(&q.show.csv, "csv", false, "as CSV")
	q.to.flags(cmd, false)
	return cmd
}

// tableQuery holds the flags of tables query.
type tableQuery struct {
	*app
	params  []string
	limit   int64
	timeout time.Duration
	to      tableOut
	show    tableShow
}

// sqlName matches a name of a table before the =.
var sqlName = lazyregexp.New(`^[\pL_][\pL\pN_]*$`)

// named splits NAME=TABLE.
func named(arg string) (name, path string) {
	if n, p, ok := strings.Cut(arg, "="); ok && sqlName().MatchString(n) {
		return n, p
	}
	if arg == "-" {
		return "stdin", arg
	}
	return strings.TrimSuffix(filepath.Base(arg), filepath.Ext(arg)), arg
}

func (q *tableQuery) run(ctx context.Context, sql string, tables []string) (err error) {
	cfg, err := q.tablesConfig(ctx)
	if err != nil {
		return err
	}
	query := table.Query{SQL: sql, Rows: q.limit}
	words, err := wordParams(q.params)
	if err != nil {
		return err
	}
	d := json.NewDecoder(bytes.NewReader(words))
	d.UseNumber() // integers are exact
	if err := d.Decode(&query.Params); err != nil {
		return tenon.Errorf(tenon.CodeInvalid, "--param: %w", err)
	}
	defer func() {
		for _, in := range query.Tables {
			e := in.Reader.Close()
			if err == nil {
				err = e
			}
		}
	}()
	for _, arg := range tables {
		name, path := named(arg)
		r, err := table.Open(ctx, path, q.legacyRead(cfg))
		if err != nil {
			return err
		}
		query.Tables = append(query.Tables, table.Input{Name: name, Reader: r})
	}
	if q.to.out == "" {
		return q.print(ctx, cfg, query)
	}
	o, err := q.to.options(q.app, cfg)
	if err != nil {
		return err
	}
	got, err := table.Select(ctx, query, q.to.out, o)
	if err != nil {
		return err
	}
	return q.wrote(q.to.out, got.Rows)
}

// print prints the rows while the query runs.
func (q *tableQuery) print(ctx context.Context, cfg *config.Config, query table.Query) error {
	whole := ctx
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	query.Shown = q.isJSON() // text output shows the row ids in any case
	from, to := io.Pipe()
	done := make(chan error, 1)
	go func() {
		_, err := table.Select(ctx, query, "-", table.WriteOptions{Stdout: to, BatchRows: cfg.Tables.BatchRows})
		_ = to.CloseWithError(err) // always nil (io.PipeWriter)
		done <- err
	}()
	r, err := table.Open(ctx, "-", table.Options{Stdin: from, Legacy: table.LegacyAllow})
	if err == nil {
		err = q.show.show(ctx, r)
	}
	cancel() // no more rows are needed
	_ = from.Close()
	failed := <-done
	if failed != nil && err != nil && (errors.Is(err, failed) || whole.Err() != nil) {
		return failed // the reader only wraps this error
	}
	return err // the query failed only because the reader stopped
}
