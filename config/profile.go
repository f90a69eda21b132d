package config

import (
	"slices"
	"strings"
)

// profiles are sets of defaults: a value for each path, where * is every entry of
// a map. A written value always wins.
var profiles = map[string][][2]string{
	"strict": {{"policy.commands.allow", "[npx, node, uvx, docker]"}, {"policy.urls.require_https", "error"},
		{"policy.literal_secrets", "error"},
		{"servers.*.naming.on_collision", "error"}},
	"researchai": {{"limits.max_turns", "5"}, {"limits.parallel_tools", "1"}, {"policy.env_unresolved", "empty"},
		{"servers.*.lifecycle", "eager"},
		{"servers.*.result_format", "text"}, {"models.*.temperature", "1.0"}, {"models.*.max_tokens", "4096"}},
	"holodeck": {{"models.*.temperature", "0.3"}, {"models.*.max_tokens", "1000"}},
	"trustgraph": {{"limits.max_turns", "10"}, {"limits.parallel_tools", "1"}, {"policy.urls.require_https", "off"},
		{"tools.*.arguments_mode", "replace"},
		{"tools.*.validate", "off"}, {"servers.*.lifecycle", "per_call"}, {"servers.*.result_format", "structured"},
		{"agents.*.mode", "react"}, {"agents.*.prompt", "trustgraph"}},
	"aidk": {{"limits.max_turns", "10"}},
	"knime": {{"limits.max_turns", "25"}, {"limits.parallel_tools", "1"}, {"policy.urls.require_https", "off"},
		{"servers.*.naming.replace", "_"},
		{"servers.*.naming.on_collision", "suffix"}, {"servers.*.schema.types", "simple"},
		{"servers.*.lifecycle", "per_call"},
		{"servers.*.request_timeout", "30s"}},
}

// applyProfile sets the defaults of the profile that the configuration tree names, for keys without a value. Entries
// of more trusted layers than the profile's own are not changed. whole says that the tree contains all layers. Then,
// if it has no agents, the profile creates the entry of the agent default.
func applyProfile(root *node, whole bool) {
	named, _ := root.get("profile")
	if named == nil || named.kind != scalarNode {
		return
	}
	list := profiles[named.val]
	src := &source{label: "profile " + named.val, dir: named.src.dir, order: named.src.order, profile: true,
		layer: named.src.layer, vars: named.src.vars}
	entry := func() *node { return (&node{kind: mapNode}).place(src, named) }
	if agents, _ := root.get("agents"); whole && agents == nil &&
		slices.ContainsFunc(list, func(p [2]string) bool { return strings.HasPrefix(p[0], "agents.") }) {
		agents = entry() // the agent that is there without an entry
		taken(agents, "default", agents, entry())
		taken(root, "agents", agents, agents)
	}
	for _, p := range list {
		fallback(root, strings.Split(p[0], "."), parse(src, []byte(p[1]), &sink{}).place(src, named))
	}
}

// fallback sets the value at a path if there is none.
func fallback(n *node, path []string, value *node) {
	if n.kind != mapNode {
		return
	}
	if path[0] == "*" {
		for _, v := range n.vals {
			if v.src.layer.rank() < value.src.layer.rank() {
				continue
			}
			if v.isNull() {
				*v = *emptyMap(v)
			}
			fallback(v, path[1:], value)
		}
		return
	}
	v, _ := n.get(path[0])
	switch {
	case v != nil && len(path) > 1:
		fallback(v, path[1:], value)
	case v != nil:
	case len(path) == 1:
		taken(n, path[0], value, value)
	default:
		below := emptyMap(value)
		fallback(below, path[1:], value)
		if len(below.vals) > 0 {
			taken(n, path[0], below, below)
		}
	}
}
