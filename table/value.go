package table

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"math"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/tenonhq/tenon"
)

// Cells is a row of a table of any kind.
type Cells struct {
	Index int64
	ID    string
	r     *Reader
	rec   arrow.RecordBatch
	at    int
}

// Rows reads the remaining rows.
func (r *Reader) Rows(ctx context.Context) iter.Seq2[Cells, error] {
	return func(yield func(Cells, error) bool) {
		for {
			first := r.rows
			rec, err := r.next(ctx)
			if errors.Is(err, io.EOF) {
				return
			}
			if err != nil {
				yield(Cells{}, err)
				return
			}
			for i := range int(rec.NumRows()) {
				if !yield(Cells{Index: first + int64(i), ID: r.id(rec, i, first), r: r, rec: rec, at: i}, nil) {
					return
				}
			}
		}
	}
}

// Single reports whether a row is shown as the value of its only column. This holds for tables with
// one column of tools or messages.
func (r *Reader) Single() bool {
	return len(r.columns) == 1 && r.columns[0].kind != plainColumn
}

// JSON returns the row as an object of its columns, or as the cell of its only column (see
// [Reader.Single]). If raw is true, it returns the stored values and includes the row id.
func (c Cells) JSON(raw bool) (json.RawMessage, error) {
	if c.r.Single() && !raw {
		return c.Value(c.r.columns[0], false)
	}
	out := []byte{'{'}
	add := func(name string, v []byte) {
		if len(out) > 1 {
			out = append(out, ',')
		}
		out = append(append(append(out, quote(name)...), ':'), v...)
	}
	if raw {
		add(RowID, quote(c.ID))
	}
	keys := c.r.jsonKeys(raw)
	for i, col := range c.r.columns {
		v, err := c.Value(col, raw)
		if err != nil {
			return nil, err
		}
		add(keys[i], v)
		if len(out) > maxMemory {
			return nil, tenon.Errorf(tenon.CodeTooLarge, "%s: row %d has more than %d bytes as JSON",
				c.r.name, c.Index, maxMemory)
		}
	}
	return append(out, '}'), nil
}

// jsonKeys returns the column names as unique JSON keys: a duplicate name gets a number. Most JSON
// decoders keep only the last of two equal keys.
func (r *Reader) jsonKeys(raw bool) []string {
	if r.keys == nil || r.rawKeys != raw {
		r.rawKeys, r.keys = raw, make([]string, len(r.columns))
		taken := map[string]bool{}
		for _, c := range r.columns {
			taken[c.Name] = true
		}
		seen := map[string]bool{RowID: raw}
		for i, c := range r.columns {
			name := c.Name
			for n := 1; seen[name] || n > 1 && taken[name]; n++ {
				name = fmt.Sprintf("%s_%d", c.Name, n)
			}
			seen[name], r.keys[i] = true, name
		}
	}
	return r.keys
}

// Keys returns the columns of the table with their keys in [Cells.JSON].
func (r *Reader) Keys(raw bool) iter.Seq2[string, Column] {
	return func(yield func(string, Column) bool) {
		for i, key := range r.jsonKeys(raw) {
			if !yield(key, r.columns[i]) {
				return
			}
		}
	}
}

// Plain returns a cell without conversion to JSON: nil, bool, int64, float64 or string. It reports false for a value
// of another type, such as a time.
func (c Cells) Plain(col Column) (v any, ok bool) {
	err := contain(func() error {
		v, ok = plain(c.rec.Column(col.at), c.at)
		return nil
	})
	return v, ok && err == nil
}

func plain(a arrow.Array, i int) (any, bool) {
	if a.IsNull(i) {
		return nil, true
	}
	switch a := a.(type) {
	case *array.Boolean:
		return a.Value(i), true
	case *array.Int8:
		return int64(a.Value(i)), true
	case *array.Int16:
		return int64(a.Value(i)), true
	case *array.Int32:
		return int64(a.Value(i)), true
	case *array.Int64:
		return a.Value(i), true
	case *array.Uint8:
		return int64(a.Value(i)), true
	case *array.Uint16:
		return int64(a.Value(i)), true
	case *array.Uint32:
		return int64(a.Value(i)), true
	case *array.Float64:
		f := a.Value(i)
		return f, !math.IsNaN(f) && !math.IsInf(f, 0)
	case *array.String, *array.LargeString, *array.StringView:
		s, _ := text(a, i)
		return s, utf8.ValidString(s)
	}
	return nil, false
}

// Value returns a cell as JSON. If raw is true, tools and messages are returned in their stored
// form.
func (c Cells) Value(col Column, raw bool) (out json.RawMessage, err error) {
	if col.IsTool() && !raw {
		t, err := c.shownTool(col)
		if err != nil || t == nil {
			return json.RawMessage("null"), err
		}
		return t.MarshalJSON()
	}
	err = contain(func() (err error) {
		if col.IsMessage() && !raw {
			out, err = messageJSON(c.rec.Column(col.at), c.at)
			return err
		}
		out, err = appendJSON(nil, c.rec.Column(col.at), c.at)
		return err
	})
	if err != nil {
		return nil, tenon.Errorf(cellCode(err), "%s: row %d, column '%s': %w", c.r.name, c.Index, col.Name, err)
	}
	return out, nil
}

