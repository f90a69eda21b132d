package cli

import (
	"bytes"
	"errors"
	"io"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/tenonhq/tenon"
)

// fullDisk accepts a number of bytes, and then returns an error.
type fullDisk struct{ room int }

func (d *fullDisk) Write(b []byte) (int, error) {
	if d.room -= len(b); d.room < 0 {
		return 0, syscall.ENOSPC
	}
	return len(b), nil
}

// TestQueryStops checks how a query ends if its output stops early: because a terminal shows only the first rows,
// because the disk is full, or because a late row fails.
func TestQueryStops(t *testing.T) {
	t.Chdir(t.TempDir())
	const sql = "WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c WHERE n < 100000) SELECT n, 'abcdefghij' AS t FROM c"
	disk := func() io.Writer { return &fullDisk{100} }
	for name, tt := range map[string]struct {
		sql   string
		out   io.Writer
		tty   bool
		csv   bool
		wrong string
		code  tenon.Code
	}{
		"a terminal":          {sql, new(bytes.Buffer), true, false, "", ""},
		"a full disk":         {sql, disk(), false, false, "stdout cannot be written: no space left on device", tenon.CodeInternal},
		"a full disk, CSV":    {sql, disk(), false, true, "stdout cannot be written: no space left on device", tenon.CodeInternal},
		"a few rows, CSV":     {"SELECT 'abcdefghij' AS t", &fullDisk{10}, false, true, "stdout cannot be written: no space left on device", tenon.CodeInternal},
		"a query that is bad": {"SELECT n FROM c", new(bytes.Buffer), false, false, "query, line 1, column 15: no such table: c; there are no tables", tenon.CodeInvalid},
		"one that fails late": {sql + " WHERE n < 90000 OR json(t)", new(bytes.Buffer), false, false, "query: malformed JSON", tenon.CodeInvalid},
	} {
		t.Run(name, func(t *testing.T) {
			var said bytes.Buffer
			a := newApp(stdio{strings.NewReader(""), tt.out, &said})
			a.outTTY = tt.tty
			q := &tableQuery{app: a, show: tableShow{app: a, limit: -1, csv: tt.csv}}
			err := q.run(t.Context(), tt.sql, nil)
			if tt.wrong == "" && err != nil || tt.wrong != "" && (err == nil || err.Error() != tt.wrong || tenon.ErrorCode(err) != tt.code) {
				t.Errorf("error %v, want %s", err, tt.wrong)
			}
			if failed := new(tenon.Error); tt.wrong != "" && !errors.As(err, &failed) {
				t.Errorf("%T", err)
			}
		})
	}
}

// TestOneStdin checks that every command refuses to read stdin as two tables.
func TestOneStdin(t *testing.T) {
	t.Chdir(t.TempDir())
	const flow = "kind: workflow\nversion: 1\nname: w\ndescription: d\ninputs: [{name: a}, {name: b}]\nsteps: [{id: s, template: hi}]\n"
	if err := os.WriteFile("w.yaml", []byte(flow), 0o600); err != nil {
		t.Fatal(err)
	}
	for want, args := range map[string][]string{
		"- is given 2 times":           {"tables", "query", "SELECT 1", "-", "-"},
		"- is given 3 times":           {"tables", "query", "SELECT 1", "a=-", "b=-", "-"},
		"- is given 4 times":           {"tables", "concat", "-", "-", "-", "-", "--out", "x.arrow"},
		"stdin holds one table: - is":  {"tables", "diff", "-", "-"},
		"--data-in - is given 2 times": {"run", "--data-in", "-", "--data-in", "-", "hello"},
		"--in - is given 2 times":      {"workflows", "run", "w.yaml", "--in", "a=-", "--in", "b=-"},
	} {
		var said bytes.Buffer
		if status := run(t.Context(), args, stdio{strings.NewReader(""), &said, &said}); status != exitUsage || !strings.Contains(said.String(), want) {
			t.Errorf("%q: status %d: %s, want %s", args, status, said.String(), want)
		}
	}
}
