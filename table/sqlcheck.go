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

// QueryTable is what is known of a table before there is one.
type QueryTable struct {
	Name    string // as the query calls it
	Columns []string
	// Open says that the table may have other columns as well, which nobody knows.
	Open bool
}

// Mistake is what is wrong with a query, and where: line and column count from 1, and are
// 0 where it is the query as a whole.
type Mistake struct {
	Line, Column int
	Text         string
}

// maxGuessed bounds the columns that are taken to be in tables of which not all is known.
const maxGuessed = 200

// CheckQuery compiles a query against tables that are not there yet, with parameters of
// these names, and runs nothing. It returns the columns of the result, with open where
// there may be more of them, or what is wrong. The error has code store: no temporary
// file.
func CheckQuery(sql string, tables []QueryTable, params []string) (columns []string, open bool, wrong *Mistake, err error) {
	guessed := map[string]Mistake{} // columns, in lower case, with what was wrong without them
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
				open = open || t.used && tables[slices.IndexFunc(tables, func(q QueryTable) bool { return q.Name == t.name })].Open
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
			m = before // no table that may have it was meant
		} else if isColumn && anyOpen && len(guessed) < maxGuessed {
			guessed[name] = m // a table of which not all is known may have it
			continue
		}
		if twice, ok := strings.CutPrefix(m.Text, "ambiguous column name: "); ok {
			if _, ok := guessed[strings.ToLower(twice[strings.LastIndexByte(twice, '.')+1:])]; ok {
				return nil, true, nil, nil // which of the tables has it, nobody knows
			}
		}
		if anyOpen && (strings.Contains(sql, "*") || strings.HasPrefix(m.Text, "sub-select")) && countMistake.MatchString(m.Text) {
			return nil, true, nil, nil // how many columns there are, nobody knows
		}
		return nil, false, &m, nil
	}
}

// countMistake is what SQLite says where tables have fewer or more columns than the query
// wants of them, by * or as table IN.
var countMistake = regexp.MustCompile(`^SELECTs to the left and right of .* do not have the same number of result columns|` +
	`^table .* has \d+ values for \d+ columns|^sub-select returns \d+ columns|^\d+(st|nd|rd|th) (ORDER|GROUP) BY term out of range|^row value misused`)

// pretend makes the sources of tables that are not there.
func (s *selection) pretend(tables []QueryTable, guessed map[string]Mistake) *Mistake {
	seen := map[string]bool{}
	for _, q := range tables {
		if wrong := wrongName(q.Name, seen); wrong != "" {
			return &Mistake{Text: wrong}
		}
		t := &source{name: q.Name}
		has := map[string]bool{}
		add := func(name string) {
			if low := strings.ToLower(name); !has[low] && len(t.columns) < maxSQLColumns {
				has[low] = true
				t.columns = append(t.columns, &sourceColumn{name: name, field: arrow.Field{Name: name, Type: arrow.Null}})
			}
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
	_ = f.Close() // empty
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
