package config

import (
	"slices"

	"github.com/tenonhq/tenon/catalog"
)

// parameters returns the steps of a transform that set or hide parameters. The other steps change names and texts,
// which the entries of each layer may do independently.
func parameters(steps []catalog.Transform) []catalog.Transform {
	return slices.DeleteFunc(slices.Clone(steps), func(t catalog.Transform) bool {
		return len(t.SetParams) == 0 &&
			len(t.HideParams) == 0
	})
}

// described returns the layer's entries of tools that describe the arguments of tools of the given servers, by remote
// name. own says that the layer itself defines the server. Then the result leaves out an entry that is itself in
// effect.
func (f *floor) described(c *Config, servers []string, own bool) map[string]catalog.Tool {
	out := map[string]catalog.Tool{}
	for name, t := range f.c.Tools {
		t = t.WithDefaults(name)
		if !t.DescribesArguments() || !slices.Contains(servers, t.Server) {
			continue
		}
		if _, used := c.Tools[name]; own && used && c.Layer("tools."+name).Rank() <= f.layer.Rank() {
			continue
		}
		out[t.RemoteName] = t
	}
	return out
}
