package config

import (
	"slices"
	"strings"

	"github.com/tenonhq/tenon/compat"
	"github.com/tenonhq/tenon/config/tree"
)

// knimeFormat is the format of a tool table that the command line has converted to a tenon.yaml in JSON. Tables are
// binary, so errors cannot name lines.
type knimeFormat struct{}

func (knimeFormat) Recognise(*tree.Node) compat.Certainty { return compat.Unlike }

func (knimeFormat) Convert(c *compat.Conversion, root *tree.Node) {
	c.Out.Append("profile", root, tree.TextAt(root, compat.KNIME))
	c.Retry = func(errs []tree.Error) bool { return refuse(c, errs) }
	for i, k := range root.Keys {
		v := root.Vals[i]
		if v.Kind == tree.Map && slices.Contains([]string{"servers", "tools"}, k.Val) {
			v = withoutRefused(c, k, v)
		}
		c.Out.Append(k.Val, k, v)
	}
}

// withoutRefused returns a section without the entries that the configuration refuses, and the tools of such servers.
func withoutRefused(c *compat.Conversion, section, list *tree.Node) *tree.Node {
	out := tree.MapAt(list)
	for i, k := range list.Keys {
		path := section.Val + "." + k.Val
		reason := c.Refused[path]
		if server, _ := list.Vals[i].Get("server"); reason == "" && section.Val == "tools" && server != nil &&
			c.Refused["servers."+server.Val] != "" {
			reason = "server '" + server.Val + "' is left out"
		}
		if reason != "" {
			c.Warn(unplaced(list), path, "left out: "+reason, "")
			continue
		}
		out.Append(k.Val, k, list.Vals[i])
	}
	return out
}

// unplaced returns a node without a line, for errors about a table.
func unplaced(n *tree.Node) *tree.Node { return &tree.Node{Src: n.Src} }

// refuse adds the entries of servers and tools that the errors are about to the refused ones. It returns false if it
// adds none.
func refuse(c *compat.Conversion, errs []tree.Error) bool {
	found := false
	for _, e := range errs {
		section, rest, _ := strings.Cut(e.Path, ".")
		if section != "servers" && section != "tools" {
			continue
		}
		name, key, _ := strings.Cut(rest, ".")
		path := section + "." + name
		if name == "" || c.Refused[path] != "" {
			continue
		}
		found, c.Refused[path] = true, e.Message
		if key != "" {
			c.Refused[path] = key + ": " + e.Message
		}
	}
	return found
}

var _ compat.Format = knimeFormat{}
