package cli

import (
	"context"
	"errors"
	"io"
	"math"
	"os"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/config"
	"github.com/tenonhq/tenon/internal/safezip"
	"github.com/tenonhq/tenon/table"
)

func newTablesConvert(a *app) *cobra.Command {
	c := &tableConvert{app: a}
	cmd := &cobra.Command{
		Use:   "convert INPUT --out FILE [--from FORMAT] [--to FORMAT] [--type COLUMN=TYPE]...",
		Short: "Convert between Arrow, CSV and JSON Lines",
		Long: "Converts a data table. The extensions of the files give the formats: .arrow, .arrows, .feather and\n" +
			".tooltable (arrow), .csv, .tsv, .jsonl and .ndjson; --from and --to give them otherwise. Rows are\n" +
			"converted one after another, so a file may be larger than memory.\n\n" +
			"CSV has a header line, and an empty field is a missing cell. The type of a column follows from all\n" +
			"of its values: integer, number, boolean or timestamp, otherwise string; --type overrides it.\n" +
			"Numbers that would change, such as 007 or one with more digits than a float has, and times with\n" +
			"nanoseconds are strings. In CSV, lists, structs and tools are JSON. In a table of one column, an\n" +
			"empty line is a missing cell. The column <RowID> has the row ids; --row-ids writes it.\n\n" +
			"The program tenon-parquet converts between Arrow and Parquet.\n\n" +
			tablesHelp,
		Example: "  tenon tables convert sales.csv --out sales.arrow --type zip=string\n" +
			"  tenon tables convert sales.arrow --out sales.jsonl\n" +
			"  curl -s $URL | tenon tables convert - --from csv --delimiter ';' --out - | tenon tables count -",
		Args: args(1, 1, "the input"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if c.to.out == "" {
				return usage(cmd, "--out is missing")
			}
			if err := c.check(args[0]); err != nil {
				return usage(cmd, "%s", err)
			}
			return c.run(cmd.Context(), args[0])
		},
	}
	f := cmd.Flags()
	f.StringVar(&c.from, "from", "", "`FORMAT` of the input: arrow, csv, tsv, jsonl")
	f.StringVar(&c.into, "to", "", "`FORMAT` of the output: arrow, csv, tsv, jsonl")
	f.StringArrayVar(&c.types, "type", nil, "type of a column, `COLUMN=TYPE`: string, integer, number, boolean, "+
		"timestamp; may be repeated")
	f.StringVar(&c.delimiter, "delimiter", "", "`CHARACTER` between the fields of CSV (default: a comma)")
	f.BoolVar(&c.rowIDs, "row-ids", false, "write the row ids to CSV and JSON lines")
	c.to.flags(cmd, false)
	return cmd
}

// tableConvert holds the flags of tables convert.
type tableConvert struct {
	*app
	from, into string
	types      []string
	delimiter  string
	rowIDs     bool
	to         tableOut

	source, target table.Format
	comma          rune
	columns        map[string]string
}

// check determines the formats and checks the flags that belong to them.
func (c *tableConvert) check(input string) error {
	var err error
	if c.source, err = formatOf("--from", c.from, input); err != nil {
		return err
	}
	if c.target, err = formatOf("--to", c.into, c.to.out); err != nil {
		return err
	}
	text := func(f table.Format) bool { return f == table.FormatCSV || f == table.FormatTSV }
	switch {
	case c.delimiter == "":
	case !text(c.source) && !text(c.target):
		return errors.New("--delimiter is for CSV")
	case utf8.RuneCountInString(c.delimiter) != 1 || strings.ContainsAny(c.delimiter, "\"\r\n\uFFFD"):
		return errors.New("--delimiter is one character, and no quote or line end")
	default:
		c.comma, _ = utf8.DecodeRuneInString(c.delimiter)
	}
	switch {
	case len(c.types) > 0 && c.source == table.FormatArrow:
		return errors.New("--type is for CSV and JSON lines; in an Arrow table, tenon tables query converts a " +
			"column with CAST")
	case c.rowIDs && c.target == table.FormatArrow:
		return errors.New("--row-ids is for CSV and JSON lines; an Arrow table always has row ids")
	case c.to.compress != "" && c.target != table.FormatArrow:
		return errors.New("--compress is for Arrow")
	}
	c.columns = map[string]string{}
	for _, t := range c.types {
		i := strings.LastIndexByte(t, '=')
		if i < 1 {
			return errors.New("--type must be COLUMN=TYPE, not '" + tenon.Visible(t) + "'")
		}
		c.columns[t[:i]] = t[i+1:]
	}
	return nil
}

