package table

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/ipc"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/tenonhq/tenon"
)

// TestViews splits a batch of view columns into many. The values stay the same, and no batch
// contains the values of another.
func TestViews(t *testing.T) {
	long := arrow.BinaryTypes.StringView
	for _, typ := range []arrow.DataType{long, arrow.BinaryTypes.BinaryView, arrow.ListViewOf(arrow.PrimitiveTypes.Int64), arrow.LargeListViewOf(long),
		arrow.ListOf(long), arrow.LargeListOf(long), arrow.FixedSizeListOf(1, long), arrow.MapOf(arrow.BinaryTypes.String, long),
		arrow.StructOf(arrow.Field{Name: "a", Type: long, Nullable: true}, arrow.Field{Name: "b", Type: arrow.ListViewOf(long), Nullable: true})} {
		t.Run(typ.Name(), func(t *testing.T) {
			value := func(i int) string {
				text := fmt.Sprintf(`"%04d is a text of more than the few bytes that a view has room for"`, i)
				switch typ.ID() {
				case arrow.BINARY_VIEW:
					return fmt.Sprintf(`"%s"`, strings.Repeat("QUJD", 20))
				case arrow.LIST_VIEW:
					return fmt.Sprintf(`[%d,null,%d]`, i, i+1)
				case arrow.MAP:
					return `[{"key":"k","value":` + text + `}]`
				case arrow.STRUCT:
					return `{"a":` + text + `,"b":[` + text + `,null]}`
				case arrow.STRING_VIEW:
					return text
				}
				return "[" + text + "]"
			}
			var rows []string
			for i := range 300 {
				if i%7 == 3 {
					rows = append(rows, `{"v":null}`)
				} else {
					rows = append(rows, `{"v":`+value(i)+`}`)
				}
			}
			fields, all := []arrow.Field{col("v", typ)}, "["+strings.Join(rows, ",")+"]"
			dir := t.TempDir()
			one, many := filepath.Join(dir, "one.arrow"), filepath.Join(dir, "many.arrow")
			if _, err := Concat(t.Context(), one, []*Reader{jsonTable(t, fields, all)}, WriteOptions{BatchRows: 300}); err != nil {
				t.Fatal(err)
			}
			if _, err := Concat(t.Context(), many, []*Reader{jsonTable(t, fields, all)}, WriteOptions{BatchRows: 13}); err != nil {
				t.Fatal(err)
			}
			for _, path := range []string{one, many} {
				list, err := Diff(t.Context(), jsonTable(t, fields, all), read(t, path))
				if err != nil || len(list) > 0 {
					t.Error(path, list, err)
				}
			}
			a, err := os.Stat(one)
			if err != nil {
				t.Fatal(err)
			}
			b, err := os.Stat(many)
			if err != nil {
				t.Fatal(err)
			}
			if b.Size() > 3*a.Size() { // the factor allows for the overhead of batches
				t.Errorf("%d bytes became %d", a.Size(), b.Size())
			}
		})
	}
}

// TestViewBomb checks that views that show the same values in every row are not copied without a
// bound.
func TestViewBomb(t *testing.T) {
	const rows, size = 600, 1 << 20
	texts := array.NewStringViewBuilder(memory.DefaultAllocator)
	texts.Append(strings.Repeat("x", size))
	for range rows - 1 {
		texts.Append("")
	}
	text := texts.NewArray()
	headers := text.Data().Buffers()[1].Bytes()
	for i := range rows {
		copy(headers[i*arrow.ViewHeaderSizeBytes:], headers[:arrow.ViewHeaderSizeBytes])
	}
	sizes := make([]int64, rows)
	for i := range sizes {
		sizes[i] = size / 8
	}
	typ := arrow.ListViewOf(arrow.PrimitiveTypes.Int64)
	numbers := array.MakeArrayOfNull(memory.DefaultAllocator, arrow.PrimitiveTypes.Int64, size/8)
	list := array.MakeFromData(array.NewData(typ, rows, []*memory.Buffer{nil, integers(make([]int64, rows), 4), integers(sizes, 4)}, []arrow.ArrayData{numbers.Data()}, 0, 0))
	for name, a := range map[string]arrow.Array{"texts": text, "lists": list} {
		t.Run(name, func(t *testing.T) {
			schema := arrow.NewSchema([]arrow.Field{col("v", a.DataType())}, nil)
			var in bytes.Buffer
			w := ipc.NewWriter(&in, ipc.WithSchema(schema))
			if err := w.Write(array.NewRecordBatch(schema, []arrow.Array{a}, rows)); err != nil {
				t.Fatal(err)
			}
			if err := w.Close(); err != nil {
				t.Fatal(err)
			}
			r, err := Open(context.Background(), "-", Options{Stdin: &in})
			if err != nil {
				t.Fatal(err)
			}
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			_, err = Concat(t.Context(), filepath.Join(t.TempDir(), "out.arrow"), []*Reader{r}, WriteOptions{})
			runtime.ReadMemStats(&after)
			if tenon.ErrorCode(err) != tenon.CodeTooLarge || !strings.Contains(err.Error(), "tables.batch_rows: 1") {
				t.Error(err)
			}
			if took := after.TotalAlloc - before.TotalAlloc; took > 100*size {
				t.Errorf("it took %d bytes", took)
			}
		})
	}
}
