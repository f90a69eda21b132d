package table

import (
	"bytes"
	"context"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/tenonhq/tenon"
)

// PlainType names a column's type as people and models are told it: string, integer,
// number, boolean, timestamp, binary or list, else Arrow's name.
func (c Column) PlainType() string {
	name, _, _ := strings.Cut(c.Type, "[")
	name, _, _ = strings.Cut(name, "(")
	switch name {
	case "utf8", "large_utf8", "string_view":
		return "string"
	case "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64":
		return "integer"
	case "float16", "float32", "float64", "decimal", "decimal32", "decimal64", "decimal128", "decimal256":
		return "number"
	case "bool":
		return "boolean"
	case "timestamp", "date32", "date64":
		return "timestamp"
	case "binary", "large_binary", "binary_view", "fixed_size_binary":
		return "binary"
	}
	if strings.HasPrefix(c.Type, "list<") || strings.HasPrefix(c.Type, "large_list<") {
		return "list"
	}
	return c.Type
}

// Summary reads a table to its end and says what it holds, with its first rows as a
// JSON list of objects: at most head of them, and of their bytes.
func (r *Reader) Summary(ctx context.Context, head, headBytes int) (tenon.Table, json.RawMessage, error) {
	t := tenon.Table{Columns: []tenon.TableColumn{}}
	for _, c := range r.columns {
		t.Columns = append(t.Columns, tenon.TableColumn{Name: c.Name, Type: c.PlainType()})
	}
	rows := []byte{'['}
	open := true
	for row, err := range r.Rows(ctx) {
		if err != nil {
			return t, nil, err
		}
		if t.Rows++; !open || t.Rows > int64(head) {
			continue
		}
		v, err := row.object()
		if err != nil {
			return t, nil, err
		}
		if open = len(rows)+len(v) < headBytes; !open {
			continue
		}
		if len(rows) > 1 {
			rows = append(rows, ',')
		}
		rows = append(rows, v...)
	}
	return t, append(rows, ']'), nil
}

// object is the row as an object of its columns.
func (c Cells) object() (json.RawMessage, error) {
	if !c.r.Single() {
		return c.JSON(false)
	}
	v, err := c.Value(c.r.columns[0], false)
	if err != nil {
		return nil, err
	}
	return slices.Concat([]byte{'{'}, quote(c.r.columns[0].Name), []byte{':'}, v, []byte{'}'}), nil
}

// The bounds of a table that is made of JSON or CSV.
const (
	maxMadeRows    = 1_000_000
	maxMadeColumns = 1000
	// maxMadeEmpty is how many cells may have no value in the row's JSON. They take memory
	// that nobody sent: a row of 1000 columns and a million of {}.
	maxMadeEmpty = 1 << 24
)

