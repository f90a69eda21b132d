package table

import (
	"bytes"
	"context"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/internal/longtest"
)

// streamOf returns a stream of a table with the given columns.
func streamOf(t *testing.T, columns ...arrow.Array) *Reader {
	t.Helper()
	fields := make([]arrow.Field, len(columns))
	for i, a := range columns {
		fields[i] = col(string(rune('a'+i)), a.DataType())
	}
	return piped(t, array.NewRecordBatch(arrow.NewSchema(fields, nil), columns, int64(columns[0].Len())))
}

// piped opens a table of one batch from a stream.
func piped(t *testing.T, rec arrow.RecordBatch) *Reader {
	t.Helper()
	var buf bytes.Buffer
	writeStream(t, &buf, rec.Schema(), rec)
	r, err := Open(context.Background(), "-", Options{Stdin: &buf})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// firstRow returns the JSON of the first row.
func firstRow(t *testing.T, r *Reader) (string, error) {
	t.Helper()
	for row, err := range r.Rows(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		b, err := row.JSON(false)
		return string(b), err
	}
	t.Fatal("there is no row")
	return "", nil
}

func fromJSON(t *testing.T, typ arrow.DataType, text string) arrow.Array {
	t.Helper()
	a, _, err := array.FromJSON(memory.DefaultAllocator, typ, bytes.NewReader([]byte(text)))
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// TestNestedValues checks that the JSON of a value does not depend on the type around it.
func TestNestedValues(t *testing.T) {
	decimal := &arrow.Decimal128Type{Precision: 38, Scale: 10}
	long := fromJSON(t, decimal, `["12345678901234567890.0123456789"]`)
	const want = "12345678901234567890.0123456789"
	ends := fromJSON(t, arrow.PrimitiveTypes.Int32, `[1]`)
	fields := []arrow.Field{col("n", decimal), col("s", arrow.BinaryTypes.String)}
	texts := fromJSON(t, arrow.BinaryTypes.String, `["x"]`)
	codes := memory.NewBufferBytes([]byte{0})
	dense := array.NewData(arrow.DenseUnionOf(fields, []arrow.UnionTypeCode{0, 1}), 1,
		[]*memory.Buffer{nil, codes, memory.NewBufferBytes(make([]byte, 4))}, []arrow.ArrayData{long.Data(), texts.Data()}, 0, 0)
	sparse := array.NewData(arrow.SparseUnionOf(fields, []arrow.UnionTypeCode{0, 1}), 1,
		[]*memory.Buffer{nil, codes}, []arrow.ArrayData{long.Data(), texts.Data()}, 0, 0)
	for name, test := range map[string]struct {
		a    arrow.Array
		want string
	}{
		"alone":        {long, `{"a":` + want + `}`},
		"runs":         {array.NewRunEndEncodedArray(ends, long, 1, 0), `{"a":` + want + `}`},
		"dense union":  {array.MakeFromData(dense), `{"a":[0,` + want + `]}`},
		"sparse union": {array.MakeFromData(sparse), `{"a":[0,` + want + `]}`},
	} {
		t.Run(name, func(t *testing.T) {
			if got, err := firstRow(t, streamOf(t, test.a)); err != nil || got != test.want {
				t.Errorf("%s, %v, want %s", got, err, test.want)
			}
		})
	}
}

// TestNestedBombs reads a few bytes whose JSON has gigabytes.
func TestNestedBombs(t *testing.T) {
	longtest.Skip(t)
	offsets := func(list ...int32) *memory.Buffer { return memory.NewBufferBytes(arrow.Int32Traits.CastToBytes(list)) }
	const most = 1<<31 - 1
	nulls := array.NewNull(most)
	list := array.NewData(arrow.ListOf(arrow.Null), 1, []*memory.Buffer{nil, offsets(0, most)}, []arrow.ArrayData{nulls.Data()}, 0, 0)
	text := strings.Repeat("a", 1<<14)
	views := fromJSON(t, arrow.BinaryTypes.String, `["`+text+`","`+text+`","`+text+`","`+text+`"]`)
	for range 30 {
		views = array.MakeFromData(array.NewData(arrow.ListViewOf(views.DataType()), 4, []*memory.Buffer{nil, offsets(0, 0, 0, 0), offsets(4, 4, 4, 4)},
			[]arrow.ArrayData{views.Data()}, 0, 0))
	}
	for name, a := range map[string]arrow.Array{"nulls": array.MakeFromData(list), "views": views} {
		t.Run(name, func(t *testing.T) {
			if got, err := firstRow(t, streamOf(t, a)); tenon.ErrorCode(err) != tenon.CodeTooLarge {
				t.Errorf("%d bytes, %v", len(got), err)
			}
			_, _, err := ask(t, Query{SQL: "SELECT a FROM t", Tables: []Input{{"t", streamOf(t, a)}}})
			if tenon.ErrorCode(err) != tenon.CodeTooLarge {
				t.Errorf("a query: %v", err)
			}
		})
	}
}
