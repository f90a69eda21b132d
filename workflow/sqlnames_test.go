package workflow

import (
	"strings"
	"testing"
)

func TestSQLNames(t *testing.T) {
	for _, c := range []struct{ sql, want string }{
		{"SELECT a, total FROM agg", "agg"},
		{"select total as t from Agg x join other using (total)", "Agg other"},
		{"SELECT * FROM a, b AS c, d WHERE e IN f AND g IN (h, i)", "a b d f"},
		{"SELECT * FROM (SELECT x FROM a) JOIN (b, c) ON d = e, f ORDER BY g, h", "a b c f"},
		{"SELECT * FROM a WHERE b IS NOT DISTINCT FROM c", "a"},
		{"SELECT (SELECT max(x) FROM b), d FROM c", "b c"},
		{`SELECT * FROM "a b" JOIN [c] JOIN ` + "`d`", "a b c d"},
		{"SELECT 'FROM x', ''' FROM y' -- FROM z\n/* FROM w */ FROM a", "a"},
		{"SELECT * FROM main.a", "main a"},
		{"WITH r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r) SELECT n FROM r, json_each(x, y)", "r r json_each"},
		{"SELECT * FROM a LEFT JOIN b ON a.x = b.y AND c > 1, d UNION SELECT e, f FROM g", "a b d g"},
		{"SELECT x -- FROM a", ""},
		{"SELECT 'x FROM a", ""},
		{"FROM (((", ""},
		{")) FROM a", "a"},
	} {
		if got := strings.Join(sqlNames(c.sql), " "); got != c.want {
			t.Errorf("%s:\n got %s\nwant %s", c.sql, got, c.want)
		}
	}
}
