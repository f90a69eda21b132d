package table

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
)

// names returns the names of all columns of a table file, with the row ids.
func names(t *testing.T, path string) (list []string) {
	t.Helper()
	for _, f := range read(t, path).schema.Fields() {
		list = append(list, f.Name)
	}
	return list
}

// TestKN_RowIDNames reads tables with data columns named <RowID>: one that is not text, and one that is not the first.
// A copy, an export and a query have no two columns of that name, and the export is read back.
func TestKN_RowIDNames(t *testing.T) {
	text, number := arrow.BinaryTypes.String, arrow.PrimitiveTypes.Int64
	for name, tt := range map[string]struct {
		fields []arrow.Field
		want   []string
	}{
		"KN-9_numbers":   {[]arrow.Field{{Name: RowID, Type: number}, {Name: "a", Type: text}}, []string{RowID, "RowID_1", "a"}},
		"KN-9_not_first": {[]arrow.Field{{Name: "a", Type: text}, {Name: RowID, Type: text}}, []string{RowID, "a", "RowID_1"}},
		"KN-9_taken": {[]arrow.Field{{Name: RowID, Type: number}, {Name: "RowID_1", Type: text}},
			[]string{RowID, "RowID_2", "RowID_1"}},
		"KN-9_ids_and_another": {[]arrow.Field{{Name: RowID, Type: text}, {Name: RowID, Type: text}},
			[]string{RowID, "RowID_1"}},
	} {
		t.Run(name, func(t *testing.T) {
			b := array.NewRecordBuilder(memory.DefaultAllocator, arrow.NewSchema(tt.fields, nil))
			for i, f := range tt.fields {
				if f.Type == number {
					b.Field(i).(*array.Int64Builder).Append(7)
				} else {
					b.Field(i).(*array.StringBuilder).Append("x")
				}
			}
			in := rawBatch(t, "in.arrow", b.NewRecordBatch())
			dir := t.TempDir()
			out, csv, query := filepath.Join(dir, "o.arrow"), filepath.Join(dir, "o.csv"), filepath.Join(dir, "q.arrow")
			every := Selection{Keep: func(Cells) (bool, error) { return true, nil }}
			if _, err := Pick(t.Context(), out, read(t, in), every, WriteOptions{}); err != nil {
				t.Fatal(err)
			}
			if got := names(t, out); !slices.Equal(got, tt.want) {
				t.Errorf("a copy has the columns %q, want %q", got, tt.want)
			}
			if _, err := Export(t.Context(), csv, read(t, in), ExportOptions{Format: FormatCSV, RowIDs: true}); err != nil {
				t.Fatal(err)
			}
			raw, err := os.ReadFile(csv)
			head, _, _ := strings.Cut(string(raw), "\n")
			if err != nil || strings.TrimSpace(head) != strings.Join(tt.want, ",") {
				t.Errorf("the CSV begins with %q, want %q, %v", head, tt.want, err)
			}
			all := Query{SQL: "SELECT * FROM t", Tables: []Input{{Name: "t", Reader: read(t, in)}}}
			if _, err := Select(t.Context(), all, query, WriteOptions{}); err != nil {
				t.Fatal(err)
			}
			if got := names(t, query); !slices.Equal(got, tt.want) {
				t.Errorf("a query returns the columns %q, want %q", got, tt.want)
			}
		})
	}
}

// TestKN_DuplicateRowIDs checks a table in which two rows have one id.
func TestKN_DuplicateRowIDs(t *testing.T) {
	b := array.NewRecordBuilder(memory.DefaultAllocator, arrow.NewSchema([]arrow.Field{
		{Name: RowID, Type: arrow.BinaryTypes.String}}, nil))
	for _, id := range []string{"a", "b", "a", "Row3"} {
		b.Field(0).(*array.StringBuilder).Append(id)
	}
	flaws, err := read(t, rawBatch(t, "t.arrow", b.NewRecordBatch())).Check(t.Context())
	if err != nil || len(flaws) != 1 || flaws[0].String() != "row 2 ('a'), column '<RowID>': an earlier row has this id; "+
		"row ids must be unique" {
		t.Errorf("KN-9: %v, %v", flaws, err)
	}
}
