package table

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/tenonhq/tenon"
)

// source is a table of a query.
type source struct {
	name    string
	reader  *Reader
	columns []*sourceColumn
	used    bool
}

// sourceColumn is a column of a table of a query.
type sourceColumn struct {
	name   string // in SQL: unique without regard to case
	field  arrow.Field
	column Column
	rowID  bool
	used   bool
	// exact maps the bits of a float to the digits of the number that it approximates, for numbers
	// that a float cannot hold exactly.
	exact map[uint64]string
	plain map[uint64]struct{} // bits of exact floats, if the column may also have inexact ones
	// beside contains other columns whose values the result column may contain, because SQLite reports only one of the
	// origins of a UNION.
	beside []*sourceColumn
}

// newSource returns a table of a query. If rowIDs is true, the row ids are a column.
func newSource(name string, r *Reader, rowIDs bool) (*source, error) {
	s := &source{name: name, reader: r}
	seen := map[string]bool{}
	add := func(c *sourceColumn) {
		c.name = cmp.Or(strings.ToValidUTF8(strings.ReplaceAll(c.name, "\x00", ""), "\uFFFD"), "column")
		base := c.name
		for n := 1; seen[strings.ToLower(c.name)]; n++ {
			c.name = base + "_" + strconv.Itoa(n)
		}
		seen[strings.ToLower(c.name)] = true
		s.columns = append(s.columns, c)
	}
	if rowIDs {
		add(&sourceColumn{name: RowID, field: arrow.Field{Name: RowID, Type: arrow.BinaryTypes.String}, rowID: true})
	}
	for _, c := range r.columns {
		f := r.schema.Field(c.at)
		if t, ok := f.Type.(*arrow.RunEndEncodedType); ok { // run-end encoding is only a storage form
			f.Type = t.Encoded()
		}
		add(&sourceColumn{name: c.Name, field: f, column: c})
	}
	switch {
	case len(s.columns) == 0:
		return nil, invalid("%s has no columns, so it cannot be queried", r.name)
	case len(s.columns) > maxSQLColumns:
		return nil, tenon.Errorf(tenon.CodeTooLarge, "%s has %d columns; SQL takes at most %d",
			r.name, len(s.columns), maxSQLColumns)
	}
	return s, nil
}

// create returns the CREATE TABLE statement.
func (s *source) create() string {
	var b strings.Builder
	b.WriteString("CREATE TABLE " + identifier(s.name) + " (")
	for i, c := range s.columns {
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(identifier(c.name) + " " + declared(c))
	}
	return b.String() + ")"
}

func identifier(s string) string { return `"` + strings.ReplaceAll(s, `"`, `""`) + `"` }

func literal(s string) string { return "'" + strings.ReplaceAll(s, "'", "''") + "'" }

// declared returns the SQL type of a column. The type decides whether SQLite compares the values
// with literals as numbers or as texts.
func declared(c *sourceColumn) string {
	if c.column.kind != plainColumn {
		return "JSON TEXT"
	}
	switch t := c.field.Type.(type) {
	case *arrow.BooleanType:
		return "BOOLEAN INTEGER"
	case *arrow.Int8Type, *arrow.Int16Type, *arrow.Int32Type, *arrow.Int64Type,
		*arrow.Uint8Type, *arrow.Uint16Type, *arrow.Uint32Type, *arrow.Uint64Type, *arrow.DurationType:
		return "INTEGER"
	case *arrow.Float16Type, *arrow.Float32Type, *arrow.Float64Type:
		return "REAL"
	case arrow.DecimalType:
		return fmt.Sprintf("DECIMAL(%d,%d)", t.GetPrecision(), t.GetScale())
	case *arrow.Date32Type, *arrow.Date64Type:
		return "DATE TEXT"
	case *arrow.TimestampType:
		return "TIMESTAMP TEXT"
	case *arrow.Time32Type, *arrow.Time64Type:
		return "TIME TEXT"
	case *arrow.BinaryType, *arrow.LargeBinaryType, *arrow.BinaryViewType, *arrow.FixedSizeBinaryType:
		return "BLOB"
	case *arrow.StringType, *arrow.LargeStringType, *arrow.StringViewType:
		return "TEXT"
	}
	return "JSON TEXT"
}

// The layouts of times: the format of SQLite's functions, in UTC, without trailing zeros. Texts in
// these layouts sort like times.
const (
	sqlDate = "2006-01-02"
	sqlTime = "15:04:05.999999999"
	sqlBoth = sqlDate + " " + sqlTime
)

