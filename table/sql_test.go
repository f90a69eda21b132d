package table

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/google/go-cmp/cmp"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/internal/longtest"
)

// jsonTable makes a table of JSON rows in several batches.
func jsonTable(t testing.TB, fields []arrow.Field, batches ...string) *Reader {
	t.Helper()
	s := arrow.NewSchema(fields, nil)
	var recs []arrow.RecordBatch
	for _, b := range batches {
		rec, _, err := array.RecordFromJSON(memory.DefaultAllocator, s, strings.NewReader(b))
		if err != nil {
			t.Fatal(err)
		}
		recs = append(recs, rec)
	}
	var buf bytes.Buffer
	writeStream(t, &buf, s, recs...)
	r, err := Open(context.Background(), "-", Options{Stdin: &buf})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func col(name string, t arrow.DataType) arrow.Field {
	return arrow.Field{Name: name, Type: t, Nullable: true}
}

// ask runs a query and returns the columns of its result and its rows as JSON.
func ask(t testing.TB, q Query) (types, rows []string, err error) {
	t.Helper()
	var out bytes.Buffer
	if _, err := Select(context.Background(), q, "-", WriteOptions{Stdout: &out, BatchRows: 2}); err != nil {
		return nil, nil, err
	}
	r, err := Open(context.Background(), "-", Options{Stdin: &out})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range r.Columns() {
		types = append(types, c.Name+" "+c.Type)
	}
	for row, err := range r.Rows(context.Background()) {
		if err != nil {
			t.Fatal(err)
		}
		b, err := row.JSON(false)
		if err != nil {
			t.Fatal(err)
		}
		rows = append(rows, string(b))
	}
	return types, rows, nil
}

func sales(t testing.TB) *Reader {
	return jsonTable(t, []arrow.Field{col("id", arrow.PrimitiveTypes.Int64), col("city", arrow.BinaryTypes.String), col("amount", arrow.PrimitiveTypes.Float64)},
		`[{"id":1,"city":"Berlin","amount":2.5},{"id":2,"city":"Paris","amount":null}]`,
		`[{"id":9007199254740993,"city":"Berlin","amount":0.5}]`)
}

func TestSelect(t *testing.T) {
	for _, tt := range []struct {
		name, sql string
		params    map[string]any
		types     string
		rows      []string
	}{
		{"all", "SELECT * FROM sales", nil, "id int64, city utf8, amount float64",
			[]string{`{"id":1,"city":"Berlin","amount":2.5}`, `{"id":2,"city":"Paris","amount":null}`, `{"id":9007199254740993,"city":"Berlin","amount":0.5}`}},
		{"large float", "SELECT 1e300 * 10 AS x", nil, "x float64", []string{`{"x":1e+301}`}},
		{"cast to a float", "SELECT CAST(id AS REAL) * 9223372036854775807 AS x FROM sales WHERE id = 2", nil, "x float64", []string{`{"x":18446744073709552000}`}},
		{"float of a function", "SELECT total(id) * 9223372036854775807 AS x FROM sales WHERE id = 2", nil, "x float64", []string{`{"x":18446744073709552000}`}},
		{"float of a column", "SELECT amount * 9223372036854775807 AS x FROM sales WHERE id = 1", nil, "x float64", []string{`{"x":23058430092136940000}`}},
		{"float of a parameter", "SELECT :a * 9223372036854775807 AS x", map[string]any{"a": json.Number("2.0")}, "x float64", []string{`{"x":18446744073709552000}`}},
		{"largest integer", "SELECT 9223372036854775806 + 1 AS x", nil, "x int64", []string{`{"x":9223372036854775807}`}},
		{"count", "SELECT count(*) AS n FROM sales", nil, "n int64", []string{`{"n":3}`}},
		{"group", "SELECT city, sum(amount) AS total, count(*) AS n FROM sales GROUP BY city ORDER BY city", nil, "city utf8, total float64, n int64",
			[]string{`{"city":"Berlin","total":3,"n":2}`, `{"city":"Paris","total":null,"n":1}`}},
		{"parameters", "SELECT id FROM sales WHERE city = :city AND id > $least AND amount IS NOT @none", map[string]any{"city": "Berlin", "least": json.Number("1"), "none": nil}, "id int64",
			[]string{`{"id":9007199254740993}`}},
		{"self join", "SELECT a.id, b.id FROM sales a JOIN sales b USING (city) WHERE a.id < b.id", nil, "id int64, id_1 int64", []string{`{"id":1,"id_1":9007199254740993}`}},
		{"natural", "SELECT count(*) AS n FROM sales NATURAL JOIN (SELECT city FROM sales WHERE id = 2)", nil, "n int64", []string{`{"n":1}`}},
		{"cte and window", "WITH b AS (SELECT id, amount FROM sales WHERE city = 'Berlin') SELECT id, row_number() OVER (ORDER BY id DESC) AS r FROM b ORDER BY id", nil, "id int64, r int64",
			[]string{`{"id":1,"r":2}`, `{"id":9007199254740993,"r":1}`}},
		{"no table", "SELECT 1 AS one, 'x' AS x, 0.5 AS f, x'00ff' AS b, NULL AS none", nil, "one int64, x utf8, f float64, b binary, none utf8", []string{`{"one":1,"x":"x","f":0.5,"b":"AP8=","none":null}`}},
		{"values", "VALUES (1, 'a'), (2, 'b')", nil, "column1 int64, column2 utf8", []string{`{"column1":1,"column2":"a"}`, `{"column1":2,"column2":"b"}`}},
		{"integers and floats", "SELECT id * 1.0 AS v FROM sales WHERE id < 3 UNION ALL SELECT id FROM sales WHERE id < 2", nil, "v float64", []string{`{"v":1}`, `{"v":2}`, `{"v":1}`}},
		{"too large for a float", "SELECT amount AS v FROM sales WHERE id = 1 UNION ALL SELECT id FROM sales WHERE id > 2", nil, "v utf8", []string{`{"v":"2.5"}`, `{"v":"9007199254740993"}`}},
		{"numbers and texts", "SELECT id AS v FROM sales WHERE id = 1 UNION ALL SELECT city FROM sales WHERE id = 1", nil, "v utf8", []string{`{"v":"1"}`, `{"v":"Berlin"}`}},
		{"empty", "SELECT id, id + 1 AS n FROM sales WHERE id < 0", nil, "id int64, n utf8", nil},
		{"row ids", `SELECT "<RowID>", id FROM sales WHERE id = 2`, nil, "id int64", []string{`{"id":2}`}},
		{"comments", "-- what is there\n/* all; of it */ SELECT count(*) AS n FROM sales; -- done", nil, "n int64", []string{`{"n":3}`}},
		{"recursive", "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n WHERE i < 3) SELECT i FROM n", nil, "i int64", []string{`{"i":1}`, `{"i":2}`, `{"i":3}`}},
		{"json", "SELECT value AS v FROM json_each('[1,2]')", nil, "v int64", []string{`{"v":1}`, `{"v":2}`}},
		{"names", "SELECT name FROM sqlite_schema", nil, "name utf8", []string{`{"name":"sales"}`}},
		{"bad text", "SELECT CAST(x'41ff' AS TEXT) AS v", nil, "v utf8", []string{`{"v":"A` + "\uFFFD" + `"}`}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			types, rows, err := ask(t, Query{SQL: tt.sql, Params: tt.params, Tables: []Input{{"sales", sales(t)}}})
			if err != nil {
				t.Fatal(err)
			}
			if got := strings.Join(types, ", "); got != tt.types {
				t.Errorf("columns are %s, want %s", got, tt.types)
			}
			if d := cmp.Diff(tt.rows, rows); d != "" {
				t.Error(d)
			}
		})
	}
}

