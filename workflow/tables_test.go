package workflow_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestTablesOfOneName checks that a query over tables with the same name in SQL is refused.
func TestTablesOfOneName(t *testing.T) {
	for name, body := range map[string]string{
		"port": "steps:\n- {id: a, tool: flow}\n- {id: a_b, table: {csv: a.csv}}\n" +
			"- {id: q, sql: 'SELECT 1', tables: [a.b, a_b]}",
		"case of letters": "inputs: [{name: orders}]\nsteps:\n- {id: Orders, table: {csv: a.csv}}\n" +
			"- {id: q, sql: 'SELECT * FROM orders, Orders'}",
	} {
		_, err := compile([]byte("kind: workflow\nversion: 1\nname: w\ndescription: d\n" + body))
		if err == nil || !strings.Contains(err.Error(), "SQL cannot distinguish") {
			t.Errorf("%s: error %v", name, err)
		}
	}
}

// TestTablesInAnyCase checks that names at the position of a table are matched case-insensitively, and that other
// words are columns.
func TestTablesInAnyCase(t *testing.T) {
	const head = "inputs: [{name: sales}]\nsteps:\n- {id: rate, table: {csv: a.csv}}\n- {id: q, sql: '"
	for sql, want := range map[string]map[string]string{
		"SELECT * FROM Sales":                        {"sales": "sales"},
		"select * from SALES join RATE using (n)":    {"sales": "sales", "rate": "rate"},
		"SELECT Rate FROM sales":                     {"sales": "sales"},
		"SELECT * FROM (SELECT n AS Rate FROM Rate)": {"rate": "rate"},
		"SELECT * FROM q":                            {},
	} {
		w := parse(t, head+sql+"'}")
		if diff := cmp.Diff(want, w.QueryTables(1)); diff != "" {
			t.Errorf("%s: %s", sql, diff)
		}
	}
}
