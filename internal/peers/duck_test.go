package peers

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// testDuck compares SQL over tables with DuckDB: 200 queries over random tables. pyarrow writes the tables
// with odd chunks, slices, dictionaries and large strings.
func (p *peers) testDuck(t *testing.T) {
	python := filepath.Join(filepath.Dir(p.modules), "python3", "bin", "python")
	if _, err := os.Stat(python); err != nil {
		t.Fatalf("a peer is missing, make peers installs it: %v", err)
	}
	dir := t.TempDir()
	output := func(name string, args ...string) ([]byte, error) {
		cmd := exec.Command(name, args...)
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "HOME="+dir)
		var stderr strings.Builder
		cmd.Stderr = &stderr
		out, err := cmd.Output()
		if err != nil {
			err = fmt.Errorf("%w: %s", err, stderr.String())
		}
		return out, err
	}
	out, err := output(python, absolute(t, "testdata", "duck.py"), dir, "1")
	if err != nil {
		t.Fatal(err)
	}
	var queries []struct {
		SQL  string
		Rows [][]any
	}
	if err := json.Unmarshal(out, &queries); err != nil {
		t.Fatal(err)
	}
	if len(queries) != 200 {
		t.Fatalf("%d queries, want 200", len(queries))
	}
	for i, q := range queries {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			out, err := output(p.tenon, "tables", "query", q.SQL, "a.arrow", "b.arrow", "-o", "jsonl")
			if err != nil {
				t.Fatalf("%s: %v", q.SQL, err)
			}
			rows, err := cellsOf(out)
			if err != nil {
				t.Fatal(err)
			}
			if len(rows) != len(q.Rows) {
				t.Fatalf("%s: %d rows, DuckDB has %d", q.SQL, len(rows), len(q.Rows))
			}
			for k, theirs := range q.Rows {
				for c, want := range theirs {
					if got := rows[k][c]; !sameCell(got, want) {
						t.Fatalf("%s\nrow %d, column %d: %v, DuckDB has %v", q.SQL, k, c, got, want)
					}
				}
			}
		})
	}
}

// cellsOf parses lines of objects as lists of their values. Numbers keep their text.
func cellsOf(out []byte) (rows [][]any, err error) {
	for line := range bytes.Lines(out) {
		d := json.NewDecoder(bytes.NewReader(line))
		d.UseNumber()
		if _, err := d.Token(); err != nil {
			return nil, err
		}
		var row []any
		for d.More() {
			var v any
			if _, err := d.Token(); err != nil {
				return nil, err
			}
			if err := d.Decode(&v); err != nil {
				return nil, err
			}
			row = append(row, v)
		}
		rows = append(rows, row)
	}
	return rows, nil
}

// sameCell compares cells of two programs: numbers by value, large ones by their digits, booleans in SQLite's
// form, times by their text.
func sameCell(a, b any) bool {
	text := func(v any) string {
		switch v {
		case true:
			return "1"
		case false:
			return "0"
		}
		if f, ok := v.(float64); ok {
			return strconv.FormatFloat(f, 'f', -1, 64)
		}
		return strings.ReplaceAll(fmt.Sprint(v), "T", " ")
	}
	if a == nil || b == nil || text(a) == text(b) {
		return a == nil && b == nil || a != nil && b != nil
	}
	x, xerr := strconv.ParseFloat(text(a), 64)
	y, yerr := strconv.ParseFloat(text(b), 64)
	return xerr == nil && yerr == nil && math.Abs(x) < 1<<53 && math.Abs(x-y) <= 1e-9*max(1, math.Abs(x), math.Abs(y))
}