type columnType struct {
	name        string
	typ         arrow.DataType
	values      string // a JSON list
	want        string // the column as tables show prints it; "" means values
	kind        string // the type in the result; "" means the type of the column
	where, some string // a condition, and the matching rows
}

// TestSelectTypes queries columns of every type: unchanged, in comparisons, and as arguments of
// functions.
func TestSelectTypes(t *testing.T) {
	us := &arrow.TimestampType{Unit: arrow.Microsecond, TimeZone: "Europe/Berlin"}
	for _, tt := range []columnType{
		{"int8", arrow.PrimitiveTypes.Int8, `[-128,127,null]`, "", "", "v < 0", "[0]"},
		{"int16", arrow.PrimitiveTypes.Int16, `[-32768,32767,300]`, "", "", "v = 300", "[2]"},
		{"int32", arrow.PrimitiveTypes.Int32, `[-2147483648,2147483647,0,1,65536]`, "", "", "v > 1", "[1,4]"},
		{"int64", arrow.PrimitiveTypes.Int64, `[-9223372036854775808,9223372036854775807,9007199254740993]`, "", "", "v = 9007199254740993", "[2]"},
		{"uint8", arrow.PrimitiveTypes.Uint8, `[0,255]`, "", "", "v = 255", "[1]"},
		{"uint64", arrow.PrimitiveTypes.Uint64, `[0,18446744073709551615,9223372036854775808,9223372036854775807]`, "", "", "v > 9223372036854775807", "[1,2]"},
		{"float32", arrow.PrimitiveTypes.Float32, `[0.1,-3.4e38]`, `[0.1,-3.4e+38]`, "", "v < 0", "[1]"},
		{"float64", arrow.PrimitiveTypes.Float64, `[0.1,1e300,-0.5]`, `[0.1,1e+300,-0.5]`, "", "v > 1", "[1]"},
		{"bool", arrow.FixedWidthTypes.Boolean, `[true,false,null]`, "", "", "v", "[0]"},
		{"decimal", &arrow.Decimal128Type{Precision: 10, Scale: 2}, `["12.50","-0.01","100.00",null]`, `[12.50,-0.01,100.00,null]`, "", "v > 12 AND v / 8 > 12", "[2]"},
		{"wide decimal", &arrow.Decimal128Type{Precision: 38, Scale: 10}, `["1234567890123456789.0123456789","0.1000000000","-5.5000000000"]`,
			`[1234567890123456789.0123456789,0.1000000000,-5.5000000000]`, "", "coalesce(v, 0) > 0.05 ORDER BY v", "[1,0]"},
		{"large decimal", &arrow.Decimal256Type{Precision: 60, Scale: 0}, `["123456789012345678901234567890","7"]`, `[123456789012345678901234567890,7]`, "", "v < 8", "[1]"},
		{"utf8", arrow.BinaryTypes.String, `["","ä","a\u0000b",null]`, "", "", "v >= 'z'", "[1]"},
		{"large_utf8", arrow.BinaryTypes.LargeString, `["x"]`, "", "", "length(v) = 1", "[0]"},
		{"binary", arrow.BinaryTypes.Binary, `["AP8=",null]`, "", "", "v = x'00ff'", "[0]"},
		{"large_binary", arrow.BinaryTypes.LargeBinary, `["AP8="]`, "", "", "length(v) = 2", "[0]"},
		{"fixed binary", &arrow.FixedSizeBinaryType{ByteWidth: 2}, `["AP8="]`, "", "", "hex(v) = '00FF'", "[0]"},
		{"date32", arrow.FixedWidthTypes.Date32, `["2026-02-03","1969-12-31"]`, "", "", "v >= '2026-01-01' AND date(v, '+1 day') = '2026-02-04'", "[0]"},
		{"date64", arrow.FixedWidthTypes.Date64, `["2026-02-03"]`, "", "", "strftime('%Y', v) = '2026'", "[0]"},
		{"timestamp s", arrow.FixedWidthTypes.Timestamp_s, `["2026-02-03T04:05:06Z"]`, `["2026-02-03T04:05:06Z"]`, "", "v = '2026-02-03 04:05:06'", "[0]"},
		{"timestamp us", us, `["2026-02-03T04:05:06.5Z","2026-07-03T00:00:00Z"]`, `["2026-02-03T05:05:06.5+01:00","2026-07-03T02:00:00+02:00"]`, "", "v < '2026-07-03'", "[0]"},
		{"timestamp ns", &arrow.TimestampType{Unit: arrow.Nanosecond}, `["2026-02-03T04:05:06.123456789"]`, "", "", "v LIKE '%.123456789'", "[0]"},
		{"time64", arrow.FixedWidthTypes.Time64us, `["04:05:06.5","23:59:59"]`, "", "", "v < '12'", "[0]"},
		{"time32", arrow.FixedWidthTypes.Time32s, `["04:05:06"]`, "", "", "v = '04:05:06'", "[0]"},
		{"duration", arrow.FixedWidthTypes.Duration_s, `["5s"]`, `["5s"]`, "", "v = 5", "[0]"},
		{"list", arrow.ListOf(arrow.PrimitiveTypes.Int64), `[[1,9007199254740993],null]`, `["[1,9007199254740993]",null]`, "utf8", "json_extract(v, '$[1]') = 9007199254740993", "[0]"},
		{"struct", arrow.StructOf(col("a", arrow.PrimitiveTypes.Int64)), `[{"a":1},{"a":null}]`, `["{\"a\":1}","{\"a\":null}"]`, "utf8", "v ->> 'a' = 1", "[0]"},
		{"runs of integers", arrow.RunEndEncodedOf(arrow.PrimitiveTypes.Int32, arrow.PrimitiveTypes.Int64), `[5,5,null,7]`, "", "int64", "v = 5", "[0,1]"},
		{"runs of texts", arrow.RunEndEncodedOf(arrow.PrimitiveTypes.Int16, arrow.BinaryTypes.String), `["a","b","b"]`, "", "utf8", "v = 'b'", "[1,2]"},
		{"null", arrow.Null, `[null]`, "", "utf8", "v IS NULL", "[0]"},
	} {
		t.Run(tt.name, func(t *testing.T) { checkColumnType(t, tt) })
	}
}

