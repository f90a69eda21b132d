package table

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tenonhq/tenon"
)

// TestImport converts texts to tables: types, missing cells, and errors with their places.
func TestImport(t *testing.T) {
	tests := map[string]struct {
		text   string
		o      ImportOptions
		schema string
		rows   string // JSON lines, or a part of the error
	}{
		"CSV": {"a,b,c,d\n1,x,2.5,true\n,\"\",3,false\n", ImportOptions{Format: FormatCSV},
			"a int64, b utf8, c float64, d bool",
			`{"a":1,"b":"x","c":2.5,"d":true}` + "\n" + `{"a":null,"b":null,"c":3,"d":false}`},
		"codes and long numbers": {"a,b\n007,123456789012345678901\n8,1\n", ImportOptions{Format: FormatCSV},
			"a utf8, b utf8", `{"a":"007","b":"123456789012345678901"}` + "\n" + `{"a":"8","b":"1"}`},
		"a type": {"a\n1\n", ImportOptions{Format: FormatCSV, Types: map[string]string{"a": "number"}}, "a float64",
			`{"a":1}`},
		"row ids": {"a\t<RowID>\n1\tx\n2\t\n", ImportOptions{Format: FormatTSV}, "a int64", `{"a":1}` + "\n" + `{"a":2}`},
		"JSON lines": {`{"a":1,"l":[1]}` + "\n\n" + `{"b":"2026-01-01","a":2.5}`, ImportOptions{Format: FormatJSONL},
			"a float64, l utf8, b utf8", `{"a":1,"l":"[1]","b":null}` + "\n" + `{"a":2.5,"l":null,"b":"2026-01-01"}`},
		"no rows":        {"a,b\n", ImportOptions{Format: FormatCSV}, "a utf8, b utf8", ""},
		"another type":   {"a\nx\n", ImportOptions{Format: FormatCSV, Types: map[string]string{"a": "integer"}}, "", "row 0, column 'a'"},
		"fields missing": {"a,b\n1\n", ImportOptions{Format: FormatCSV}, "", "wrong number of fields"},
		"no object":      {"{}\n[1]\n", ImportOptions{Format: FormatJSONL}, "", "line 2: a row must be an object"},
		"a key twice":    {`{"a":1,"a":2}`, ImportOptions{Format: FormatJSONL}, "", "line 1: "},
		"a name twice":   {"a,a\n", ImportOptions{Format: FormatCSV}, "", "twice"},
		"empty":          {"", ImportOptions{Format: FormatCSV}, "", "no header line"},
	}
	for name, test := range tests {
		t.Run("RP-20_"+name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "t.arrow")
			_, err := Import(t.Context(), path, strings.NewReader(test.text), test.o, WriteOptions{BatchRows: 1})
			if test.schema == "" {
				if err == nil || !strings.Contains(err.Error(), test.rows) {
					t.Errorf("%v, want %s", err, test.rows)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			var columns []string
			for _, c := range read(t, path).columns {
				columns = append(columns, c.Name+" "+c.Type)
			}
			var out bytes.Buffer
			if _, err := Export(t.Context(), "-", read(t, path), ExportOptions{Format: FormatJSONL,
				Stdout: &out}); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.schema+"\n"+test.rows, strings.Join(columns, ", ")+"\n"+
				strings.TrimSpace(out.String())); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// endless is CSV whose quote never ends.
type endless struct{ n int64 }

func (e *endless) Read(b []byte) (int, error) {
	for i := range b {
		b[i] = 'x'
	}
	if e.n == 0 {
		copy(b, "a\n\"")
	}
	e.n += int64(len(b))
	return len(b), nil
}

func (*endless) Seek(int64, int) (int64, error) { return 0, errors.New("read once") }

// TestImportIsBounded refuses a row that does not end.
func TestImportIsBounded(t *testing.T) {
	for _, format := range []Format{FormatCSV, FormatJSONL} {
		in := &endless{}
		_, err := Import(t.Context(), "-", in, ImportOptions{Format: format}, WriteOptions{Stdout: io.Discard})
		if tenon.ErrorCode(err) != tenon.CodeTooLarge && tenon.ErrorCode(err) != tenon.CodeInvalid {
			t.Errorf("%s: %v", format, err)
		}
		if in.n > 2*maxRecord {
			t.Errorf("%s: %d bytes were read", format, in.n)
		}
	}
}

// FuzzImport reads texts of strangers. Nothing may panic, and what is read can be written again.
func FuzzImport(f *testing.F) {
	for _, text := range []string{"a,b\n1,2\n", "<RowID>,a\nx,1\n", `{"a":1}`, "{\"a\":[1]}\n{\"b\":null}", "\xef\xbb\xbfa\n\"x"} {
		f.Add(text, true)
		f.Add(text, false)
	}
	f.Fuzz(func(t *testing.T, text string, lines bool) {
		o := ImportOptions{Format: FormatCSV}
		if lines {
			o.Format = FormatJSONL
		}
		var out bytes.Buffer
		n, err := Import(context.Background(), "-", strings.NewReader(text), o, WriteOptions{Stdout: &out})
		if err != nil {
			return
		}
		r, err := Open(context.Background(), "-", Options{Stdin: &out})
		if err != nil {
			t.Fatal(err)
		}
		if m, err := Export(context.Background(), "-", r, ExportOptions{Format: o.Format, Stdout: io.Discard}); m != n ||
			err != nil {
			t.Errorf("%d rows, want %d: %v", m, n, err)
		}
	})
}

// FuzzToolJSON decodes tools of strangers. A tool that is decoded is encoded to an equal tool.
func FuzzToolJSON(f *testing.F) {
	for _, tool := range []*Tool{&report, &noPorts, &add} {
		b, err := tool.MarshalJSON()
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		var a, b Tool
		if !json.Valid(raw) || a.UnmarshalJSON(raw) != nil {
			return
		}
		text, err := a.sqlText()
		if err != nil {
			t.Fatal(err)
		}
		if err := b.UnmarshalJSON(text); err != nil {
			t.Fatalf("%s: %v", text, err)
		}
	})
}
