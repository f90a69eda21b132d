package table

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
)

// TestViews cuts a table of one batch into many: columns whose values stand anywhere in
// their buffers stay what they are, and no batch has those of another.
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
			if b.Size() > 3*a.Size() { // what batches take themselves
				t.Errorf("%d bytes became %d", a.Size(), b.Size())
			}
		})
	}
}