// checkColumnType selects a column of the type, by itself, under a condition and from a union.
func checkColumnType(t *testing.T, tt columnType) {
	var values []json.RawMessage
	if err := json.Unmarshal([]byte(tt.values), &values); err != nil {
		t.Fatal(err)
	}
	var rows []string
	for i, v := range values {
		rows = append(rows, fmt.Sprintf(`{"i":%d,"v":%s}`, i, v))
	}
	open := func() []Input {
		return []Input{{"t", jsonTable(t, []arrow.Field{col("i", arrow.PrimitiveTypes.Int64), col("v", tt.typ)}, "["+strings.Join(rows, ",")+"]")}}
	}
	types, got, err := ask(t, Query{SQL: "SELECT v FROM t", Tables: open()})
	if err != nil {
		t.Fatal(err)
	}
	kind := tt.kind
	if kind == "" {
		kind = typeName(tt.typ)
	}
	if types[0] != "v "+kind {
		t.Errorf("the column is %s, want %s", types[0], kind)
	}
	want := tt.want
	if want == "" {
		want = tt.values
	}
	if have := column(t, got, "v"); have != want {
		t.Errorf("values are %s, want %s", have, want)
	}
	if _, got, err = ask(t, Query{SQL: "SELECT i FROM t WHERE " + tt.where, Tables: open()}); err != nil {
		t.Fatal(err)
	} else if have := column(t, got, "i"); have != tt.some {
		t.Errorf("WHERE %s gives %s, want %s", tt.where, have, tt.some)
	}
	// The same with a column whose type follows from its values.
	if types, got, err = ask(t, Query{SQL: "SELECT v FROM t UNION ALL SELECT v FROM t WHERE 0", Tables: open()}); err != nil {
		t.Fatal(err)
	} else if have := column(t, got, "v"); have != want || types[0] != "v "+kind {
		t.Errorf("a union has %s with %s", types[0], have)
	}
}

