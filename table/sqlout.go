package table

import (
	"bytes"
	"cmp"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/float16"
	"github.com/apache/arrow-go/v18/arrow/memory"
	sqlite3 "modernc.org/sqlite/lib"
)

// resultColumn is a column of a result. A column that shows a column of a table unchanged has the
// type of that column, if all values fit it. Otherwise the type follows from the values.
type resultColumn struct {
	name   string
	origin *sourceColumn // nil for a computed column
	seen   uint          // flags of the values so far
	probe  array.Builder // checks whether values fit the origin's type
	field  arrow.Field   // set by setType
}

// The flags of observed values.
const (
	seenInt   = 1 << iota // an integer
	seenLarge             // an integer that a float64 cannot hold
	seenFloat
	seenText
	seenBlob
	seenOther // a value that does not fit the origin's type
)

const exactInt = 1 << 53 // a float64 holds all integers up to this one

// compound reports whether a result column may contain values of several columns. SQLite reports
// only one of them as the origin.
func (s *selection) compound() bool {
	upper := strings.ToUpper(s.SQL)
	return strings.Contains(upper, "UNION") || strings.Contains(upper, "INTERSECT") ||
		strings.Contains(upper, "EXCEPT")
}

// mix prepares the result columns for values of any column that the query reads.
func (s *selection) mix() {
	var beside []*sourceColumn
	units := map[arrow.TimeUnit]bool{} // durations are bare integers in SQL
	for _, t := range s.sources {
		for _, k := range t.columns {
			if !k.used {
				continue
			}
			if len(k.exact)+len(k.plain) > 0 {
				beside = append(beside, k)
			}
			if d, ok := k.field.Type.(*arrow.DurationType); ok {
				units[d.Unit] = true
			}
		}
	}
	for _, c := range s.columns {
		if c.origin == nil {
			continue
		}
		if c.origin.field.Type.ID() == arrow.DURATION && len(units) > 1 {
			c.origin = nil
			continue
		}
		c.origin.beside = beside
	}
}

// observe updates the flags with a value.
func (c *resultColumn) observe(v value) {
	switch v.kind {
	case sqlite3.SQLITE_INTEGER:
		c.seen |= seenInt
		if v.int > exactInt || v.int < -exactInt {
			c.seen |= seenLarge
		}
	case sqlite3.SQLITE_FLOAT:
		c.seen |= seenFloat
	case sqlite3.SQLITE_TEXT:
		c.seen |= seenText
	case sqlite3.SQLITE_BLOB:
		c.seen |= seenBlob
	}
	if c.origin == nil || c.seen&seenOther != 0 || v.kind == sqlite3.SQLITE_NULL {
		return
	}
	if c.probe == nil || c.probe.Len() >= DefaultBatchRows {
		c.probe = array.NewBuilder(memory.DefaultAllocator, c.origin.resultType())
	}
	if c.origin.append(c.probe, v) != nil {
		c.seen |= seenOther
	}
}

// setType sets the type of the column from the observed values.
func (c *resultColumn) setType() {
	c.field = arrow.Field{Name: c.name, Nullable: true}
	switch {
	case c.origin != nil && c.seen&seenOther == 0:
		c.field.Type = c.origin.resultType()
		switch {
		case c.origin.column.IsTool():
			c.field.Metadata = logical("", c.origin.column.own().class(), c.field.Type).Metadata
		case c.field.Type == c.origin.field.Type:
			c.field.Metadata = c.origin.field.Metadata
		}
	case c.seen&seenBlob != 0:
		c.field.Type = arrow.BinaryTypes.Binary
	case c.seen&seenText != 0, c.seen&seenFloat != 0 && c.seen&seenLarge != 0,
		c.seen == 0, c.seen == seenOther:
		c.field.Type = arrow.BinaryTypes.String
	case c.seen&seenFloat != 0:
		c.field.Type = arrow.PrimitiveTypes.Float64
	default:
		c.field.Type = arrow.PrimitiveTypes.Int64
	}
	if c.origin != nil && c.seen&seenOther != 0 {
		c.origin = nil
	}
}

