package table

import (
	"bytes"
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/google/go-cmp/cmp"
)

// pickFields are columns of the types that take copies, and of others.
var pickFields = []arrow.Field{col("b", arrow.FixedWidthTypes.Boolean), col("i8", arrow.PrimitiveTypes.Int8),
	col("i16", arrow.PrimitiveTypes.Int16), col("i32", arrow.PrimitiveTypes.Int32), col("i64", arrow.PrimitiveTypes.Int64),
	col("u8", arrow.PrimitiveTypes.Uint8), col("u16", arrow.PrimitiveTypes.Uint16), col("u32", arrow.PrimitiveTypes.Uint32),
	col("u64", arrow.PrimitiveTypes.Uint64), col("f32", arrow.PrimitiveTypes.Float32), col("f64", arrow.PrimitiveTypes.Float64),
	col("s", arrow.BinaryTypes.String), col("ls", arrow.BinaryTypes.LargeString), col("bin", arrow.BinaryTypes.Binary),
	col("lbin", arrow.BinaryTypes.LargeBinary), col("at", &arrow.TimestampType{Unit: arrow.Second, TimeZone: "UTC"}),
	col("day", arrow.FixedWidthTypes.Date32), col("list", arrow.ListOf(arrow.PrimitiveTypes.Int64))}

// pickTable returns a table of n rows. Every third row has only missing cells.
func pickTable(t *testing.T, n int) *Reader {
	t.Helper()
	var rows bytes.Buffer
	rows.WriteByte('[')
	for i := range n {
		if i > 0 {
			rows.WriteByte(',')
		}
		if i%3 == 2 {
			rows.WriteString("{}")
			continue
		}
		fmt.Fprintf(&rows, `{"b":%t,"i8":%d,"i16":%d,"i32":%d,"i64":%d,"u8":%d,"u16":%d,"u32":%d,"u64":%d,"f32":%d.5,"f64":%d.25,`+
			`"s":"ü%d","ls":"l%d","bin":"AQ==","lbin":"Ag==","at":"2026-01-02T03:04:05Z","day":"2026-01-02","list":[%d]}`,
			i%2 == 0, i%100, i, i, -i, i%100, i, i, i, i, i, i, i, i)
	}
	rows.WriteByte(']')
	return jsonTable(t, pickFields, rows.String())
}

// jsonRows returns the rows of a table as JSON.
func jsonRows(t *testing.T, r *Reader) (rows []string) {
	t.Helper()
	for row, err := range r.Rows(t.Context()) {
		if err == nil {
			var b json.RawMessage
			if b, err = row.JSON(true); err == nil {
				rows = append(rows, string(b))
			}
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return rows
}

// TestPick checks that the picked rows are the rows of the table, whether they are scattered or follow each other.
func TestPick(t *testing.T) {
	all := jsonRows(t, pickTable(t, 300))
	for name, keep := range map[string]func(i int64) bool{
		"RP-20_scattered":  func(i int64) bool { return i%7 == 0 || i%5 == 2 },
		"RP-20_runs":       func(i int64) bool { return i/50%2 == 1 },
		"RP-20_one":        func(i int64) bool { return i == 299 },
		"RP-20_none":       func(int64) bool { return false },
		"RP-20_everything": func(int64) bool { return true },
	} {
		t.Run(name, func(t *testing.T) {
			var want []string
			for i, row := range all {
				if keep(int64(i)) {
					want = append(want, row)
				}
			}
			out := filepath.Join(t.TempDir(), "out.arrow")
			seen := int64(0)
			n, err := Pick(t.Context(), out, pickTable(t, 300), Selection{Keep: func(c Cells) (bool, error) { return keep(c.Index), nil },
				Read: func(rows int64) error { seen = rows; return nil }}, WriteOptions{})
			if err != nil || n != int64(len(want)) || seen != 300 {
				t.Fatalf("%d rows of %d, %v", n, seen, err)
			}
			if diff := cmp.Diff(want, jsonRows(t, read(t, out))); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestPlain checks that a cell without conversion to JSON has the value of its JSON.
func TestPlain(t *testing.T) {
	r := pickTable(t, 3)
	for row, err := range r.Rows(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		for key, c := range r.Keys(true) {
			v, ok := row.Plain(c)
			if !ok {
				if !slices.Contains([]string{"u64", "f32", "bin", "lbin", "at", "day", "list"}, key) {
					t.Errorf("%s is not plain", key)
				}
				continue
			}
			got, _ := json.Marshal(v)
			if want, err := row.Value(c, true); err != nil || string(got) != string(want) {
				t.Errorf("RP-20_plain: %s: %s, want %s, %v", key, got, want, err)
			}
		}
	}
}
