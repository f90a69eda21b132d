package config

import (
	"slices"
	"strings"

	"github.com/tenonhq/tenon/config/tree"
)

// isRead reports whether a condition of any layer may read a field of tool. It may return true too often: the name of
// the field anywhere in a condition is enough.
func (c *comparer) isRead(fact string) bool {
	return fact != "" && slices.ContainsFunc(c.others, func(n *tree.Node) bool { return reads(n, fact) })
}

// reads reports whether a condition in the tree contains a word.
func reads(n *tree.Node, word string) bool {
	if n == nil {
		return false
	}
	for i, v := range n.Vals {
		if n.Kind == tree.Map && v.Kind == tree.Scalar && slices.Contains([]string{"when", "if", "where"},
			n.Keys[i].Val) &&
			strings.Contains(v.Val, word) || reads(v, word) {
			return true
		}
	}
	return false
}

// isAbove reports whether a more trusted layer has an entry at this path, such as secrets.key. If the less trusted
// layer's entry is removed, the name refers to that entry.
func (c *comparer) isAbove(path string) bool {
	section, name, _ := strings.Cut(path, ".")
	return slices.ContainsFunc(c.above, func(n *tree.Node) bool {
		entries, _ := n.Get(section)
		entry, _ := entries.Get(name)
		return entry != nil
	})
}

// firstModel records a change if a different model is now the first one, and so is the default. New and removed
// models are recorded elsewhere.
func (c *comparer) firstModel(p place, before, after *tree.Node) {
	if before == nil || after == nil {
		return
	}
	kept := func(n, other *tree.Node) *tree.Node {
		list := &tree.Node{Kind: tree.List, Src: n.Src}
		for _, key := range n.Keys {
			if v, _ := other.Get(key.Val); v != nil {
				list.Vals = append(list.Vals, tree.Text(key.Val))
			}
		}
		return list
	}
	b, a := kept(before, after), kept(after, before)
	if len(b.Vals) > 0 && b.Vals[0].Val != a.Vals[0].Val {
		c.out = append(c.out, Difference{Path: p.path, Layer: c.layer,
			Before: oneLined(p.path, b), After: oneLined(p.path, a),
			Effect: Loosens, Starts: true})
	}
}