// fill writes the rows of the table.
func (s *source) fill(ctx context.Context, p *pages, root uint32, maxBytes int64) error {
	t, r := newTree(p, root), &record{}
	width := 0
	for i, c := range s.columns {
		if c.used {
			width = i + 1 // columns after the last used one are not written and read as null
		}
	}
	for {
		first := s.reader.rows
		rec, err := s.reader.next(ctx)
		if errors.Is(err, io.EOF) {
			return t.finish()
		}
		if err != nil {
			return err
		}
		cells := make([]func(int) error, width)
		for k, c := range s.columns[:width] {
			switch {
			case !c.used:
				cells[k] = func(int) error {
					r.null()
					return nil
				}
			case c.rowID:
				cells[k] = func(i int) error {
					r.text(s.reader.id(rec, i, first))
					return nil
				}
			case c.column.kind != plainColumn:
				cells[k] = func(i int) error { return s.structured(r, c, rec, i, first) }
			default:
				cells[k] = c.encoder(rec.Column(c.column.at), r)
			}
		}
		err = contain(func() error {
			for i := range int(rec.NumRows()) {
				r.reset()
				for k, cell := range cells {
					if err := cell(i); err != nil {
						return tenon.Errorf(cellCode(err), "%s: row %d, column '%s': %w",
							s.reader.name, first+int64(i), tenon.Visible(s.columns[k].field.Name), err)
					}
					if r.size() > maxValueBytes {
						return tenon.Errorf(tenon.CodeTooLarge, "%s: row %d has more than %d bytes",
							s.reader.name, first+int64(i), int64(maxValueBytes))
					}
				}
				if err := t.add(r.bytes()); err != nil {
					return temporary(err)
				}
				if p.bytes() > maxBytes {
					return tenon.Errorf(tenon.CodeTooLarge, "the tables of the query take more than %d bytes of "+
						"temporary files; leave out columns or tables that it does not need", maxBytes)
				}
				if i%(1<<14) == 0 && ctx.Err() != nil {
					return ended(ctx, "reading "+s.reader.name)
				}
			}
			return nil
		})
		var te *tenon.Error
		if errors.As(err, &te) {
			return err
		}
		if err != nil {
			return s.reader.broken(err)
		}
	}
}

func temporary(err error) error {
	return tenon.Errorf(tenon.CodeStore, "a temporary file of the query cannot be written: %w", err)
}

// ended returns the error for a context that has ended.
func ended(ctx context.Context, what string) error {
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return tenon.Errorf(tenon.CodeTimeout, "%s took too long and was stopped: %w", what, context.Cause(ctx))
	}
	return tenon.Errorf(tenon.CodeCancelled, "%s: %w", what, context.Cause(ctx))
}

// structured writes a tool or a message in the form that tenon tables show prints.
func (s *source) structured(r *record, c *sourceColumn, rec arrow.RecordBatch, i int, first int64) error {
	cells := Cells{Index: first + int64(i), ID: s.reader.id(rec, i, first), r: s.reader, rec: rec, at: i}
	v, err := cells.sqlValue(c.column)
	switch {
	case err != nil:
		return err
	case string(v) == "null":
		r.null()
	default:
		r.text(string(v))
	}
	return nil
}

// sqlValue returns a tool or a message as JSON.
func (c Cells) sqlValue(col Column) (json.RawMessage, error) {
	if !col.IsTool() {
		return c.Value(col, false)
	}
	t, err := c.shownTool(col)
	if err != nil || t == nil {
		return json.RawMessage("null"), err
	}
	return t.sqlText()
}

// encoder returns a function that writes cell i of a column, including missing cells.
func (c *sourceColumn) encoder(a arrow.Array, r *record) func(i int) error {
	if runs, ok := a.(*array.RunEndEncoded); ok {
		put := c.encoder(runs.Values(), r)
		return func(i int) error { return put(runs.GetPhysicalIndex(i)) }
	}
	put := c.putter(a, r)
	return func(i int) error {
		if a.IsNull(i) {
			r.null()
			return nil
		}
		return put(i)
	}
}

// infallible adapts a function without an error.
func infallible(put func(i int)) func(int) error {
	return func(i int) error {
		put(i)
		return nil
	}
}

