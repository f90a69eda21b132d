package table_test

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/table"
)

// TestCSVThatIsNotUTF8 checks that the error names the position of invalid UTF-8.
func TestCSVThatIsNotUTF8(t *testing.T) {
	for data, want := range map[string]string{
		"a,b\n1,x\n2,\xe9t\xe9\n":       "line 3, column 3 ('b'): not UTF-8; save the file as UTF-8",
		"a,b\n\"two\nlines\",1\n\xff,x": "line 4, column 1 ('a'): not UTF-8; save the file as UTF-8",
		"a,\xff\n1,2\n":                 "line 1, column 3: not UTF-8; save the file as UTF-8",
	} {
		err := table.WriteCSV(t.Context(), t.TempDir()+"/t.arrow", []byte(data), nil, table.WriteOptions{})
		if err == nil || err.Error() != want || tenon.ErrorCode(err) != tenon.CodeInvalid {
			t.Errorf("%q: %v, want %s", data, err, want)
		}
	}
}

// TestCSVTypes checks that a text is not a number if formatting the number would change it.
func TestCSVTypes(t *testing.T) {
	for cells, want := range map[string]string{
		"1\n2\n":                    "int64",
		"1\n2.5\n":                  "float64",
		"1e5\n-2\n":                 "float64",
		"9223372036854775807\n-1\n": "int64",
		"9223372036854775807\n9223372036854775808\n": "utf8", // a float has 16 digits
		"9007199254740993\n0.5\n":                    "utf8",
		"9007199254740992\n0.5\n":                    "float64",
		"0.1234567890123456789\n":                    "utf8",    // 19 digits
		"0.10000000000000001\n":                      "float64", // as programs write 0.1
		"1234567890.123456789012\n1\n":               "utf8",
		"1.500000000000000000000\n":                  "float64",
		"1e-400\n":                                   "utf8",
		"0.000\n":                                    "float64",
		"-0\n5\n":                                    "float64",
		"2026-01-02T03:04:05.123456Z\n":              "timestamp[us, tz=UTC]",
		"2026-01-02T03:04:05.123456789Z\n":           "utf8",
		"10_20\n":                                    "utf8", // a code, not 1020
		"0x1p4\n":                                    "utf8",
		"007\n":                                      "utf8",
		"-007\n":                                     "utf8",
		"-0.5\n0\n":                                  "float64",
		"-\n":                                        "utf8",
		"true\nfalse\n":                              "bool",
		"2026-01-02\n2026-01-02T03:04:05Z\n":         "timestamp[us, tz=UTC]",
		"123456789012345678901234567890\n1\n":        "utf8",
		"\n1\n":                                      "int64",
	} {
		path := t.TempDir() + "/t.arrow"
		if err := table.WriteCSV(t.Context(), path, []byte("x\n"+cells), nil, table.WriteOptions{}); err != nil {
			t.Errorf("%q: %v", cells, err)
			continue
		}
		r, err := table.Open(context.Background(), path, table.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if got := r.Columns()[0].Type; got != want {
			t.Errorf("%q: %s, want %s", cells, got, want)
		}
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	}
	err := table.WriteCSV(t.Context(), t.TempDir()+"/t.arrow", []byte("x\n1_0\n"), map[string]string{"x": "number"}, table.WriteOptions{})
	if err == nil || err.Error() != "row 0, column 'x': '1_0' is not of type number" {
		t.Errorf("error %v", err)
	}
}

// TestRowsOfNone checks the order of the columns of a table without rows.
func TestRowsOfNone(t *testing.T) {
	types := map[string]string{}
	for _, name := range []string{"h", "b", "g", "a", "e", "c", "f", "d"} {
		types[name] = "string"
	}
	path := filepath.Join(t.TempDir(), "t.arrow")
	if err := table.WriteRows(t.Context(), path, nil, types, table.WriteOptions{}); err != nil {
		t.Fatal(err)
	}
	r, err := table.Open(context.Background(), path, table.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	names := ""
	for _, c := range r.Columns() {
		names += c.Name
	}
	if names != "abcdefgh" {
		t.Errorf("columns %s, want abcdefgh", names)
	}
}

// TestRowsOfManyColumns checks that a table may have 1,000 columns, and that a wide table whose rows are
// mostly empty is refused.
func TestRowsOfManyColumns(t *testing.T) {
	wide := func(n int) json.RawMessage {
		row := map[string]int{}
		for i := range n {
			row[fmt.Sprintf("c%d", i)] = i
		}
		b, err := json.Marshal(row)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	empty := slices.Repeat([]json.RawMessage{json.RawMessage("{}")}, 100_000)
	for name, test := range map[string]struct {
		rows []json.RawMessage
		code tenon.Code
		want string
	}{
		"as many as there may be": {[]json.RawMessage{wide(1000), wide(1000)}, "", ""},
		"one more":                {[]json.RawMessage{wide(1000), []byte(`{"x":1}`)}, tenon.CodeInvalid, "row 1: there are more than 1000 columns"},
		"empty after it":          {append([]json.RawMessage{wide(1000)}, empty...), tenon.CodeTooLarge, "row 16778: most columns of most rows are empty"},
		"empty before it":         {append(slices.Clone(empty), wide(1000)), tenon.CodeTooLarge, "row 100000: most columns of most rows are empty"},
	} {
		t.Run(name, func(t *testing.T) {
			err := table.WriteRows(t.Context(), filepath.Join(t.TempDir(), "t.arrow"), test.rows, nil, table.WriteOptions{})
			if test.want == "" && err != nil || test.want != "" && (tenon.ErrorCode(err) != test.code || !strings.Contains(err.Error(), test.want)) {
				t.Errorf("error %v, want %s %q", err, test.code, test.want)
			}
		})
	}
}

// TestSparseCSV checks the bound of empty cells: a comma is one byte, but its cell takes more.
func TestSparseCSV(t *testing.T) {
	names := make([]string, 1000)
	for i := range names {
		names[i] = fmt.Sprint("c", i)
	}
	head, row := strings.Join(names, ",")+"\n", strings.Repeat(",", 999)+"\n"
	path := filepath.Join(t.TempDir(), "t.arrow")
	err := table.WriteCSV(t.Context(), path, []byte(head+strings.Repeat(row, 17_000)), nil, table.WriteOptions{})
	if tenon.ErrorCode(err) != tenon.CodeTooLarge || !strings.HasPrefix(err.Error(), "row 16777: most columns of most rows are empty") {
		t.Errorf("%v", err)
	}
	if err := table.WriteCSV(t.Context(), path, []byte(head+strings.Repeat(row, 100)+"1"+row), nil, table.WriteOptions{}); err != nil {
		t.Fatal(err)
	}
	r, err := table.Open(context.Background(), path, table.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close() //nolint:errcheck // only read
	if rows, _, err := r.Count(t.Context()); rows != 101 || r.Columns()[0].Type != "int64" || err != nil {
		t.Errorf("%d rows, %+v %v", rows, r.Columns()[0], err)
	}
}
