package table

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
)

// TestExportBadCell exports a table of tools one of which cannot be read. With Warn its row is left out, and without it
// the export fails.
func TestExportBadCell(t *testing.T) {
	schema := arrow.NewSchema([]arrow.Field{{Name: RowID, Type: arrow.BinaryTypes.String},
		logical("Tools", ClassTool, Seed9.storage())}, nil)
	b := array.NewRecordBuilder(memory.DefaultAllocator, schema)
	for i, cell := range []string{`{"0":1,"1":"good","3":"{}","6":-1,"8":"https://h.example/"}`,
		`{"0":1,"1":"bad","4":"no ports","6":-1}`, `{"0":1,"1":"last","3":"{}","6":-1,"8":"https://h.example/"}`} {
		b.Field(0).(*array.StringBuilder).Append(fmt.Sprintf("Row%d", i))
		if err := b.Field(1).UnmarshalJSON([]byte("[" + cell + "]")); err != nil {
			t.Fatal(err)
		}
	}
	path := rawBatch(t, "bad.arrow", b.NewRecordBatch())
	for _, format := range []Format{FormatCSV, FormatJSONL} {
		var out bytes.Buffer
		var warned []string
		e := ExportOptions{Format: format, Stdout: &out}
		if _, err := Export(t.Context(), "-", read(t, path), e); !IsCellError(err) {
			t.Errorf("%s: error %v", format, err)
		}
		out.Reset()
		e.Warn = func(text string) { warned = append(warned, text) }
		n, err := Export(t.Context(), "-", read(t, path), e)
		if n != 2 || err != nil || !strings.Contains(out.String(), "last") || strings.Contains(out.String(), "no ports") {
			t.Errorf("%s: %d rows, %v: %s", format, n, err, out.String())
		}
		if len(warned) != 1 || !strings.Contains(warned[0], "row 1, 'Row1'") ||
			!strings.HasSuffix(warned[0], "; the row is left out") {
			t.Errorf("%s: warnings %q", format, warned)
		}
	}
}
