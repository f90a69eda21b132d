package config

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"maps"
	"path/filepath"
	"slices"
	"unicode/utf8"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/config/tree"
)

// layerTree is the tree of one layer's file, before the layers are merged.
type layerTree struct {
	src  *tree.Source
	tree *tree.Node
}

// treeOf returns the tree of a layer. The field tree is nil if there is no file.
func (c *Config) treeOf(l Layer) layerTree {
	for _, t := range c.raw {
		if cmp.Or(t.src.Layer, LayerProject) == l {
			return t
		}
	}
	return layerTree{}
}

// Update is the result of comparing a running configuration with a later version of its files.
type Update struct {
	// Whole is the complete configuration, as the later version of the files defines it.
	Whole *Config
	// Now is the configuration that may be applied at once: Whole, or, if changes are held back, the running
	// configuration with the changes that only tighten. If nil, the running configuration stays.
	Now *Config
	// Held contains the differences between the running configuration and Whole that loosen something. Applied
	// contains the others.
	Held, Applied []Difference
	// Files contains the changed files as texts.
	Files []FileChange
	// Digest identifies the running configuration, Whole, and the differences between them.
	Digest string
	// Left is the reason why Applied cannot be applied without Held, or "" if it can.
	Left string
}

// FileChange is a file of the configuration in two versions.
type FileChange struct {
	File   string `json:"file"`
	Before string `json:"before"`
	After  string `json:"after"`
	// Binary says that a version is not text, or is too long to be shown. Before and After then contain sizes and
	// digests.
	Binary bool `json:"binary,omitempty"`
}

// LoadUpdate reloads the files of a running configuration and holds back changes that loosen it; see [Difference].
// The administrator's file applies unchanged. It returns the errors of [Load], and conflict if Load reads a different
// file than before. If there was no project's file and there is one now, it is compared with nothing, and the caller
// decides whether it may be used at all.
func LoadUpdate(ctx context.Context, o Options, running *Config) (*Update, error) {
	whole, err := Load(ctx, o)
	if err != nil {
		return nil, err
	}
	if whole.Path != running.Path && running.Path != "" {
		return nil, tenon.Errorf(tenon.CodeConflict, "the configuration would come from %s and no longer from %s; "+
			"for that start tenon again", cmp.Or(whole.Path, "no project's file"), running.Path)
	}
	return running.update(ctx, o, whole)
}

// Compare returns the differences between two versions of a configuration. It compares the files of the project and
// of the user key by key, and all other files as a whole.
func Compare(before, after *Config) []Difference {
	var out []Difference
	before.compareLayers(after, false, func(d Difference) { out = append(out, d) })
	return append(out, before.changedFiles(after)...)
}

// update compares the running configuration with whole, the complete later one.
func (c *Config) update(ctx context.Context, o Options, whole *Config) (*Update, error) {
	if _, err := c.Project(); err != nil { // computes the digests of the scripts, which are compared
		return nil, err
	}
	if _, err := whole.Project(); err != nil {
		return nil, err
	}
	u := &Update{Whole: whole}
	trees := c.compareLayers(whole, false, func(d Difference) {
		if d.Effect == Loosens {
			u.Held = append(u.Held, d)
		} else {
			u.Applied = append(u.Applied, d)
		}
	})
	files := c.changedFiles(whole)
	u.Held = append(u.Held, files...)
	u.Files = c.fileChanges(whole)
	u.Digest = u.digest(c)
	switch {
	case len(u.Held) == 0:
		u.Now = whole
		return u, nil
	case len(u.Applied) == 0:
		return u, nil
	}
	var err error
	if u.Now, err = c.partly(ctx, o, trees); err != nil {
		trees = c.compareLayers(whole, true, func(Difference) {})
		u.Now, err = c.partly(ctx, o, trees)
	}
	if err != nil && slices.ContainsFunc(c.tableReads,
		func(path string) bool { return c.files.snapshot()[path].digest != whole.files.snapshot()[path].digest }) {
		for i, t := range trees { // not kept in memory: its tools are removed until it is approved
			trees[i].tree = withoutKey(t.tree, "tool_tables")
		}
		u.Now, err = c.partly(ctx, o, trees)
	}
	if err != nil {
		u.Now, u.Left = nil, err.Error()
	}
	return u, ctx.Err()
}

// withoutKey returns a map without one key.
func withoutKey(n *tree.Node, key string) *tree.Node {
	out := *n
	out.Keys, out.Vals = nil, nil
	for i, k := range n.Keys {
		if k.Val != key {
			out.Keys, out.Vals = append(out.Keys, k), append(out.Vals, n.Vals[i])
		}
	}
	return &out
}

