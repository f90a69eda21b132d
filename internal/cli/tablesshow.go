package cli

import (
	"context"
	"encoding/csv"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/config"
	"github.com/tenonhq/tenon/table"
)

func newTablesShow(a *app) *cobra.Command {
	s := &tableShow{app: a}
	cmd := &cobra.Command{
		Use:   "show TABLE [--limit N] [--skip N] [--raw] [--csv]",
		Short: "Show the rows of a table",
		Long: "Prints the rows: aligned on a terminal, otherwise separated by tabs. Messages are shown with their\n" +
			"roles. A table of only tools shows the name and server of each tool, and first the index for\n" +
			"tools call --row. With -o json a row is an object of the columns, or the tool in a table of\n" +
			"only tools, or the message of a conversation; a missing cell is null. --raw shows the stored\n" +
			"values and the row ids. --csv prints a header line and the rows as CSV (RFC 4180).\n\n" +
			tablesHelp,
		Example: "  tenon tables show tools.arrow\n  tenon tables show tools.arrow -o json | jq -r .[].name\n" +
			"  tenon tables show data.arrow --skip 100 --limit 10 --csv",
		Args: args(1, 1, "the table"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if s.limit < 0 || s.skip < 0 {
				return usage(cmd, "--limit and --skip must not be negative")
			}
			if s.csv && (a.isJSON() || s.raw) {
				return usage(cmd, "--csv cannot be combined with -o and --raw")
			}
			if !cmd.Flags().Changed("limit") {
				s.limit = -1
			}
			return a.readTable(cmd.Context(), args[0], true, func(_ *config.Config, r *table.Reader) error {
				return s.show(cmd.Context(), r)
			})
		},
	}
	cmd.Flags().Int64Var(&s.limit, "limit", 0, "at most `N` rows (default: all; 100 on a terminal)")
	cmd.Flags().Int64Var(&s.skip, "skip", 0, "skip the first `N` rows")
	cmd.Flags().BoolVar(&s.raw, "raw", false, "show the stored values and the row ids")
	cmd.Flags().BoolVar(&s.csv, "csv", false, "as CSV")
	return cmd
}

// tableShow holds the flags of tables show.
type tableShow struct {
	*app
	limit, skip int64
	raw, csv    bool
}

// terminalRows is the default number of rows on a terminal. It is also the number of rows that are aligned together.
const terminalRows = 100

// rows passes up to limit rows to a function. more reports whether the table has more.
func (s *tableShow) rows(ctx context.Context, r *table.Reader, limit int64, do func(table.Cells) error) (more bool,
	err error) {
	for row, err := range r.Rows(ctx) {
		if err != nil {
			return false, err
		}
		if row.Index < s.skip {
			continue
		}
		if limit >= 0 && row.Index >= s.skip+limit {
			return true, nil
		}
		err := do(row)
		switch {
		case table.IsCellError(err):
			s.note("%s; the row is left out", safeLine(err.Error()))
		case err != nil:
			return false, err
		}
	}
	return false, nil
}

func (s *tableShow) show(ctx context.Context, r *table.Reader) error {
	switch {
	case s.isJSON():
		return s.json(ctx, r)
	case s.csv:
		return s.asCSV(ctx, r)
	}
	header, cells := s.textColumns(r)
	limit := s.limit
	if limit < 0 && s.outTTY {
		limit = terminalRows
	}
	var page [][]string
	more, err := s.rows(ctx, r, limit, func(row table.Cells) error {
		line, err := cells(row)
		if err != nil {
			return err
		}
		if s.outTTY {
			for i := range line { // a cell is never shown wider than a line
				line[i] = shorten(line[i], s.width())
			}
		}
		if page = append(page, line); len(page) < terminalRows || s.outTTY && limit <= terminalRows {
			return nil
		}
		err = s.table(header, s.narrow(header, page))
		page = nil
		return err
	})
	if err != nil {
		return err
	}
	if len(page) > 0 || s.outTTY {
		err = s.table(header, s.narrow(header, page))
	}
	if more && s.limit < 0 {
		s.hint("there are more rows; --limit shows them")
	}
	return err
}

// narrow shortens cells so that all columns fit the terminal, the widest columns first. The index and the row id are
// never shortened.
func (a *app) narrow(header []string, page [][]string) [][]string {
	if !a.outTTY {
		return page
	}
	const least, gap = 12, 2
	whole := 1
	if header[0] == indexed {
		whole = 2
	}
	widths, sum := widest(header, page), 0
	for _, w := range widths {
		sum += w + gap
	}
	for ; sum > a.width() && len(widths) > whole; sum-- {
		most := whole
		for i := whole + 1; i < len(widths); i++ {
			if widths[i] > widths[most] {
				most = i
			}
		}
		if widths[most] <= least {
			break
		}
		widths[most]--
	}
	for _, line := range page {
		for i := whole; i < len(line); i++ {
			line[i] = shorten(line[i], widths[i])
		}
	}
	return page
}