// column lists the values of a column in JSON rows.
func column(t testing.TB, rows []string, name string) string {
	t.Helper()
	var list []string
	for _, r := range rows {
		var m map[string]json.RawMessage
		if err := json.Unmarshal([]byte(r), &m); err != nil {
			t.Fatal(err)
		}
		list = append(list, string(m[name]))
	}
	return "[" + strings.Join(list, ",") + "]"
}

func TestSelectErrors(t *testing.T) {
	for _, tt := range []struct {
		name, sql string
		params    map[string]any
		code      tenon.Code
		want      string
	}{
		{"syntax", "SELECT id\n FORM sales WHERE", nil, tenon.CodeInvalid, `query, line 2, column`},
		{"table", "SELECT * FROM sale", nil, tenon.CodeInvalid, "no such table: sale; did you mean 'sales'?"},
		{"other table", "SELECT * FROM customers", nil, tenon.CodeInvalid, "no such table: customers; tables: sales"},
		{"column", "SELECT amout FROM sales", nil, tenon.CodeInvalid, "query, line 1, column 8: no such column: amout; did you mean 'amount'?"},
		{"column of an alias", "SELECT s.amout FROM sales s", nil, tenon.CodeInvalid, "did you mean 'amount'?"},
		{"quoted text", `SELECT "Berlin" FROM sales`, nil, tenon.CodeInvalid, "no such column: \"Berlin\""},
		{"empty", " -- nothing\n", nil, tenon.CodeInvalid, "the query is empty"},
		{"two", "SELECT 1; SELECT 2", nil, tenon.CodeInvalid, "text follows its semicolon: SELECT 2"},
		{"insert", "INSERT INTO sales VALUES (1, 'x', 2)", nil, tenon.CodeInvalid, "'INSERT' is refused"},
		{"hidden insert", "WITH x AS (SELECT 1) INSERT INTO sales SELECT 1, 'x', 2", nil, tenon.CodeInvalid, "'INSERT' is refused"},
		{"update", "UPDATE sales SET id = 1", nil, tenon.CodeInvalid, "'UPDATE' is refused"},
		{"delete", "DELETE FROM sales", nil, tenon.CodeInvalid, "'DELETE' is refused"},
		{"returning", "DELETE FROM sales RETURNING id", nil, tenon.CodeInvalid, "'DELETE' is refused"},
		{"create", "CREATE TABLE x AS SELECT * FROM sales", nil, tenon.CodeInvalid, "'CREATE' is refused"},
		{"temporary", "CREATE TEMP TABLE x (a)", nil, tenon.CodeInvalid, "'CREATE' is refused"},
		{"virtual", "CREATE VIRTUAL TABLE x USING fts5(a)", nil, tenon.CodeInvalid, "'CREATE' is refused"},
		{"drop", "DROP TABLE sales", nil, tenon.CodeInvalid, "'DROP' is refused"},
		{"attach", "ATTACH 'x.db' AS x", nil, tenon.CodeInvalid, "'ATTACH' is refused"},
		{"pragma", "PRAGMA table_info(sales)", nil, tenon.CodeInvalid, "'PRAGMA' is refused"},
		{"pragma as a table", "SELECT * FROM pragma_database_list", nil, tenon.CodeInvalid, "is refused"},
		{"pages", "SELECT * FROM sqlite_dbpage", nil, tenon.CodeInvalid, "is refused"},
		{"statistics", "SELECT * FROM dbstat", nil, tenon.CodeInvalid, "is refused"},
		{"extension", "SELECT load_extension('x.so')", nil, tenon.CodeInvalid, "the function load_extension is refused"},
		{"readfile", "SELECT readfile('/etc/passwd')", nil, tenon.CodeInvalid, "no such function: readfile"},
		{"vacuum", "VACUUM INTO 'x.db'", nil, tenon.CodeInvalid, "'VACUUM' is"},
		{"begin", "BEGIN", nil, tenon.CodeInvalid, "'BEGIN' is refused"},
		{"explain", "EXPLAIN SELECT 1", nil, tenon.CodeInvalid, "'EXPLAIN' is not"},
		{"no parameter", "SELECT :a, :b", map[string]any{"a": 1}, tenon.CodeInvalid, "parameters without values: :b"},
		{"parameter too much", "SELECT :a", map[string]any{"a": 1, "b": 2}, tenon.CodeInvalid, "no parameter ':b'"},
		{"parameter without a name", "SELECT ?", nil, tenon.CodeInvalid, "parameter 1 of the query has no name"},
		{"large parameter", "SELECT :a", map[string]any{"a": json.Number("18446744073709551615")}, tenon.CodeInvalid, "outside of the range of SQL's 64-bit integers"},
		{"larger parameter", "SELECT :a", map[string]any{"a": json.Number("18446744073709551616")}, tenon.CodeInvalid, "outside of the range of SQL's 64-bit integers"},
		{"small parameter", "SELECT :a", map[string]any{"a": json.Number("-9223372036854775809")}, tenon.CodeInvalid, "outside of the range of SQL's 64-bit integers"},
		{"overflow", "SELECT sum(id + 9000000000000000000) FROM sales", nil, tenon.CodeInvalid, "integer overflow"},
		{"overflow of +", "SELECT city, id + 9223372036854775807 AS n FROM sales", nil, tenon.CodeInvalid, "integer overflow in column 'n'"},
		{"overflow of -", "SELECT -9223372036854775807 - id FROM sales WHERE id > 1", nil, tenon.CodeInvalid, "integer overflow"},
		{"overflow of *", "SELECT max(id) * :a FROM sales", map[string]any{"a": json.Number("9223372036854775807")}, tenon.CodeInvalid, "integer overflow"},
		{"overflow within", "SELECT abs(coalesce(id * 9223372036854775807, 1)) FROM (SELECT id FROM sales UNION ALL SELECT 2)", nil, tenon.CodeInvalid, "integer overflow"},
		{"large value", "SELECT zeroblob(100000000)", nil, tenon.CodeTooLarge, "has more than 67108864 bytes"},
		{"many large values", "SELECT " + strings.Repeat("hex(zeroblob(30000000)), ", 29) + "1", nil, tenon.CodeTooLarge, "its share of the limit for all values of a row"},
		{"one value many times", "SELECT " + strings.Repeat("c, ", 29) + "c FROM (SELECT hex(zeroblob(30000000)) AS c)", nil, tenon.CodeTooLarge, "its share of the limit for all values of a row"},
		{"one element many times", "SELECT " + strings.Repeat("value, ", 29) + "value FROM json_each(json_array(hex(zeroblob(15000000))))", nil, tenon.CodeTooLarge, "its share of the limit for all values of a row"},
		{"long pattern", "SELECT 'a' LIKE '" + strings.Repeat("%a", 800) + "'", nil, tenon.CodeInvalid, "LIKE or GLOB pattern too complex"},
		{"deep", "SELECT " + strings.Repeat("(", 5000) + "1" + strings.Repeat(")", 5000), nil, tenon.CodeInvalid, "query"},
		{"NUL", "SELECT 1 \x00 2", nil, tenon.CodeInvalid, "NUL character"},
		{"long", "SELECT '" + strings.Repeat("x", maxSQLBytes) + "'", nil, tenon.CodeTooLarge, "the query has more than"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, _, err := ask(t, Query{SQL: tt.sql, Params: tt.params, Tables: []Input{{"sales", sales(t)}}})
			if err == nil || !strings.Contains(err.Error(), tt.want) || tenon.ErrorCode(err) != tt.code {
				t.Errorf("got %v (%s), want %s: %s", err, tenon.ErrorCode(err), tt.code, tt.want)
			}
		})
	}
	for name, tables := range map[string][]Input{
		"two tables of the query have the name": {{"T", sales(t)}, {"t", sales(t)}},
		"is not a valid name for a table":       {{"sqlite_x", sales(t)}},
	} {
		if _, _, err := ask(t, Query{SQL: "SELECT 1", Tables: tables}); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("got %v, want %s", err, name)
		}
	}
	// Numbers that SQL cannot distinguish are refused only in a column that is read.
	wide := func() *Reader {
		return jsonTable(t, []arrow.Field{col("i", arrow.PrimitiveTypes.Int64), col("v", &arrow.Decimal128Type{Precision: 38})}, `[{"i":1,"v":"12345678901234567890"},{"i":2,"v":"12345678901234567891"}]`)
	}
	if _, _, err := ask(t, Query{SQL: "SELECT v FROM t", Tables: []Input{{"t", wide()}}}); err == nil || !strings.Contains(err.Error(), "row 1, column 'v': the numbers") {
		t.Errorf("got %v", err)
	}
	if _, rows, err := ask(t, Query{SQL: "SELECT i FROM t", Tables: []Input{{"t", wide()}}}); err != nil || len(rows) != 2 {
		t.Errorf("got %v, %v", rows, err)
	}
}

