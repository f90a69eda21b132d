package config

import (
	"slices"
	"strconv"
	"strings"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/config/tree"
)

// editKeys changes single keys of an entry. All other bytes of the file stay as they are.
func editKeys(label string, data []byte, c Change, known *Spellings) ([]byte, error) {
	s := &splicer{label: label, data: data, known: known}
	sink := &tree.Sink{}
	root := tree.Parse(&tree.Source{Label: label}, data, sink)
	if len(sink.Errs) > 0 {
		return nil, Errors(tree.Sorted(sink.Errs))
	}
	place, shortest := []any{c.Section, c.Name}, 3
	if c.Name == "" {
		place, shortest = place[:1], 1
	} else if at(root, place) == nil {
		return nil, tenon.Errorf(tenon.CodeNotFound, "%s has no entry %s.%s", label, c.Section, c.Name)
	}
	for _, f := range c.Keys {
		path := append(slices.Clip(place), keyPath(f.Key)...)
		var value *tree.Node
		if f.Value != nil {
			value = valueNode(f.Value)
		}
		for value == nil && len(path) > shortest { // a map whose last key is removed is removed, too
			outer := at(s.tree(), path[:len(path)-1])
			if outer == nil || outer.Kind != tree.Map && c.Name != "" || len(outer.Vals) != 1 ||
				at(outer, path[len(path)-1:]) == nil {
				break
			}
			path = path[:len(path)-1]
		}
		if err := s.set(path, value); err != nil {
			return nil, err
		}
	}
	return s.data, nil
}

// keyPath parses the key of a change: a dot leads into a map, [0] to an item of a list.
func keyPath(key string) (path []any) {
	for _, part := range strings.Split(key, ".") {
		name, rest, _ := strings.Cut(part, "[")
		path = append(path, name)
		for _, number := range strings.Split(rest, "[") {
			if i, err := strconv.Atoi(strings.TrimSuffix(number, "]")); err == nil && i >= 0 {
				path = append(path, i)
			}
		}
	}
	return path
}

// WrittenUnder returns the scalars of the file below a path, before variables are expanded. The keys of the result
// are relative to the path, with dots between the keys of nested maps. Lists are left out.
func (c *Config) WrittenUnder(path string) map[string]string {
	out := map[string]string{}
	for p, n := range c.nodes {
		if rest, ok := strings.CutPrefix(p, path+"."); ok && n.Kind == tree.Scalar && !n.IsNull() &&
			!strings.Contains(rest, "[") {
			out[rest] = n.Val
		}
	}
	return out
}
