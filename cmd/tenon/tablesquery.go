package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/config"
	"github.com/tenonhq/tenon/table"
)

func newTablesQuery(a *app) *cobra.Command {
	q := &tableQuery{app: a, show: tableShow{app: a, limit: -1}}
	cmd := &cobra.Command{
		Use:   "query SQL [NAME=TABLE]... [--param KEY=TEXT]... [--out FILE]",
		Short: "Ask tables in SQL",
		Long: "Runs one SELECT, in the SQL of SQLite, over the tables that are given, and prints the rows as tables show does, or\n" +
			"writes them as a table with --out. A table without a name has that of its file. The query reads these tables and\n" +
			"nothing else, and only the columns that it names.\n\n" +
			"Integers are exact; decimals calculate as floats and come back whole; dates and times are texts, in UTC, as\n" +
			"SQLite's functions take them; booleans are 0 and 1; lists, structs and tools are JSON; NaN is null. A column that\n" +
			"is not computed keeps its type. Row ids are the column \"<RowID>\", where a query names it.\n\n" +
			"--param KEY=TEXT gives the value of :KEY as a text, KEY:=JSON as any other.\n\n" + tablesHelp,
		Example: "  tenon tables query 'SELECT city, sum(amount) AS total FROM sales GROUP BY city' sales.arrow\n" +
			"  tenon tables query 'SELECT * FROM a JOIN b USING (id) WHERE n > :least' a=x.arrow b=y.arrow --param least:=3 --out j.arrow\n" +
			"  tenon tools list --out - | tenon tables query \"SELECT json_extract(Tools, '$.name') AS name FROM t\" t=-",
		Args: args(1, -1, "the query"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if q.limit < 0 || q.limit == 0 && cmd.Flags().Changed("limit") || q.timeout <= 0 {
				return usage(cmd, "--limit is a number of rows above 0, --timeout a duration above 0")
			}
			if q.show.csv && (a.isJSON() || q.to.out != "") {
				return usage(cmd, "--csv does not go with -o and --out")
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
	cmd.Flags().StringArrayVar(&q.params, "param", nil, "value of a parameter, `KEY=TEXT` or KEY:=JSON; may be repeated")
	cmd.Flags().Int64Var(&q.limit, "limit", 0, "at most `N` rows (default: all)")
	cmd.Flags().DurationVar(&q.timeout, "timeout", 5*time.Minute, "end the query after this `TIME`")
	cmd.Flags().BoolVar(&q.show.csv, "csv", false, "as CSV")
	q.to.flags(cmd, false)
	return cmd
}

// tableQuery is one tables query.
type tableQuery struct {
	*app
	params  []string
	limit   int64
	timeout time.Duration
	to      tableOut
	show    tableShow
}

// sqlName is what may stand before the = of a table.
var sqlName = regexp.MustCompile(`^[\pL_][\pL\pN_]*$`)

// named splits NAME=TABLE.
func named(arg string) (name, path string) {
	if n, p, ok := strings.Cut(arg, "="); ok && sqlName.MatchString(n) {
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
			if e := in.Reader.Close(); err == nil {
				err = e
			}
		}
	}()
	for _, arg := range tables {
		name, path := named(arg)
		r, err := table.Open(path, q.legacyRead(cfg))
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

// print shows the rows as they come.
func (q *tableQuery) print(ctx context.Context, cfg *config.Config, query table.Query) error {
	whole := ctx
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	query.Shown = q.isJSON() // texts begin with row ids in any case
	from, to := io.Pipe()
	done := make(chan error, 1)
	go func() {
		_, err := table.Select(ctx, query, "-", table.WriteOptions{Stdout: to, BatchRows: cfg.Tables.BatchRows})
		_ = to.CloseWithError(err) // it has no error of its own
		done <- err
	}()
	r, err := table.Open("-", table.Options{Stdin: from, Legacy: table.LegacyAllow})
	if err == nil {
		err = q.show.show(ctx, r)
	}
	cancel() // what is not shown is not asked for
	_ = from.Close()
	failed := <-done
	if failed != nil && err != nil && (errors.Is(err, failed) || whole.Err() != nil) {
		return failed // without what reading it makes of it
	}
	return err // what ends the query when nobody reads on is no failure of it
}