// Tool returns a cell of a tool column, or nil if the cell is missing.
func (c Cells) Tool(col Column) (*Tool, error) {
	return c.r.tool(col, c.rec, c.at, ToolRow{Index: c.Index, ID: c.ID})
}

// shownTool returns a cell of a tool column also if its type is missing.
func (c Cells) shownTool(col Column) (*Tool, error) {
	return c.r.shownTool(col, c.rec, c.at, ToolRow{Index: c.Index, ID: c.ID})
}

// Text returns a cell in a form for people: a text without quotes, "" for a missing cell, and JSON for any other
// value.
func (c Cells) Text(col Column) (string, error) {
	v, err := c.Value(col, false)
	if err != nil || string(v) == "null" {
		return "", err
	}
	if len(v) > 0 && v[0] == '"' {
		var s string
		if json.Unmarshal(v, &s) == nil {
			return s, nil
		}
	}
	return string(v), nil
}

func quote(s string) []byte {
	b, _ := encode(s) // strings always encode
	return b
}

// maxNested bounds the JSON of a list or a struct. A few bytes can declare a list of two billion nulls, or nested lists
// that share their elements on every level.
const maxNested = maxValueBytes

var errNested = tenon.Errorf(tenon.CodeTooLarge, "it has more than %d bytes as JSON", maxNested)

// cellCode returns the code of an error about a cell.
func cellCode(err error) tenon.Code {
	if errors.Is(err, errNested) {
		return tenon.CodeTooLarge
	}
	return tenon.CodeInvalid
}

// appendJSON appends a cell as JSON. Numbers keep all digits. NaN and infinities become texts,
// binary data becomes base64, and times are formatted as in RFC 3339. A union value becomes [CODE,
// VALUE].
func appendJSON(out []byte, a arrow.Array, i int) ([]byte, error) {
	if a.IsNull(i) {
		return append(out, "null"...), nil
	}
	switch a := a.(type) {
	case *array.Null:
		return append(out, "null"...), nil
	case *array.Boolean:
		return strconv.AppendBool(out, a.Value(i)), nil
	case *array.Float64:
		return appendFloat(out, a.Value(i), 64), nil
	case *array.Float32:
		return appendFloat(out, float64(a.Value(i)), 32), nil
	case *array.Float16:
		return appendFloat(out, float64(a.Value(i).Float32()), 32), nil
	case *array.Int8, *array.Int16, *array.Int32, *array.Int64,
		*array.Uint8, *array.Uint16, *array.Uint32, *array.Uint64:
		return append(out, a.ValueStr(i)...), nil
	case *array.Decimal32, *array.Decimal64, *array.Decimal128, *array.Decimal256:
		return append(out, digits(a, i)...), nil
	case *array.String, *array.LargeString, *array.StringView:
		s, _ := text(a, i)
		return append(out, quote(s)...), nil
	case *array.Binary:
		return appendBase64(out, a.Value(i)), nil
	case *array.LargeBinary:
		return appendBase64(out, a.Value(i)), nil
	case *array.BinaryView:
		return appendBase64(out, a.Value(i)), nil
	case *array.FixedSizeBinary:
		return appendBase64(out, a.Value(i)), nil
	case *array.Date32:
		return append(out, a.Value(i).ToTime().Format(`"2006-01-02"`)...), nil
	case *array.Date64:
		at, layout := time.UnixMilli(int64(a.Value(i))).UTC(), `"2006-01-02"`
		if !at.Equal(at.Truncate(24 * time.Hour)) { // a date in milliseconds may include a time of day
			layout = `"2006-01-02T15:04:05.999"`
		}
		return append(out, at.Format(layout)...), nil
	case *array.Timestamp:
		return appendTime(out, a.DataType().(*arrow.TimestampType), a.Value(i))
	case *array.Struct:
		return appendStruct(out, a, i)
	case array.ListLike:
		from, to := a.ValueOffsets(i)
		out = append(out, '[')
		for k := from; k < to; k++ {
			if k > from {
				out = append(out, ',')
			}
			var err error
			if out, err = appendJSON(out, a.ListValues(), int(k)); err != nil {
				return nil, err
			}
			if len(out) > maxNested {
				return nil, errNested
			}
		}
		return append(out, ']'), nil
	case *array.RunEndEncoded: // run-end encoding is only a storage form
		return appendJSON(out, a.Values(), a.GetPhysicalIndex(i))
	case array.Union:
		at := i
		if d, ok := a.(*array.DenseUnion); ok {
			at = int(d.ValueOffset(i))
		}
		value := a.Field(a.ChildID(i))
		if value.IsNull(at) {
			return append(out, "null"...), nil
		}
		out = append(strconv.AppendInt(append(out, '['), int64(a.TypeCode(i)), 10), ',')
		out, err := appendJSON(out, value, at)
		return append(out, ']'), err
	}
	b, err := encode(a.GetOneForMarshal(i))
	return append(out, b...), err
}

