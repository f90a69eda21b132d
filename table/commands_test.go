package table

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/google/go-cmp/cmp"

	"github.com/tenonhq/tenon"
)

func TestCheck(t *testing.T) {
	flaws := func(t *testing.T, path string) []string {
		t.Helper()
		list, err := read(t, path).Check(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		var out []string
		for _, f := range list {
			out = append(out, f.String())
		}
		return out
	}
	if got := flaws(t, seed9(t, "t.arrow", &add, nil)); got != nil {
		t.Errorf("%v", got)
	}
	got := flaws(t, filepath.Join(accept, "both.arrow"))
	if len(got) != 1 || !strings.Contains(got[0], "row 1 ('Row1')") || !strings.Contains(got[0], "field 7 and 8") {
		t.Errorf("%q", got)
	}
	wrong := Tool{Kind: MCP, Parameters: "[]", Message: 2, Inputs: report.Inputs, Outputs: report.Inputs, Keys: "workflow_x"}
	if got := flaws(t, seed9(t, "t.arrow", &wrong)); len(got) != 7 {
		t.Errorf("%q", got)
	}
	work := report
	work.Message, work.Keys = 5, "v1:x:0:../../etc/passwd:-1"
	if got := flaws(t, seed9(t, "t.arrow", &work)); len(got) != 2 {
		t.Errorf("%q", got)
	}
}

func TestRoundtrip(t *testing.T) {
	for _, name := range []string{"seed9", "java9", "java10", "legacy6", "mixed", "nulls", "lz4", "bad7", "later"} {
		t.Run(name, func(t *testing.T) {
			out, err := Roundtrip(t.Context(), filepath.Join(accept, name+".arrow"), Options{Legacy: LegacyAllow}, WriteOptions{})
			if err != nil || len(out) > 0 {
				t.Errorf("%v %v", out, err)
			}
		})
	}
}

// TestRewrite decodes and encodes tables; kn-65_layouts.txtar tests all of the row.
func TestRewrite(t *testing.T) {
	for _, l := range layouts {
		from := filepath.Join(accept, string(l)+".arrow")
		to := filepath.Join(t.TempDir(), "out.arrow")
		if _, err := Concat(t.Context(), to, []*Reader{read(t, from)}, WriteOptions{Layout: l, encode: true}); err != nil {
			t.Fatal(err)
		}
		a, err := os.ReadFile(from)
		if err != nil {
			t.Fatal(err)
		}
		b, err := os.ReadFile(to)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(a, b) {
			t.Errorf("%s is rewritten with other bytes", l)
		}
	}
}

func TestMigrate(t *testing.T) {
	dir := t.TempDir()
	step := func(from, to string, l Layout) string {
		t.Helper()
		path := filepath.Join(dir, to)
		if _, err := Concat(t.Context(), path, []*Reader{read(t, from)}, WriteOptions{Layout: l}); err != nil {
			t.Fatal(err)
		}
		return path
	}
	for _, name := range []string{"old", "java9"} {
		from := filepath.Join(accept, name+".arrow")
		path := step(from, name+"0", Seed9)
		for i, l := range []Layout{Java10, Seed9, Legacy6, Java10, Legacy6, Seed9} {
			path = step(path, name+string(rune('1'+i)), l)
			if out, err := DiffTools(t.Context(), read(t, from), read(t, path)); err != nil || len(out) > 0 {
				t.Fatalf("%s to %s: %v %v", name, l, out, err)
			}
		}
	}
	mixed := filepath.Join(accept, "mixed.arrow")
	_, err := Concat(t.Context(), filepath.Join(dir, "x.arrow"), []*Reader{read(t, mixed)}, WriteOptions{Layout: Legacy6})
	if err == nil || !strings.Contains(err.Error(), "cannot be expressed") || !strings.Contains(err.Error(), "row 1, 'Row1'") {
		t.Errorf("%v", err)
	}
	if names := dirNames(t, dir); slices.ContainsFunc(names, func(n string) bool { return strings.Contains(n, "x.arrow") }) {
		t.Errorf("something is left: %v", names)
	}
	if _, err := Concat(context.Background(), filepath.Join(dir, "x.arrow"), nil, WriteOptions{Layout: Java9}); tenon.ErrorCode(err) != tenon.CodeInvalid {
		t.Errorf("java9: %v", err)
	}
	same := step(mixed, "same.arrow", Seed9)
	if _, err := Concat(t.Context(), same, []*Reader{read(t, same)}, WriteOptions{}); err == nil || !strings.Contains(err.Error(), "in place") {
		t.Errorf("in place: %v", err)
	}
}

// TestSeveralToolColumns compares tables whose tool columns have different layouts. Each column is
// compared, and each is written in its own layout.
func TestSeveralToolColumns(t *testing.T) {
	dir := t.TempDir()
	other := add
	other.Name = "other"
	made := func(name string, first, second *Tool) string {
		path := filepath.Join(dir, name)
		twoColumns(t, path, first, second)
		return path
	}
	path := made("t.arrow", &report, &add)
	if out, err := Roundtrip(t.Context(), path, Options{}, WriteOptions{}); err != nil || len(out) > 0 {
		t.Errorf("%v %v", out, err)
	}
	copied := filepath.Join(dir, "copied.arrow")
	if _, err := Concat(t.Context(), copied, []*Reader{read(t, path)}, WriteOptions{Layout: Java10}); err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct{ with, want string }{
		"other layouts": {copied, ""},
		"first":         {made("first.arrow", &noPorts, &add), "row 0, column 'First': "},
		"second":        {made("second.arrow", &report, &other), "row 0, column 'Second': "},
		"one":           {seed9(t, "one.arrow", &add), "tool columns: 2 / 1"},
	} {
		out, err := DiffTools(t.Context(), read(t, path), read(t, tt.with))
		if got := strings.Join(out, "\n"); err != nil || !strings.HasPrefix(got, tt.want) || (got == "") != (tt.want == "") {
			t.Errorf("%s: %s %v", name, got, err)
		}
	}
}

func TestDiffToolsOfWrongJSON(t *testing.T) {
	right, wrong := add, add
	wrong.Parameters += " and more"
	out, err := DiffTools(t.Context(), read(t, seed9(t, "a.arrow", &right)), read(t, seed9(t, "b.arrow", &wrong)))
	if err != nil || len(out) != 1 {
		t.Errorf("%v %v", out, err)
	}
}

// TestBadRows reads tables with cells that cannot be decoded: other rows stay usable, and each flaw is reported.
func TestBadRows(t *testing.T) {
	text := arrow.BinaryTypes.String
	storage := fields(arrow.PrimitiveTypes.Int8, text, text, text, text, text, arrow.PrimitiveTypes.Int64, text, text)
	schema := arrow.NewSchema([]arrow.Field{{Name: RowID, Type: text}, logical("Tools", ClassTool, storage)}, nil)
	b := array.NewRecordBuilder(memory.DefaultAllocator, schema)
	rows := []string{
		`{"0":1,"1":"good","3":"{}","6":-1,"8":"https://h.example/"}`,
		`{"0":0,"1":"ports","4":"not JSON","6":-1}`,
		`{"0":1,"1":"index","6":99999999999,"8":"https://h.example/"}`,
		`{"1":"no kind","6":-1}`,
		`{"0":7,"1":"unknown","6":-1}`,
		`{"0":1,"1":"schema","3":"[1]","6":-1,"8":"https://h.example/"}`,
		`{"0":1,"1":"type","3":"{\"type\":\"object\",\"properties\":{\"a\":{\"type\":\"strng\"}}}","6":-1,"8":"https://h.example/"}`,
		`{"0":1,"1":"address","3":"{}","6":-1,"8":"ftp://h.example/"}`,
		`{"0":1,"1":"last","3":"{\"type\":\"object\",\"properties\":{\"a\":{\"type\":[\"string\",\"null\"]}}}","6":-1,"8":"https://h.example/"}`,
		`{"0":1,"1":" ","3":"{}","6":-1,"8":"https://h.example/"}`,
	}
	for i, row := range rows {
		b.Field(0).(*array.StringBuilder).Append(fmt.Sprintf("Row%d", i))
		if err := b.Field(1).UnmarshalJSON([]byte("[" + row + "]")); err != nil {
			t.Fatal(err)
		}
	}
	path := rawBatch(t, "bad.arrow", b.NewRecordBatch())

	t.Run("RP-21_other_rows_are_read", func(t *testing.T) {
		r := read(t, path)
		c, err := r.Column("")
		if err != nil {
			t.Fatal(err)
		}
		var good []string
		for row, err := range r.Tools(t.Context(), c) {
			if err != nil {
				t.Fatal(err)
			}
			if row.Flaw() == nil {
				good = append(good, row.Tool.Name)
			}
		}
		if diff := cmp.Diff([]string{"good", "type", "last"}, good); diff != "" {
			t.Error(diff)
		}
	})
	t.Run("RP-21_each_is_reported", func(t *testing.T) {
		flaws, err := read(t, path).Check(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		got := map[int64]string{}
		for _, f := range flaws {
			got[f.Row] += f.Field + ": " + f.What + "\n"
		}
		want := map[int64]string{1: "4: the ports are not a JSON list", 2: "6: 99999999999 is not an index of a port",
			3: "0: the tool type is missing", 4: "0: Unknown tool type index: 7",
			5: "3: the parameter schema is not a JSON object", 6: `3: parameter 'a' has type "strng"`,
			7: "8: the server_uri of tool 'address' begins with 'ftp:'",
			9: "1: the tool has no name"}
		for row, what := range want {
			if !strings.HasPrefix(got[row], what) {
				t.Errorf("row %d: %q, want %q", row, got[row], what)
			}
		}
		if len(got) != len(want) {
			t.Errorf("flaws of the rows %v", got)
		}
	})
}

// TestConcatBadRows copies tables with cells that cannot be decoded. A cell is kept where the layout stays, and is
// missing where it would have to be converted; a warning names the first one.
func TestConcatBadRows(t *testing.T) {
	text := arrow.BinaryTypes.String
	schema := arrow.NewSchema([]arrow.Field{{Name: RowID, Type: text}, logical("Tools", ClassTool, Seed9.storage()),
		{Name: "Note", Type: text}}, nil)
	b := array.NewRecordBuilder(memory.DefaultAllocator, schema)
	for i, cell := range []string{`{"0":1,"1":"good","3":"{}","6":-1,"8":"https://h.example/"}`, `{"1":"no kind","6":-1}`} {
		b.Field(0).(*array.StringBuilder).Append(fmt.Sprintf("Row%d", i))
		if err := b.Field(1).UnmarshalJSON([]byte("[" + cell + "]")); err != nil {
			t.Fatal(err)
		}
		b.Field(2).(*array.StringBuilder).Append("beside")
	}
	path := rawBatch(t, "bad.arrow", b.NewRecordBatch())
	for layout, want := range map[Layout]string{
		Seed9:  "cells that cannot be read: 1; they are copied unchanged: ",
		Java10: "cells that cannot be read: 1; they are missing in the result: "} {
		t.Run(string(layout), func(t *testing.T) {
			var warned []string
			out := filepath.Join(t.TempDir(), "out.arrow")
			n, err := Concat(t.Context(), out, []*Reader{read(t, path)}, WriteOptions{Layout: layout,
				Warn: func(text string) { warned = append(warned, text) }})
			if err != nil || n != 2 {
				t.Fatalf("%d rows, %v", n, err)
			}
			if len(warned) != 1 || !strings.Contains(warned[0], want) || !strings.Contains(warned[0], "row 1, 'Row1'") {
				t.Errorf("warnings %q", warned)
			}
			flaws, err := read(t, out).Check(t.Context())
			if err != nil || len(flaws) != map[Layout]int{Seed9: 1}[layout] {
				t.Errorf("flaws %v, %v", flaws, err)
			}
		})
	}
	t.Run("roundtrip", func(t *testing.T) {
		list, err := Roundtrip(t.Context(), path, Options{}, WriteOptions{})
		if err != nil || len(list) != 1 || !strings.HasPrefix(list[0], "row 1 ('Row1'), column 'Tools': ") {
			t.Errorf("%q, %v", list, err)
		}
	})
}

// TestInPlace refuses to write over an input, also through a hard link.
func TestInPlace(t *testing.T) {
	dir := t.TempDir()
	first, second, link := filepath.Join(dir, "a.arrow"), filepath.Join(dir, "b.arrow"), filepath.Join(dir, "c.arrow")
	for _, path := range []string{first, second} {
		if err := WriteTools(t.Context(), path, []Row{{ID: "Row0", Tool: &add}}, WriteOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Link(second, link); err != nil {
		t.Fatal(err)
	}
	for _, out := range []string{first, second, link} {
		_, err := Concat(t.Context(), out, []*Reader{read(t, first), read(t, second)}, WriteOptions{})
		if tenon.ErrorCode(err) != tenon.CodeInvalid || !strings.Contains(err.Error(), "never changed in place") {
			t.Errorf("%s: %v", filepath.Base(out), err)
		}
	}
}
