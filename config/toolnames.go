package config

import (
	"fmt"
	"slices"

	"github.com/tenonhq/tenon/policy"
)

// replacedTool warns if an entry of tools and an entry of a less trusted layer describe the same tool. In this
// project, the entry of the less trusted layer names and describes the tool.
func (k *checker) replacedTool(name, by string) {
	at := k.where("tools." + name)
	k.Warn(k.where("tools."+by), "tools."+by,
		fmt.Sprintf("is used in place of tools.%s in %s, line %d, which is about the same tool; the rules of that "+
			"entry hold as well",
			name, at.Src.Label, at.Line), "remove it, or call it "+name)
}

// TrustedNames returns the names that trusted layers use for tools that a less trusted layer renames, or offers
// through another server with the same target.
func (c *Config) TrustedNames() map[policy.ID][]string {
	out := map[policy.ID][]string{}
	add := func(id policy.ID, name string) {
		if !slices.Contains(out[id], name) {
			out[id] = append(out[id], name)
		}
	}
	for i := range c.floors {
		f := &c.floors[i]
		as := map[string][]string{} // server of the layer → identities to which its rules apply
		for name, s := range c.Servers {
			identity := c.ServerID(name)
			if c.Layer("servers."+name).Rank() <= f.layer.Rank() {
				as[name] = append(as[name], identity)
				continue
			}
			for _, other := range append(f.aliases(name, s), name) {
				as[other] = append(as[other], identity)
			}
		}
		for name, t := range f.c.Tools {
			t = t.WithDefaults(name)
			for _, identity := range as[t.Server] {
				add(policy.ID{Server: identity, Remote: t.RemoteName}, name)
			}
		}
	}
	for name, t := range c.Tools {
		t = t.WithDefaults(name)
		if c.Layer("tools."+name).Rank() > c.Layer("servers."+t.Server).Rank() {
			add(c.toolID(name, t), t.RemoteName)
		}
	}
	return out
}

// names returns the keys of the layer's entries of tools, by the identities of the tools.
func (f *floor) names(c *Config) map[policy.ID]string {
	out := map[policy.ID]string{}
	for name, t := range f.c.Tools {
		out[f.toolID(c, name, t)] = name
	}
	return out
}