// formatOf returns the format that a flag gives, or else the format of the file's name. An unnamed stream is Arrow.
func formatOf(flag, given, path string) (table.Format, error) {
	switch f := table.Format(given); {
	case f == table.FormatArrow || f == table.FormatCSV || f == table.FormatTSV || f == table.FormatJSONL:
		return f, nil
	case given == "parquet" || given == "" && strings.HasSuffix(strings.ToLower(path), ".parquet"):
		return "", errors.New("tenon reads and writes no Parquet; the separate program tenon-parquet converts it: " +
			"tenon-parquet IN.parquet OUT.arrow")
	case given != "":
		return "", errors.New(flag + " must be arrow, csv, tsv or jsonl, not '" + tenon.Visible(given) + "'")
	case path == "-":
		return table.FormatArrow, nil
	}
	if f := table.FormatOf(path); f != "" {
		return f, nil
	}
	return "", errors.New("the extension of " + tenon.Visible(path) + " names no format; use " + flag +
		" arrow, csv, tsv or jsonl")
}

func (c *tableConvert) run(ctx context.Context, input string) error {
	cfg, err := c.tablesConfig(ctx)
	if err != nil {
		return err
	}
	o, err := c.to.options(c.app, cfg)
	if c.to.out == "-" && c.target != table.FormatArrow {
		o, err = table.WriteOptions{}, nil // a text may go to a terminal
	}
	if err != nil {
		return err
	}
	n, err := c.convert(ctx, cfg, input, o)
	if err != nil {
		return err
	}
	return c.wrote(c.to.out, n)
}

func (c *tableConvert) convert(ctx context.Context, cfg *config.Config, input string,
	o table.WriteOptions) (n int64, err error) {
	if err := neverInPlace([]string{input}, []string{c.to.out}); err != nil {
		return 0, err
	}
	if c.source == table.FormatArrow {
		r, err := table.Open(ctx, input, c.legacyRead(cfg))
		if err != nil {
			return 0, err
		}
		defer closing(r, &err)
		if c.target == table.FormatArrow {
			return table.Concat(ctx, c.to.out, []*table.Reader{r}, o)
		}
		return table.Export(ctx, c.to.out, r, table.ExportOptions{Format: c.target, RowIDs: c.rowIDs,
			Delimiter: c.comma, Stdout: c.textOut(), Warn: func(text string) { c.note("%s", safeLine(text)) }})
	}
	in, done, err := c.openText(input)
	if err != nil {
		return 0, err
	}
	defer done()
	from := table.ImportOptions{Format: c.source, Types: c.columns, Delimiter: c.comma}
	if c.target == table.FormatArrow {
		n, err = table.Import(ctx, c.to.out, in, from, o)
		return n, inInput(input, err)
	}
	return c.between(ctx, input, in, from)
}

// between converts from one text format to another, through an Arrow stream.
func (c *tableConvert) between(ctx context.Context, input string, in io.ReadSeeker,
	from table.ImportOptions) (int64, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	read, write := io.Pipe()
	done := make(chan error, 1)
	go func() {
		_, err := table.Import(ctx, "-", in, from, table.WriteOptions{Stdout: write})
		_ = write.CloseWithError(err) // always nil (io.PipeWriter)
		done <- err
	}()
	n := int64(0)
	r, err := table.Open(ctx, "-", table.Options{Stdin: read})
	if err == nil {
		n, err = table.Export(ctx, c.to.out, r, table.ExportOptions{Format: c.target, RowIDs: c.rowIDs,
			Delimiter: c.comma, Stdout: c.textOut()})
	}
	cancel()
	_ = read.Close()
	if failed := <-done; failed != nil && err != nil && errors.Is(err, failed) {
		return 0, inInput(input, failed)
	}
	return n, err
}

// textOut returns stdout for a text. Another program gets the exact bytes, a terminal gets escapes.
func (c *tableConvert) textOut() io.Writer {
	if c.outTTY {
		return c.out
	}
	return beneath(c.out)
}

// openText opens a text that is read twice. Stdin and pipes are copied to a temporary file.
func (c *tableConvert) openText(input string) (in io.ReadSeeker, done func(), err error) {
	from := io.Reader(c.lines)
	if input != "-" {
		f, err := os.Open(input)
		if err != nil {
			if os.IsNotExist(err) {
				return nil, nil, tenon.Errorf(tenon.CodeNotFound, "there is no file %s", input)
			}
			return nil, nil, tenon.Errorf(tenon.CodeStore, "%s: %w", input, err)
		}
		if st, err := f.Stat(); err == nil && st.Mode().IsRegular() {
			return f, func() { _ = f.Close() }, nil // it was only read
		}
		defer f.Close() //nolint:errcheck // it was only read
		from = f
	}
	spool, err := safezip.NewSpool(input, math.MaxInt64, safezip.From(from))
	if err != nil {
		return nil, nil, tenon.Errorf(tenon.CodeStore, "%s: %w", input, err)
	}
	return spool.Section(), func() { _ = spool.Close() }, nil // a temporary file
}

func inInput(input string, err error) error {
	code := tenon.ErrorCode(err)
	if err == nil || code == tenon.CodeStore || code == tenon.CodeCancelled {
		return err
	}
	return tenon.Errorf(code, "%s: %w", input, err)
}
