package config

import (
	"slices"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/agent"
	"github.com/tenonhq/tenon/config/tree"
)

// Groups returns the groups of the configuration's tools, sorted. The default group, which tools without groups have,
// is one of them.
func (c *Config) Groups() []string {
	list := []string{tenon.DefaultGroup}
	for _, t := range c.Tools {
		list = append(list, t.Groups...)
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// groupsAndStates warns of groups of agents and states of tools that are probably misspelled: no tool has the group or
// leads to the state, and one has a similar name. Other unknown names may be meant, because a question can name groups
// and a state itself.
func (k *checker) groupsAndStates() {
	if k.apart { // another layer may have the tools
		return
	}
	groups, states := k.c.Groups(), []string{agent.DefaultState}
	for _, t := range k.c.Tools {
		if t.NextState != "" {
			states = append(states, t.NextState)
		}
	}
	for _, a := range k.c.Agents {
		if a.State != "" {
			states = append(states, a.State)
		}
	}
	slices.Sort(states)
	check := func(path, what string, names, known []string) {
		for i, name := range names {
			if name == "*" || slices.Contains(known, name) {
				continue
			}
			if near := tenon.Nearest(name, known); near != "" {
				k.note(tree.Index(path, i), "did you mean '"+near+"'?", what, name)
			}
		}
	}
	for _, name := range k.order["agents"] {
		check("agents."+name+".groups", "no tool is in the group '%s'", k.c.Agents[name].Groups, groups)
	}
	for _, name := range k.order["tools"] {
		check("tools."+name+".states", "no tool leads to the state '%s'", k.c.Tools[name].States, states)
	}
}
