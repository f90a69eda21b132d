package table

import (
	"bytes"
	"context"
	"encoding/binary"
	"strconv"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/google/go-cmp/cmp"
)

// TestJSONKeys checks that two columns with one name get two keys.
func TestJSONKeys(t *testing.T) {
	n := arrow.PrimitiveTypes.Int64
	out := func(names ...string) string {
		s := arrow.NewSchema([]arrow.Field{col(names[0], n), col(names[1], n), col(names[2], n)}, nil)
		b := array.NewRecordBuilder(memory.DefaultAllocator, s)
		for i := range names {
			b.Field(i).(*array.Int64Builder).Append(int64(i + 1))
		}
		row, err := firstRow(t, piped(t, b.NewRecordBatch()))
		if err != nil {
			t.Fatal(err)
		}
		return row
	}
	for _, tt := range []struct {
		names []string
		want  string
	}{
		{[]string{"a", "b", "c"}, `{"a":1,"b":2,"c":3}`},
		{[]string{"a", "a", "a"}, `{"a":1,"a_1":2,"a_2":3}`},
		{[]string{"a", "a", "a_1"}, `{"a":1,"a_2":2,"a_1":3}`},
		{[]string{"a", "A", "x"}, `{"a":1,"A":2,"x":3}`},
	} {
		if diff := cmp.Diff(tt.want, out(tt.names...)); diff != "" {
			t.Errorf("%q: %s", tt.names, diff)
		}
	}
}

// TestDiffColumns checks that only columns that differ are named.
func TestDiffColumns(t *testing.T) {
	n, s := arrow.PrimitiveTypes.Int64, arrow.BinaryTypes.String
	a := jsonTable(t, []arrow.Field{col("same", n), col("x", n), col("more", s)}, `[]`)
	b := jsonTable(t, []arrow.Field{col("same", n), col("x", s)}, `[]`)
	got, err := Diff(context.Background(), a, b)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"column 1: 'x' int64 / 'x' utf8", "column 2: 'more' utf8 / -"}, got); diff != "" {
		t.Error(diff)
	}
}

// TestZones checks that times are shown in their column's zone, even if it is an offset.
func TestZones(t *testing.T) {
	for zone, want := range map[string]string{
		"":              `{"at":"1970-01-01T00:00:00"}`,
		"UTC":           `{"at":"1970-01-01T00:00:00Z"}`,
		"+05:30":        `{"at":"1970-01-01T05:30:00+05:30"}`,
		"-08:00":        `{"at":"1969-12-31T16:00:00-08:00"}`,
		"No/Such_Place": `{"at":"1970-01-01T00:00:00Z"}`,
	} {
		s := arrow.NewSchema([]arrow.Field{col("at", &arrow.TimestampType{Unit: arrow.Second, TimeZone: zone})}, nil)
		b := array.NewRecordBuilder(memory.DefaultAllocator, s)
		b.Field(0).(*array.TimestampBuilder).Append(0)
		if got, err := firstRow(t, piped(t, b.NewRecordBatch())); err != nil || got != want {
			t.Errorf("%q: %s %v, want %s", zone, got, err, want)
		}
	}
}

// TestNumbersOfTools checks that an invalid number in a tool is an error and not converted to
// another number.
func TestNumbersOfTools(t *testing.T) {
	text, number := arrow.BinaryTypes.String, arrow.PrimitiveTypes.Uint64
	storage := fields(number, text, text, text, text, text, number, text, text)
	for name, test := range map[string]struct {
		kind, message uint64
		want          string
	}{
		"both":              {1, 2, ""},
		"largest":           {1<<63 - 1, 0, ""},
		"kind too large":    {1 << 63, 0, "field 0: the number 9223372036854775808 is too large"},
		"message too large": {0, 1 << 63, "field 6: the number 9223372036854775808 is too large"},
		"message no index":  {0, 1 << 31, "field 6: 2147483648 is not an index of a port"},
	} {
		t.Run(name, func(t *testing.T) {
			path := raw(t, "t.arrow", ClassTool, storage, func(b *array.StructBuilder) {
				b.Append(true)
				for i := range b.NumField() {
					switch f := b.FieldBuilder(i).(type) {
					case *array.Uint64Builder:
						f.Append(map[int]uint64{fieldKind: test.kind, fieldMessage: test.message}[i])
					default:
						f.AppendNull()
					}
				}
			}, 1)
			r := read(t, path)
			c, err := r.Column("")
			if err != nil {
				t.Fatal(err)
			}
			for row, err := range r.Tools(t.Context(), c) {
				if err == nil {
					err = row.Err
				}
				if test.want == "" && (err != nil || row.Tool.Kind != Kind(test.kind)) || test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)) {
					t.Errorf("%+v %v, want %s", row.Tool, err, test.want)
				}
			}
		})
	}
}

func shown(t *testing.T, r *Reader) (list []string) {
	t.Helper()
	for row, err := range r.Rows(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		b, err := row.JSON(false)
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, string(b))
	}
	return list
}

// TestDatesWithTimes compares dates in milliseconds within one day.
func TestDatesWithTimes(t *testing.T) {
	date := func(ms int64) *Reader {
		b := array.NewDate64Builder(memory.DefaultAllocator)
		b.Append(arrow.Date64(ms))
		s := arrow.NewSchema([]arrow.Field{col("d", arrow.FixedWidthTypes.Date64)}, nil)
		return read(t, rawBatch(t, "d.arrow", array.NewRecordBatch(s, []arrow.Array{b.NewArray()}, 1)))
	}
	const day = 24 * 60 * 60 * 1000
	got, err := Diff(t.Context(), date(-day), date(3_600_000-day))
	if diff := cmp.Diff([]string{`row 0 ('Row0'), column 'd': "1969-12-31" / "1969-12-31T01:00:00"`}, got); diff != "" || err != nil {
		t.Error(diff, err)
	}
}

