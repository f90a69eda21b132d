package config

import (
	"cmp"
	"reflect"
	"slices"

	"github.com/tenonhq/tenon/agent"
	"github.com/tenonhq/tenon/servers"
)

// Narrowed returns a server's entry, restricted by the entries of more trusted layers with the same name or target:
// trust, timeouts, answers to questions, and the tools that it offers. [Config.Rules] contains the policies of these
// entries.
func (c *Config) Narrowed(name string, entry servers.Config) servers.Config {
	entry.Filters = nil
	for _, f := range c.floors {
		entry = f.narrow(c, name, entry)
	}
	return entry
}

func (f *floor) narrow(c *Config, name string, entry servers.Config) servers.Config {
	own := c.Layer("servers."+name).Rank() <= f.layer.Rank()
	as := []string{name}
	if !own {
		as = append(as, f.aliases(name, entry)...)
		for _, alias := range as {
			if e, ok := f.c.Servers[alias]; ok {
				before := entry
				entry = withinEntry(entry, e)
				c.holdServer(name, before, entry, f, "servers."+alias)
				entry.Filters = append(entry.Filters, servers.Filter{By: f.label, Include: f.include(alias, e),
					Exclude: e.Exclude, Where: e.Where, Transform: parameters(e.Transform)})
			}
		}
	}
	var off []string
	for key, t := range f.c.Tools {
		used, ok := c.Tools[key]
		if t = t.WithDefaults(key); t.IsEnabled() || !slices.Contains(as, t.Server) {
			continue
		}
		if used = used.WithDefaults(key); !ok || used.Server != t.Server || used.RemoteName != t.RemoteName ||
			used.IsEnabled() {
			off = append(off, t.RemoteName)
		}
	}
	if described := f.described(c, as, own); len(described) > 0 {
		entry.Filters = append(entry.Filters, servers.Filter{By: f.label, Entries: described})
	}
	if len(off) > 0 {
		slices.Sort(off)
		entry.Filters = append(entry.Filters, servers.Filter{By: f.label, Exclude: escaped(off)})
	}
	return entry
}

// hold records that the value at path has been replaced by the value at the path at of a more trusted layer, so that
// the value's origin is shown correctly.
func (c *Config) hold(path string, f *floor, at string) {
	if n := f.c.nodes[at]; n != nil && c.nodes != nil {
		c.nodes[path] = n
	}
}

// holdServer records the origin of each value of a server that another layer's entry has restricted.
func (c *Config) holdServer(name string, before, after servers.Config, f *floor, at string) {
	path := "servers." + name
	for key, changed := range map[string]bool{"trusted": before.IsTrusted() != after.IsTrusted(),
		"request_timeout": before.RequestTimeout != after.RequestTimeout,
		"elicitation":     before.Elicitation != after.Elicitation, "sampling": before.Sampling != after.Sampling,
		"sampling_limits.max_tokens": before.SamplingLimits.MaxTokens != after.SamplingLimits.MaxTokens,
		"sampling_limits.per_call":   before.SamplingLimits.PerCall != after.SamplingLimits.PerCall,
		"sampling_limits.per_minute": before.SamplingLimits.PerMinute != after.SamplingLimits.PerMinute} {
		if changed {
			c.hold(path+"."+key, f, at+"."+key)
		}
	}
}

// holdLimits records the origin of each limit of an agent that a more trusted layer has restricted.
func (c *Config) holdLimits(name string, own agent.Limits) {
	bare, _ := bareName(name)
	before, after := reflect.ValueOf(own.Over(c.Limits)), reflect.ValueOf(c.agentLimits(name, own))
	for _, key := range fields(before.Type()) {
		if before.Field(key.index).Equal(after.Field(key.index)) {
			continue
		}
		k, _ := declared().key("limits." + key.name)
		path := "agents." + name + ".limits." + key.name
		for _, f := range c.above(c.Layer("agents." + name)) {
			for _, at := range []string{"agents." + bare + ".limits." + key.name, "limits." + key.name} {
				if n := f.c.nodes[at]; n != nil && k.effect(c.nodes[path], n) == Tightens {
					c.nodes[path] = n
				}
			}
		}
	}
}

// withinEntry returns entry with those settings of floor that permit less.
func withinEntry(entry, floor servers.Config) servers.Config {
	if !floor.IsTrusted() {
		entry.Trusted = floor.Trusted
	}
	if t := floor.RequestTimeout; t > 0 && t < entry.WithDefaults().RequestTimeout {
		entry.RequestTimeout = t
	}
	answer := func(own, bound string, words ...string) string {
		if bound != "" && slices.Index(words, bound) < slices.Index(words, own) {
			return bound
		}
		return own
	}
	entry.Elicitation = answer(cmp.Or(entry.Elicitation, servers.AnswerAsk), floor.Elicitation, servers.AnswerDeny,
		servers.AnswerClient, servers.AnswerAsk)
	entry.Sampling = answer(cmp.Or(entry.Sampling, servers.AnswerDeny), floor.Sampling, servers.AnswerDeny,
		servers.AnswerClient, servers.AnswerAsk, servers.AnswerAllow)
	limits, bound := entry.WithDefaults().SamplingLimits, floor.SamplingLimits
	for _, l := range []struct {
		own   *int
		bound int
	}{{&limits.MaxTokens, bound.MaxTokens}, {&limits.PerCall, bound.PerCall}, {&limits.PerMinute, bound.PerMinute}} {
		if l.bound > 0 {
			*l.own = min(*l.own, l.bound)
		}
	}
	entry.SamplingLimits = limits
	return entry
}

// narrowedAgent returns an agent, limited to the tools that agents of the same name in more trusted layers can use.
func (c *Config) narrowedAgent(name string, a agent.Config) agent.Config {
	a.Tools.Floors = nil
	bare, _ := bareName(name)
	for _, f := range c.above(c.Layer("agents." + name)) {
		if bound, ok := f.c.Agents[bare]; ok {
			a.Tools.Floors = append(a.Tools.Floors, bound.Tools)
		}
	}
	return a
}

// narrowTools makes the argument check (validate) of each entry of tools at least as strict as in the entries of more
// trusted layers for the same tool.
func (c *Config) narrowTools() {
	order := []string{"error", "warn", "off"}
	for key, t := range c.Tools {
		t = t.WithDefaults(key)
		for _, f := range c.above(c.Layer("tools." + key)) {
			for other, bound := range f.c.Tools {
				bound = bound.WithDefaults(other)
				if bound.Validate == "" || bound.Server != t.Server || bound.RemoteName != t.RemoteName {
					continue
				}
				if slices.Index(order, bound.Validate) < slices.Index(order, cmp.Or(t.Validate, order[0])) {
					t.Validate = bound.Validate
					c.Tools[key] = t
					c.hold("tools."+key+".validate", &f, "tools."+other+".validate")
				}
			}
		}
	}
}

// include returns globs for the tools that a layer's entry of a server offers. With load_tools: false, these are the
// tools that have entries.
func (f *floor) include(name string, entry servers.Config) []string {
	if entry.LoadsTools() {
		return entry.Include
	}
	named := []string{""} // an empty list would mean all tools
	for key, t := range f.c.Tools {
		if t = t.WithDefaults(key); t.Server == name {
			named = append(named, t.RemoteName)
		}
	}
	slices.Sort(named)
	return escaped(named)
}