// TestSelectEndless runs queries without an end or with endless demand. A timeout or a bound ends
// each, and no file is left.
func TestSelectEndless(t *testing.T) {
	temp := t.TempDir()
	t.Setenv("TMPDIR", temp)
	t.Setenv("SQLITE_TMPDIR", temp)
	const endless = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n) "
	for _, tt := range []struct {
		name string
		q    Query
		code tenon.Code
	}{
		{"time", Query{SQL: endless + "SELECT sum(i) FROM n"}, tenon.CodeTimeout},
		{"result", Query{SQL: endless + "SELECT i FROM n", Bytes: 1 << 20}, tenon.CodeTooLarge},
		{"sorting", Query{SQL: endless + "SELECT i, hex(randomblob(500)) AS x FROM n ORDER BY x", Temp: 8 << 20}, tenon.CodeTooLarge},
		{"distinct", Query{SQL: endless + "SELECT count(DISTINCT hex(randomblob(500))) FROM n", Temp: 8 << 20}, tenon.CodeTooLarge},
	} {
		t.Run(tt.name, func(t *testing.T) {
			ctx := context.Background()
			if tt.code == tenon.CodeTimeout {
				var cancel context.CancelFunc
				ctx, cancel = context.WithTimeout(ctx, 50*time.Millisecond)
				defer cancel()
			}
			if _, err := Select(ctx, tt.q, "-", WriteOptions{Stdout: new(bytes.Buffer)}); tenon.ErrorCode(err) != tt.code {
				t.Errorf("got %v (%s), want %s", err, tenon.ErrorCode(err), tt.code)
			}
		})
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := Select(ctx, Query{SQL: endless + "SELECT sum(i) FROM n"}, "-", WriteOptions{Stdout: new(bytes.Buffer)}); tenon.ErrorCode(err) != tenon.CodeCancelled {
		t.Errorf("got %v", err)
	}
	if list, err := os.ReadDir(temp); err != nil || len(list) > 0 {
		t.Errorf("left behind: %v, %v", list, err)
	}
}

