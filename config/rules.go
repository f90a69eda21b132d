package config

import (
	"cmp"
	"reflect"
	"slices"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/catalog"
	"github.com/tenonhq/tenon/policy"
	"github.com/tenonhq/tenon/servers"
)

// Rules returns the compiled rules of all layers, the most trusted first. The last layer is the project, or the Go
// program that made the configuration. Rules are keyed by identities; see [Config.ServerID] and [Config.ToolID].
// Errors have code config: a condition does not compile, or a verdict is unknown.
func (c *Config) Rules() (*policy.Layers, error) {
	var layers []policy.Layer
	for i := range c.floors {
		f := &c.floors[i]
		l := policy.Layer{Name: string(f.layer), Rules: f.rules(c), Hints: f.hints(c),
			Aliases: map[string][]policy.Alias{},
			Tools:   map[policy.ID]string{}, Agents: map[string]string{}, Names: f.names(c)}
		f.strangers(c, &l)
		if err := cmp.Or(l.Rules.Compile(), l.Rules.Add(f.c.Policy.Rules...)); err != nil {
			return nil, tenon.Errorf(tenon.CodeConfig, "%s: %w", f.label, err)
		}
		layers = append(layers, l)
	}
	rules := c.ownRules()
	if err := cmp.Or(rules.Compile(), rules.Add(c.Policy.Rules...)); err != nil {
		return nil, err
	}
	return policy.NewLayers(append(layers, policy.Layer{Name: string(c.topLayer()), Rules: rules})...), nil
}

// topLayer returns the least trusted layer of the configuration.
func (c *Config) topLayer() Layer {
	if c.tree == nil {
		return LayerProgram
	}
	return cmp.Or(c.tree.Src.Layer, LayerProject)
}

// ownRules returns the blocks of the least trusted layer.
func (c *Config) ownRules() *policy.Rules {
	own := c.isOwn
	r := &policy.Rules{Defaults: c.Policy.Defaults, Servers: map[string]policy.Block{}, Groups: c.Policy.Groups,
		Agents: map[string]policy.Block{}, Tools: map[policy.ID]policy.Block{}, ToolGroups: map[policy.ID][]string{}}
	if reflect.DeepEqual(c.Policy.Defaults, c.written.WithDefaults()) {
		r.Defaults = c.written // built-in defaults do not count as rules of this layer
	}
	for name, s := range c.Servers {
		if own("servers." + name) {
			r.Servers[c.ServerID(name)] = s.Policy
		}
	}
	timeout := r.Defaults.Timeout != 0 ||
		slices.ContainsFunc(c.floors, func(f floor) bool { return f.c.Policy.Defaults.Timeout != 0 })
	for name, t := range c.Tools {
		id := c.toolID(name, t)
		if t = t.WithDefaults(name); t.Kind == tenon.KindHTTP && !timeout { // use the default timeout of a server
			r.Servers[id.Server] = policy.Block{Timeout: servers.Config{}.WithDefaults().RequestTimeout}
		}
		if own("tools." + name) {
			r.Tools[id] = t.Policy
		}
		if t.Groups != nil {
			r.ToolGroups[id] = t.Groups
		}
	}
	for name, a := range c.Agents {
		if own("agents." + name) {
			r.Agents[name] = a.Policy
		}
	}
	return r
}

// toolID returns the identity of the tool to which an entry of tools applies.
func (c *Config) toolID(name string, t catalog.Tool) policy.ID {
	t = t.WithDefaults(name)
	id := policy.ID{Server: cmp.Or(c.ServerID(t.Server), string(LayerProgram)+":"+t.Server), Remote: t.RemoteName}
	if slices.Contains(catalog.OwnServers(), t.Server) {
		id.Server = c.ToolID(name)
	}
	return id
}

