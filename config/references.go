package config

import (
	"strings"
)

// reference is a key of an entry whose value names an entry of another section: a text, or
// a list of texts.
type reference struct {
	section string
	path    []string
}

// references lists the keys of entries that name other entries. Servers of tools and secrets
// are not among them: see [withoutForeignTools] and [Config.secretFor].
var references = map[string][]reference{
	"servers": {{"models", []string{"sampling_model"}}},
	"tools":   {{"models", []string{"model"}}, {"agents", []string{"agent"}}},
	"models":  {{"models", []string{"fallback"}}},
	"agents": {{"models", []string{"model"}}, {"models", []string{"compaction", "model"}},
		{"agents", []string{"handoffs"}}},
	"schedules": {{"agents", []string{"agent"}}, {"tools", []string{"workflow"}}},
}

// ModelOfRun returns the model that a run of an agent uses now by the name that it began
// with: a project may have begun or ceased to replace the entry since then.
func (c *Config) ModelOfRun(agent, model string) string {
	if a, ok := c.Agents[agent]; ok && a.Model != model {
		if bare, layer := bareName(a.Model); layer != LayerNone && bare == model {
			return a.Model
		}
	}
	if _, ok := c.Models[model]; ok {
		return model
	}
	if bare, layer := bareName(model); layer != LayerNone && c.Layer("models."+bare) == layer {
		return bare
	}
	return model
}

// settingReferences lists the settings outside of entries that name entries.
var settingReferences = map[string]reference{
	"serve":       {"agents", []string{"agent"}},
	"tool_search": {"models", []string{"embeddings"}},
}

// Qualified returns the name of an entry that a less trusted layer replaces, for the entries
// that still refer to it, such as "user:main". No file can write it: a name holds no colon.
func Qualified(layer Layer, name string) string { return string(layer) + ":" + name }

// bareName returns the name of an entry as its file writes it, and its layer if the name is
// qualified.
func bareName(name string) (bare string, layer Layer) {
	if from, rest, ok := strings.Cut(name, ":"); ok && (from == string(LayerUser) || from == string(LayerAdmin)) {
		return rest, Layer(from)
	}
	return name, LayerNone
}

// binder resolves the references of each layer within this layer and more trusted ones. A
// less trusted layer neither fills in nor redefines what an entry refers to.
type binder struct {
	files []file
	trees []*node
	// defined holds the entries of each layer by section and name, the least trusted first.
	defined []map[string]map[string]*node
	kept    []map[string]*node // of each layer: entries under their qualified names, by section
}

// bound returns the trees with bound references, the least trusted first. An entry that
// another one needs, and that a less trusted layer replaces, is kept under its qualified name.
func bound(files []file, trees []*node) []*node {
	b := &binder{files: files, trees: trees}
	for _, tree := range trees {
		sections := map[string]map[string]*node{}
		for section := range references {
			entries, _ := tree.get(section)
			sections[section] = entriesOf(entries)
		}
		b.defined, b.kept = append(b.defined, sections), append(b.kept, map[string]*node{})
	}
	out := []*node{trees[0]}
	for i := 1; i < len(trees); i++ {
		out = append(out, b.layer(i, trees[i]))
	}
	for i := 1; i < len(out); i++ {
		out[i] = b.withKept(i, out[i])
	}
	return out
}

// entriesOf returns the values of a map by their keys.
func entriesOf(n *node) map[string]*node {
	if n == nil || n.kind != mapNode {
		return nil
	}
	entries := make(map[string]*node, len(n.keys))
	for i, key := range n.keys {
		entries[key.val] = n.vals[i]
	}
	return entries
}

// layer binds the entries of a layer that are in effect.
func (b *binder) layer(i int, tree *node) *node {
	if tree.kind != mapNode {
		return tree
	}
	out := *tree
	out.vals = append([]*node(nil), tree.vals...)
	for at, section := range tree.keys {
		if r, ok := settingReferences[section.val]; ok {
			out.vals[at] = b.reference(i, r, tree.vals[at], r.path)
		}
		if references[section.val] == nil || tree.vals[at].kind != mapNode {
			continue
		}
		entries := *tree.vals[at]
		entries.vals = append([]*node(nil), entries.vals...)
		for j, key := range entries.keys {
			if b.nearest(section.val, key.val, 0) == i {
				entries.vals[j] = b.entry(i, section.val, key.val, entries.vals[j])
			}
		}
		out.vals[at] = &entries
	}
	return &out
}

// nearest returns the first layer, from one on, that defines an entry, or -1.
func (b *binder) nearest(section, name string, from int) int {
	for i := from; i < len(b.defined); i++ {
		if _, ok := b.defined[i][section][name]; ok {
			return i
		}
	}
	return -1
}

