package config

import (
	"strings"

	"github.com/tenonhq/tenon/config/tree"
)

// reference is a key of an entry whose value is the name of an entry of another section, or a list of such names.
type reference struct {
	section string
	path    []string
}

// references lists the references of entries to other entries. References to servers of tools and to secrets are
// resolved elsewhere: see [withoutForeignTools] and [Config.secretFor].
var references = map[string][]reference{
	"servers": {{"models", []string{"sampling_model"}}},
	"tools":   {{"models", []string{"model"}}, {"agents", []string{"agent"}}},
	"models":  {{"models", []string{"fallback"}}},
	"agents": {{"models", []string{"model"}}, {"models", []string{"compaction", "model"}},
		{"agents", []string{"handoffs"}}},
	"schedules": {{"agents", []string{"agent"}}, {"tools", []string{"workflow"}}},
}

// ModelOfRun returns the current name of the model with which a run of an agent began. The name changes if a project
// has since begun or ceased to replace the entry.
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

// settingReferences lists the settings outside of entries that name an entry.
var settingReferences = map[string]reference{
	"serve":       {"agents", []string{"agent"}},
	"tool_search": {"models", []string{"embeddings"}},
}

// Qualified returns the qualified name, such as "user:main", of an entry that a less trusted layer replaces. Entries
// that refer to the replaced one use this name. No file can contain it, because names in files have no colon.
func Qualified(layer Layer, name string) string { return string(layer) + ":" + name }

// bareName returns the name of an entry as written in its file, and the entry's layer if the name is qualified.
func bareName(name string) (bare string, layer Layer) {
	if from, rest, ok := strings.Cut(name, ":"); ok && (from == string(LayerUser) || from == string(LayerAdmin)) {
		return rest, Layer(from)
	}
	return name, LayerNone
}

// binder resolves the references of each layer to entries of the same layer and of more trusted ones. So a less
// trusted layer can neither define nor replace an entry to which a trusted entry refers.
type binder struct {
	files []file
	trees []*tree.Node
	// defined contains the entries of each layer by section and name, the least trusted layer first.
	defined []map[string]map[string]*tree.Node
	kept    []map[string]*tree.Node // by layer and section: replaced entries, under their qualified names
}

// bound returns the trees with resolved references, the least trusted first. An entry that another entry needs, and
// that a less trusted layer replaces, is kept under its qualified name.
func bound(files []file, trees []*tree.Node) []*tree.Node {
	b := &binder{files: files, trees: trees}
	for _, root := range trees {
		sections := map[string]map[string]*tree.Node{}
		for section := range references {
			entries, _ := root.Get(section)
			sections[section] = entriesOf(entries)
		}
		b.defined, b.kept = append(b.defined, sections), append(b.kept, map[string]*tree.Node{})
	}
	out := []*tree.Node{trees[0]}
	for i := 1; i < len(trees); i++ {
		out = append(out, b.layer(i, trees[i]))
	}
	for i := 1; i < len(out); i++ {
		out[i] = b.withKept(i, out[i])
	}
	return out
}

// entriesOf returns the values of a map by their keys.
func entriesOf(n *tree.Node) map[string]*tree.Node {
	if n == nil || n.Kind != tree.Map {
		return nil
	}
	entries := make(map[string]*tree.Node, len(n.Keys))
	for i, key := range n.Keys {
		entries[key.Val] = n.Vals[i]
	}
	return entries
}

// layer resolves the references of a layer's effective entries.
func (b *binder) layer(i int, root *tree.Node) *tree.Node {
	if root.Kind != tree.Map {
		return root
	}
	out := *root
	out.Vals = append([]*tree.Node(nil), root.Vals...)
	for at, section := range root.Keys {
		if r, ok := settingReferences[section.Val]; ok {
			out.Vals[at] = b.reference(i, r, root.Vals[at], r.path)
		}
		if references[section.Val] == nil || root.Vals[at].Kind != tree.Map {
			continue
		}
		entries := *root.Vals[at]
		entries.Vals = append([]*tree.Node(nil), entries.Vals...)
		for j, key := range entries.Keys {
			if b.nearest(section.Val, key.Val, 0) == i {
				entries.Vals[j] = b.entry(i, section.Val, key.Val, entries.Vals[j])
			}
		}
		out.Vals[at] = &entries
	}
	return &out
}

// nearest returns the first layer from index from on that defines an entry, or -1.
func (b *binder) nearest(section, name string, from int) int {
	for i := from; i < len(b.defined); i++ {
		if _, ok := b.defined[i][section][name]; ok {
			return i
		}
	}
	return -1
}

