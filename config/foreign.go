package config

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/compat"
	"github.com/tenonhq/tenon/compat/aidk"
	"github.com/tenonhq/tenon/compat/editors"
	"github.com/tenonhq/tenon/compat/holodeck"
	"github.com/tenonhq/tenon/compat/researchai"
	"github.com/tenonhq/tenon/compat/trustgraph"
	"github.com/tenonhq/tenon/config/tree"
)

// KindKNIME is the kind of a [Source] that was converted from a tool table. There is no export to it: tenon tools
// list --out writes tables.
const KindKNIME = compat.KNIME

// Kinds returns the values of --from and --to, without [KindKNIME], which is only read.
func Kinds() []string {
	return []string{compat.HoloDeck, compat.TrustGraph, compat.AIDK, compat.ResearchAI, compat.Claude, compat.Cursor,
		compat.VSCode}
}

// formats are the formats of other programs' files, in the order in which a file is compared with them.
var formats = []struct {
	kind string
	compat.Format
}{
	{compat.AIDK, aidk.Format{}},
	{compat.Claude, editors.Claude{}},
	{compat.Cursor, editors.Claude{}},
	{compat.HoloDeck, holodeck.Format{}},
	{compat.ResearchAI, researchai.Format{}},
	{compat.VSCode, editors.VSCode{}},
	{compat.TrustGraph, trustgraph.Format{}},
	{compat.KNIME, knimeFormat{}},
}

// formatOf returns the format of a program's files, or nil if the program is unknown.
func formatOf(kind string) compat.Format {
	for _, f := range formats {
		if f.kind == kind {
			return f.Format
		}
	}
	return nil
}

// recognise returns the program to which the format of a file belongs, by the file's keys, or "" for tenon. If
// several programs match equally well, it returns the first one in formats.
func recognise(root *tree.Node) string {
	if compat.HasKey(root, "version") {
		return ""
	}
	kind, best := "", compat.Unlike
	for _, f := range formats {
		if sure := f.Recognise(root); sure > best {
			kind, best = f.kind, sure
		}
	}
	if best < compat.Surely &&
		compat.HasKey(root, "models", "agents", "tools", "policy", "limits", "secrets", "profile") {
		return ""
	}
	return kind
}

// convert converts the tree of another program's file to the format of tenon.yaml.
func convert(c *compat.Conversion, root *tree.Node) *tree.Node {
	c.Out, c.Tokens = tree.MapAt(root), map[*tree.Node]bool{}
	formatOf(c.Kind).Convert(c, root)
	quote(c)
	return c.Out
}

// loadable are the formats that are read without an import.
var loadable = []string{compat.Claude, compat.VSCode, compat.HoloDeck}

// foreign converts the tree of another program's file, and returns a tree of tenon's format unchanged. Keys that
// cannot be converted are only warnings, because the file belongs to another program.
func foreign(root *tree.Node, o Options, s *tree.Sink) *tree.Node {
	kind := recognise(root)
	if list, at := root.Get("mcpServers"); kind == "" && list != nil {
		return ownServers(root, list, at, s)
	}
	if kind == "" {
		return root
	}
	if !slices.Contains(loadable, kind) {
		s.Add(root, "", "a file of "+kind+" cannot be used as it is", fmt.Sprintf("tenon config import %s --from %s",
			root.Src.Label, kind))
		return &tree.Node{Kind: tree.Map, Line: 1, Col: 1, Src: root.Src}
	}
	root.Src.Program = kind
	root.Src.Dir = workspace(root.Src.Dir)
	c := &compat.Conversion{Sink: s, Kind: kind, Direct: true, Home: o.Home, Dir: root.Src.Dir}
	return convert(c, root)
}

// ownServers reads the key mcpServers of a tenon.yaml, with Claude's keys, as servers.
func ownServers(root, list, at *tree.Node, s *tree.Sink) *tree.Node {
	c := &compat.Conversion{Sink: s, Kind: compat.Claude, Out: tree.MapAt(root)}
	for i, k := range root.Keys {
		if k.Val != "mcpServers" {
			c.Out.Append(k.Val, k, root.Vals[i])
		}
	}
	if own, _ := c.Out.Get("servers"); own != nil && own.Kind != tree.Map {
		return c.Out // another check reports that servers is no map
	}
	only := &tree.Node{Kind: tree.Map, Src: root.Src, Keys: []*tree.Node{at}, Vals: []*tree.Node{list}}
	editors.Claude{}.Convert(c, only)
	return c.Out
}

// workspace returns the folder of a project. dir is the folder of another program's file; it may be a subfolder such
// as .vscode.
func workspace(dir string) string {
	if base := filepath.Base(dir); base == ".vscode" || base == ".cursor" || base == ".claude" {
		return filepath.Dir(dir)
	}
	return dir
}

// unwrapped returns the only server of {"mcpServers": {…}}, the form in the documentation of servers. It returns any
// other node unchanged.
func unwrapped(root *tree.Node, s *tree.Sink) *tree.Node {
	if root == nil || root.Kind != tree.Map || len(root.Keys) != 1 {
		return root
	}
	list, at := root.Get("mcpServers")
	if list == nil || list.Kind != tree.Map {
		return root
	}
	if n := len(list.Keys); n != 1 {
		s.Add(at, "mcpServers", fmt.Sprintf("has %d servers, and add-json adds one", n),
			"write them to a file and import it: tenon config import FILE")
		return root
	}
	return list.Vals[0]
}

// FromJSON returns the change that adds a server. The server is given as an object of mcpServers in .mcp.json, or as
// {"mcpServers": {…}} with one server, whose name is ignored. Errors have code config and the place in the JSON, also
// for keys that cannot be expressed in tenon.yaml.
func FromJSON(name string, data []byte) (Change, error) {
	s := &tree.Sink{}
	src := &tree.Source{Label: "JSON"}
	root := unwrapped(tree.Parse(src, data, s), s)
	switch {
	case root != nil && root.Kind != tree.Map:
		s.Add(root, "", "must be a map, is "+root.Form(), "")
	case root == nil && len(s.Errs) == 0:
		s.Add(&tree.Node{Src: src}, "", "is empty", "")
	}
	if len(s.Errs) > 0 {
		return Change{}, Errors(tree.Sorted(s.Errs))
	}
	c := &compat.Conversion{Sink: s, Kind: compat.Claude, Direct: true, Out: &tree.Node{Kind: tree.Map, Src: src}}
	entry := &tree.Node{Kind: tree.Map, Src: src}
	editors.Server(c, root, entry, "servers."+name)
	c.Section("servers", root).Append(name, root, entry)
	quote(c)
	entry = c.Out.Vals[0].Vals[0]
	if list := append(s.Errs, s.Warns...); len(list) > 0 { // an entry that cannot be converted completely is refused
		return Change{}, Errors(tree.Sorted(list))
	}
	return Change{Section: "servers", Name: name, node: entry}, nil
}

// With returns the change with one more key, a text, in an entry of [FromJSON].
func (c Change) With(key, text string) Change {
	if c.node != nil {
		n := *c.node
		n.Keys, n.Vals = slices.Clone(n.Keys), slices.Clone(n.Vals)
		n.Put(key, tree.Text(text))
		c.node = &n
	}
	return c
}

// noKind returns the error for a file with an unknown format.
func noKind(label string) error {
	return tenon.Errorf(tenon.CodeInvalid, "the format of %s is unknown; name it with "+
		"--from: %s", label, strings.Join(Kinds(), ", "))
}
