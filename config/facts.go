package config

import (
	"slices"
	"strings"
)

// isRead reports whether a condition of any layer may read a field of tool. It finds too many rather than too few:
// the name of the field anywhere in the condition counts.
func (c *comparer) isRead(fact string) bool {
	return fact != "" && slices.ContainsFunc(c.others, func(n *node) bool { return reads(n, fact) })
}

// reads reports whether a condition in the tree holds a word.
func reads(n *node, word string) bool {
	if n == nil {
		return false
	}
	for i, v := range n.vals {
		if n.kind == mapNode && v.kind == scalarNode && slices.Contains([]string{"when", "if", "where"},
			n.keys[i].val) &&
			strings.Contains(v.val, word) || reads(v, word) {
			return true
		}
	}
	return false
}

// isAbove reports whether a more trusted layer has an entry of this path, such as secrets.key. Without the less
// trusted layer's entry, the name refers to it.
func (c *comparer) isAbove(path string) bool {
	section, name, _ := strings.Cut(path, ".")
	return slices.ContainsFunc(c.above, func(n *node) bool {
		entries, _ := n.get(section)
		entry, _ := entries.get(name)
		return entry != nil
	})
}

// firstModel records that another one of the models is the first one, and so answers by default. A new or removed
// model is recorded elsewhere.
func (c *comparer) firstModel(p place, before, after *node) {
	if before == nil || after == nil {
		return
	}
	kept := func(n, other *node) *node {
		list := &node{kind: listNode, src: n.src}
		for _, key := range n.keys {
			if v, _ := other.get(key.val); v != nil {
				list.vals = append(list.vals, text(key.val))
			}
		}
		return list
	}
	b, a := kept(before, after), kept(after, before)
	if len(b.vals) > 0 && b.vals[0].val != a.vals[0].val {
		c.out = append(c.out, Difference{Path: p.path, Layer: c.layer, Before: oneLined(b), After: oneLined(a),
			Effect: Loosens, Starts: true})
	}
}