// indexed is the header of the index column.
const indexed = "#"

// textColumns returns the columns of the text output. A table of tools shows the index of the row for --row. Row ids
// look like indexes but differ from them in concatenated tables.
func (s *tableShow) textColumns(r *table.Reader) (header []string, cells func(table.Cells) ([]string, error)) {
	if s.raw {
		return storedColumns(r)
	}
	columns, texts := r.View()
	tools := r.Single() && r.Columns()[0].IsTool()
	if tools {
		header = append(header, indexed)
	}
	header = append(header, "row")
	for _, c := range columns {
		header = append(header, c.Name)
	}
	return header, func(row table.Cells) ([]string, error) {
		list, err := texts(row)
		if err != nil {
			return nil, err
		}
		line := make([]string, 0, len(header))
		if header[0] == indexed {
			line = append(line, strconv.FormatInt(row.Index, 10))
		}
		line = append(line, row.ID)
		for _, text := range list {
			switch {
			case text != nil:
				line = append(line, *text)
			case tools:
				line = append(line, "-")
			default:
				line = append(line, "")
			}
		}
		last := &line[len(line)-1]
		switch {
		case tools && list[0] == nil:
			*last = "missing"
		case tools:
			*last = about(*last)
		}
		return line, nil
	}
}

// storedColumns returns the columns with the stored values.
func storedColumns(r *table.Reader) (header []string, cells func(table.Cells) ([]string, error)) {
	header = []string{"row"}
	for _, c := range r.Columns() {
		header = append(header, c.Name)
	}
	return header, func(row table.Cells) ([]string, error) {
		line := []string{row.ID}
		for _, c := range r.Columns() {
			v, err := row.Value(c, true)
			if err != nil {
				return nil, err
			}
			line = append(line, string(v))
		}
		return line, nil
	}
}

// json prints an array, or with -o jsonl a line for each row. Rows are written one by one, because a table may be
// larger than memory.
func (s *tableShow) json(ctx context.Context, r *table.Reader) error {
	if s.format == formatJSONL {
		_, err := s.rows(ctx, r, s.limit, func(row table.Cells) error {
			b, err := row.JSON(s.raw)
			if err != nil {
				return err
			}
			return s.printRaw(b)
		})
		return err
	}
	if s.outTTY {
		list := []any{}
		_, err := s.rows(ctx, r, s.limit, func(row table.Cells) error {
			b, err := row.JSON(s.raw)
			list = append(list, b)
			return err
		})
		if err != nil {
			return err
		}
		return s.printJSON(list)
	}
	first := true
	_, err := s.rows(ctx, r, s.limit, func(row table.Cells) error {
		b, err := row.JSON(s.raw)
		if err != nil {
			return err
		}
		sep := ","
		if first {
			sep, first = "[", false
		}
		return s.writeBytes(append([]byte(sep), tenon.EscapeJSON(b)...))
	})
	if err != nil {
		return err
	}
	if first {
		return s.writeBytes([]byte("[]\n"))
	}
	return s.writeBytes([]byte("]\n"))
}

func (s *tableShow) asCSV(ctx context.Context, r *table.Reader) error {
	out := s.out
	if !s.outTTY { // CSV has no escapes, so another program gets the exact values
		out = beneath(out)
	}
	w := csv.NewWriter(out)
	line := []string{table.RowID}
	for _, c := range r.Columns() {
		line = append(line, c.Name)
	}
	put := func() error {
		err := w.Write(line)
		if err == nil && s.outTTY {
			w.Flush()
		}
		if err == nil {
			err = w.Error()
		}
		return unwritten(err)
	}
	if err := put(); err != nil {
		return err
	}
	_, err := s.rows(ctx, r, s.limit, func(row table.Cells) error {
		line = append(line[:0], row.ID)
		for _, c := range r.Columns() {
			text, err := row.Text(c)
			if err != nil {
				return err
			}
			line = append(line, text)
		}
		return put()
	})
	w.Flush()
	if err == nil {
		err = unwritten(w.Error())
	}
	return err
}

// rowIndex parses --row.
func rowIndex(s string) (int64, error) {
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil || n < 0 {
		return 0, tenon.Errorf(tenon.CodeInvalid, "--row '%s' is not a row index; the first row is 0", s)
	}
	return n, nil
}