// WriteRows makes a table of rows, JSON objects from column to value. Types are those
// that are given by name (see [Column.PlainType]: string, integer, number, boolean,
// timestamp), for the other columns those that all values have, string where they
// differ. Columns stand in the order in which they first occur. Errors: invalid (with
// the row and the column), too_large, store.
func WriteRows(ctx context.Context, path string, rows []json.RawMessage, types map[string]string, o WriteOptions) error {
	if len(rows) > maxMadeRows {
		return tenon.Errorf(tenon.CodeTooLarge, "a table of values has at most %d rows", maxMadeRows)
	}
	m := &maker{types: types, at: map[string]int{}}
	for i, raw := range rows {
		if err := m.add(raw); errors.Is(err, errTooSparse) {
			return tenon.Errorf(tenon.CodeTooLarge, "row %d: %w", i, err)
		} else if err != nil {
			return invalid("row %d: %w", i, err)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(types)) {
		m.column(name)
	}
	return m.write(ctx, path, o)
}

// WriteCSV makes a table of CSV (RFC 4180) with a header line. An empty field is
// null. See [WriteRows] for types; those that are not given are found out from the
// values: integer, number, boolean, else string.
func WriteCSV(ctx context.Context, path string, data []byte, types map[string]string, o WriteOptions) error {
	r := csv.NewReader(bytes.NewReader(bytes.TrimPrefix(data, []byte("\xef\xbb\xbf"))))
	r.ReuseRecord = true
	header, err := r.Read()
	if err != nil {
		return invalid("the CSV has no header line: %w", err)
	}
	m := &maker{types: types, at: map[string]int{}, guess: true}
	for i, name := range slices.Clone(header) {
		if !utf8.ValidString(name) {
			return notUTF8(r, i, "")
		}
		name = strings.Clone(strings.TrimSpace(name))
		if _, twice := m.at[name]; twice || name == "" {
			return invalid("the CSV's header has an empty name, or '%s' twice", tenon.Visible(name))
		}
		m.column(name)
	}
	for name := range types {
		if _, ok := m.at[name]; !ok {
			return invalid("the CSV has no column '%s'; its columns: %s", tenon.Visible(name), strings.Join(m.names, ", "))
		}
	}
	for {
		record, err := r.Read()
		if errors.Is(err, io.EOF) {
			return m.write(ctx, path, o)
		}
		if err != nil {
			return invalid("%w", err)
		}
		if m.rows++; m.rows > maxMadeRows {
			return tenon.Errorf(tenon.CodeTooLarge, "a CSV file has at most %d rows", maxMadeRows)
		}
		for i, v := range record {
			if !utf8.ValidString(v) {
				return notUTF8(r, i, m.names[i])
			}
			var cell any
			if v != "" {
				cell = strings.Clone(v)
			}
			m.cells[i] = append(m.cells[i], cell)
		}
	}
}

// notUTF8 says which field of the record that was read last cannot be a text.
func notUTF8(r *csv.Reader, field int, name string) error {
	line, column := r.FieldPos(field)
	where := fmt.Sprintf("line %d, column %d", line, column)
	if name != "" {
		where += " ('" + tenon.Visible(name) + "')"
	}
	return invalid("%s: not UTF-8; save the file as UTF-8", where)
}

// maker collects the columns of a table.
type maker struct {
	types map[string]string
	names []string
	at    map[string]int
	cells [][]any // by column, up to the last row that has it; nil, bool, string, json.Number, json.RawMessage
	rows  int
	empty int  // cells that no row had
	guess bool // texts stand for values of other types
}

var errTooSparse = fmt.Errorf("most columns of most rows are empty, more than %d cells in all; make several tables of them", maxMadeEmpty)

func (m *maker) column(name string) int {
	i, ok := m.at[name]
	if !ok {
		i = len(m.names)
		m.at[name] = i
		m.names, m.cells = append(m.names, name), append(m.cells, nil)
	}
	return i
}

// add takes a row.
func (m *maker) add(raw json.RawMessage) error {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return fmt.Errorf("it is not an object of columns: %s", tenon.Visible(string(raw[:min(len(raw), 60)])))
	}
	seen := map[string]bool{}
	for d.More() {
		k, err := d.Token()
		if err != nil {
			return err
		}
		name, _ := k.(string)
		var v json.RawMessage
		if err := d.Decode(&v); err != nil {
			return err
		}
		if seen[name] {
			return fmt.Errorf("column '%s' is there twice", tenon.Visible(name))
		}
		seen[name] = true
		if _, known := m.at[name]; !known {
			if len(m.names) >= maxMadeColumns {
				return fmt.Errorf("there are more than %d columns", maxMadeColumns)
			}
			if m.empty += m.rows; m.empty > maxMadeEmpty {
				return errTooSparse
			}
		}
		i := m.column(name)
		m.cells[i] = append(append(m.cells[i], make([]any, m.rows-len(m.cells[i]))...), cellOf(v))
	}
	m.rows++
	if m.empty += len(m.names) - len(seen); m.empty > maxMadeEmpty {
		return errTooSparse
	}
	return nil
}

// cell is nil where the row has none.
func (m *maker) cell(row, column int) any {
	if list := m.cells[column]; row < len(list) {
		return list[row]
	}
	return nil
}

// cellOf is a JSON value as a cell.
func cellOf(raw json.RawMessage) any {
	switch raw[0] {
	case 'n':
		return nil
	case 't', 'f':
		return raw[0] == 't'
	case '"':
		var s string
		_ = json.Unmarshal(raw, &s) // it was decoded before
		return s
	case '[', '{':
		return raw
	}
	return json.Number(raw)
}

// arrowTypes are those of columns that are made.
var arrowTypes = map[string]arrow.DataType{"string": arrow.BinaryTypes.String, "integer": arrow.PrimitiveTypes.Int64, "number": arrow.PrimitiveTypes.Float64,
	"boolean": arrow.FixedWidthTypes.Boolean, "timestamp": &arrow.TimestampType{Unit: arrow.Microsecond, TimeZone: "UTC"}}

