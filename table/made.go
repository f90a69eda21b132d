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
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/tenonhq/tenon"
)

// The bounds of a table that is made of JSON or CSV.
const (
	maxMadeRows    = 1_000_000
	maxMadeColumns = 1000
	// maxMadeEmpty is how many cells may have no value in the row's JSON or CSV. They take
	// memory that nobody sent: a row of 1000 columns and a million of {}.
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
			if v != "" {
				m.put(i, m.rows-1, strings.Clone(v))
			} else if m.empty++; m.empty > maxMadeEmpty {
				return tenon.Errorf(tenon.CodeTooLarge, "row %d: %w", m.rows-1, errTooSparse)
			}
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
		m.put(m.column(name), m.rows, cellOf(v))
	}
	m.rows++
	if m.empty += len(m.names) - len(seen); m.empty > maxMadeEmpty {
		return errTooSparse
	}
	return nil
}

// put gives a row its cell in a column.
func (m *maker) put(column, row int, cell any) {
	list := m.cells[column]
	m.cells[column] = append(append(list, make([]any, row-len(list))...), cell)
}

// cell is nil where the row has none.
func (m *maker) cell(row, column int) any {
	if list := m.cells[column]; row < len(list) {
		return list[row]
	}
	return nil
}

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
