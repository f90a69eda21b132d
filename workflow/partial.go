package workflow

import (
	"maps"
	"slices"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/policy"
)

// Expressions see the first rows of a table only. Whatever needs all rows would be wrong without a sign of it: a sum, a
// list of items, a condition about the existence of a row. A step with such an expression fails if its table has more
// rows. The number of rows, the columns and single rows can be used.

// uses are the uses of variables in an expression or template.
type uses interface {
	Uses() []policy.Use
	Whole() []policy.Use
}

// partial returns an error if an expression needs all rows of a table, but sees only the first of them.
func (s *State) partial(e uses) error {
	for _, use := range e.Uses() {
		if view, ok := s.at(use).(map[string]any); ok {
			if err := cut(view, use[len(use)-1]); err != nil {
				return err
			}
		}
	}
	for _, use := range e.Whole() {
		if len(use) < 3 || use[len(use)-1] != "rows" {
			continue
		}
		if view, ok := s.at(use[:len(use)-1]).(map[string]any); ok {
			if err := cut(view, use[len(use)-2]); err != nil {
				return err
			}
		}
	}
	return nil
}

// at returns the value of a variable, or of a key behind it.
func (s *State) at(use policy.Use) any {
	value := any(s.vars)
	for _, key := range use {
		m, ok := value.(map[string]any)
		if !ok {
			return nil
		}
		value = m[key]
	}
	return value
}

// cut returns an error if the view of a table has only the first rows. For other values it returns nil.
func cut(view map[string]any, name string) error {
	rows, isTable := view["rows"].([]any)
	n, counted := view["count"].(int64)
	_, typed := view["columns"].(map[string]any)
	if !isTable || !counted || !typed || n <= int64(len(rows)) {
		return nil
	}
	return tenon.Errorf(tenon.CodeTooLarge, "there are %d rows of '%s', and expressions see the first %d; select "+
		"fewer rows, or use a query, which reads all; count is the number of all rows", n, tenon.Visible(name),
		len(rows))
}

// partialValue is partial for the expressions in a value.
func (s *State) partialValue(v *value) error {
	if v.expr != nil {
		return s.partial(v.expr)
	}
	for i := range v.list {
		if err := s.partialValue(&v.list[i]); err != nil {
			return err
		}
	}
	return nil
}

// partialMap is partial for the expressions in the values of a map.
func (s *State) partialMap(m map[string]value) error {
	for _, name := range slices.Sorted(maps.Keys(m)) {
		v := m[name]
		if err := s.partialValue(&v); err != nil {
			return err
		}
	}
	return nil
}