// resolve returns the name under which an entry of layer i finds another entry. If only less trusted layers define
// the name, the result leads to no entry.
func (b *binder) resolve(i int, section, name string) string {
	used, own := b.nearest(section, name, 0), b.nearest(section, name, i)
	switch {
	case used < 0 || used == own:
		return name
	case own < 0:
		return Qualified(b.files[i].src.Layer, name)
	}
	as := Qualified(b.files[own].src.Layer, name)
	entries := b.kept[own][section]
	if entries == nil {
		entries = &tree.Node{Kind: tree.Map}
		b.kept[own][section] = entries
	}
	if at, _ := entries.Get(as); at == nil {
		entry := b.defined[own][section][name]
		key := &tree.Node{Tag: "!!str", Val: as, Line: entry.Line, Col: entry.Col, Src: entry.Src, Qualified: true}
		at := len(entries.Keys)
		entries.Keys, entries.Vals = append(entries.Keys, key), append(entries.Vals, entry)
		bound := b.entry(own, section, name, entry)
		entries.Vals[at] = bound
	}
	return as
}

// entry returns an entry with resolved references.
func (b *binder) entry(i int, section, name string, n *tree.Node) *tree.Node {
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

// defaultModel returns the default model for an entry of layer i that names none, if a less trusted layer also has
// models: the first model of the layer, or else of the next more trusted one that has any. It returns "" if the entry
// does not have to name a model.
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
	return Qualified(b.files[i].src.Layer, "")
}

// first returns the name of the first model of a layer.
func (b *binder) first(i int) string {
	if models, _ := b.trees[i].Get("models"); models != nil && len(models.Keys) > 0 {
		return models.Keys[0].Val
	}
	return ""
}

// reference returns an entry in which one reference is resolved.
func (b *binder) reference(i int, r reference, n *tree.Node, path []string) *tree.Node {
	if len(path) > 0 {
		below, _ := n.Get(path[0])
		if below == nil {
			return n
		}
		return withValue(n, path[0], b.reference(i, r, below, path[1:]))
	}
	switch {
	case n.Kind == tree.List:
		out := *n
		out.Vals = append([]*tree.Node(nil), n.Vals...)
		for j, v := range out.Vals {
			if v.Kind == tree.Scalar {
				out.Vals[j] = b.reference(i, r, v, nil)
			}
		}
		return &out
	case n.Kind != tree.Scalar || n.IsNull():
		return n
	}
	if as := b.resolve(i, r.section, n.Val); as != n.Val {
		return tree.TextAt(n, as)
	}
	return n
}

// withKept adds the replaced entries of a layer, under their qualified names.
func (b *binder) withKept(i int, root *tree.Node) *tree.Node {
	for section, more := range b.kept[i] {
		entries, _ := root.Get(section)
		out := *entries
		out.Keys = append(append([]*tree.Node(nil), entries.Keys...), more.Keys...)
		out.Vals = append(append([]*tree.Node(nil), entries.Vals...), more.Vals...)
		root = withValue(root, section, &out)
	}
	return root
}

// withValue returns a copy of a map with the value of one key replaced.
func withValue(n *tree.Node, key string, v *tree.Node) *tree.Node {
	out := *n
	out.Vals = append([]*tree.Node(nil), n.Vals...)
	for i, k := range n.Keys {
		if k.Val == key {
			out.Vals[i] = v
		}
	}
	return &out
}

// withKey returns a copy of a map with one key added, at the position of the map.
func withKey(n *tree.Node, key, value string) *tree.Node {
	out := tree.MapAt(n)
	if n.Kind == tree.Map {
		for i, k := range n.Keys {
			if k.Val != key {
				out.Keys, out.Vals = append(out.Keys, k), append(out.Vals, n.Vals[i])
			}
		}
	}
	out.Append(key, n, tree.TextAt(n, value))
	return out
}

// noReference reports a reference to an entry that does not exist, or that only a less trusted layer defines.
func (k *checker) noReference(at, section, kind, name string) {
	bare, layer := bareName(name)
	switch {
	case layer == LayerNone:
		k.bad(at, k.hintFor(name, section), "no %s '%s'", kind, name)
	case bare == "": // an agent without a model is valid: a run may name the model
	default:
		k.bad(at, "add "+section+"."+bare+" to "+k.where(at).Src.Label+", or refer to an entry there",
			"no %s '%s' in this file; the %s of this name in a project is not used for an entry of the %s's file",
			kind, bare, kind, layer)
	}
}
