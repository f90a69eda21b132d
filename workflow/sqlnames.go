package workflow

import (
	"slices"
	"strings"
)

// sqlNames returns the names in a query at positions of tables: after FROM and JOIN, in the list after FROM, and after
// IN. Other names are ignored. A column or alias may have the name of a step, and the query does not wait for that
// step.
func sqlNames(sql string) []string {
	r := sqlReader{levels: []sqlLevel{{}}}
	for len(sql) > 0 {
		token, rest := sqlToken(sql)
		r.take(token)
		sql = rest
	}
	return r.names
}

// sqlReader scans the tokens of a query.
type sqlReader struct {
	names  []string
	levels []sqlLevel // by depth of parentheses
	last   string     // previous token, in upper case
	behind bool       // the previous token was a table name
}

// sqlLevel is the state within one pair of parentheses.
type sqlLevel struct {
	list bool // in the list after FROM
	want bool // a table comes next
	in   bool // after IN, where a table may come next
}

func (r *sqlReader) take(token string) {
	if strings.TrimSpace(token) == "" {
		return
	}
	at := &r.levels[len(r.levels)-1]
	word := strings.ToUpper(token)
	behind := r.behind
	r.behind = false
	switch {
	case token == "(":
		list := at.want && !at.in
		at.want, at.in = false, false
		r.levels = append(r.levels, sqlLevel{list: list, want: list})
	case token == ")":
		if len(r.levels) > 1 {
			r.levels = r.levels[:len(r.levels)-1]
		}
	case token == ",":
		at.want = at.list
	case token == "." && behind: // schema name; the table name follows
		at.want = true
	case at.want && !slices.Contains(sqlBegins, word):
		if name, ok := sqlIdentifier(token); ok {
			r.names, r.behind = append(r.names, name), true
		}
		at.want, at.in = false, false
	case word == "FROM" && r.last != "DISTINCT" || word == "JOIN": // IS DISTINCT FROM is a comparison
		at.list, at.want = true, true
	case word == "IN":
		at.want, at.in = true, true
	case slices.Contains(sqlClauses, word):
		at.list, at.want = false, false
	}
	r.last = word
}

// sqlBegins lists the first words of a subquery. sqlClauses lists the words that end the list after FROM.
var (
	sqlBegins  = []string{"SELECT", "VALUES", "WITH"}
	sqlClauses = []string{"SELECT", "VALUES", "WITH", "WHERE", "GROUP", "HAVING", "WINDOW", "ORDER", "LIMIT", "UNION",
		"INTERSECT", "EXCEPT"}
)

// sqlIdentifier returns the name in a token. It reports false if the token is not an identifier.
func sqlIdentifier(token string) (string, bool) {
	switch {
	case isWord(token[0]):
		return token, true
	case len(token) > 2 && strings.IndexByte("\"`[", token[0]) >= 0:
		return token[1 : len(token)-1], true
	}
	return "", false
}

// sqlToken splits the first token from a query: a word, a quoted name or text, a parameter, or a single
// character. For white space and comments it returns a space.
func sqlToken(sql string) (token, rest string) {
	until := func(from int, end string) (string, string) {
		if i := strings.Index(sql[from:], end); i >= 0 {
			n := from + i + len(end)
			return sql[:n], sql[n:]
		}
		return " ", "" // unterminated; SQLite will report it
	}
	switch c := sql[0]; {
	case strings.HasPrefix(sql, "--"):
		_, rest = until(2, "\n")
		return " ", rest
	case strings.HasPrefix(sql, "/*"):
		_, rest = until(2, "*/")
		return " ", rest
	case c == '\'' || c == '"' || c == '`':
		return until(1, string(c))
	case c == '[':
		return until(1, "]")
	case isWord(c) || strings.IndexByte(":$@", c) >= 0:
		n := 1
		for n < len(sql) && isWord(sql[n]) {
			n++
		}
		return sql[:n], sql[n:]
	}
	return sql[:1], sql[1:]
}

func isWord(c byte) bool {
	return c == '_' || '0' <= c && c <= '9' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || c >= 0x80
}
