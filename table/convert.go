package table

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/internal/rawjson"
)

// Format is a file format that [Import] and [Export] convert from and to.
type Format string

// The formats.
const (
	FormatArrow Format = "arrow" // an Arrow file, a stream or a bundle
	FormatCSV   Format = "csv"   // RFC 4180, with a header line
	FormatTSV   Format = "tsv"   // CSV with tabs
	FormatJSONL Format = "jsonl" // an object in each line
)

// FormatOf returns the format of a file name by its extension, or "" if the extension is not known.
func FormatOf(path string) Format {
	switch strings.ToLower(filepath.Ext(path)) {
	case ".arrow", ".arrows", ".feather", ".ipc", ".tooltable":
		return FormatArrow
	case ".csv":
		return FormatCSV
	case ".tsv":
		return FormatTSV
	case ".jsonl", ".ndjson":
		return FormatJSONL
	}
	return ""
}

// ImportOptions configure [Import].
type ImportOptions struct {
	Format Format // FormatCSV, FormatTSV or FormatJSONL
	// Types are the types of columns; see [WriteRows]. The types of other columns are inferred from all values.
	Types map[string]string
	// Delimiter separates the fields of CSV. 0 means a comma.
	Delimiter rune
}

// maxRecord bounds a row of the input in bytes.
const maxRecord = maxValueBytes

// Import writes a table of a CSV file or of JSON lines, and returns the number of rows. It reads the input twice: for
// the types of the columns, and for the values. Memory grows neither with the number of rows nor with the size of the
// input. The column "<RowID>" becomes the row ids. An empty field of CSV, an empty line if there is one column, and
// a key that an object does not have is a missing cell. Errors: invalid (with the row and the column), too_large,
// store, cancelled.
func Import(ctx context.Context, path string, in io.ReadSeeker, i ImportOptions, o WriteOptions) (int64, error) {
	o, err := o.withDefaults()
	if err != nil {
		return 0, err
	}
	types := inference{types: i.Types, at: map[string]int{}, guess: i.Format != FormatJSONL}
	err = i.records(ctx, in, types.columns, func(_ int64, record []any) error { return types.add(record) })
	if err != nil {
		return 0, err
	}
	if _, err := in.Seek(0, io.SeekStart); err != nil {
		return 0, tenon.Errorf(tenon.CodeStore, "the input cannot be read a second time: %w", err)
	}
	schema, err := types.schema()
	if err != nil {
		return 0, err
	}
	w, err := create(ctx, path, schema, nil, o)
	if err != nil {
		return 0, err
	}
	defer w.abort()
	b, waiting := array.NewRecordBuilder(memory.DefaultAllocator, schema), 0
	flush := func() error {
		if waiting == 0 {
			return nil
		}
		waiting = 0
		return w.write(ctx, b.NewRecordBatch())
	}
	err = i.records(ctx, in, types.columns, func(row int64, record []any) error {
		id := "Row" + strconv.FormatInt(row, 10)
		for c := range types.names {
			var cell any
			if c < len(record) {
				cell = record[c]
			}
			if c == types.rowID {
				if text, ok := cell.(string); ok {
					id = text
				}
				continue
			}
			if err := appendCell(b.Field(types.field(c)), cell); err != nil {
				return invalid("row %d, column '%s': %w", row, tenon.Visible(types.names[c]), err)
			}
		}
		b.Field(0).(*array.StringBuilder).Append(id)
		if waiting++; waiting >= o.BatchRows {
			return flush()
		}
		return nil
	})
	if err == nil {
		err = flush()
	}
	if err == nil {
		err = w.commit()
	}
	return w.rows, err
}

// records passes the rows of the input to a function. columns returns the index of a column by its name. A record has a
// cell for each known column, or fewer: nil, bool, string, json.Number or json.RawMessage. It is valid until the next
// call.
func (i *ImportOptions) records(ctx context.Context, in io.Reader, columns func(name string) (int, error),
	do func(row int64, record []any) error) error {
	limited := &recordLimit{from: in}
	counted := func(row int64, record []any) error {
		limited.n = 0
		if row%1024 == 0 && ctx.Err() != nil {
			return tenon.Errorf(tenon.CodeCancelled, "%w", context.Cause(ctx))
		}
		return do(row, record)
	}
	if i.Format == FormatJSONL {
		return jsonLines(limited, columns, counted)
	}
	return i.delimited(limited, columns, counted)
}

// recordLimit refuses to read a record of more than maxRecord bytes, such as CSV with a quote that does not end.
type recordLimit struct {
	from io.Reader
	n    int64 // bytes since the last record
}

func (l *recordLimit) Read(b []byte) (int, error) {
	if l.n > maxRecord {
		return 0, tenon.Errorf(tenon.CodeTooLarge, "a row has more than %d bytes; a quote may be missing",
			int64(maxRecord))
	}
	n, err := l.from.Read(b)
	l.n += int64(n)
	return n, err
}

