package config

import (
	"fmt"
	"slices"
)

// badTag marks a scalar whose tag was refused.
const badTag = "!bad"

type nodeKind int

const (
	scalarNode nodeKind = iota
	listNode
	mapNode
)

// node is a YAML value with its aliases expanded, its duplicate keys gone and its file known, so that trees of several
// files can be merged.
type node struct {
	kind nodeKind
	tag  string // of scalars: !!str, !!int, !!float, !!bool, !!null, …
	val  string
	keys []*node // of maps
	vals []*node // of maps and lists
	line int
	col  int
	src  *source

	qualified bool // of a key: the layer is part of the name
}

// text makes a text without a place.
func text(s string) *node { return &node{tag: "!!str", val: s} }

// like makes a text at the place of another node.
func like(at *node, s string) *node {
	return &node{tag: "!!str", val: s, line: at.line, col: at.col, src: at.src}
}

// boolAt makes a boolean at the place of another node.
func boolAt(at *node, on bool) *node {
	return &node{tag: "!!bool", val: fmt.Sprint(on), line: at.line, col: at.col, src: at.src}
}

// emptyMap makes a map at the place of another node.
func emptyMap(at *node) *node { return &node{kind: mapNode, line: at.line, col: at.col, src: at.src} }

// emptyList makes a list of values at the place of another node.
func emptyList(at *node, vals ...*node) *node {
	return &node{kind: listNode, line: at.line, col: at.col, src: at.src, vals: vals}
}

// get returns the value of a key of a map, and the node of the key itself.
func (n *node) get(key string) (val, at *node) {
	if n == nil || n.kind != mapNode {
		return nil, nil
	}
	for i, k := range n.keys {
		if k.val == key {
			return n.vals[i], k
		}
	}
	return nil, nil
}

// put adds a key to a map, or gives it another value.
func (n *node) put(key string, v *node) {
	for i, k := range n.keys {
		if k.val == key {
			n.vals[i] = v
			return
		}
	}
	n.keys, n.vals = append(n.keys, text(key)), append(n.vals, v)
}

// taken adds a key at the place of another node to a map.
func taken(n *node, key string, at, v *node) {
	n.keys, n.vals = append(n.keys, like(at, key)), append(n.vals, v)
}

// remove takes a key out of a map.
func (n *node) remove(key string) {
	for i, k := range n.keys {
		if k.val == key {
			n.keys, n.vals = append(n.keys[:i:i], n.keys[i+1:]...), append(n.vals[:i:i], n.vals[i+1:]...)
			return
		}
	}
}

// clone copies a tree.
func (n *node) clone() *node {
	out := *n
	out.keys, out.vals = slices.Clone(n.keys), make([]*node, len(n.vals))
	for i, v := range n.vals {
		out.vals[i] = v.clone()
	}
	return &out
}

func (n *node) isNull() bool { return n.kind == scalarNode && n.tag == "!!null" }

func (n *node) what() string {
	switch {
	case n.kind == mapNode:
		return "a map"
	case n.kind == listNode:
		return "a list"
	}
	switch n.tag {
	case "!!str":
		return "a text"
	case "!!int", "!!float":
		return "a number"
	case "!!bool":
		return "true or false"
	case "!!null":
		return "empty"
	case "!!timestamp":
		return "a date"
	}
	return "of type " + n.tag
}

// same reports whether two values are the same, with keys in the same order.
func same(a, b *node) bool {
	if a.kind != b.kind || a.val != b.val || len(a.vals) != len(b.vals) {
		return false
	}
	for i := range a.vals {
		if !same(a.vals[i], b.vals[i]) || a.kind == mapNode && a.keys[i].val != b.keys[i].val {
			return false
		}
	}
	return true
}

// place gives a tree a source, and the position of another node.
func (n *node) place(src *source, at *node) *node {
	n.src, n.line, n.col = src, at.line, at.col
	for _, v := range slices.Concat(n.keys, n.vals) {
		v.place(src, at)
	}
	return n
}

// join returns the path of a key below a path.
func join(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}

// index returns the path of an item below a path.
func index(path string, i int) string { return fmt.Sprintf("%s[%d]", path, i) }
