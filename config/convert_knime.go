package config

import "github.com/tenonhq/tenon/config/tree"

// knime reads the tenon.yaml, as JSON, that the command line made of a tool table. Tables are binary, so errors
// cannot name lines of their rows.
func (c *conversion) knime(root *tree.Node) {
	c.out.Append("profile", root, tree.TextAt(root, KindKNIME))
	for i, k := range root.Keys {
		c.out.Append(k.Val, k, root.Vals[i])
	}
}
