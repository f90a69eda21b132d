package table

import (
	"bufio"
	"bytes"
	"context"
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
	"github.com/tenonhq/tenon/internal/rawjson"
)

// The bounds of a table that is made from JSON or CSV.
const (
	maxMadeRows    = 1_000_000
	maxMadeColumns = 1000
	// maxMadeEmpty bounds the cells without a value in the JSON or CSV. They take memory that
	// the input does not contain: a row of 1000 columns followed by a million of {} is small.
	maxMadeEmpty = 1 << 24
)

// WriteRows writes a table of rows. Each row is a JSON object from column names to values. types
// maps column names to types (see [Column.PlainType]): string, integer, number, boolean, timestamp.
// Other columns get the type that all their values have, or string. The columns are in the order of
// their first occurrence. Errors: invalid (with the row and the column), too_large, store.
func WriteRows(
	ctx context.Context, path string, rows []json.RawMessage, types map[string]string, o WriteOptions,
) error {
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

// WriteCSV writes a table of CSV (RFC 4180) with a header line. An empty field is null, and so is
// an empty line of a table of one column. For types see [WriteRows]; the types of other columns are
// inferred from the values: integer, number, boolean, timestamp, otherwise string.
func WriteCSV(ctx context.Context, path string, data []byte, types map[string]string, o WriteOptions) error {
	r, m, err := readHeader(bytes.NewReader(data), types, ',')
	if err != nil {
		return err
	}
	for {
		record, err := r.Read()
		if errors.Is(err, io.EOF) {
			return m.write(ctx, path, o)
		}
		if err != nil {
			return invalid("%w", err)
		}
		m.rows++
		if m.rows > maxMadeRows {
			return tenon.Errorf(tenon.CodeTooLarge, "a CSV file has at most %d rows", maxMadeRows)
		}
		for i, v := range record {
			if !utf8.ValidString(v) {
				return notUTF8(r, i, m.names[i])
			}
			if v != "" {
				m.put(i, m.rows-1, strings.Clone(v))
				continue
			}
			m.empty++
			if m.empty > maxMadeEmpty {
				return tenon.Errorf(tenon.CodeTooLarge, "row %d: %w", m.rows-1, errTooSparse)
			}
		}
	}
}

// readHeader reads the header line of CSV. The caller reads the records.
func readHeader(in io.Reader, types map[string]string, delimiter rune) (*csvReader, *maker, error) {
	buf := bufio.NewReader(in)
	if bom, err := buf.Peek(3); err == nil && string(bom) == "\xef\xbb\xbf" {
		_, _ = buf.Discard(3) // the bytes are in the buffer
	}
	r := newCSVReader(buf, delimiter)
	header, err := r.Read()
	if err != nil {
		return nil, nil, invalid("the CSV has no header line: %w", err)
	}
	m := &maker{types: types, at: map[string]int{}, guess: true}
	for i, name := range slices.Clone(header) {
		if !utf8.ValidString(name) {
			return nil, nil, notUTF8(r, i, "")
		}
		name = strings.Clone(strings.TrimSpace(name))
		if _, twice := m.at[name]; twice || name == "" {
			return nil, nil, invalid("the CSV's header has an empty name, or the name '%s' twice", tenon.Visible(name))
		}
		m.column(name)
	}
	for name := range types {
		if _, ok := m.at[name]; !ok {
			return nil, nil, invalid("the CSV has no column '%s'; its columns: %s",
				tenon.Visible(name), strings.Join(m.names, ", "))
		}
	}
	return r, m, nil
}

// CSVColumns returns the names in the header line of CSV. It checks the header as [WriteCSV] does and reads no
// records. In should be limited, because a header of one quoted name may be long.
func CSVColumns(in io.Reader, types map[string]string) ([]string, error) {
	_, m, err := readHeader(in, types, ',')
	if err != nil {
		return nil, err
	}
	return m.names, nil
}

// notUTF8 returns the error for a field of the last record.
func notUTF8(r *csvReader, field int, name string) error {
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
	cells [][]any // by column, up to its last row with a value: nil, bool, string, json.Number, json.RawMessage
	rows  int
	empty int  // cells without a value in the input
	guess bool // texts may be values of other types
}

var errTooSparse = fmt.Errorf("most columns of most rows are empty, more than %d cells in all; "+
	"split the rows into several tables", maxMadeEmpty)

func (m *maker) column(name string) int {
	i, ok := m.at[name]
	if !ok {
		i = len(m.names)
		m.at[name] = i
		m.names, m.cells = append(m.names, name), append(m.cells, nil)
	}
	return i
}

// add adds a row.
func (m *maker) add(raw json.RawMessage) error {
	if !rawjson.IsObject(raw) {
		return fmt.Errorf("a row must be an object of columns: %s", tenon.Visible(string(raw[:min(len(raw), 60)])))
	}
	if err := rawjson.Check(raw, rawjson.Rules{}); err != nil {
		return err
	}
	seen := map[string]bool{}
	for key, v := range rawjson.Members(raw) {
		name := string(key)
		if seen[name] {
			return fmt.Errorf("column '%s' occurs twice", tenon.Visible(name))
		}
		seen[name] = true
		if _, known := m.at[name]; !known {
			if len(m.names) >= maxMadeColumns {
				return fmt.Errorf("there are more than %d columns", maxMadeColumns)
			}
			m.empty += m.rows
			if m.empty > maxMadeEmpty {
				return errTooSparse
			}
		}
		m.put(m.column(name), m.rows, cellOf(v))
	}
	m.rows++
	m.empty += len(m.names) - len(seen)
	if m.empty > maxMadeEmpty {
		return errTooSparse
	}
	return nil
}

// put sets the cell of a row in a column.
func (m *maker) put(column, row int, cell any) {
	list := m.cells[column]
	m.cells[column] = append(append(list, make([]any, row-len(list))...), cell)
}

// cell returns the cell of a row in a column, or nil.
func (m *maker) cell(row, column int) any {
	if list := m.cells[column]; row < len(list) {
		return list[row]
	}
	return nil
}

// write writes the table.
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
			return invalid("column '%s': unknown type '%s'", tenon.Visible(name), tenon.Visible(typ))
		}
		fields = append(fields, arrow.Field{Name: name, Type: arrowTypes[typ], Nullable: true})
	}
	schema := arrow.NewSchema(renamed(fields, func(i int) bool { return i > 0 }), nil)
	w, err := create(ctx, path, schema, nil, o)
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
