package workflow

import (
	"slices"
	"strings"
)

// sqlNames are the names that stand in a query where a table does: behind FROM and JOIN,
// in the list there, and behind IN. Columns and what a query calls itself may have the names
// of steps, and do not make it wait for those.
func sqlNames(sql string) []string {
	r := sqlReader{levels: []sqlLevel{{}}}
	for len(sql) > 0 {
		token, rest := sqlToken(sql)
		r.take(token)
		sql = rest
	}
	return r.names
}

// sqlReader goes through the tokens of a query.
type sqlReader struct {
	names  []string
	levels []sqlLevel // of parentheses
	last   string     // the token before, in capitals
	behind bool       // the token before was the name of a table
}

// sqlLevel is where a query is within one pair of parentheses.
type sqlLevel struct {
	list bool // in the list behind FROM
	want bool // a table comes next
	in   bool // behind IN, where a table may come next
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
	case token == "." && behind: // the name of a schema, with the table's behind it
		at.want = true
	case at.want && !slices.Contains(sqlBegins, word):
		if name, ok := sqlIdentifier(token); ok {
			r.names, r.behind = append(r.names, name), true
		}
		at.want, at.in = false, false
	case word == "FROM" && r.last != "DISTINCT" || word == "JOIN": // IS DISTINCT FROM compares
		at.list, at.want = true, true
	case word == "IN":
		at.want, at.in = true, true
	case slices.Contains(sqlClauses, word):
		at.list, at.want = false, false
	}
	r.last = word
}

// sqlBegins are the words with which a query within parentheses begins, and sqlClauses
// those that end the list behind FROM.
var (
	sqlBegins  = []string{"SELECT", "VALUES", "WITH"}
	sqlClauses = []string{"SELECT", "VALUES", "WITH", "WHERE", "GROUP", "HAVING", "WINDOW", "ORDER", "LIMIT", "UNION", "INTERSECT", "EXCEPT"}
)

// sqlIdentifier is the name that a token stands for, if it does for one.
func sqlIdentifier(token string) (string, bool) {
	switch {
	case isWord(token[0]):
		return token, true
	case len(token) > 2 && strings.IndexByte("\"`[", token[0]) >= 0:
		return token[1 : len(token)-1], true
	}
	return "", false
}

// sqlToken parts the first token from a query: a word, a name or a text with its quotes, a
// parameter, or a single sign. Of white space and comments it is a blank.
func sqlToken(sql string) (token, rest string) {
	until := func(from int, end string) (string, string) {
		if i := strings.Index(sql[from:], end); i >= 0 {
			n := from + i + len(end)
			return sql[:n], sql[n:]
		}
		return " ", "" // it does not end, as SQLite will say
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