// resultType returns the type of a result column that shows the column: its own type, a tool column in
// a layout that can be written, or text if SQL represents the values as JSON.
func (c *sourceColumn) resultType() arrow.DataType {
	if c.column.IsTool() {
		return c.column.own().storage()
	}
	if strings.HasPrefix(declared(c), "JSON") {
		return arrow.BinaryTypes.String
	}
	return c.field.Type
}

// append appends a value to a column of the result.
func (c *resultColumn) append(b array.Builder, v value) error {
	if v.kind == sqlite3.SQLITE_NULL {
		b.AppendNull()
		return nil
	}
	if c.origin != nil {
		return c.origin.append(b, v)
	}
	switch b := b.(type) {
	case *array.Int64Builder:
		if v.kind != sqlite3.SQLITE_INTEGER {
			return errOther
		}
		b.Append(v.int)
	case *array.Float64Builder:
		switch v.kind {
		case sqlite3.SQLITE_INTEGER:
			b.Append(float64(v.int))
		case sqlite3.SQLITE_FLOAT:
			b.Append(v.float)
		default:
			return errOther
		}
	case *array.StringBuilder:
		b.Append(v.string())
	case *array.BinaryBuilder:
		if v.kind == sqlite3.SQLITE_BLOB || v.kind == sqlite3.SQLITE_TEXT {
			b.Append(v.bytes)
		} else {
			b.AppendString(v.string())
		}
	}
	return nil
}

// string formats a value as text.
func (v value) string() string {
	switch v.kind {
	case sqlite3.SQLITE_INTEGER:
		return strconv.FormatInt(v.int, 10)
	case sqlite3.SQLITE_FLOAT:
		return strconv.FormatFloat(v.float, 'g', -1, 64)
	}
	return string(bytes.ToValidUTF8(v.bytes, []byte("\uFFFD")))
}

// errOther is returned for a value that does not have the type of its column.
var errOther = fmt.Errorf("a value is of another type than those before it")

// appendInt appends an integer between least and most.
func appendInt(v value, least, most int64, put func(int64)) error {
	if v.kind != sqlite3.SQLITE_INTEGER || v.int < least || v.int > most {
		return errOther
	}
	put(v.int)
	return nil
}

// append appends a value of the column in the column's type.
func (c *sourceColumn) append(b array.Builder, v value) error {
	switch b := b.(type) {
	case *array.StructBuilder:
		return c.appendToolText(b, v)
	case *array.BooleanBuilder:
		return appendInt(v, 0, 1, func(n int64) { b.Append(n == 1) })
	case *array.Int8Builder:
		return appendInt(v, math.MinInt8, math.MaxInt8, func(n int64) { b.Append(int8(n)) })
	case *array.Int16Builder:
		return appendInt(v, math.MinInt16, math.MaxInt16, func(n int64) { b.Append(int16(n)) })
	case *array.Int32Builder:
		return appendInt(v, math.MinInt32, math.MaxInt32, func(n int64) { b.Append(int32(n)) })
	case *array.Int64Builder:
		return appendInt(v, math.MinInt64, math.MaxInt64, b.Append)
	case *array.Uint8Builder:
		return appendInt(v, 0, math.MaxUint8, func(n int64) { b.Append(uint8(n)) })
	case *array.Uint16Builder:
		return appendInt(v, 0, math.MaxUint16, func(n int64) { b.Append(uint16(n)) })
	case *array.Uint32Builder:
		return appendInt(v, 0, math.MaxUint32, func(n int64) { b.Append(uint32(n)) })
	case *array.Uint64Builder:
		if v.kind == sqlite3.SQLITE_FLOAT {
			digits, ok := c.digits(v.float)
			n, err := strconv.ParseUint(digits, 10, 64)
			if !ok || err != nil {
				return errOther
			}
			b.Append(n)
			return nil
		}
		return appendInt(v, 0, math.MaxInt64, func(n int64) { b.Append(uint64(n)) })
	case *array.DurationBuilder:
		return appendInt(v, math.MinInt64, math.MaxInt64, func(n int64) { b.Append(arrow.Duration(n)) })
	case *array.Float16Builder, *array.Float32Builder, *array.Float64Builder:
		return appendReal(b, v)
	case *array.Decimal32Builder, *array.Decimal64Builder, *array.Decimal128Builder, *array.Decimal256Builder:
		return c.appendDecimal(b, v)
	case *array.Date32Builder, *array.Date64Builder, *array.TimestampBuilder,
		*array.Time32Builder, *array.Time64Builder:
		return c.appendMoment(b, v)
	case *array.StringBuilder:
		return appendText(v, b.Append)
	case *array.LargeStringBuilder:
		return appendText(v, b.Append)
	case *array.StringViewBuilder:
		return appendText(v, b.Append)
	}
	if v.kind != sqlite3.SQLITE_BLOB {
		return errOther
	}
	switch b := b.(type) {
	case *array.BinaryBuilder: // also builds large binaries
		b.Append(v.bytes)
	case *array.BinaryViewBuilder:
		b.Append(v.bytes)
	case *array.FixedSizeBinaryBuilder:
		if len(v.bytes) != b.Type().(*arrow.FixedSizeBinaryType).ByteWidth {
			return errOther
		}
		b.Append(v.bytes)
	default:
		return errOther
	}
	return nil
}

