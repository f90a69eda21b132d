package table

import (
	"bytes"
	"path/filepath"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/ipc"
)

// TestConcatTypes joins columns with the same name and with types that differ only between writers.
func TestConcatTypes(t *testing.T) {
	n := arrow.PrimitiveTypes.Int64
	inside := func(nullable bool) arrow.Field { return arrow.Field{Name: "item", Type: n, Nullable: nullable} }
	maps := func(nullable bool) arrow.DataType {
		m := arrow.MapOf(arrow.BinaryTypes.String, n)
		m.SetItemNullable(nullable)
		return m
	}
	extended := func(typ arrow.DataType, name string) arrow.Field {
		f := col("v", typ)
		f.Metadata = arrow.NewMetadata([]string{ipc.ExtensionTypeKeyName, ipc.ExtensionMetadataKeyName}, []string{name, ""})
		return f
	}
	v := func(typ arrow.DataType) arrow.Field { return col("v", typ) }
	deep := func(nullable bool) arrow.DataType {
		return arrow.ListOf(arrow.StructOf(arrow.Field{Name: "a", Type: arrow.LargeListOfField(inside(nullable)), Nullable: !nullable}))
	}
	for _, tt := range []struct {
		name, first, second string
		a, b                arrow.Field
		err                 string
	}{
		{"list", "[1]", "[null]", v(arrow.ListOfField(inside(false))), v(arrow.ListOfField(inside(true))), ""},
		{"list the other way", "[null]", "[1]", v(arrow.ListOfField(inside(true))), v(arrow.ListOfField(inside(false))), ""},
		{"large list", "[1]", "[null]", v(arrow.LargeListOfField(inside(false))), v(arrow.LargeListOfField(inside(true))), ""},
		{"list view", "[1]", "[null]", v(arrow.ListViewOfField(inside(false))), v(arrow.ListViewOfField(inside(true))), ""},
		{"fixed list", "[1]", "[null]", v(arrow.FixedSizeListOfField(1, inside(false))), v(arrow.FixedSizeListOfField(1, inside(true))), ""},
		{"struct", `{"item":1}`, `{"item":null}`, v(arrow.StructOf(inside(false))), v(arrow.StructOf(inside(true))), ""},
		{"map", `[{"key":"k","value":1}]`, `[{"key":"k","value":null}]`, v(maps(false)), v(maps(true)), ""},
		{"deep", `[{"a":[1]}]`, `[{"a":[null]}]`, v(deep(false)), v(deep(true)), ""},
		{"extension", "1", "2", extended(n, "one"), extended(n, "one"), ""},
		{"other extension", "1", "2", extended(n, "one"), extended(n, "two"), "column 'v' is int64 (one) in stdin and int64 (two) in stdin"},
		{"no extension", "1", "2", extended(n, "one"), v(n), "column 'v' is int64 (one) in stdin and int64 in stdin"},
		{"view", "[1]", "[1]", v(arrow.ListOf(n)), v(arrow.ListViewOf(n)), "column 'v' is list<item: int64, nullable> in stdin and list_view<item: int64, nullable> in stdin"},
		{"names", `{"item":1}`, `{"other":1}`, v(arrow.StructOf(inside(true))), v(arrow.StructOf(arrow.Field{Name: "other", Type: n})), "struct<other: int64>"},
		{"lengths", "[1]", "[1,2]", v(arrow.FixedSizeListOf(1, n)), v(arrow.FixedSizeListOf(2, n)), "list<int64>[2]"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			one := func(f arrow.Field, cell string) *Reader { return jsonTable(t, []arrow.Field{f}, `[{"v":`+cell+`}]`) }
			path := filepath.Join(t.TempDir(), "t.arrow")
			_, err := Concat(t.Context(), path, []*Reader{one(tt.a, tt.first), one(tt.b, tt.second)}, WriteOptions{})
			if tt.err != "" {
				if err == nil || !strings.Contains(err.Error(), tt.err) {
					t.Errorf("got %v", err)
				}
				if list, err := Diff(t.Context(), one(tt.a, "null"), one(tt.b, "null")); err != nil || strings.Contains(tt.name, "extension") && len(list) == 0 {
					t.Errorf("told apart: %v %v", list, err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			var got bytes.Buffer
			for row, err := range read(t, path).Rows(t.Context()) {
				if err != nil {
					t.Fatal(err)
				}
				b, err := row.JSON(false)
				if err != nil {
					t.Fatal(err)
				}
				got.Write(b)
			}
			if want := `{"v":` + tt.first + `}{"v":` + tt.second + `}`; got.String() != want {
				t.Errorf("got %s, want %s", got.String(), want)
			}
		})
	}
}