func (i *ImportOptions) delimited(in io.Reader, columns func(string) (int, error),
	do func(int64, []any) error) error {
	delimiter := i.Delimiter
	switch {
	case delimiter == 0 && i.Format == FormatTSV:
		delimiter = '\t'
	case delimiter == 0:
		delimiter = ','
	}
	r, m, err := readHeader(in, nil, delimiter)
	if err != nil {
		return err
	}
	at := make([]int, len(m.names))
	for k, name := range m.names {
		if at[k], err = columns(name); err != nil {
			return err
		}
	}
	record := make([]any, len(at))
	for row := int64(0); ; row++ {
		fields, err := r.Read()
		var te *tenon.Error
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case errors.As(err, &te):
			return err
		case err != nil:
			return invalid("%w", err)
		}
		for k, v := range fields {
			record[at[k]] = nil
			if !utf8.ValidString(v) {
				return notUTF8(r, k, m.names[k])
			}
			if v != "" {
				record[at[k]] = v
			}
		}
		if err := do(row, record); err != nil {
			return err
		}
	}
}

func jsonLines(in io.Reader, columns func(string) (int, error), do func(int64, []any) error) error {
	lines := bufio.NewScanner(in)
	lines.Buffer(make([]byte, 1<<16), maxRecord)
	row := int64(0)
	var record []any
	for n := 1; lines.Scan(); n++ {
		line := strings.TrimSpace(strings.TrimPrefix(lines.Text(), "\ufeff"))
		if line == "" {
			continue
		}
		wrong := func(err error) error { return invalid("line %d: %w", n, err) }
		if err := rawjson.Check([]byte(line), rawjson.Rules{}); err != nil {
			return wrong(err)
		}
		if !rawjson.IsObject([]byte(line)) {
			return wrong(fmt.Errorf("a row must be an object of columns: %s", tenon.Visible(line[:min(len(line), 60)])))
		}
		clear(record)
		seen := map[int]bool{}
		for key, v := range rawjson.Members([]byte(line)) {
			k, err := columns(string(key))
			if err != nil {
				return wrong(err)
			}
			if seen[k] {
				return wrong(fmt.Errorf("column '%s' occurs twice", tenon.Visible(string(key))))
			}
			seen[k] = true
			for k >= len(record) {
				record = append(record, nil)
			}
			record[k] = cellOf(v)
		}
		if err := do(row, record); err != nil {
			return err
		}
		row++
	}
	err := lines.Err()
	if errors.Is(err, bufio.ErrTooLong) {
		return tenon.Errorf(tenon.CodeTooLarge, "row %d has more than %d bytes", row, int64(maxRecord))
	}
	var te *tenon.Error
	if err != nil && !errors.As(err, &te) {
		return tenon.Errorf(tenon.CodeStore, "the input cannot be read: %w", err)
	}
	return err
}

// inference collects the columns of an input and infers their types.
type inference struct {
	types map[string]string
	guess bool // a text may be a value of another type
	names []string
	at    map[string]int
	could [][]string // for each column: the types that fit all values so far
	some  []bool     // for each column: whether there was a value
	rowID int        // the column of row ids, or -1
	done  bool       // no further columns are allowed
}

// columns returns the index of a column.
func (f *inference) columns(name string) (int, error) {
	if i, ok := f.at[name]; ok {
		return i, nil
	}
	switch {
	case f.done:
		return 0, errors.New("the input has changed while it was read")
	case len(f.names) >= maxMadeColumns:
		return 0, fmt.Errorf("there are more than %d columns", maxMadeColumns)
	}
	f.at[name] = len(f.names)
	f.names = append(f.names, name)
	could := []string{"integer", "number", "boolean"}
	if f.guess {
		could = append(could, "timestamp")
	}
	f.could, f.some = append(f.could, could), append(f.some, false)
	return len(f.names) - 1, nil
}

// add narrows the types by the values of a record.
func (f *inference) add(record []any) error {
	for i, v := range record {
		if v == nil || f.types[f.names[i]] != "" {
			continue
		}
		f.some[i] = true
		f.could[i] = slices.DeleteFunc(f.could[i], func(t string) bool { return !isOf(v, t, f.guess) })
	}
	return nil
}

// schema returns the schema of the table. No columns may be added after this call.
func (f *inference) schema() (*arrow.Schema, error) {
	f.done, f.rowID = true, -1
	for _, name := range slices.Sorted(maps.Keys(f.types)) {
		if _, ok := f.at[name]; !ok {
			return nil, invalid("the input has no column '%s'; its columns: %s", tenon.Visible(name),
				tenon.Visible(strings.Join(f.names, ", ")))
		}
	}
	fields := []arrow.Field{{Name: RowID, Type: arrow.BinaryTypes.String}}
	for i, name := range f.names {
		typ := f.types[name]
		switch {
		case name == RowID:
			f.rowID = i
			continue
		case typ == "" && f.some[i] && len(f.could[i]) > 0:
			typ = f.could[i][0]
		case typ == "":
			typ = "string"
		}
		if arrowTypes[typ] == nil {
			return nil, invalid("column '%s': unknown type '%s'; types are string, integer, number, boolean and "+
				"timestamp", tenon.Visible(name), tenon.Visible(typ))
		}
		fields = append(fields, arrow.Field{Name: name, Type: arrowTypes[typ], Nullable: true})
	}
	return arrow.NewSchema(fields, nil), nil
}

// field returns the index of a column in the schema.
func (f *inference) field(column int) int {
	if f.rowID >= 0 && column > f.rowID {
		return column
	}
	return column + 1
}

var _ json.Unmarshaler = (*Tool)(nil)
