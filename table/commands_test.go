package table

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

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

// TestRewrite encodes what was decoded; kn-65_layouts.txtar shows the whole row.
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

// TestSeveralToolColumns compares tables whose tool columns have different layouts: each
// counts, and each is written again as it was.
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
