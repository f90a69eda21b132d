package table

import (
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
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