// resolve returns the name under which an entry of a layer finds another one. A name that
// only less trusted layers define leads to no entry.
func (b *binder) resolve(i int, section, name string) string {
	used, own := b.nearest(section, name, 0), b.nearest(section, name, i)
	switch {
	case used < 0 || used == own:
		return name
	case own < 0:
		return Qualified(b.files[i].src.layer, name)
	}
	as := Qualified(b.files[own].src.layer, name)
	entries := b.kept[own][section]
	if entries == nil {
		entries = &node{kind: mapNode}
		b.kept[own][section] = entries
	}
	if at, _ := entries.get(as); at == nil {
		entry := b.defined[own][section][name]
		key := &node{tag: "!!str", val: as, line: entry.line, col: entry.col, src: entry.src, qualified: true}
		at := len(entries.keys)
		entries.keys, entries.vals = append(entries.keys, key), append(entries.vals, entry)
		bound := b.entry(own, section, name, entry)
		entries.vals[at] = bound
	}
	return as
}

// entry returns an entry with bound references.
func (b *binder) entry(i int, section, name string, n *node) *node {
	for _, r := range references[section] {
		n = b.reference(i, r, n, r.path)
	}
	switch {
	case section == "tools" && setting(n, "kind") == "agent" && setting(n, "agent") == "":
		if as := b.resolve(i, "agents", name); as != name {
			n = withKey(n, "agent", as)
		}
	case section == "agents" && setting(n, "model") == "":
		if own := b.defaultModel(i); own != "" {
			n = withKey(n, "model", own)
		}
	}
	return n
}

// defaultModel returns the first model of a layer, or of the next more trusted one that has any, if a less trusted
// layer has models too. It returns "" if the entry does not have to name a model.
func (b *binder) defaultModel(i int) string {
	less := false
	for _, sections := range b.defined[:i] {
		less = less || len(sections["models"]) > 0
	}
	if !less {
		return ""
	}
	for j := i; j < len(b.defined); j++ {
		if first := b.first(j); first != "" {
			return b.resolve(i, "models", first)
		}
	}
	return Qualified(b.files[i].src.layer, "")
}

// first returns the name of the first model of a layer.
func (b *binder) first(i int) string {
	if models, _ := b.trees[i].get("models"); models != nil && len(models.keys) > 0 {
		return models.keys[0].val
	}
	return ""
}

// reference returns an entry in which one reference is bound.
func (b *binder) reference(i int, r reference, n *node, path []string) *node {
	if len(path) > 0 {
		below, _ := n.get(path[0])
		if below == nil {
			return n
		}
		return withValue(n, path[0], b.reference(i, r, below, path[1:]))
	}
	switch {
	case n.kind == listNode:
		out := *n
		out.vals = append([]*node(nil), n.vals...)
		for j, v := range out.vals {
			if v.kind == scalarNode {
				out.vals[j] = b.reference(i, r, v, nil)
			}
		}
		return &out
	case n.kind != scalarNode || n.isNull():
		return n
	}
	if as := b.resolve(i, r.section, n.val); as != n.val {
		return like(n, as)
	}
	return n
}

// withKept adds the entries of a layer that others need under their qualified names.
func (b *binder) withKept(i int, tree *node) *node {
	for section, more := range b.kept[i] {
		entries, _ := tree.get(section)
		out := *entries
		out.keys = append(append([]*node(nil), entries.keys...), more.keys...)
		out.vals = append(append([]*node(nil), entries.vals...), more.vals...)
		tree = withValue(tree, section, &out)
	}
	return tree
}

// withValue returns a map with another value of a key.
func withValue(n *node, key string, v *node) *node {
	out := *n
	out.vals = append([]*node(nil), n.vals...)
	for i, k := range n.keys {
		if k.val == key {
			out.vals[i] = v
		}
	}
	return &out
}

// withKey returns a map with one more key, at the place of the map.
func withKey(n *node, key, value string) *node {
	out := emptyMap(n)
	if n.kind == mapNode {
		for i, k := range n.keys {
			if k.val != key {
				out.keys, out.vals = append(out.keys, k), append(out.vals, n.vals[i])
			}
		}
	}
	taken(out, key, n, like(n, value))
	return out
}

// noReference reports a reference to an entry that does not exist, or that only a less
// trusted layer has.
func (k *checker) noReference(at, section, kind, name string) {
	bare, layer := bareName(name)
	switch {
	case layer == LayerNone:
		k.bad(at, k.hintFor(name, section), "no %s '%s'", kind, name)
	case bare == "": // an agent without a model: a run may still name one
	default:
		k.bad(at, "add "+section+"."+bare+" to "+k.where(at).src.label+", or refer to an entry there",
			"no %s '%s' in this file; the %s of this name in a project is not used for an entry of the %s's file",
			kind, bare, kind, layer)
	}
}
