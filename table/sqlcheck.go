package table

import (
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/tenonhq/tenon"
)

// QueryTable describes a table that does not exist yet.
type QueryTable struct {
	Name    string // the name of the table in the query
	Columns []string
	// Open means that the table may have other, unknown columns.
	Open bool
}

// Mistake is an error in a query and its position. Line and Column start at 1; they are 0 if the
// mistake is not at a position.
type Mistake struct {
	Line, Column int
	Text         string
}

// maxGuessed bounds the columns that are assumed to exist in open tables.
const maxGuessed = 200

// CheckQuery compiles a query against tables that do not exist yet, with parameters of the given names. It does not run
// the query. It returns the columns of the result, or the mistake in the query. open means that the result may also
// have other columns. The error has code store if a temporary file cannot be created.
func CheckQuery(sql string, tables []QueryTable, params []string) (
	columns []string, open bool, wrong *Mistake, err error,
) {
	guessed := map[string]Mistake{} // assumed columns in lower case, with the mistakes that they resolved
	for {
		c := &selection{Query: Query{SQL: sql, Temp: MaxTemp, Params: map[string]any{}}}
		for _, p := range params {
			c.Params[p] = nil
		}
		if wrong := c.pretend(tables, guessed); wrong != nil {
			return nil, false, wrong, nil
		}
		columns, err := c.check()
		if err == nil {
			for _, t := range c.sources {
				at := slices.IndexFunc(tables, func(q QueryTable) bool { return q.Name == t.name })
				open = open || t.used && tables[at].Open
			}
			return columns, open && strings.Contains(sql, "*"), nil, nil
		}
		if tenon.ErrorCode(err) == tenon.CodeStore {
			return nil, false, nil, err
		}
		m := c.mistake(err)
		name, isColumn := strings.CutPrefix(m.Text, "no such column: ")
		if using, ok := strings.CutPrefix(m.Text, "cannot join using column "); ok {
			name, isColumn = strings.TrimSuffix(using, " - column not present in both tables"), true
		}
		name, _, _ = strings.Cut(name, "; ")
		name = strings.ToLower(name[strings.LastIndexByte(name, '.')+1:])
		anyOpen := slices.ContainsFunc(tables, func(t QueryTable) bool { return t.Open })
		if before, again := guessed[name]; isColumn && again {
			m = before // assuming the column did not help, so report the first mistake
		} else if isColumn && anyOpen && len(guessed) < maxGuessed {
			guessed[name] = m // an open table may have the column
			continue
		}
		if twice, ok := strings.CutPrefix(m.Text, "ambiguous column name: "); ok {
			if _, ok := guessed[strings.ToLower(twice[strings.LastIndexByte(twice, '.')+1:])]; ok {
				return nil, true, nil, nil // several open tables may have the column
			}
		}
		star := strings.Contains(sql, "*") || strings.HasPrefix(m.Text, "sub-select")
		if anyOpen && star && countMistake.MatchString(m.Text) {
			return nil, true, nil, nil // the number of columns is unknown
		}
		return nil, false, &m, nil
	}
}

// countMistake matches SQLite's errors about a wrong number of columns, by * or by IN with a table.
var countMistake = regexp.MustCompile(
	`^SELECTs to the left and right of .* do not have the same number of result columns|` +
		`^table .* has \d+ values for \d+ columns|^sub-select returns \d+ columns|` +
		`^\d+(st|nd|rd|th) (ORDER|GROUP) BY term out of range|^row value misused`)

// pretend creates the sources of tables that do not exist yet.
func (s *selection) pretend(tables []QueryTable, guessed map[string]Mistake) *Mistake {
	seen := map[string]bool{}
	for _, q := range tables {
		if wrong := wrongName(q.Name, seen); wrong != "" {
			return &Mistake{Text: wrong}
		}
		t := &source{name: q.Name}
		has := map[string]bool{}
		add := func(name string) {
			low := strings.ToLower(name)
			if has[low] || len(t.columns) >= maxSQLColumns {
				return
			}
			has[low] = true
			field := arrow.Field{Name: name, Type: arrow.Null}
			t.columns = append(t.columns, &sourceColumn{name: name, field: field})
		}
		if strings.Contains(s.SQL, RowID) {
			add(RowID)
		}
		for _, c := range q.Columns {
			add(c)
		}
		if q.Open {
			for _, c := range slices.Sorted(maps.Keys(guessed)) {
				add(c)
			}
			if len(t.columns) == 0 {
				add("column")
			}
		}
		if len(t.columns) > 0 {
			s.sources = append(s.sources, t)
		}
	}
	return nil
}

// check compiles the query and returns the columns of its result.
func (s *selection) check() ([]string, error) {
	switch {
	case len(s.SQL) > maxSQLBytes:
		return nil, tenon.Errorf(tenon.CodeTooLarge, "the query has more than %d bytes", maxSQLBytes)
	case strings.ContainsRune(s.SQL, 0):
		return nil, invalid("the query has a NUL character")
	}
	f, err := os.CreateTemp("", "tenon-sql-*")
	if err != nil {
		return nil, temporary(err)
	}
	s.file = f.Name()
	_ = f.Close() // nothing was written
	defer s.close()
	s.compiled = s.describe
	if _, err := s.plan(); err != nil {
		return nil, err
	}
	columns := make([]string, len(s.columns))
	for i, c := range s.columns {
		columns[i] = c.name
	}
	return columns, nil
}
