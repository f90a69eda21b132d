package config

import (
	"slices"
	"strings"

	"github.com/tenonhq/tenon"
)

// editKey changes one key of an entry and leaves the entry's others as they are,
// comments included. The path leads through maps; a nil value removes the key, and
// what is empty without it. A map on one line is written anew, since its parts have no
// lines of their own.
func editKey(label string, data []byte, section, name string, path []string, value *node) ([]byte, error) {
	s := &sink{}
	root := parse(&source{label: label}, data, s)
	if len(s.errs) > 0 {
		return nil, Errors(sorted(s.errs))
	}
	body, _ := root.get(section)
	entry, key := body.get(name)
	if key == nil {
		return nil, tenon.Errorf(tenon.CodeNotFound, "%s has no entry %s.%s", label, section, name)
	}
	lines := strings.SplitAfter(string(data), "\n")
	if lines[len(lines)-1] == "" {
		lines = lines[:len(lines)-1]
	}
	if body.keys[0].line == key.line && strings.TrimSpace(lines[key.line-1][:key.col-1]) != "" {
		return nil, oneLine(label, section)
	}
	from, to, text := changeKey(lines, key, entry, path, value)
	return splice(lines, from, to, text), nil
}

// changeKey returns which lines give way to which text, so that what stands under a
// key has a value at a path, or has none.
func changeKey(lines []string, key, val *node, path []string, value *node) (from, to int, text string) {
	indent := key.col - 1
	end := blockEnd(lines, key.line, indent)
	apart := val.kind == mapNode && len(val.keys) > 0 && val.keys[0].line > key.line
	if !apart {
		whole := val
		if val.kind != mapNode {
			whole = &node{kind: mapNode}
		}
		setPath(whole, path, value)
		return key.line - 1, end, block(key.val, whole, indent)
	}
	under, at := val.get(path[0])
	switch inner := val.keys[0].col - 1; {
	case at == nil && value == nil:
		return key.line, key.line, ""
	case at == nil:
		fresh := &node{kind: mapNode}
		setPath(fresh, path[1:], value)
		if len(path) == 1 {
			fresh = value
		}
		last := blockEnd(lines, val.keys[len(val.keys)-1].line, inner)
		return last, last, keyText(path[0], fresh, inner)
	case len(path) > 1:
		if value == nil && under.kind == mapNode && len(under.keys) == 1 && len(path) == 2 && under.keys[0].val == path[1] {
			return changeKey(lines, key, val, path[:1], nil)
		}
		return changeKey(lines, at, under, path[1:], value)
	case value == nil:
		return at.line - 1, blockEnd(lines, at.line, inner), ""
	default:
		return at.line - 1, blockEnd(lines, at.line, inner), keyText(path[0], value, inner)
	}
}

func keyText(key string, v *node, indent int) string {
	var b strings.Builder
	writeKey(&b, key, v, indent)
	return b.String()
}

// setPath sets a value in a tree, or removes it.
func setPath(n *node, path []string, value *node) {
	if len(path) == 0 {
		return
	}
	i := slices.IndexFunc(n.keys, func(k *node) bool { return k.val == path[0] })
	switch {
	case len(path) > 1:
		if i < 0 && value == nil {
			return
		}
		if i < 0 || n.vals[i].kind != mapNode {
			n.put(path[0], &node{kind: mapNode})
			i = slices.IndexFunc(n.keys, func(k *node) bool { return k.val == path[0] })
		}
		setPath(n.vals[i], path[1:], value)
		if len(n.vals[i].keys) == 0 {
			n.keys, n.vals = slices.Delete(n.keys, i, i+1), slices.Delete(n.vals, i, i+1)
		}
	case value != nil:
		n.put(path[0], value)
	case i >= 0:
		n.keys, n.vals = slices.Delete(n.keys, i, i+1), slices.Delete(n.vals, i, i+1)
	}
}

// editKeys makes a change of some keys of an entry.
func editKeys(label string, data []byte, c Change) ([]byte, error) {
	for _, f := range c.Keys {
		var value *node
		if f.Value != nil {
			value = valueNode(f.Value)
		}
		var err error
		if data, err = editKey(label, data, c.Section, c.Name, strings.Split(f.Key, "."), value); err != nil {
			return nil, err
		}
	}
	return data, nil
}

// WrittenUnder returns the scalars that the file has under a path, before variables
// are expanded, by their keys from there; a dot leads into a map. Lists are left out.
func (c *Config) WrittenUnder(path string) map[string]string {
	out := map[string]string{}
	for p, n := range c.nodes {
		if rest, ok := strings.CutPrefix(p, path+"."); ok && n.kind == scalarNode && !n.isNull() && !strings.Contains(rest, "[") {
			out[rest] = n.val
		}
	}
	return out
}
