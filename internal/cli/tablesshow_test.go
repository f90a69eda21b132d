package cli

import (
	"bytes"
	"context"
	"io"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/tenonhq/tenon/table"
)

// TestNarrow checks that the widest columns are shortened in favour of the others, and that indices and row ids are
// never shortened.
func TestNarrow(t *testing.T) {
	a := &app{outTTY: true} // a terminal without a known size has 100 columns
	long := strings.Repeat("x", 90)
	got := a.narrow([]string{"#", "row", "name", "server", "description"}, [][]string{{"0", "Row0", "add", long, long}, {"1", "Row1", "a tool", "s", "d"}})
	want := [][]string{{"0", "Row0", "add", strings.Repeat("x", 38) + "…", strings.Repeat("x", 39) + "…"}, {"1", "Row1", "a tool", "s", "d"}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([][]string{{long}}, a.narrow([]string{"row"}, [][]string{{long}})); diff != "" {
		t.Error(diff)
	}
}

// TestShowNodes checks that the descriptions of the kinds of steps fit into 80 characters.
func TestShowNodes(t *testing.T) {
	var out bytes.Buffer
	a := newApp(stdio{in: strings.NewReader(""), out: &out, err: &out})
	a.outTTY = true
	if err := a.showNodes(); err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(out.String()) {
		if n := utf8.RuneCountInString(strings.TrimSpace(line)); n > 80 {
			t.Errorf("%d characters: %s", n, line)
		}
	}
	if !strings.Contains(out.String(), "keys    sql params tables") {
		t.Errorf("no keys of sql: %s", out.String())
	}
}

// TestShowAtATerminal checks that a tool is shown with its index, which --row takes, and with the id of its row. The id
// looks like an index, but has another number in tables that were joined.
func TestShowAtATerminal(t *testing.T) {
	path := filepath.Join(t.TempDir(), "t.arrow")
	tool := func(name string) *table.Tool {
		return &table.Tool{Kind: table.MCP, Name: name, Description: "Does " + name + "\nand more", Parameters: "{}", Message: -1, Server: "http://h/mcp"}
	}
	err := table.WriteTools(t.Context(), path, []table.Row{{ID: "Row0", Tool: tool("add")}, {ID: "Row0_dup", Tool: nil}, {ID: "Row1", Tool: tool("echo")}}, table.WriteOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, terminal := range []bool{true, false} {
		var out bytes.Buffer
		a := newApp(stdio{in: strings.NewReader(""), out: &out, err: io.Discard})
		a.outTTY = terminal
		r, err := table.Open(context.Background(), path, table.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if err := (&tableShow{app: a, limit: -1}).show(t.Context(), r); err != nil {
			t.Fatal(err)
		}
		want := "0\tRow0\tmcp\tadd\thttp://h/mcp\tDoes add\n1\tRow0_dup\t-\t-\t-\tmissing\n2\tRow1\tmcp\techo\thttp://h/mcp\tDoes echo\n"
		if terminal {
			want = "#  ROW       KIND  NAME  SERVER        DESCRIPTION\n0  Row0      mcp   add   http://h/mcp  Does add\n" +
				"1  Row0_dup  -     -     -             missing\n2  Row1      mcp   echo  http://h/mcp  Does echo\n"
		}
		if diff := cmp.Diff(want, out.String()); diff != "" {
			t.Error(diff)
		}
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	}
}
