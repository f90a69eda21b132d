package config

import (
	"slices"
	"strings"

	"github.com/tenonhq/tenon/config/tree"
)

// profiles are sets of defaults: a value for each path, where * matches every entry of a map. A value in the file
// overrides a profile's value.
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

// applyProfile sets the defaults of the profile that the configuration tree names, for keys without a value. It does
// not change entries of layers that are more trusted than the layer that names the profile. whole says that the tree
// contains all layers. If such a tree has no agents, applyProfile creates the entry of the agent default.
func applyProfile(root *tree.Node, whole bool) {
	named, _ := root.Get("profile")
	if named == nil || named.Kind != tree.Scalar {
		return
	}
	list := profiles[named.Val]
	src := &tree.Source{Label: "profile " + named.Val, Dir: named.Src.Dir, Order: named.Src.Order, Profile: true,
		Layer: named.Src.Layer, Vars: named.Src.Vars}
	entry := func() *tree.Node { return (&tree.Node{Kind: tree.Map}).Place(src, named) }
	if agents, _ := root.Get("agents"); whole && agents == nil &&
		slices.ContainsFunc(list, func(p [2]string) bool { return strings.HasPrefix(p[0], "agents.") }) {
		agents = entry() // the default agent exists even without an entry
		agents.Append("default", agents, entry())
		root.Append("agents", agents, agents)
	}
	for _, p := range list {
		fallback(root, strings.Split(p[0], "."), tree.Parse(src, []byte(p[1]), &tree.Sink{}).Place(src, named))
	}
}

// fallback sets the value at a path if there is none.
func fallback(n *tree.Node, path []string, value *tree.Node) {
	if n.Kind != tree.Map {
		return
	}
	if path[0] == "*" {
		for _, v := range n.Vals {
			if v.Src.Layer.Rank() < value.Src.Layer.Rank() {
				continue
			}
			if v.IsNull() {
				*v = *tree.MapAt(v)
			}
			fallback(v, path[1:], value)
		}
		return
	}
	v, _ := n.Get(path[0])
	switch {
	case v != nil && len(path) > 1:
		fallback(v, path[1:], value)
	case v != nil:
	case len(path) == 1:
		n.Append(path[0], value, value)
	default:
		below := tree.MapAt(value)
		fallback(below, path[1:], value)
		if len(below.Vals) > 0 {
			n.Append(path[0], below, below)
		}
	}
}
