package peers

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// dumped is the content of a table as read by another implementation.
type dumped struct {
	Columns []struct {
		Name     string            `json:"name"`
		Metadata map[string]string `json:"metadata"`
	} `json:"columns"`
	Metadata map[string]string `json:"metadata"`
	Batches  []int             `json:"batches"`
	Rows     []map[string]any  `json:"rows"`
}

// testArrow tests package table against two other implementations of Arrow. pyarrow and npm's apache-arrow
// read every form that tenon writes, including types and metadata, and tenon reads their files.
func (p *peers) testArrow(t *testing.T) {
	python := filepath.Join(filepath.Dir(p.modules), "python3", "bin", "python")
	if _, err := os.Stat(python); err != nil {
		t.Fatalf("a peer is missing, make peers installs it: %v", err)
	}
	dir := t.TempDir()
	others := map[string][]string{
		"pyarrow":      {python, absolute(t, "testdata", "arrow.py"), "dump"},
		"apache-arrow": {p.node, absolute(t, "testdata", "arrow.mjs"), "dump", p.modules},
	}

	t.Run("read what tenon writes", func(t *testing.T) {
		fixtures := absolute(t, "..", "..", "internal", "cli", "testdata", "accept")
		runFor(t, dir, nil, p.tenon, "tools", "list", "--out", "server.arrow", "--", p.tenon, "testserver", "--stdio",
			"--tools", "2500")
		files := []string{"server.arrow"}
		for from, layouts := range map[string][]string{"mixed": {"seed9", "java10"}, "nulls": {"seed9", "java10"},
			"old": {"seed9", "java10", "legacy6"}} {
			for _, l := range layouts {
				name := from + "_" + l + ".arrow"
				runFor(t, dir, nil, p.tenon, "tables", "migrate", filepath.Join(fixtures, from+".arrow"), "--layout", l,
					"--out", name)
				files = append(files, name)
			}
		}
		runFor(t, dir, nil, p.tenon, "tables", "concat", "server.arrow", filepath.Join(fixtures, "later.arrow"),
			filepath.Join(fixtures, "r.arrow"), "--out", "wide.arrow")
		var stream []byte
		runFor(t, dir, &stream, p.tenon, "tables", "concat", "mixed_seed9.arrow", "server.arrow", "--out", "-")
		if err := os.WriteFile(filepath.Join(dir, "stream.arrow"), stream, 0o600); err != nil {
			t.Fatal(err)
		}
		files = append(files, "wide.arrow", "stream.arrow")
		for who, command := range others {
			list := files
			if who == "pyarrow" { // apache-arrow for JavaScript does not decompress
				runFor(t, dir, nil, p.tenon, "tables", "concat", "server.arrow", "--compress", "lz4", "--out", "lz4.arrow")
				list = append(list, "lz4.arrow")
			}
			var found []dumped
			runFor(t, dir, &found, command[0], append(command[1:], list...)...)
			for i, name := range list {
				t.Run(who+" "+name, func(t *testing.T) { compareTable(t, p, dir, found[i], name) })
			}
		}
	})

	t.Run("written by others", func(t *testing.T) { testWrittenByOthers(t, p, python, dir) })
}

func testWrittenByOthers(t *testing.T, p *peers, python, dir string) {
	tables := map[string][]map[string]any{}
	runFor(t, dir, &tables, python, absolute(t, "testdata", "arrow.py"), "write", dir)
	var js []map[string]any
	runFor(t, dir, &js, p.node, absolute(t, "testdata", "arrow.mjs"), "write", p.modules, "js.arrow")
	tables["js.arrow"] = js
	for name, want := range tables {
		t.Run(name, func(t *testing.T) {
			var rows []map[string]any
			runFor(t, dir, &rows, p.tenon, "tables", "show", name, "--raw", "-o", "json")
			var got []map[string]any
			for _, r := range rows {
				column := "Tools"
				if name == "unnamed.arrow" {
					column = "1"
				}
				cell, _ := r[column].(map[string]any) // nil if the cell is missing
				got = append(got, cell)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("rows: %s", diff)
			}
			var out []byte
			runFor(t, dir, &out, p.tenon, "tables", "roundtrip", name)
			if strings.TrimSpace(string(out)) != "identical" {
				t.Errorf("roundtrip: %s", out)
			}
			if name != "lists.arrow" { // an MCP tool cannot have ports
				runFor(t, dir, nil, p.tenon, "tables", "check", name)
			}
			runFor(t, dir, nil, p.tenon, "tables", "concat", name, "--out", "again.arrow")
			runFor(t, dir, &out, p.tenon, "tables", "diff", "--semantic", name, "again.arrow")
			if strings.TrimSpace(string(out)) != "same tools" {
				t.Errorf("concat: %s", out)
			}
		})
	}
}

// runFor runs a program in the folder and decodes its output, JSON or bytes, into a value.
func runFor(t *testing.T, dir string, into any, name string, args ...string) {
	t.Helper()
	cmd := exec.Command(name, args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "HOME="+dir)
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s %v: %v\n%s", name, args, err, stderr.String())
	}
	if into == nil {
		return
	}
	if b, ok := into.(*[]byte); ok {
		*b = out
		return
	}
	if err := json.Unmarshal(out, into); err != nil {
		t.Fatalf("%s %v: %v\n%s", name, args, err, out)
	}
}

// compareTable compares the reading of a table by tenon and by another program.
func compareTable(t *testing.T, p *peers, dir string, theirs dumped, name string) {
	var ours struct {
		Columns []struct {
			Name, Logical, Metadata string
		}
		Metadata map[string]string
	}
	var rows []map[string]any
	var count struct{ Batches []int }
	runFor(t, dir, &ours, p.tenon, "tables", "schema", name, "-o", "json")
	runFor(t, dir, &rows, p.tenon, "tables", "show", name, "--raw", "-o", "json")
	runFor(t, dir, &count, p.tenon, "tables", "count", name, "-o", "json")
	if diff := cmp.Diff(ours.Metadata, theirs.Metadata); diff != "" {
		t.Errorf("metadata: %s", diff)
	}
	if diff := cmp.Diff(count.Batches, theirs.Batches); diff != "" {
		t.Errorf("batches: %s", diff)
	}
	for k, c := range ours.Columns {
		o := theirs.Columns[k+1] // their first column holds the row ids
		if c.Name != o.Name || c.Logical != o.Metadata["ARROW:extension:name"] ||
			c.Metadata != o.Metadata["ARROW:extension:metadata"] {
			t.Errorf("column %v is %v there", c, o)
		}
	}
	if diff := cmp.Diff(rows, theirs.Rows); diff != "" {
		t.Errorf("rows: %s", diff)
	}
}
