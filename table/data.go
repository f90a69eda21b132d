package table

import (
	"context"
	"encoding/json"
	"slices"
	"strings"

	"github.com/tenonhq/tenon"
)

// PlainType returns a short name of the column's type for people and models: string, integer,
// number, boolean, timestamp, binary or list. For other types it is Arrow's name.
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

// Summary reads the rest of a table. It returns the columns and the number of rows, and the first
// rows as a JSON list of objects: at most head rows and about headBytes bytes.
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
		open = len(rows)+len(v) < headBytes
		if !open {
			continue
		}
		if len(rows) > 1 {
			rows = append(rows, ',')
		}
		rows = append(rows, v...)
	}
	return t, append(rows, ']'), nil
}

// object returns the row as an object with the column names as keys.
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