// write makes the table.
func (m *maker) write(ctx context.Context, path string, o WriteOptions) error {
	o, err := o.withDefaults()
	if err != nil {
		return err
	}
	fields := []arrow.Field{{Name: RowID, Type: arrow.BinaryTypes.String}}
	for i, name := range m.names {
		typ := m.types[name]
		if typ == "" {
			typ = m.typeOf(m.cells[i])
		}
		if arrowTypes[typ] == nil {
			return invalid("column '%s': no such type '%s'", tenon.Visible(name), tenon.Visible(typ))
		}
		fields = append(fields, arrow.Field{Name: name, Type: arrowTypes[typ], Nullable: true})
	}
	schema := arrow.NewSchema(fields, nil)
	w, err := create(path, schema, nil, o)
	if err != nil {
		return err
	}
	defer w.abort()
	for first := 0; first < m.rows; first += o.BatchRows {
		n := min(o.BatchRows, m.rows-first)
		b := array.NewRecordBuilder(memory.DefaultAllocator, schema)
		for i := range n {
			b.Field(0).(*array.StringBuilder).Append("Row" + strconv.Itoa(first+i))
			for c := range m.names {
				if err := appendCell(b.Field(c+1), m.cell(first+i, c)); err != nil {
					return invalid("row %d, column '%s': %w", first+i, tenon.Visible(m.names[c]), err)
				}
			}
		}
		if err := w.write(ctx, b.NewRecordBatch()); err != nil {
			return err
		}
	}
	return w.commit()
}

// typeOf is the narrowest type that all values of a column have.
func (m *maker) typeOf(cells []any) string {
	could := []string{"integer", "number", "boolean"}
	if m.guess {
		could = append(could, "timestamp")
	}
	some := false
	for _, v := range cells {
		if v == nil {
			continue
		}
		some = true
		could = slices.DeleteFunc(could, func(t string) bool { return !isOf(v, t, m.guess) })
		if len(could) == 0 {
			return "string"
		}
	}
	if !some {
		return "string"
	}
	return could[0]
}

func isOf(v any, typ string, guess bool) bool {
	if _, ok := v.(string); ok && !guess {
		return false
	}
	if s, ok := v.(string); ok && typ != "timestamp" {
		if digits := strings.TrimPrefix(s, "-"); strings.TrimSpace(s) != s || len(digits) > 1 && digits[0] == '0' && digits[1] != '.' || s[0] == '+' {
			return false // such as 007, which is no number
		}
	}
	if typ == "number" && longInteger(v) {
		return false // a number would lose digits of it; the column is one of texts
	}
	_, err := convert(v, typ)
	return err == nil
}

// longInteger says whether a value is an integer that floats do not hold.
func longInteger(v any) bool {
	text, ok := v.(string)
	if n, is := v.(json.Number); is {
		text, ok = string(n), true
	}
	if !ok || strings.Trim(text, "-0123456789") != "" {
		return false
	}
	n, err := strconv.ParseInt(text, 10, 64)
	return err != nil || n > exactInt || n < -exactInt
}

// convert makes a value of a type.
func convert(v any, typ string) (any, error) {
	text, isText := v.(string)
	if n, ok := v.(json.Number); ok {
		text, isText = string(n), true
		if typ == "boolean" || typ == "timestamp" {
			return nil, fmt.Errorf("'%s' is no %s", text, typ)
		}
	}
	switch typ {
	case "string":
		switch v := v.(type) {
		case bool:
			return strconv.FormatBool(v), nil
		case json.RawMessage:
			return string(v), nil
		}
		return text, nil
	case "integer":
		if isText {
			if i, err := strconv.ParseInt(text, 10, 64); err == nil {
				return i, nil
			}
		}
	case "number":
		if isText {
			if f, err := strconv.ParseFloat(text, 64); err == nil && !strings.ContainsAny(text, "_xX") && !math.IsNaN(f) && !math.IsInf(f, 0) {
				return f, nil
			}
		}
	case "boolean":
		if b, ok := v.(bool); ok {
			return b, nil
		}
		if text == "true" || text == "false" {
			return text == "true", nil
		}
	case "timestamp":
		for _, layout := range []string{time.RFC3339Nano, "2006-01-02 15:04:05.999999999", time.DateOnly} {
			if t, err := time.Parse(layout, text); err == nil {
				return t, nil
			}
		}
	}
	return nil, fmt.Errorf("'%s' is no %s", tenon.Visible(fmt.Sprint(v)), typ)
}

func appendCell(b array.Builder, v any) error {
	if v == nil {
		b.AppendNull()
		return nil
	}
	for typ, t := range arrowTypes {
		if !arrow.TypeEqual(t, b.Type()) {
			continue
		}
		c, err := convert(v, typ)
		if err != nil {
			return err
		}
		switch b := b.(type) {
		case *array.StringBuilder:
			b.Append(c.(string))
		case *array.Int64Builder:
			b.Append(c.(int64))
		case *array.Float64Builder:
			b.Append(c.(float64))
		case *array.BooleanBuilder:
			b.Append(c.(bool))
		case *array.TimestampBuilder:
			b.Append(arrow.Timestamp(c.(time.Time).UnixMicro()))
		}
	}
	return nil
}
