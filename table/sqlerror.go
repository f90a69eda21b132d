package table

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	sqlite3 "modernc.org/sqlite/lib"

	"github.com/tenonhq/tenon"
)

// explain converts an error of SQLite to one with a position and a remedy.
func (s *selection) explain(err error) error {
	var f *failure
	if !errors.As(err, &f) {
		return err
	}
	if s.db.spill.full {
		return tenon.Errorf(tenon.CodeTooLarge, "the query takes more than its %d bytes of temporary files: it sorts, "+
			"groups or joins too much; select less, or join on equal columns", s.Temp)
	}
	switch f.code {
	case sqlite3.SQLITE_INTERRUPT:
		return ended(s.ctx, "the query")
	case sqlite3.SQLITE_AUTH, sqlite3.SQLITE_ERROR:
		if f.code == sqlite3.SQLITE_ERROR && s.denied == "" {
			break
		}
		return invalid("a query only reads the tables that it is given: %s is refused",
			cmp.Or(tenon.Visible(s.denied), f.message))
	case sqlite3.SQLITE_TOOBIG:
		return tenon.Errorf(tenon.CodeTooLarge, "a value of the query, or a row that it sorts or groups, "+
			"has more than %d bytes%s", s.db.largest, s.db.limitReason())
	case sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR:
		return tenon.Errorf(tenon.CodeStore, "a temporary file of the query cannot be written: %s", f.message)
	}
	m := s.place(f)
	where := ""
	if m.Line > 0 {
		where = fmt.Sprintf(", line %d, column %d", m.Line, m.Column)
	}
	s.wrong = &m
	return invalid("query%s: %s", where, m.Text)
}

// mistake returns the mistake of a query that does not compile.
func (s *selection) mistake(err error) Mistake {
	if s.wrong != nil {
		return *s.wrong
	}
	return Mistake{Text: err.Error()}
}

// place returns the position of SQLite's error in the query, with a hint.
func (s *selection) place(f *failure) (m Mistake) {
	hint := ""
	if name, ok := strings.CutPrefix(f.message, "no such table: "); ok {
		var names []string
		for _, t := range s.sources {
			names = append(names, t.name)
		}
		hint = among(name, names, "tables")
		if f.at < 0 { // SQLite does not report a position
			f.at = strings.Index(s.SQL, name)
		}
	} else if name, ok := strings.CutPrefix(f.message, "no such column: "); ok {
		hint = s.nearColumn(name)
	}
	m.Text = tenon.Visible(f.message) + hint
	if f.at >= 0 && f.at <= len(s.SQL) {
		before := s.SQL[:f.at]
		m.Line = strings.Count(before, "\n") + 1
		m.Column = len([]rune(before[strings.LastIndexByte(before, '\n')+1:])) + 1
	}
	return m
}

// nearColumn returns a hint for an unknown column.
func (s *selection) nearColumn(name string) string {
	table, column, ok := strings.Cut(name, ".")
	if !ok {
		table, column = "", name
	}
	named := slices.ContainsFunc(s.sources, func(t *source) bool { return strings.EqualFold(t.name, table) })
	var names []string
	for _, t := range s.sources {
		if named && !strings.EqualFold(t.name, table) {
			continue // an alias may name any table, so the columns of all tables are candidates
		}
		for _, c := range t.columns {
			names = append(names, c.name)
		}
	}
	return among(column, names, "columns")
}

// among returns a hint: the name that was probably meant, or a list of the names.
func among(name string, names []string, what string) string {
	if near := tenon.Nearest(name, names); near != "" {
		return "; did you mean '" + tenon.Visible(near) + "'?"
	}
	if len(names) == 0 {
		return "; there are no " + what
	}
	if len(names) > 20 {
		names = append(slices.Clip(names[:20]), "…")
	}
	return "; " + what + ": " + tenon.Visible(strings.Join(names, ", "))
}
