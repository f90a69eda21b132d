package table

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	sqlite3 "modernc.org/sqlite/lib"

	"github.com/tenonhq/tenon"
)

// values returns the values of the parameters in the order of the statement.
func (s *selection) values() ([]value, error) {
	var list []value
	var missing []string
	used := map[string]bool{}
	for i, name := range s.stmt.params() {
		if name == "" || name[0] == '?' {
			return nil, invalid("parameter %d of the query has no name; write :name", i+1)
		}
		v, ok := s.Params[name[1:]]
		if !ok {
			missing = append(missing, name)
			continue
		}
		used[name[1:]] = true
		k, err := paramValue(v)
		if err != nil {
			return nil, invalid("parameter %s of the query: %w", name, err)
		}
		list = append(list, k)
	}
	if len(missing) > 0 {
		return nil, invalid("the query has parameters without values: %s", strings.Join(missing, ", "))
	}
	for _, name := range slices.Sorted(maps.Keys(s.Params)) {
		if !used[name] {
			return nil, invalid("the query has no parameter ':%s'", tenon.Visible(name))
		}
	}
	return list, nil
}

func (s *selection) bind() error {
	list, err := s.values()
	if err != nil {
		return err
	}
	for i, v := range list {
		if err := s.stmt.bind(i+1, v); err != nil {
			return s.explain(err)
		}
	}
	return nil
}

// paramValue converts the value of a parameter.
func paramValue(v any) (value, error) {
	switch v := v.(type) {
	case nil:
		return value{kind: sqlite3.SQLITE_NULL}, nil
	case bool:
		if v {
			return value{kind: sqlite3.SQLITE_INTEGER, int: 1}, nil
		}
		return value{kind: sqlite3.SQLITE_INTEGER}, nil
	case int:
		return value{kind: sqlite3.SQLITE_INTEGER, int: int64(v)}, nil
	case int64:
		return value{kind: sqlite3.SQLITE_INTEGER, int: v}, nil
	case float64:
		if math.IsNaN(v) {
			return value{}, fmt.Errorf("NaN is not a value in SQL")
		}
		return value{kind: sqlite3.SQLITE_FLOAT, float: v}, nil
	case string:
		return value{kind: sqlite3.SQLITE_TEXT, bytes: []byte(v)}, nil
	case []byte:
		return value{kind: sqlite3.SQLITE_BLOB, bytes: v}, nil
	case json.Number:
		if n, err := v.Int64(); err == nil {
			return value{kind: sqlite3.SQLITE_INTEGER, int: n}, nil
		}
		if !strings.ContainsAny(string(v), ".eE") {
			return value{}, fmt.Errorf("the number %s is outside of the range of SQL's 64-bit integers; "+
				"pass it as text", v)
		}
		f, err := v.Float64()
		if err != nil {
			return value{}, fmt.Errorf("the number %s is outside of the range of SQL", v)
		}
		return value{kind: sqlite3.SQLITE_FLOAT, float: f}, nil
	}
	b, err := encode(v)
	if err != nil {
		return value{}, fmt.Errorf("SQL has no values of type %T", v)
	}
	return value{kind: sqlite3.SQLITE_TEXT, bytes: b}, nil
}