// putter returns a function that writes cell i of a column. The cell is not missing.
func (c *sourceColumn) putter(a arrow.Array, r *record) func(i int) error {
	switch a := a.(type) {
	case *array.Boolean:
		return infallible(func(i int) {
			if a.Value(i) {
				r.integer(1)
			} else {
				r.integer(0)
			}
		})
	case *array.Int8:
		return infallible(func(i int) { r.integer(int64(a.Value(i))) })
	case *array.Int16:
		return infallible(func(i int) { r.integer(int64(a.Value(i))) })
	case *array.Int32:
		return infallible(func(i int) { r.integer(int64(a.Value(i))) })
	case *array.Int64:
		return infallible(func(i int) { r.integer(a.Value(i)) })
	case *array.Uint8:
		return infallible(func(i int) { r.integer(int64(a.Value(i))) })
	case *array.Uint16:
		return infallible(func(i int) { r.integer(int64(a.Value(i))) })
	case *array.Uint32:
		return infallible(func(i int) { r.integer(int64(a.Value(i))) })
	case *array.Uint64:
		return func(i int) error {
			if v := a.Value(i); v > math.MaxInt64 {
				return c.wide(r, strconv.FormatUint(v, 10))
			}
			r.integer(int64(a.Value(i)))
			return nil
		}
	case *array.Duration:
		return infallible(func(i int) { r.integer(int64(a.Value(i))) })
	case *array.Float16:
		return infallible(func(i int) { r.real(float64(a.Value(i).Float32())) })
	case *array.Float32:
		return infallible(func(i int) { r.real(float64(a.Value(i))) })
	case *array.Float64:
		return infallible(func(i int) { r.real(a.Value(i)) })
	case *array.Decimal32, *array.Decimal64, *array.Decimal128, *array.Decimal256:
		t := a.DataType().(arrow.DecimalType)
		return func(i int) error { return c.decimal(r, digits(a, i), t) }
	case *array.String:
		return infallible(func(i int) { r.text(a.Value(i)) })
	case *array.LargeString:
		return infallible(func(i int) { r.text(a.Value(i)) })
	case *array.StringView:
		return infallible(func(i int) { r.text(a.Value(i)) })
	case *array.Binary:
		return infallible(func(i int) { r.blob(a.Value(i)) })
	case *array.LargeBinary:
		return infallible(func(i int) { r.blob(a.Value(i)) })
	case *array.BinaryView:
		return infallible(func(i int) { r.blob(a.Value(i)) })
	case *array.FixedSizeBinary:
		return infallible(func(i int) { r.blob(a.Value(i)) })
	case *array.Date32, *array.Date64, *array.Timestamp, *array.Time32, *array.Time64:
		return timePutter(a, r)
	}
	return func(i int) error {
		if _, ok := a.(*array.Null); ok {
			r.null()
			return nil
		}
		b, err := appendJSON(nil, a, i)
		r.text(string(b))
		return err
	}
}

// timePutter is putter for dates and times.
func timePutter(a arrow.Array, r *record) func(i int) error {
	switch a := a.(type) {
	case *array.Date32:
		return func(i int) error { return moment(r, a.Value(i).ToTime(), sqlDate) }
	case *array.Date64:
		return func(i int) error {
			at, layout := time.UnixMilli(int64(a.Value(i))).UTC(), sqlDate
			if !at.Equal(at.Truncate(24 * time.Hour)) { // a date in milliseconds may include a time of day
				layout = sqlBoth
			}
			return moment(r, at, layout)
		}
	case *array.Timestamp:
		unit := a.DataType().(*arrow.TimestampType).Unit
		return func(i int) error { return moment(r, a.Value(i).ToTime(unit), sqlBoth) }
	case *array.Time32:
		unit := a.DataType().(*arrow.Time32Type).Unit
		return func(i int) error { return moment(r, a.Value(i).ToTime(unit), sqlTime) }
	case *array.Time64:
		unit := a.DataType().(*arrow.Time64Type).Unit
		return func(i int) error { return moment(r, a.Value(i).ToTime(unit), sqlTime) }
	}
	return nil
}

// moment writes a time. Texts of years without exactly four digits would not sort like times.
func moment(r *record, t time.Time, layout string) error {
	if y := t.Year(); y < 0 || y > 9999 {
		return fmt.Errorf("the year %d is outside of the range of SQL, 0 to 9999", y)
	}
	var b [40]byte
	r.text(string(t.AppendFormat(b[:0], layout)))
	return nil
}