// compareLayers compares the files of the layers and returns the trees that may be applied now.
func (c *Config) compareLayers(whole *Config, keep bool, take func(Difference)) []layerTree {
	var out []layerTree
	all := func(layers ...Layer) (trees []*tree.Node) {
		for _, l := range layers {
			trees = append(trees, c.treeOf(l).tree, whole.treeOf(l).tree)
		}
		return trees
	}
	above := map[Layer][]*tree.Node{LayerProject: all(LayerUser, LayerAdmin), LayerUser: all(LayerAdmin)}
	for _, l := range []Layer{LayerProject, LayerUser, LayerAdmin} {
		before, after := c.treeOf(l), whole.treeOf(l)
		src := after.src
		src = cmp.Or(src, before.src)
		if src == nil {
			continue
		}
		own := *src
		if l == LayerAdmin { // only root can write it, so it applies unchanged
			if after.src != nil {
				out = append(out, layerTree{&own, after.tree})
			}
			if before.tree == nil || after.tree == nil || !tree.Same(before.tree, after.tree) {
				take(Difference{Path: src.Label, Layer: l, Effect: Neutral, File: true})
			}
			continue
		}
		files := &comparer{layer: l, keep: keep, above: above[l],
			others: all(LayerProject, LayerUser, LayerAdmin)}
		out = append(out, layerTree{&own, files.compare(before.tree, after.tree)})
		for _, d := range files.out {
			take(d)
		}
	}
	return out
}

// partly builds a configuration of the trees, with the other files as the running configuration has read them.
func (c *Config) partly(ctx context.Context, o Options, trees []layerTree) (*Config, error) {
	o, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	o.held = c
	var files []file
	for _, t := range trees {
		files = append(files, file{src: t.src, tree: t.tree.Clone()})
	}
	for i := range files {
		files[i].src.Order = i
	}
	next, err := build(ctx, o, files)
	if err != nil {
		return nil, err
	}
	next.Found = c.Found
	if c.Path == "" {
		next.Path = ""
	}
	return next, nil
}

// isConfigFile reports whether a path is the file of a layer. Such files are compared by their keys.
func (c *Config) isConfigFile(path string) bool {
	return slices.ContainsFunc(c.raw, func(t layerTree) bool { return t.src.Path == path })
}

// changedFiles returns the changed files that the configuration names: variables, scripts, workflows, tables,
// templates. Because of any of these changes, tenon may start or send something different.
func (c *Config) changedFiles(whole *Config) []Difference {
	before, after := c.files.snapshot(), whole.files.snapshot()
	var out []Difference
	for _, path := range slices.Sorted(maps.Keys(after)) {
		was, known := before[path]
		is := after[path]
		if c.isConfigFile(path) || whole.isConfigFile(path) || known && was.digest == is.digest || !known &&
			is.digest == "" {
			continue
		}
		out = append(out, Difference{Path: whole.nameOf(path), Layer: whole.layerAt(path), Before: was.String(),
			After: is.String(), Effect: Loosens, Starts: true, File: true})
	}
	return out
}

// layerAt returns the layer whose folder a file is in.
func (c *Config) layerAt(path string) Layer {
	if u := c.treeOf(LayerUser); u.src != nil && u.src.Path != "" && isBelow(path, filepath.Dir(u.src.Path)) {
		return LayerUser
	}
	return LayerProject
}

// nameOf returns the name of a file: relative to the project's folder if the file is inside.
func (c *Config) nameOf(path string) string {
	if rel, err := filepath.Rel(c.Dir, path); err == nil && filepath.IsLocal(rel) {
		return filepath.ToSlash(rel)
	}
	return filepath.ToSlash(path)
}

// maxText is the maximum size, in bytes, of a file that a [FileChange] contains as text.
const maxText = 256 << 10

// fileChanges returns the texts of all files that differ.
func (c *Config) fileChanges(whole *Config) []FileChange {
	before, after := c.files.snapshot(), whole.files.snapshot()
	all := map[string]fileSum{} // before is nil if the running configuration has no file
	maps.Copy(all, before)
	maps.Copy(all, after)
	var out []FileChange
	for _, path := range slices.Sorted(maps.Keys(all)) {
		was, is := before[path], after[path]
		if _, there := after[path]; was.digest == is.digest || !there && !c.isConfigFile(path) {
			continue
		}
		change := FileChange{File: whole.nameOf(path)}
		if b, a, ok := textOf(was, is); ok {
			change.Before, change.After = b, a
		} else {
			change.Before, change.After, change.Binary = was.String(), is.String(), true
		}
		out = append(out, change)
	}
	return out
}

// textOf returns two versions of a file as texts. ok is false if one of them is not text.
func textOf(before, after fileSum) (b, a string, ok bool) {
	for _, s := range []fileSum{before, after} {
		if s.digest != "" && s.size > 0 && s.data == nil || len(s.data) > maxText || !utf8.Valid(s.data) ||
			bytes.ContainsRune(s.data, 0) {
			return "", "", false
		}
	}
	return string(before.data), string(after.data), true
}

// digest returns the digest of an update. A person approves exactly the update with this digest.
func (u *Update) digest(running *Config) string {
	sums := func(c *Config) map[string]string {
		out := map[string]string{}
		for path, s := range c.files.snapshot() {
			out[path] = s.digest
		}
		return out
	}
	b, err := json.Marshal([]any{u.Held, u.Applied, sums(running), sums(u.Whole)})
	if err != nil {
		return "" // strings always marshal
	}
	sum := sha256.Sum256(b)
	return "sha256:" + hex.EncodeToString(sum[:])
}

// FileDigest returns the digest, in hex, of a file as the configuration has read it. It returns "" if the
// configuration has not read the file.
func (c *Config) FileDigest(path string) string { return c.files.snapshot()[path].digest }

// LayerFile returns the path of the file of a layer, or "" if there is none.
func (c *Config) LayerFile(l Layer) string {
	if t := c.treeOf(l); t.src != nil {
		return t.src.Path
	}
	return ""
}