func appendText(v value, put func(string)) error {
	if v.kind != sqlite3.SQLITE_TEXT {
		return errOther
	}
	put(v.string())
	return nil
}

func appendReal(b array.Builder, v value) error {
	if v.kind != sqlite3.SQLITE_FLOAT {
		return errOther
	}
	switch b := b.(type) { // after UNION, the value may come from a column with more digits
	case *array.Float16Builder:
		short := float16.New(float32(v.float))
		if float64(short.Float32()) != v.float {
			return errOther
		}
		b.Append(short)
	case *array.Float32Builder:
		if float64(float32(v.float)) != v.float {
			return errOther
		}
		b.Append(float32(v.float))
	case *array.Float64Builder:
		b.Append(v.float)
	}
	return nil
}

// appendDecimal appends a decimal with its exact digits.
func (c *sourceColumn) appendDecimal(b array.Builder, v value) error {
	switch v.kind {
	case sqlite3.SQLITE_INTEGER:
		return appendDigits(b, strconv.FormatInt(v.int, 10))
	case sqlite3.SQLITE_FLOAT:
		digits, ok := c.digits(v.float)
		if !ok {
			return errOther
		}
		return appendDigits(b, cmp.Or(digits, strconv.FormatFloat(v.float, 'f', -1, 64)))
	}
	return errOther
}

// appendMoment appends a time that is in the layout of its type.
func (c *sourceColumn) appendMoment(b array.Builder, v value) error {
	if v.kind != sqlite3.SQLITE_TEXT {
		return errOther
	}
	layout := sqlBoth
	switch b.(type) {
	case *array.Date32Builder, *array.Date64Builder:
		layout = sqlDate
	case *array.Time32Builder, *array.Time64Builder:
		layout = sqlTime
	}
	s := string(v.bytes)
	if _, ok := b.(*array.Date64Builder); ok && len(s) > len(sqlDate) { // with a time of day
		layout = sqlBoth
	}
	t, err := time.Parse(layout, s)
	if err != nil || t.Format(layout) != s {
		return errOther
	}
	switch b := b.(type) {
	case *array.Date32Builder:
		b.Append(arrow.Date32FromTime(t))
	case *array.Date64Builder:
		if t.Nanosecond()%int(time.Millisecond) != 0 {
			return errOther
		}
		b.Append(arrow.Date64(t.UnixMilli()))
	case *array.TimestampBuilder:
		unit := b.Type().(*arrow.TimestampType).Unit
		at, err := arrow.TimestampFromTime(t, unit)
		if err != nil || !at.ToTime(unit).Equal(t) {
			return errOther
		}
		b.Append(at)
	case *array.Time32Builder:
		b.Append(arrow.Time32(sinceMidnight(t) / b.Type().(*arrow.Time32Type).Unit.Multiplier()))
	case *array.Time64Builder:
		b.Append(arrow.Time64(sinceMidnight(t) / b.Type().(*arrow.Time64Type).Unit.Multiplier()))
	}
	return nil
}

func sinceMidnight(t time.Time) time.Duration {
	return t.Sub(time.Date(t.Year(), t.Month(), t.Day(), 0, 0, 0, 0, time.UTC))
}
