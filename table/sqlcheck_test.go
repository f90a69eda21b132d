package table

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestCheckQuery compiles queries against tables that do not exist.
func TestCheckQuery(t *testing.T) {
	tables := []QueryTable{{Name: "sales", Columns: []string{"city", "amount"}}, {Name: "open", Open: true}, {Name: "half", Columns: []string{"id"}, Open: true}}
	for _, tt := range []struct {
		name, sql string
		params    []string
		columns   []string
		open      bool
		wrong     *Mistake
	}{
		{name: "known columns", sql: "SELECT city, sum(amount) AS total FROM sales GROUP BY city", columns: []string{"city", "total"}},
		{name: "a typo", sql: "SELECT city,\n  amout FROM sales", wrong: &Mistake{2, 3, "no such column: amout; did you mean 'amount'?"}},
		{name: "syntax", sql: "SELECT city FORM sales x", wrong: &Mistake{1, 18, `near "sales": syntax error`}},
		{name: "no such table", sql: "SELECT * FROM sale", wrong: &Mistake{1, 15, "no such table: sale; did you mean 'sales'?"}},
		{name: "writing", sql: "DELETE FROM sales", wrong: &Mistake{Text: "a query only reads the tables that it is given: 'DELETE' is refused"}},
		{name: "two", sql: "SELECT 1; SELECT 2", wrong: &Mistake{Text: "a query is one SELECT; text follows its semicolon: SELECT 2"}},
		{name: "nothing", sql: "-- nothing", wrong: &Mistake{Text: "the query is empty"}},
		{name: "a parameter", sql: "SELECT :n AS n", params: []string{"n"}, columns: []string{"n"}},
		{name: "a parameter without a value", sql: "SELECT :n AS n", wrong: &Mistake{Text: "the query has parameters without values: :n"}},
		{name: "a value without a parameter", sql: "SELECT 1 AS n", params: []string{"m"}, wrong: &Mistake{Text: "the query has no parameter ':m'"}},
		{name: "columns that nobody knows", sql: "SELECT o.a, b, sales.city FROM open o JOIN sales ON c = o.d", columns: []string{"a", "b", "city"}},
		{name: "a table that may have more", sql: "SELECT * FROM half", columns: []string{"id"}, open: true},
		{name: "one of two that may have it", sql: "SELECT x FROM open JOIN half ON open.id = half.id", open: true},
		{name: "a join by a column that nobody knows", sql: "SELECT city, a FROM sales JOIN open USING (city)", columns: []string{"city", "a"}},
		{name: "a join by a column that is not there", sql: "SELECT * FROM open JOIN sales USING (cty)", wrong: &Mistake{Text: "cannot join using column cty - column not present in both tables"}},
		{name: "a union with as many as there are", sql: "SELECT city, amount FROM sales UNION ALL SELECT * FROM open", open: true},
		{name: "names for as many as there are", sql: "WITH o(a, b) AS (SELECT * FROM open) SELECT b FROM o", open: true},
		{name: "the second of them", sql: "SELECT * FROM open ORDER BY 2", open: true},
		{name: "a pair among them", sql: "SELECT city FROM sales WHERE (city, amount) IN open", open: true},
		{name: "a union that cannot be", sql: "SELECT city, amount FROM sales UNION ALL SELECT city FROM sales", wrong: &Mistake{Text: "SELECTs to the left and right of UNION ALL do not have the same number of result columns"}},
		{name: "syntax with an open table", sql: "SELECT a b c FROM open", wrong: &Mistake{1, 12, `near "c": syntax error`}},
		{name: "a function that is not there", sql: "SELECT median_of(a) FROM open", wrong: &Mistake{1, 8, "no such function: median_of"}},
		{name: "row ids", sql: `SELECT "<RowID>" AS id FROM sales`, columns: []string{"id"}},
		{name: "equal names", sql: "SELECT city, city FROM sales", columns: []string{"city", "city_1"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			columns, open, wrong, err := CheckQuery(tt.sql, tables, tt.params)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.wrong, wrong); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff(tt.columns, columns); diff != "" || open != tt.open {
				t.Errorf("open %v\n%s", open, diff)
			}
		})
	}
}

// TestCheckQueryNames checks names that a table cannot have, and names that occur twice.
func TestCheckQueryNames(t *testing.T) {
	for _, tt := range []struct {
		names []string
		want  string
	}{
		{[]string{"sqlite_x"}, "'sqlite_x' is not a valid name for a table of a query; choose another one"},
		{[]string{"SQLite_x"}, "'SQLite_x' is not a valid name for a table of a query; choose another one"},
		{[]string{""}, "'' is not a valid name for a table of a query; choose another one"},
		{[]string{"a", "A"}, "two tables of the query have the name 'A'; the case of letters does not matter"},
	} {
		var tables []QueryTable
		for _, name := range tt.names {
			tables = append(tables, QueryTable{Name: name, Columns: []string{"x"}})
		}
		_, _, wrong, err := CheckQuery("SELECT 1", tables, nil)
		if diff := cmp.Diff(&Mistake{Text: tt.want}, wrong); diff != "" || err != nil {
			t.Errorf("%q: %v %s", tt.names, err, diff)
		}
	}
}