// TestSelectRows reads a part of a large result.
func TestSelectRows(t *testing.T) {
	for _, sql := range []string{"SELECT id FROM sales", "SELECT id + 1 AS n FROM sales", "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n) SELECT i FROM n"} {
		var out bytes.Buffer
		got, err := Select(t.Context(), Query{SQL: sql, Rows: 2, Tables: []Input{{"sales", sales(t)}}}, "-", WriteOptions{Stdout: &out})
		if err != nil || got != (Selected{Rows: 2, More: true}) {
			t.Errorf("%s: %+v, %v", sql, got, err)
		}
	}
	got, err := Select(t.Context(), Query{SQL: "SELECT id FROM sales", Rows: 3, Tables: []Input{{"sales", sales(t)}}}, "-", WriteOptions{Stdout: new(bytes.Buffer)})
	if err != nil || got != (Selected{Rows: 3}) {
		t.Errorf("%+v, %v", got, err)
	}
}

// TestSelectConcurrently runs queries at the same time, for the race detector. They sort, so that they use the VFS.
func TestSelectConcurrently(t *testing.T) {
	var at sync.WaitGroup
	for range 8 {
		in := sales(t)
		at.Go(func() {
			got, err := Select(t.Context(), Query{SQL: "SELECT city, sum(amount) FROM sales GROUP BY city ORDER BY 2", Rows: 3,
				Tables: []Input{{"sales", in}}}, "-", WriteOptions{Stdout: new(bytes.Buffer)})
			if err != nil || got != (Selected{Rows: 2}) {
				t.Errorf("%+v, %v", got, err)
			}
		})
	}
	at.Wait()
}

// TestSelectOnce checks that a query does not run twice if its bounded result fits into memory.
func TestSelectOnce(t *testing.T) {
	const endless = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n) SELECT i FROM n"
	s := &selection{ctx: t.Context(), Query: Query{SQL: endless, Rows: 2, Bytes: MaxResult, Temp: MaxTemp}}
	defer s.close()
	if err := s.open(); err != nil {
		t.Fatal(err)
	}
	if kept, whole, err := s.survey(); len(kept) != 3 || !whole || err != nil {
		t.Errorf("%d values, whole %t, %v; want 3, one of them to know that there are more", len(kept), whole, err)
	}
}