// TestNoSchema opens inputs that end before the schema.
func TestNoSchema(t *testing.T) {
	for in, want := range map[string]string{
		"\x00\x00\x00\x00\x00\x00\x00\x00": "it begins neither as an Arrow file",
		"\xff\xff\xff\xff\x00\x00\x00\x00": "it ends before its schema",
		"":                                 "it is empty",
	} {
		if _, err := Open(context.Background(), "-", Options{Stdin: strings.NewReader(in)}); err == nil || !strings.Contains(err.Error(), "stdin is not a table: "+want) {
			t.Errorf("%q: %v", in, err)
		}
	}
}

// TestDiffBound compares rows with more columns than the bound of differences.
func TestDiffBound(t *testing.T) {
	var fields []arrow.Field
	a, b := "", ""
	for i := range 3 * maxDifferences {
		name := "c" + strconv.Itoa(i)
		fields = append(fields, col(name, arrow.PrimitiveTypes.Int64))
		a, b = a+`,"`+name+`":1`, b+`,"`+name+`":2`
	}
	list, err := Diff(t.Context(), jsonTable(t, fields, "[{"+a[1:]+"}]"), jsonTable(t, fields, "[{"+b[1:]+"}]"))
	if err != nil || len(list) != maxDifferences {
		t.Errorf("%d %v", len(list), err)
	}
}

// TestDictionariesInside reads dictionaries at every level of a column.
func TestDictionariesInside(t *testing.T) {
	dict := &arrow.DictionaryType{IndexType: arrow.PrimitiveTypes.Int32, ValueType: arrow.BinaryTypes.String}
	for _, tt := range []struct {
		typ, plain arrow.DataType
		cell       string
	}{
		{dict, arrow.BinaryTypes.String, `"x"`},
		{arrow.ListOf(dict), arrow.ListOf(arrow.BinaryTypes.String), `["x",null,"y"]`},
		{arrow.LargeListOf(dict), arrow.LargeListOf(arrow.BinaryTypes.String), `["x",null,"y"]`},
		{arrow.ListViewOf(dict), arrow.ListViewOf(arrow.BinaryTypes.String), `["x",null,"y"]`},
		{arrow.LargeListViewOf(dict), arrow.LargeListViewOf(arrow.BinaryTypes.String), `["x",null,"y"]`},
		{arrow.FixedSizeListOf(2, dict), arrow.FixedSizeListOf(2, arrow.BinaryTypes.String), `["x","y"]`},
		{arrow.MapOf(arrow.BinaryTypes.String, dict), arrow.MapOf(arrow.BinaryTypes.String, arrow.BinaryTypes.String), `[{"key":"k","value":"x"}]`},
		{arrow.StructOf(arrow.Field{Name: "a", Type: arrow.LargeListOf(dict), Nullable: true}),
			arrow.StructOf(arrow.Field{Name: "a", Type: arrow.LargeListOf(arrow.BinaryTypes.String), Nullable: true}), `{"a":["y","x"]}`},
	} {
		t.Run(tt.typ.String(), func(t *testing.T) {
			in := `[{"v":` + tt.cell + `},{"v":null},{"v":` + tt.cell + `}]`
			want := jsonTable(t, []arrow.Field{col("v", tt.plain)}, in)
			if diff := cmp.Diff([]string{`{"v":` + tt.cell + `}`, `{"v":null}`, `{"v":` + tt.cell + `}`}, shown(t, jsonTable(t, []arrow.Field{col("v", tt.typ)}, in))); diff != "" {
				t.Error(diff)
			}
			if list, err := Diff(t.Context(), want, jsonTable(t, []arrow.Field{col("v", tt.typ)}, in)); err != nil || len(list) > 0 {
				t.Errorf("%v %v", list, err)
			}
		})
	}
}

// TestEmptyDictionary reads a missing struct as pyarrow writes it: its fields have index 0 of an
// empty dictionary.
func TestEmptyDictionary(t *testing.T) {
	dict := &arrow.DictionaryType{IndexType: arrow.PrimitiveTypes.Int32, ValueType: arrow.BinaryTypes.String}
	typ := arrow.StructOf(arrow.Field{Name: "a", Type: dict, Nullable: true})
	values := array.NewStringBuilder(memory.DefaultAllocator).NewArray()
	column := func(index uint32, there byte) *Reader {
		indices := binary.LittleEndian.AppendUint32(nil, index)
		kid := array.NewDataWithDictionary(dict, 1, []*memory.Buffer{nil, memory.NewBufferBytes(indices)}, 0, 0, values.Data().(*array.Data))
		data := array.NewData(typ, 1, []*memory.Buffer{memory.NewBufferBytes([]byte{there})}, []arrow.ArrayData{kid}, array.UnknownNullCount, 0)
		s := arrow.NewSchema([]arrow.Field{col("v", typ)}, nil)
		var buf bytes.Buffer
		writeStream(t, &buf, s, array.NewRecordBatch(s, []arrow.Array{array.MakeFromData(data)}, 1))
		r, err := Open(context.Background(), "-", Options{Stdin: &buf})
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	if diff := cmp.Diff([]string{`{"v":null}`}, shown(t, column(0, 0))); diff != "" {
		t.Error(diff)
	}
	if _, _, err := column(1, 1).Count(t.Context()); err == nil || !strings.Contains(err.Error(), "out of bounds") {
		t.Error(err)
	}
}