// toolID returns the identity of the tool to which an entry of the layer applies. The tool's server is in the layer
// or in a more trusted one.
func (f *floor) toolID(c *Config, name string, t catalog.Tool) policy.ID {
	t = t.WithDefaults(name)
	id := policy.ID{Server: string(f.layer) + ":" + t.Server, Remote: t.RemoteName}
	if _, own := f.c.Servers[t.Server]; own || slices.Contains(catalog.OwnServers(), t.Server) {
		return id
	}
	for _, other := range c.above(f.layer) {
		if _, ok := other.c.Servers[t.Server]; ok {
			id.Server = string(other.layer) + ":" + t.Server
		}
	}
	return id
}

// rules returns the blocks of a trusted layer.
func (f *floor) rules(c *Config) *policy.Rules {
	r := &policy.Rules{Defaults: f.c.Policy.Defaults, Servers: map[string]policy.Block{}, Groups: f.c.Policy.Groups,
		Agents: map[string]policy.Block{}, Tools: map[policy.ID]policy.Block{}, ToolGroups: map[policy.ID][]string{}}
	for name, s := range f.c.Servers {
		r.Servers[string(f.layer)+":"+name] = s.Policy
	}
	for name, t := range f.c.Tools {
		r.Tools[f.toolID(c, name, t)] = t.Policy
	}
	for name, a := range f.c.Agents {
		r.Agents[name] = a.Policy
	}
	f.eachTool(c, func(id policy.ID, t catalog.Tool) {
		if t.Groups != nil {
			r.ToolGroups[id] = t.Groups
		}
	})
	return r
}

// eachTool calls do for the tool entries of the more trusted layers, and then of the layer itself.
func (f *floor) eachTool(c *Config, do func(policy.ID, catalog.Tool)) {
	for _, g := range append(c.above(f.layer), *f) {
		for name, t := range g.c.Tools {
			do(g.toolID(c, name, t), t)
		}
	}
}

// hints returns the annotations that the layer, or a more trusted one, declares.
func (f *floor) hints(c *Config) map[policy.ID]tenon.Annotations {
	out := map[policy.ID]tenon.Annotations{}
	f.eachTool(c, func(id policy.ID, t catalog.Tool) {
		if t.Annotations != (catalog.Annotations{}) {
			out[id] = t.Annotations.Over(out[id])
		}
	})
	return out
}

// strangers adds to a layer's rules the servers and tools that less trusted layers define.
func (f *floor) strangers(c *Config, l *policy.Layer) {
	foreign := func(path string) (string, bool) {
		layer := c.Layer(path)
		return string(cmp.Or(layer, LayerProgram)), layer.Rank() > f.layer.Rank()
	}
	for name, s := range c.Servers {
		if _, is := foreign("servers." + name); is {
			f.alias(l, c.ServerID(name), name, s)
		}
	}
	for name, t := range c.Tools {
		layer, is := foreign("tools." + name)
		if id := c.toolID(name, t); is && (id.Server == string(f.layer)+":"+t.Server ||
			slices.ContainsFunc(c.above(f.layer), func(g floor) bool {
				return id.Server == string(g.layer)+":"+t.Server
			})) {
			l.Tools[id] = layer
		}
	}
	for name := range c.Agents {
		if layer, is := foreign("agents." + name); is {
			l.Agents[name] = layer
		}
	}
}

// alias records the layer's servers that have the same target as a server of another layer.
func (f *floor) alias(l *policy.Layer, identity, name string, entry servers.Config) {
	if more := f.policyAliases(name, entry); len(more) > 0 {
		l.Aliases[identity] = more
	}
}

func (f *floor) policyAliases(name string, entry servers.Config) []policy.Alias {
	var list []policy.Alias
	for _, other := range f.aliases(name, entry) {
		list = append(list, policy.Alias{Identity: string(f.layer) + ":" + other, Name: other})
	}
	return list
}

// Aliases returns, by layer, the servers whose rules also apply to a server that a Go program adds; see
// [policy.Layers.WithServer].
func (c *Config) Aliases(name string, entry servers.Config) map[string][]policy.Alias {
	out := map[string][]policy.Alias{}
	for i := range c.floors {
		f := &c.floors[i]
		out[string(f.layer)] = f.policyAliases(name, entry)
	}
	return out
}
