package table

import (
	"slices"
	"strings"

	sqlite3 "modernc.org/sqlite/lib"

	"github.com/tenonhq/tenon"
)

// authorize is the authorizer callback: it allows or denies one operation of the query.
func (s *selection) authorize(action int32, first, second string) int32 {
	switch action {
	case sqlite3.SQLITE_SELECT, sqlite3.SQLITE_RECURSIVE:
		return sqlite3.SQLITE_OK
	case sqlite3.SQLITE_FUNCTION:
		if strings.EqualFold(second, "load_extension") || strings.HasPrefix(strings.ToLower(second), "fts3_") {
			s.denied = "the function " + second
			return sqlite3.SQLITE_DENY
		}
		return sqlite3.SQLITE_OK
	case sqlite3.SQLITE_READ:
		for _, t := range s.sources {
			if !strings.EqualFold(t.name, first) {
				continue
			}
			t.used = true
			for _, c := range t.columns {
				c.used = c.used || strings.EqualFold(c.name, second)
			}
			return sqlite3.SQLITE_OK
		}
		low := strings.ToLower(first)
		builtIn := strings.HasPrefix(low, "sqlite_") || strings.HasPrefix(low, "pragma_") ||
			strings.HasPrefix(low, "fts") || low == "dbstat"
		if second == "" && !builtIn { // the name of a common table expression
			return sqlite3.SQLITE_OK
		}
		if slices.Contains([]string{"sqlite_master", "sqlite_schema", "json_each", "json_tree"}, low) {
			return sqlite3.SQLITE_OK
		}
		s.denied = "the table " + first
		return sqlite3.SQLITE_DENY
	}
	if s.denied == "" {
		s.denied = "'" + firstWord(s.SQL) + "'"
		if name, ok := writes[action]; ok && slices.Contains([]string{"WITH", "SELECT", "VALUES"}, firstWord(s.SQL)) {
			s.denied = "'" + name + "'"
		}
	}
	return sqlite3.SQLITE_DENY
}

// writes contains operations that a query may contain after WITH or SELECT.
var writes = map[int32]string{
	sqlite3.SQLITE_INSERT: "INSERT", sqlite3.SQLITE_UPDATE: "UPDATE",
	sqlite3.SQLITE_DELETE: "DELETE", sqlite3.SQLITE_PRAGMA: "PRAGMA",
}

// firstWord returns the first word of a query after comments, in upper case.
func firstWord(sql string) string {
	for {
		sql = strings.TrimLeft(sql, " \t\r\n;(")
		switch {
		case strings.HasPrefix(sql, "--"):
			_, sql, _ = strings.Cut(sql, "\n")
			continue
		case strings.HasPrefix(sql, "/*"):
			_, sql, _ = strings.Cut(sql, "*/")
			continue
		}
		notLetter := func(r rune) bool { return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') }
		if i := strings.IndexFunc(sql, notLetter); i >= 0 {
			sql = sql[:i]
		}
		return strings.ToUpper(tenon.Visible(sql))
	}
}

func shortSQL(s string) string {
	s = strings.Join(strings.Fields(s), " ")
	if len(s) > 40 {
		s = strings.ToValidUTF8(s[:40], "") + "…"
	}
	return tenon.Visible(s)
}
