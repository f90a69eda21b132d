package config

import (
	"github.com/tenonhq/tenon/compat"
	"github.com/tenonhq/tenon/config/tree"
)

// knimeFormat is the format of a tool table that the command line has converted to a tenon.yaml in JSON. Tables are
// binary, so errors cannot name lines.
type knimeFormat struct{}

func (knimeFormat) Recognise(*tree.Node) compat.Certainty { return compat.Unlike }

func (knimeFormat) Convert(c *compat.Conversion, root *tree.Node) {
	c.Out.Append("profile", root, tree.TextAt(root, compat.KNIME))
	for i, k := range root.Keys {
		c.Out.Append(k.Val, k, root.Vals[i])
	}
}

var _ compat.Format = knimeFormat{}
