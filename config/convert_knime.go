package config

import "github.com/tenonhq/tenon/config/tree"

// knimeFormat is the form of a tool table, of which the command line made a tenon.yaml as JSON. Tables are binary, so
// errors cannot name lines of their rows.
type knimeFormat struct{}

func (knimeFormat) recognise(*tree.Node) certainty { return unlike }

func (knimeFormat) convert(c *conversion, root *tree.Node) {
	c.out.Append("profile", root, tree.TextAt(root, kindKNIME))
	for i, k := range root.Keys {
		c.out.Append(k.Val, k, root.Vals[i])
	}
}

var _ format = knimeFormat{}