// TestSelectLarge queries tables whose trees have several levels, rows that need overflow pages,
// and results that do not fit into memory.
func TestSelectLarge(t *testing.T) {
	longtest.Skip(t)
	s := arrow.NewSchema([]arrow.Field{col("i", arrow.PrimitiveTypes.Int64), col("s", arrow.BinaryTypes.String)}, nil)
	build := func(rows, size, each int) *Reader {
		var buf bytes.Buffer
		var recs []arrow.RecordBatch
		for at := 0; at < rows; at += 10_000 {
			b := array.NewRecordBuilder(memory.DefaultAllocator, s)
			for i := at; i < min(rows, at+10_000); i++ {
				b.Field(0).(*array.Int64Builder).Append(int64(i))
				n := 1
				if i%each == 0 {
					n = size + i%7
				}
				b.Field(1).(*array.StringBuilder).Append(strings.Repeat("x", n))
			}
			recs = append(recs, b.NewRecordBatch())
		}
		writeStream(t, &buf, s, recs...)
		r, err := Open(context.Background(), "-", Options{Stdin: &buf})
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	sum := func(rows, size, each int) (n, bytes int64) {
		for i := range rows {
			n += int64(i)
			bytes++
			if i%each == 0 {
				bytes += int64(size+i%7) - 1
			}
		}
		return n, bytes
	}
	for _, tt := range []struct{ rows, size, each int }{{0, 1, 1}, {1, 1, 1}, {20, maxLocal - 20, 1}, {60, 200_000, 3}, {2 * fan, maxLocal - 100, 1}, {30_000, 100, 1}} {
		for n := -8; n < 8; n++ { // around the limits of a page
			if n != 0 && (tt.size < 10_000 || tt.rows > 100) || tt.size > 100_000 && n%4 != 0 {
				continue
			}
			size := tt.size + n*3
			_, rows, err := ask(t, Query{SQL: "SELECT total(i) AS i, total(length(s)) AS s, count(*) AS n, max(rowid) - min(rowid) AS w FROM t", Tables: []Input{{"t", build(tt.rows, size, tt.each)}}})
			if err != nil {
				t.Fatal(err)
			}
			is, ss := sum(tt.rows, size, tt.each)
			want := fmt.Sprintf(`{"i":%d,"s":%d,"n":%d,"w":%d}`, is, ss, tt.rows, tt.rows-1)
			if tt.rows == 0 {
				want = `{"i":0,"s":0,"n":0,"w":null}`
			}
			if rows[0] != want {
				t.Errorf("%d rows of %d: %s, want %s", tt.rows, size, rows[0], want)
			}
		}
	}
	path := filepath.Join(t.TempDir(), "all.arrow")
	got, err := Select(t.Context(), Query{SQL: "SELECT i * 2 AS d, s FROM t ORDER BY i DESC", Tables: []Input{{"t", build(50_000, 50, 2)}}}, path, WriteOptions{})
	if err != nil || got.Rows != 50_000 {
		t.Fatalf("%+v, %v", got, err)
	}
	r, err := Open(context.Background(), path, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = r.Close() }()
	next := int64(2 * 49_999)
	for row, err := range r.Rows(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		if v, _ := row.Value(r.columns[0], false); string(v) != fmt.Sprint(next) {
			t.Fatalf("row %d: %s, want %d", row.Index, v, next)
		}
		next -= 2
	}
	if next != -2 {
		t.Errorf("rows end before %d", next)
	}
}

// TestSelectOther tests special rules: equal names, tools, NaN, row ids in results, years that do
// not sort.
func TestSelectOther(t *testing.T) {
	clash := jsonTable(t, []arrow.Field{col("A", arrow.PrimitiveTypes.Int64), col("a", arrow.PrimitiveTypes.Int64), col("", arrow.PrimitiveTypes.Int64), col(`q"x`, arrow.PrimitiveTypes.Int64)}, `[]`)
	types, _, err := ask(t, Query{SQL: `SELECT * FROM "my table"`, Tables: []Input{{"my table", clash}}})
	if got := strings.Join(types, ", "); err != nil || got != `A int64, a_1 int64, column int64, q"x int64` {
		t.Errorf("columns %s, %v", got, err)
	}
	path := write(t, "t.arrow", WriteOptions{}, &Tool{Kind: MCP, Name: "add", Server: "http://x/mcp", Remote: "add", Message: -1, Parameters: "{}"}, nil)
	_, rows, err := ask(t, Query{SQL: "SELECT json_extract(Tools, '$.name') AS name FROM t", Tables: []Input{{"t", read(t, path)}}})
	if d := cmp.Diff([]string{`{"name":"add"}`, `{"name":null}`}, rows); err != nil || d != "" {
		t.Error(d, err)
	}
	var out bytes.Buffer
	if _, err := Select(t.Context(), Query{SQL: `SELECT "<RowID>", 1 AS one FROM t`, Tables: []Input{{"t", read(t, path)}}}, "-", WriteOptions{Stdout: &out}); err != nil {
		t.Fatal(err)
	}
	r, err := Open(context.Background(), "-", Options{Stdin: &out})
	if err != nil || !r.HasRowID() || len(r.Columns()) != 1 {
		t.Errorf("row ids are not kept: %v", err)
	}
	b := array.NewRecordBuilder(memory.DefaultAllocator, arrow.NewSchema([]arrow.Field{col("f", arrow.PrimitiveTypes.Float64), col("d", arrow.FixedWidthTypes.Date32)}, nil))
	b.Field(0).(*array.Float64Builder).AppendValues([]float64{math.NaN(), math.Inf(1), math.Copysign(0, -1)}, nil)
	b.Field(1).(*array.Date32Builder).AppendValues([]arrow.Date32{0, 4_000_000, 0}, nil)
	rec := b.NewRecordBatch()
	open := func() []Input {
		var buf bytes.Buffer
		writeStream(t, &buf, rec.Schema(), rec)
		r, err := Open(context.Background(), "-", Options{Stdin: &buf})
		if err != nil {
			t.Fatal(err)
		}
		return []Input{{"t", r}}
	}
	if _, rows, err = ask(t, Query{SQL: "SELECT f FROM t", Tables: open()}); err != nil || column(t, rows, "f") != `[null,"+Inf",-0]` {
		t.Errorf("%v, %v", rows, err)
	}
	if _, _, err = ask(t, Query{SQL: "SELECT d FROM t", Tables: open()}); err == nil || !strings.Contains(err.Error(), "row 1, column 'd': the year 12921") {
		t.Errorf("got %v", err)
	}
}

// FuzzSelect runs arbitrary text as a query. It returns rows or one error, and writes nothing.
func FuzzSelect(f *testing.F) {
	for _, s := range []string{"SELECT * FROM sales", "SELECT city, sum(amount) FROM sales GROUP BY 1", "VALUES (1)", "SELECT 1;;", "WITH x AS (SELECT 1) SELECT * FROM x", "DELETE FROM sales", "SELECT :a", "PRAGMA x", "/* */ SELECT x'00', NULL UNION SELECT 1, 'x'"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, sql string) {
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		_, err := Select(ctx, Query{SQL: sql, Rows: 100, Bytes: 1 << 20, Temp: 1 << 20, Tables: []Input{{"sales", sales(t)}}}, "-", WriteOptions{Stdout: new(bytes.Buffer)})
		if code := tenon.ErrorCode(err); code == tenon.CodeInternal {
			t.Errorf("%q: %v", sql, err)
		}
	})
}

