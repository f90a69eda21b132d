package table

import (
	"bufio"
	"bytes"
	"encoding/csv"
	"errors"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// readCSV reads all records of a text.
func readCSV(text string, comma rune) (records [][]string, err error) {
	r := newCSVReader(bufio.NewReaderSize(strings.NewReader(text), 16), comma)
	for {
		record, err := r.Read()
		if errors.Is(err, io.EOF) {
			return records, nil
		}
		if err != nil {
			return nil, err
		}
		records = append(records, slices.Clone(record))
	}
}

// TestCSVReader reads texts whose lines the reader of the standard library skips or changes.
func TestCSVReader(t *testing.T) {
	tests := map[string]struct {
		text string
		want [][]string
		err  string
	}{
		"an empty line of one column":   {"a\n1\n\n3\n", [][]string{{"a"}, {"1"}, {""}, {"3"}}, ""},
		"quotes of one column":          {"a\r\n\"\"\r\n\r\n", [][]string{{"a"}, {""}, {""}}, ""},
		"an empty line of two columns":  {"a,b\n\n1,2\n\n", [][]string{{"a", "b"}, {"1", "2"}}, ""},
		"empty lines before the header": {"\n\r\na\n1", [][]string{{"a"}, {"1"}}, ""},
		"CRLF in quotes":                {"a,b\r\n\"x\r\ny\",2\r\n", [][]string{{"a", "b"}, {"x\r\ny", "2"}}, ""},
		"an empty line in quotes":       {"a\n\"x\n\ny\"\n", [][]string{{"a"}, {"x\n\ny"}}, ""},
		"quotes in quotes":              {"a,b\n\"\"\"x\"\"\",\"\"\n", [][]string{{"a", "b"}, {`"x"`, ""}}, ""},
		"a CR at the end":               {"a\n1\r", [][]string{{"a"}, {"1"}}, ""},
		"a CR in a line":                {"a\nx\ry\n", [][]string{{"a"}, {"x\ry"}}, ""},
		"a comma at the end":            {"a,b\n1,", [][]string{{"a", "b"}, {"1", ""}}, ""},
		"a bare quote":                  {"a\nx\"y\n", nil, `parse error on line 2, column 2: bare " in non-quoted field`},
		"text after quotes":             {"a\n\"x\"y\n", nil, `parse error on line 2, column 3: extraneous or missing " in quoted field`},
		"a quote that does not end":     {"a\n\"x\ny\n", nil, `parse error on line 3, column 2: extraneous or missing " in quoted field`},
		"too many fields":               {"a\n1\n2,3\n", nil, "record on line 3: wrong number of fields"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := readCSV(test.text, ',')
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Error(diff)
			}
			if text := ""; err != nil && err.Error() != test.err || err == nil && text != test.err {
				t.Errorf("error %v, want %s", err, test.err)
			}
		})
	}
}

// TestOneColumnThroughCSV writes a table of one column as CSV and reads it again: all rows are there.
func TestOneColumnThroughCSV(t *testing.T) {
	dir := t.TempDir()
	first, second := filepath.Join(dir, "first.arrow"), filepath.Join(dir, "second.arrow")
	const lines = `{"a":"x"}` + "\n" + `{"a":null}` + "\n" + `{"a":""}` + "\n" + `{"a":"y\r\nz"}` + "\n" + `{"a":null}`
	if _, err := Import(t.Context(), first, strings.NewReader(lines), ImportOptions{Format: FormatJSONL},
		WriteOptions{}); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if _, err := Export(t.Context(), "-", read(t, first), ExportOptions{Format: FormatCSV, Stdout: &out}); err != nil {
		t.Fatal(err)
	}
	if want := "a\nx\n\"\"\n\"\"\n\"y\r\nz\"\n\"\"\n"; out.String() != want {
		t.Errorf("CSV %q, want %q", out.String(), want)
	}
	// Other readers skip no row either.
	if all, err := csv.NewReader(bytes.NewReader(out.Bytes())).ReadAll(); err != nil || len(all) != 6 {
		t.Errorf("the standard library reads %d records: %v", len(all), err)
	}
	n, err := Import(t.Context(), second, bytes.NewReader(out.Bytes()), ImportOptions{Format: FormatCSV}, WriteOptions{})
	if n != 5 || err != nil {
		t.Errorf("%d rows, want 5: %v", n, err)
	}
	// A workflow's table reads the same rows.
	for _, text := range []string{"a\n1\n\n3\n", "a\r\n1\r\n\r\n3"} {
		made := filepath.Join(t.TempDir(), "made.arrow")
		if err := WriteCSV(t.Context(), made, []byte(text), nil, WriteOptions{}); err != nil {
			t.Fatal(err)
		}
		if rows, _, err := read(t, made).Count(t.Context()); rows != 3 || err != nil {
			t.Errorf("%q: %d rows, want 3: %v", text, rows, err)
		}
	}
}

// FuzzCSV compares the reader with the standard library's, which skips empty lines and changes CRLF in quotes.
func FuzzCSV(f *testing.F) {
	for _, text := range []string{"a,b\n1,2\n", "a\n\n\"\"\n", "a,b\n\"x\ny\",\"\"\"\"\n\n", "a\n\"b\"c", "a,b\n\"", "a\rb,c\r"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if strings.Contains(text, "\r") {
			_, _ = readCSV(text, ',') // must not panic
			return
		}
		std := csv.NewReader(strings.NewReader(text))
		std.FieldsPerRecord = 0
		want, failed := std.ReadAll()
		got, err := readCSV(text, ',')
		if len(want) > 0 && len(want[0]) == 1 && len(got) > 0 {
			got = slices.DeleteFunc(got, func(r []string) bool { return r[0] == "" })
			want = slices.DeleteFunc(want, func(r []string) bool { return r[0] == "" })
		}
		if (failed == nil) != (err == nil) || failed == nil && !cmp.Equal(want, got) && len(want)+len(got) > 0 {
			t.Errorf("%q: %q %v, want %q %v", text, got, err, want, failed)
		}
	})
}
