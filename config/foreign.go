package config

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/config/tree"
)

// KindKNIME is the kind of what was made of a tool table; see [Source]. There is no
// export to it: tenon tools list --out writes tables.
const KindKNIME = kindKNIME

// Kinds returns the values of --from and --to, without [KindKNIME], which is only read.
func Kinds() []string {
	return []string{kindHoloDeck, kindTrustGraph, kindAIDK, kindResearchAI, kindClaude, kindCursor, kindVSCode}
}

// formats are the forms of other programs' files, in the order in which a file is compared with them.
var formats = []struct {
	kind string
	format
}{{kindAIDK, aidkFormat{}}, {kindClaude, claudeFormat{}}, {kindCursor, claudeFormat{}}, {kindHoloDeck, holodeckFormat{}},
	{kindResearchAI, researchFormat{}}, {kindVSCode, vscodeFormat{}}, {kindTrustGraph, trustgraphFormat{}},
	{kindKNIME, knimeFormat{}}}

// formatOf returns the form of a program's files, nil for an unknown program.
func formatOf(kind string) format {
	for _, f := range formats {
		if f.kind == kind {
			return f.format
		}
	}
	return nil
}

// recognise tells by what is in it whose form a file has: "" is tenon.yaml's own. Of forms that are equally certain, the
// first one counts.
func recognise(root *tree.Node) string {
	if hasKey(root, "version") {
		return ""
	}
	kind, best := "", unlike
	for _, f := range formats {
		if sure := f.recognise(root); sure > best {
			kind, best = f.kind, sure
		}
	}
	if best < surely && hasKey(root, "models", "agents", "tools", "policy", "limits", "secrets", "profile") {
		return ""
	}
	return kind
}

// convert turns the tree of another program's file into ours.
func convert(c *conversion, root *tree.Node) *tree.Node {
	c.out, c.tokens = tree.MapAt(root), map[*tree.Node]bool{}
	formatOf(c.kind).convert(c, root)
	quote(c)
	return c.out
}

// loadable are the forms that are read without an import.
var loadable = []string{kindClaude, kindVSCode, kindHoloDeck}

// foreign turns the tree of another program's file into ours, and returns our own
// files as they are. Keys that have no place are warnings there, because the file
// belongs to another program.
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
	c := &conversion{Sink: s, kind: kind, direct: true, home: o.Home, dir: root.Src.Dir}
	return convert(c, root)
}

// ownServers reads mcpServers in a tenon.yaml like servers, with Claude's keys.
func ownServers(root, list, at *tree.Node, s *tree.Sink) *tree.Node {
	c := &conversion{Sink: s, kind: kindClaude, out: tree.MapAt(root)}
	for i, k := range root.Keys {
		if k.Val != "mcpServers" {
			c.out.Append(k.Val, k, root.Vals[i])
		}
	}
	if own, _ := c.out.Get("servers"); own != nil && own.Kind != tree.Map {
		return c.out // which is an error already
	}
	claudeFormat{}.convert(c, &tree.Node{Kind: tree.Map, Src: root.Src, Keys: []*tree.Node{at}, Vals: []*tree.Node{list}})
	return c.out
}

// workspace returns the folder of a project. dir is the folder of another program's file; it may be a subfolder such
// as .vscode.
func workspace(dir string) string {
	if base := filepath.Base(dir); base == ".vscode" || base == ".cursor" || base == ".claude" {
		return filepath.Dir(dir)
	}
	return dir
}

// FromJSON makes the change that adds a server, given as an object of mcpServers
// in .mcp.json. Errors: config, with the place in the JSON, also where something
// in it has no place in tenon.yaml.
func FromJSON(name string, data []byte) (Change, error) {
	s := &tree.Sink{}
	src := &tree.Source{Label: "JSON"}
	root := tree.Parse(src, data, s)
	switch {
	case root != nil && root.Kind != tree.Map:
		s.Add(root, "", "must be a map, is "+root.Form(), "")
	case root == nil && len(s.Errs) == 0:
		s.Add(&tree.Node{Src: src}, "", "is empty", "")
	}
	if len(s.Errs) > 0 {
		return Change{}, Errors(tree.Sorted(s.Errs))
	}
	c := &conversion{Sink: s, kind: kindClaude, direct: true, out: &tree.Node{Kind: tree.Map, Src: src}}
	entry := &tree.Node{Kind: tree.Map, Src: src}
	editorServer(c, root, entry, "servers."+name)
	c.section("servers", root).Append(name, root, entry)
	quote(c)
	entry = c.out.Vals[0].Vals[0]
	if list := append(s.Errs, s.Warns...); len(list) > 0 { // nothing is left out unasked
		return Change{}, Errors(tree.Sorted(list))
	}
	return Change{Section: "servers", Name: name, node: entry}, nil
}

// noKind is the error for a file of which nobody knows whose it is.
func noKind(label string) error {
	return tenon.Errorf(tenon.CodeInvalid, "the format of %s is unknown; name it with "+
		"--from: %s", label, strings.Join(Kinds(), ", "))
}
