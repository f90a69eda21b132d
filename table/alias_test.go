package table

import (
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
)

// TestAliases reads tables as Python's deprecated factory and its type of file store keys store them.
func TestAliases(t *testing.T) {
	text, i8, i32 := arrow.BinaryTypes.String, arrow.PrimitiveTypes.Int8, arrow.PrimitiveTypes.Int32
	for name, test := range map[string]struct {
		class string
		keys  arrow.DataType
		warns int
	}{
		"RP-20_factory": {"org.knime.any.MCPToolValueFactory", text, 1},
		"RP-20_bytes":   {ClassTool, arrow.BinaryTypes.Binary, 0},
		"RP-20_large":   {ClassTool, arrow.BinaryTypes.LargeBinary, 0},
	} {
		t.Run(name, func(t *testing.T) {
			path := raw(t, "t.arrow", test.class, fields(i8, text, text, text, text, text, i32, test.keys, text),
				func(b *array.StructBuilder) {
					b.Append(true)
					b.FieldBuilder(0).(*array.Int8Builder).Append(1)
					for i := 1; i < 9; i++ {
						b.FieldBuilder(i).AppendNull()
					}
				}, 1)
			warns := 0
			r, err := Open(t.Context(), path, Options{Warn: func(string) { warns++ }})
			if err != nil {
				t.Fatal(err)
			}
			defer r.Close() //nolint:errcheck
			c, err := r.Column("")
			if err != nil {
				t.Fatal(err)
			}
			for row, err := range r.Tools(t.Context(), c) {
				if err != nil || row.Err != nil || row.Tool.Kind != MCP || row.Tool.Keys != "" {
					t.Errorf("%v %+v", err, row)
				}
			}
			if warns != test.warns {
				t.Errorf("%d warnings, want %d", warns, test.warns)
			}
		})
	}
}
