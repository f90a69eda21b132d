package tree

import (
	"fmt"
	"iter"
	"slices"
)

// BadTag marks a scalar whose tag was refused.
const BadTag = "!bad"

// Kind is the kind of a value.
type Kind int

// The kinds of values.
const (
	Scalar Kind = iota
	List
	Map
)

// Node is a YAML value. Its aliases are expanded, it has no duplicate keys, and it refers to its file. Trees of several
// files can therefore be merged.
type Node struct {
	Kind Kind
	Tag  string // for scalars: !!str, !!int, !!float, !!bool, !!null, …
	Val  string
	Keys []*Node // of maps
	Vals []*Node // of maps and lists
	Line int
	Col  int
	Src  *Source

	Qualified bool // for a key: it names the entry of another layer
}

// Text returns a text that has no position.
func Text(s string) *Node { return &Node{Tag: "!!str", Val: s} }

// TextAt returns a text with the position of another node.
func TextAt(at *Node, s string) *Node {
	return &Node{Tag: "!!str", Val: s, Line: at.Line, Col: at.Col, Src: at.Src}
}

// BoolAt returns a boolean with the position of another node.
func BoolAt(at *Node, on bool) *Node {
	return &Node{Tag: "!!bool", Val: fmt.Sprint(on), Line: at.Line, Col: at.Col, Src: at.Src}
}

// MapAt returns an empty map with the position of another node.
func MapAt(at *Node) *Node { return &Node{Kind: Map, Line: at.Line, Col: at.Col, Src: at.Src} }

// ListAt returns a list of values with the position of another node.
func ListAt(at *Node, vals ...*Node) *Node {
	return &Node{Kind: List, Line: at.Line, Col: at.Col, Src: at.Src, Vals: vals}
}

// Get returns the value of a key of a map, and the node of the key itself.
func (n *Node) Get(key string) (val, at *Node) {
	if n == nil || n.Kind != Map {
		return nil, nil
	}
	for i, k := range n.Keys {
		if k.Val == key {
			return n.Vals[i], k
		}
	}
	return nil, nil
}

// Put sets the value of a key in a map. If the map does not have the key, Put adds it.
func (n *Node) Put(key string, v *Node) {
	for i, k := range n.Keys {
		if k.Val == key {
			n.Vals[i] = v
			return
		}
	}
	n.Keys, n.Vals = append(n.Keys, Text(key)), append(n.Vals, v)
}

// Append adds a key with the position of another node to a map.
func (n *Node) Append(key string, at, v *Node) {
	n.Keys, n.Vals = append(n.Keys, TextAt(at, key)), append(n.Vals, v)
}

// Child returns the value of a key in a map. If the key is missing, Child adds an empty map with the position of
// another node.
func (n *Node) Child(key string, at *Node) *Node {
	v, _ := n.Get(key)
	if v == nil {
		v = MapAt(at)
		n.Append(key, at, v)
	}
	return v
}

// All returns the keys and values of a map. For nil it returns none.
func (n *Node) All() iter.Seq2[*Node, *Node] {
	return func(yield func(k, v *Node) bool) {
		if n == nil {
			return
		}
		vals := n.Vals
		for i, k := range n.Keys {
			if !yield(k, vals[i]) {
				return
			}
		}
	}
}

// Remove removes a key from a map.
func (n *Node) Remove(key string) {
	for i, k := range n.Keys {
		if k.Val == key {
			n.Keys, n.Vals = append(n.Keys[:i:i], n.Keys[i+1:]...), append(n.Vals[:i:i], n.Vals[i+1:]...)
			return
		}
	}
}

// Clone copies a tree.
func (n *Node) Clone() *Node {
	out := *n
	out.Keys, out.Vals = slices.Clone(n.Keys), make([]*Node, len(n.Vals))
	for i, v := range n.Vals {
		out.Vals[i] = v.Clone()
	}
	return &out
}

// IsNull reports whether a value is empty, as in `key:`.
func (n *Node) IsNull() bool { return n.Kind == Scalar && n.Tag == "!!null" }

// Form returns the kind of a value for messages, such as "a map" or "a text".
func (n *Node) Form() string {
	switch {
	case n.Kind == Map:
		return "a map"
	case n.Kind == List:
		return "a list"
	}
	switch n.Tag {
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
	return "of type " + n.Tag
}

// Same reports whether two values are the same, with keys in the same order.
func Same(a, b *Node) bool {
	if a.Kind != b.Kind || a.Val != b.Val || len(a.Vals) != len(b.Vals) {
		return false
	}
	for i := range a.Vals {
		if !Same(a.Vals[i], b.Vals[i]) || a.Kind == Map && a.Keys[i].Val != b.Keys[i].Val {
			return false
		}
	}
	return true
}

// Place sets the source of all nodes of a tree, and the position of another node.
func (n *Node) Place(src *Source, at *Node) *Node {
	n.Src, n.Line, n.Col = src, at.Line, at.Col
	for _, v := range slices.Concat(n.Keys, n.Vals) {
		v.Place(src, at)
	}
	return n
}

// Join returns the path of a key below a path.
func Join(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}

// Index returns the path of an item below a path.
func Index(path string, i int) string { return fmt.Sprintf("%s[%d]", path, i) }