// TestSelectOneName checks that an error about a value names its table only once.
func TestSelectOneName(t *testing.T) {
	b := array.NewDate32Builder(memory.DefaultAllocator)
	b.Append(1 << 30)
	s := arrow.NewSchema([]arrow.Field{col("d", arrow.FixedWidthTypes.Date32)}, nil)
	r := read(t, rawBatch(t, "d.arrow", array.NewRecordBatch(s, []arrow.Array{b.NewArray()}, 1)))
	_, _, err := ask(t, Query{SQL: "SELECT d FROM t", Tables: []Input{{"t", r}}})
	if err == nil || strings.Count(err.Error(), "d.arrow") != 1 || !strings.Contains(err.Error(), "row 0, column 'd': the year 2941775 is outside") {
		t.Error(err)
	}
}

// TestSelectUsing joins on columns that SQLite does not report as read. They are read even if no
// other column of the table is.
func TestSelectUsing(t *testing.T) {
	n := arrow.PrimitiveTypes.Int64
	for sql, want := range map[string]string{
		"SELECT id FROM a JOIN b USING (id)":                                         `{"id":2}`,
		"SELECT id FROM a FULL JOIN b USING (id) ORDER BY 1":                         `{"id":1}{"id":2}{"id":3}`,
		"SELECT id FROM A RIGHT JOIN \"B\" USING (id) ORDER BY 1":                    `{"id":2}{"id":3}`,
		"SELECT id FROM a NATURAL JOIN b":                                            `{"id":2}`,
		"SELECT count(*) AS n FROM a NATURAL FULL JOIN b":                            `{"n":3}`,
		"SELECT x.id FROM a x FULL JOIN b y USING (id) WHERE x.id > 1":               `{"id":2}`,
		"SELECT id FROM (SELECT id FROM a) JOIN (SELECT id FROM b) USING (id)":       `{"id":2}`,
		"SELECT id FROM a FULL JOIN b USING (id) WHERE id NOT IN (SELECT id FROM a)": `{"id":3}`,
	} {
		a := jsonTable(t, []arrow.Field{col("id", n)}, `[{"id":1},{"id":2}]`)
		b := jsonTable(t, []arrow.Field{col("id", n)}, `[{"id":2},{"id":3}]`)
		_, rows, err := ask(t, Query{SQL: sql, Tables: []Input{{"a", a}, {"b", b}}})
		if got := strings.Join(rows, ""); err != nil || got != want {
			t.Errorf("%s: %s %v, want %s", sql, got, err, want)
		}
	}
}
