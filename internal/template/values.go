package template

import (
	"cmp"
	"errors"
	"fmt"
	"html"
	"iter"
	"maps"
	"net/url"
	"slices"
)

// isTrue reports whether a value is not empty, like text/template.IsTrue.
func isTrue(v any) bool {
	switch v := v.(type) {
	case nil:
		return false
	case bool:
		return v
	case string:
		return v != ""
	case int:
		return v != 0
	case float64:
		return v != 0
	}
	n, err := length(v)
	return err != nil || n.(int) > 0
}

// elementsOf returns the elements over which a range iterates: the elements of a slice with their indexes, the values
// of a map in the order of its keys, or the numbers below an integer.
func elementsOf(v any) (iter.Seq2[any, any], bool) {
	switch v := v.(type) {
	case []any:
		return elements(v), true
	case []string:
		return elements(v), true
	case []map[string]any:
		return elements(v), true
	case nil:
		return func(func(key, value any) bool) {}, true
	case int:
		return func(yield func(key, value any) bool) {
			for i := range v {
				if !yield(i, i) {
					return
				}
			}
		}, true
	case map[string]any:
		return func(yield func(key, value any) bool) {
			for _, key := range slices.Sorted(maps.Keys(v)) {
				if !yield(key, v[key]) {
					return
				}
			}
		}, true
	}
	return nil, false
}

func elements[T any](list []T) iter.Seq2[any, any] {
	return func(yield func(key, value any) bool) {
		for i, e := range list {
			if !yield(i, e) {
				return
			}
		}
	}
}

var builtins = map[string]Func{
	"not": one(func(v any) (any, error) { return !isTrue(v), nil }),
	"len": one(length),
	"eq":  equal,
	"ne": func(args ...any) (any, error) {
		if len(args) != 2 {
			return nil, wrongCount(2, args)
		}
		same, err := equal(args...)
		return err == nil && !same.(bool), err
	},
	"lt":    compare(func(n int) bool { return n < 0 }),
	"le":    compare(func(n int) bool { return n <= 0 }),
	"gt":    compare(func(n int) bool { return n > 0 }),
	"ge":    compare(func(n int) bool { return n >= 0 }),
	"index": index,
	"slice": slice,
	"print": func(args ...any) (any, error) { return fmt.Sprint(args...), nil },
	"printf": func(args ...any) (any, error) {
		if len(args) == 0 {
			return nil, wrongCount(1, args)
		}
		format, ok := args[0].(string)
		if !ok {
			return nil, fmt.Errorf("the format is no string but %s", typeName(args[0]))
		}
		return fmt.Sprintf(format, args[1:]...), nil
	},
	"println":  func(args ...any) (any, error) { return fmt.Sprintln(args...), nil },
	"html":     func(args ...any) (any, error) { return html.EscapeString(join(args)), nil },
	"urlquery": func(args ...any) (any, error) { return url.QueryEscape(join(args)), nil },
}

func one(f func(any) (any, error)) Func {
	return func(args ...any) (any, error) {
		if len(args) != 1 {
			return nil, wrongCount(1, args)
		}
		return f(args[0])
	}
}

func wrongCount(want int, args []any) error {
	return fmt.Errorf("wrong number of args: want %d got %d", want, len(args))
}

// join returns the text that html and urlquery escape.
func join(args []any) string {
	if len(args) == 1 {
		if s, ok := args[0].(string); ok {
			return s
		}
	}
	return fmt.Sprint(args...)
}

func length(v any) (any, error) {
	switch v := v.(type) {
	case string:
		return len(v), nil
	case []any:
		return len(v), nil
	case []string:
		return len(v), nil
	case []map[string]any:
		return len(v), nil
	case map[string]any:
		return len(v), nil
	}
	return nil, fmt.Errorf("len of %s", typeName(v))
}

// equal reports whether the first argument equals one of the others.
func equal(args ...any) (any, error) {
	if len(args) < 2 {
		return nil, errors.New("missing argument for comparison")
	}
	for _, other := range args[1:] {
		if args[0] == nil || other == nil {
			if args[0] == other {
				return true, nil
			}
			continue
		}
		n, err := order(args[0], other)
		if err != nil || n == 0 {
			return err == nil, err
		}
	}
	return false, nil
}

func compare(holds func(int) bool) Func {
	return func(args ...any) (any, error) {
		if len(args) != 2 {
			return nil, wrongCount(2, args)
		}
		if _, ok := args[0].(bool); ok {
			return nil, errors.New("invalid type for comparison")
		}
		n, err := order(args[0], args[1])
		return err == nil && holds(n), err
	}
}

// order compares two values of one type.
func order(a, b any) (int, error) {
	switch a := a.(type) {
	case string:
		if b, ok := b.(string); ok {
			return cmp.Compare(a, b), nil
		}
	case int:
		if b, ok := b.(int); ok {
			return cmp.Compare(a, b), nil
		}
	case float64:
		if b, ok := b.(float64); ok {
			return cmp.Compare(a, b), nil
		}
	case bool:
		if b, ok := b.(bool); ok {
			if a == b {
				return 0, nil
			}
			return 1, nil
		}
	}
	return 0, fmt.Errorf("incompatible types for comparison: %s and %s", typeName(a), typeName(b))
}

// index follows keys of maps and indexes of slices and strings. The value of a missing key is nil.
func index(args ...any) (any, error) {
	if len(args) == 0 {
		return nil, wrongCount(1, args)
	}
	v := args[0]
	for _, key := range args[1:] {
		m, isMap := v.(map[string]any)
		if isMap {
			name, ok := key.(string)
			if !ok {
				return nil, fmt.Errorf("a map has no key of %s", typeName(key))
			}
			v = m[name]
			continue
		}
		i, ok := key.(int)
		if !ok {
			return nil, fmt.Errorf("cannot index %s with %s", typeName(v), typeName(key))
		}
		n, err := length(v)
		if err != nil {
			return nil, fmt.Errorf("can't index item of %s", typeName(v))
		}
		if i < 0 || i >= n.(int) {
			return nil, fmt.Errorf("index out of range: %d", i)
		}
		v = at(v, i)
	}
	return v, nil
}

func at(v any, i int) any {
	switch v := v.(type) {
	case string:
		return int(v[i])
	case []any:
		return v[i]
	case []string:
		return v[i]
	case []map[string]any:
		return v[i]
	}
	return nil
}

// slice returns v[i:j].
func slice(args ...any) (any, error) {
	if len(args) == 0 || len(args) > 3 {
		return nil, errors.New("want a value and at most two indexes")
	}
	n, err := length(args[0])
	if _, isMap := args[0].(map[string]any); err != nil || isMap {
		return nil, fmt.Errorf("can't slice item of %s", typeName(args[0]))
	}
	bounds := [2]int{0, n.(int)}
	for i, a := range args[1:] {
		b, ok := a.(int)
		if !ok || b < 0 || b > n.(int) {
			return nil, fmt.Errorf("index out of range: %v", a)
		}
		bounds[i] = b
	}
	if bounds[0] > bounds[1] {
		return nil, fmt.Errorf("invalid slice index: %d > %d", bounds[0], bounds[1])
	}
	switch v := args[0].(type) {
	case string:
		return v[bounds[0]:bounds[1]], nil
	case []any:
		return v[bounds[0]:bounds[1]], nil
	case []string:
		return v[bounds[0]:bounds[1]], nil
	case []map[string]any:
		return v[bounds[0]:bounds[1]], nil
	}
	return nil, nil
}