func appendStruct(out []byte, a *array.Struct, i int) ([]byte, error) {
	t := a.DataType().(*arrow.StructType)
	out = append(out, '{')
	for k := range a.NumField() {
		if k > 0 {
			out = append(out, ',')
		}
		out = append(append(out, quote(t.Field(k).Name)...), ':')
		var err error
		if out, err = appendJSON(out, a.Field(k), i); err != nil {
			return nil, err
		}
		if len(out) > maxNested {
			return nil, errNested
		}
	}
	return append(out, '}'), nil
}

func appendFloat(out []byte, f float64, bits int) []byte {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return append(out, quote(strconv.FormatFloat(f, 'g', -1, bits))...)
	}
	if n := math.Abs(f); n >= 1e-6 && n < 1e21 || n == 0 {
		return strconv.AppendFloat(out, f, 'f', -1, bits)
	}
	return strconv.AppendFloat(out, f, 'e', -1, bits)
}

func appendBase64(out, b []byte) []byte {
	return append(base64.StdEncoding.AppendEncode(append(out, '"'), b), '"')
}

func appendTime(out []byte, t *arrow.TimestampType, v arrow.Timestamp) ([]byte, error) {
	at, layout := v.ToTime(t.Unit), "2006-01-02T15:04:05.999999999"
	if t.TimeZone != "" {
		zone, err := t.GetZone() // the type caches the zone
		if err != nil {
			zone = time.UTC
		}
		at, layout = at.In(zone), time.RFC3339Nano
	}
	return append(out, quote(at.Format(layout))...), nil
}

// messageCell is a message in the form that tenon tables show prints.
type messageCell struct {
	Role    string        `json:"role"`
	Content []messagePart `json:"content"`
	Calls   []messageCall `json:"tool_calls,omitempty"`
	CallID  string        `json:"tool_call_id,omitempty"`
	Name    string        `json:"name,omitempty"`
}

type messagePart struct {
	Type string `json:"type"`
	Text string `json:"text,omitempty"`
	Data string `json:"data,omitempty"` // base64, for parts that are not text
}

type messageCall struct {
	ID        string          `json:"id"`
	Name      string          `json:"name"`
	Arguments json.RawMessage `json:"arguments"` // a JSON string if the text is not valid JSON
}

// data reads a binary cell, or the bytes of a text cell. It returns nil if the cell is missing.
func data(a arrow.Array, i int) []byte {
	if a.IsNull(i) {
		return nil
	}
	switch a := a.(type) {
	case *array.Binary:
		return a.Value(i)
	case *array.LargeBinary:
		return a.Value(i)
	case *array.BinaryView:
		return a.Value(i)
	}
	s, _ := text(a, i)
	return []byte(s)
}

// isData reports whether [data] can read a column of the type. Columns of type null count: all
// their cells are missing.
func isData(t arrow.DataType) bool {
	switch t.ID() {
	case arrow.BINARY, arrow.LARGE_BINARY, arrow.BINARY_VIEW, arrow.NULL:
		return true
	}
	return isText(t)
}

// messageJSON encodes a message cell with named fields. Text stays text; images become base64.
func messageJSON(a arrow.Array, i int) (json.RawMessage, error) {
	s, ok := a.(*array.Struct)
	if !ok || s.NumField() < 5 {
		return appendJSON(nil, a, i)
	}
	if a.IsNull(i) {
		return json.RawMessage("null"), nil
	}
	out := messageCell{Content: []messagePart{}}
	out.Role, _ = text(s.Field(0), i)
	out.CallID, _ = text(s.Field(3), i)
	out.Name, _ = text(s.Field(4), i)
	each := func(field int, do func(*array.Struct, int)) error {
		l, ok := s.Field(field).(array.ListLike)
		if !ok || l.IsNull(i) {
			return nil
		}
		e, ok := l.ListValues().(*array.Struct)
		if !ok || e.NumField() < 2 || !isData(e.Field(0).DataType()) || !isData(e.Field(1).DataType()) {
			return fmt.Errorf("field %d is stored as %s", field, l.DataType())
		}
		from, to := l.ValueOffsets(i)
		for k := int(from); k < int(to); k++ {
			do(e, k)
		}
		return nil
	}
	err := each(1, func(e *array.Struct, k int) {
		var p messagePart
		p.Type, _ = text(e.Field(0), k)
		raw := data(e.Field(1), k)
		if p.Type == "text" {
			p.Text = string(raw)
		} else {
			p.Data = base64.StdEncoding.EncodeToString(raw)
		}
		out.Content = append(out.Content, p)
	})
	if err == nil {
		err = each(2, func(e *array.Struct, k int) {
			var c messageCall
			c.ID, _ = text(e.Field(0), k)
			c.Name, _ = text(e.Field(1), k)
			args := ""
			if e.NumField() > 2 {
				args, _ = text(e.Field(2), k)
			}
			c.Arguments = json.RawMessage(args)
			if !json.Valid(c.Arguments) {
				c.Arguments = quote(args)
			}
			out.Calls = append(out.Calls, c)
		})
	}
	if err != nil {
		return nil, err
	}
	return encode(out)
}
