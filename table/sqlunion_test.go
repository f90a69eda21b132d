package table

import (
	"bytes"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/google/go-cmp/cmp"
)

// TestSelectUnion combines values of several columns in one. SQLite reports only the first or the
// last column as the origin, but no value may lose digits to its type.
func TestSelectUnion(t *testing.T) {
	wide := &arrow.Decimal128Type{Precision: 30, Scale: 2}
	other := &arrow.Decimal128Type{Precision: 30, Scale: 1}
	columns := []arrow.Field{
		col("w", wide), col("o", other), col("u", arrow.PrimitiveTypes.Uint64), col("f", arrow.PrimitiveTypes.Float64), col("g", arrow.PrimitiveTypes.Float32),
		col("h", arrow.FixedWidthTypes.Float16), col("s", arrow.FixedWidthTypes.Duration_s), col("ms", arrow.FixedWidthTypes.Duration_ms),
	}
	tables := func() []Input {
		return []Input{
			{"x", jsonTable(t, columns, `[{"w":"12345678901234567890.12","o":"12345678901234567890.1","u":18446744073709551615,"f":1e300,"g":0.5,"h":0.5,"s":1,"ms":1}]`)},
			{"y", jsonTable(t, columns, `[{"w":"98765432109876543210.98","o":"7.5","u":18446744073709546616,"f":0.1,"g":0.25,"h":0.25,"s":2,"ms":2}]`)},
		}
	}
	for _, tt := range []struct {
		name, sql, types string
		rows             []string
	}{
		{"digits of both", "SELECT w AS v FROM x UNION ALL SELECT w FROM y", "v decimal(30, 2)", []string{`{"v":12345678901234567890.12}`, `{"v":98765432109876543210.98}`}},
		{"digits in a subquery", "SELECT v FROM (SELECT w AS v FROM y UNION ALL SELECT w FROM x)", "v decimal(30, 2)", []string{`{"v":98765432109876543210.98}`, `{"v":12345678901234567890.12}`}},
		{"uint64 of both", "SELECT u AS v FROM x UNION ALL SELECT u FROM y", "v uint64", []string{`{"v":18446744073709551615}`, `{"v":18446744073709546616}`}},
		{"uint64 behind a decimal", "SELECT w AS v FROM x UNION ALL SELECT u FROM x", "v decimal(30, 2)", []string{`{"v":12345678901234567890.12}`, `{"v":18446744073709551615.00}`}},
		{"taken for one by SQL", "SELECT w AS v FROM x UNION ALL SELECT o FROM x", "v float64", []string{`{"v":12345678901234567000}`, `{"v":12345678901234567000}`}},
		{"common", "SELECT w AS v FROM x INTERSECT SELECT w FROM x", "v decimal(30, 2)", []string{`{"v":12345678901234567890.12}`}},
		{"too large for float32", "SELECT g AS v FROM x UNION ALL SELECT f FROM x", "v float64", []string{`{"v":0.5}`, `{"v":1e+300}`}},
		{"too fine for float32", "SELECT g AS v FROM x UNION ALL SELECT f FROM y", "v float64", []string{`{"v":0.5}`, `{"v":0.1}`}},
		{"too large for float16", "SELECT h AS v FROM x UNION ALL SELECT f FROM x", "v float64", []string{`{"v":0.5}`, `{"v":1e+300}`}},
		{"float32 of both", "SELECT g AS v FROM x UNION ALL SELECT g FROM y", "v float32", []string{`{"v":0.5}`, `{"v":0.25}`}},
		{"durations of two units", "SELECT s AS v FROM x UNION ALL SELECT ms FROM y", "v int64", []string{`{"v":1}`, `{"v":2}`}},
		{"durations of one unit", "SELECT s AS v FROM x UNION ALL SELECT s FROM y", "v duration[s]", []string{`{"v":"1s"}`, `{"v":"2s"}`}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			types, rows, err := ask(t, Query{SQL: tt.sql, Tables: tables()})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff([]string{tt.types}, types); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff(tt.rows, rows); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestSelectDate64 checks that dates in milliseconds keep their time of day.
func TestSelectDate64(t *testing.T) {
	b := array.NewDate64Builder(memory.DefaultAllocator)
	at := time.Date(2026, 2, 3, 4, 5, 6, 7e6, time.UTC)
	for _, v := range []time.Time{at, at.Truncate(24 * time.Hour), at.Add(24 * time.Hour).Truncate(24 * time.Hour)} {
		b.Append(arrow.Date64(v.UnixMilli()))
	}
	values := b.NewArray()
	schema := arrow.NewSchema([]arrow.Field{col("v", values.DataType())}, nil)
	open := func() []Input {
		var file bytes.Buffer
		writeStream(t, &file, schema, array.NewRecordBatch(schema, []arrow.Array{values}, 3))
		r, err := Open(t.Context(), "-", Options{Stdin: &file})
		if err != nil {
			t.Fatal(err)
		}
		return []Input{{"t", r}}
	}
	for name, tt := range map[string]struct{ query, want string }{
		"RP-20_date64_kept":  {"SELECT v FROM t", `["2026-02-03T04:05:06.007","2026-02-03","2026-02-04"]`},
		"RP-20_date64_order": {"SELECT v FROM t WHERE v > '2026-02-03' AND v < '2026-02-04'", `["2026-02-03T04:05:06.007"]`},
		"RP-20_date64_union": {"SELECT v FROM t UNION ALL SELECT v FROM t WHERE v < '2026-02-04' AND length(v) > 10",
			`["2026-02-03T04:05:06.007","2026-02-03","2026-02-04","2026-02-03T04:05:06.007"]`},
	} {
		t.Run(name, func(t *testing.T) {
			types, got, err := ask(t, Query{SQL: tt.query, Tables: open()})
			if err != nil {
				t.Fatal(err)
			}
			if have := column(t, got, "v"); types[0] != "v date64" || have != tt.want {
				t.Errorf("%s %s, want %s", types[0], have, tt.want)
			}
		})
	}
}
