package config

import (
	"fmt"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/config/tree"
	"github.com/tenonhq/tenon/internal/lazyregexp"
)

// The programs whose files are read.
const (
	kindClaude     = "claude"
	kindCursor     = "cursor"
	kindVSCode     = "vscode"
	kindHoloDeck   = "holodeck"
	kindTrustGraph = "trustgraph"
	kindAIDK       = "aidk"
	kindResearchAI = "researchai"
)

// KindKNIME is the kind of what was made of a tool table; see [Source]. There is no
// export to it: tenon tools list --out writes tables.
const KindKNIME = "knime"

// Kinds returns the values of --from and --to, without [KindKNIME], which is only read.
func Kinds() []string {
	return []string{kindHoloDeck, kindTrustGraph, kindAIDK, kindResearchAI, kindClaude, kindCursor, kindVSCode}
}

// forms turn the tree of another program's file into ours.
var forms = map[string]func(*conversion, *tree.Node){
	kindClaude: (*conversion).claude, kindCursor: (*conversion).claude, kindVSCode: (*conversion).vscode,
	kindHoloDeck:   (*conversion).holodeck,
	kindTrustGraph: (*conversion).trustgraph, kindAIDK: (*conversion).aidk, kindResearchAI: (*conversion).researchai,
	KindKNIME: (*conversion).knime,
}

// loadable are the forms that are read without an import.
var loadable = []string{kindClaude, kindVSCode, kindHoloDeck}

// recognise tells by what is in it whose form a file has: "" is tenon.yaml's own.
func recognise(root *tree.Node) string {
	has := func(keys ...string) bool {
		return slices.ContainsFunc(keys, func(k string) bool { v, _ := root.Get(k); return v != nil })
	}
	if root != nil && root.Kind == tree.List {
		return ofEntry(root)
	}
	if root == nil || root.Kind != tree.Map || has("version") {
		return ""
	}
	if servers, _ := root.Get("mcpServers"); servers != nil {
		if ofEntry(servers) == kindAIDK {
			return kindAIDK
		}
		return kindClaude
	}
	tools, _ := root.Get("tools")
	servers, _ := root.Get("servers")
	switch {
	case tools != nil && tools.Kind == tree.List && has("model", "instructions"), has("mcp_servers"),
		isAgent(root):
		return kindHoloDeck
	case servers != nil && servers.Kind == tree.List && slices.ContainsFunc(servers.Vals,
		func(v *tree.Node) bool { id, _ := v.Get("id"); return id != nil }):
		return kindResearchAI
	case has("models", "agents", "tools", "policy", "limits", "secrets", "profile"):
		return ""
	case servers != nil &&
		(has("inputs") || slices.ContainsFunc(servers.Vals,
			func(v *tree.Node) bool { t, _ := v.Get("type"); return t != nil })):
		return kindVSCode
	case has("mcp") && has("tool"), has("config") && !has("servers"):
		return kindTrustGraph
	}
	if tool, _ := root.Get("tool"); tool != nil && ofEntry(tool) == kindTrustGraph {
		return kindTrustGraph
	}
	return ofEntry(&tree.Node{Kind: tree.List, Vals: []*tree.Node{root}})
}

// isAgent reports whether a file without a list of tools is a HoloDeck agent: it describes one agent with its model.
func isAgent(root *tree.Node) bool {
	instructions, _ := root.Get("instructions")
	model, _ := root.Get("model")
	return instructions != nil && model != nil && model.Kind == tree.Map
}

// ofEntry tells whose form the entries of a list or a map have.
func ofEntry(list *tree.Node) string {
	for _, e := range list.Vals {
		if v, _ := e.Get("connection"); v != nil {
			return kindAIDK
		}
		if v, _ := e.Get("serverName"); v != nil {
			return kindAIDK
		}
		if v, _ := e.Get("mcp-tool"); v != nil {
			return kindTrustGraph
		}
		if t, _ := e.Get("type"); t != nil && slices.Contains([]string{"mcp-tool", "mcp", "tool"}, t.Val) {
			return kindTrustGraph
		}
	}
	return ""
}

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
	return c.convert(root)
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
	c.claude(&tree.Node{Kind: tree.Map, Src: root.Src, Keys: []*tree.Node{at}, Vals: []*tree.Node{list}})
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

// conversion converts another program's file to tenon.yaml. It reports each key without an equivalent; an import
// keeps it under x-KIND.
type conversion struct {
	*tree.Sink
	kind      string
	direct    bool   // the file is loaded as it is
	home, dir string // values of the format's folder variables
	out       *tree.Node
	tokens    map[*tree.Node]bool // values that are secrets, whatever they look like
	enabled   []string            // researchai: the enabled servers; nil: all
	graph     *trustgraph         // trustgraph: the file under conversion
	// trustgraph: entries that are left out, by their paths → why. One bad tool never loses the others.
	refused map[string]string
}

func (c *conversion) convert(root *tree.Node) *tree.Node {
	c.out = tree.MapAt(root)
	c.tokens = map[*tree.Node]bool{}
	forms[c.kind](c, root)
	c.quote()
	return c.out
}

// section returns a section of our file, which is made where it is not there yet.
func (c *conversion) section(name string, at *tree.Node) *tree.Node {
	v, _ := c.out.Get(name)
	if v == nil {
		v = tree.MapAt(at)
		c.out.Append(name, v, v)
	}
	return v
}

// unknown reports a key that the other program does not have either.
func (c *conversion) unknown(k *tree.Node, path string) {
	if c.direct {
		c.remark(k, path, "unknown key; it is not used", "")
		return
	}
	c.Add(k, path, "unknown key", "no key of "+c.kind+"; remove it, or write it under x-"+c.kind+" after the import")
}

// keep puts what has no place into x-KIND of an entry or of the file.
func (c *conversion) keep(into, k, v *tree.Node, path string) {
	message := "kept, not used: " + path
	if c.direct {
		message = "not used: " + path
	}
	c.remark(k, "", message, "")
	c.store(into, k, k.Val, v)
}

// store puts a value into x-KIND without a word.
func (c *conversion) store(into, at *tree.Node, key string, v *tree.Node) {
	x, _ := into.Get("x-" + c.kind)
	if x == nil {
		x = tree.MapAt(at)
		into.Append("x-"+c.kind, at, x)
	}
	x.Append(key, at, v)
}

// note reports a difference that the user may not expect.
func (c *conversion) note(at *tree.Node, path, format string, args ...any) {
	c.remark(at, path, fmt.Sprintf(format, args...), "")
}

// remark is a warning about the format of the file. Of a file that is used as it is, it is repeated only once a day.
func (c *conversion) remark(at *tree.Node, path, message, hint string) {
	before := len(c.Warns)
	c.Warn(at, path, message, hint)
	if len(c.Warns) > before {
		c.Warns[before].Daily = c.direct
	}
}

// isMap reports whether a value is a map, and says so where it is not.
func (c *conversion) isMap(n *tree.Node, path string) bool {
	if n.Kind != tree.Map {
		c.Add(n, path, "must be a map, is "+n.Form(), "")
	}
	return n.Kind == tree.Map
}

// server adds a server under a name that ours may have, and returns its entry, or
// nil where what is said about it is no map, or the name is taken.
func (c *conversion) server(k, v *tree.Node, path string) *tree.Node {
	if !c.isMap(v, path) {
		return nil
	}
	name := strings.Map(func(r rune) rune {
		if r < 0x80 && tree.IsName(string(r)) {
			return r
		}
		return '-'
	}, k.Val)
	if name = name[:min(len(name), 64)]; name == "" {
		name = "-"
	}
	list := c.section("servers", k)
	if _, other := list.Get(name); other != nil {
		hint := ""
		if name != k.Val {
			hint = "characters that a name cannot have are replaced by -"
		}
		c.Add(k, path, "there is a server '"+name+"' already", hint)
		return nil
	}
	e := tree.MapAt(k)
	list.Append(name, k, e)
	if name != k.Val {
		e.Append("title", k, tree.TextAt(k, k.Val))
	}
	return e
}

// supported reports whether our struct has a key.
func supported[T any](key string) bool {
	return slices.ContainsFunc(fields(reflect.TypeFor[T]()), func(f field) bool { return f.name == key })
}

// onlyVariable returns the name in a text that is one variable and nothing else.
func onlyVariable(s string) string {
	inner, ok := strings.CutPrefix(s, "${")
	if !ok || !strings.HasSuffix(inner, "}") {
		return ""
	}
	name, _, _ := strings.Cut(strings.TrimSuffix(inner, "}"), ":-")
	if !tree.IsVariable(name) {
		return ""
	}
	return name
}

// editorVariable matches the variables of VS Code and Cursor that ours do not have.
var editorVariable = lazyregexp.New(
	`\$\{(env:[A-Za-z_][A-Za-z0-9_]*|workspaceFolder|workspaceFolderBasename|userHome|pathSeparator|/|input:[^}]*)\}`)

// variables replaces an editor's variables in a value and all that is in it.
func (c *conversion) variables(v *tree.Node) *tree.Node {
	if v.Kind == tree.Scalar && !strings.Contains(v.Val, "${") {
		return v
	}
	out := *v
	out.Vals = make([]*tree.Node, len(v.Vals))
	for i, e := range v.Vals {
		out.Vals[i] = c.variables(e)
	}
	if v.Kind == tree.Scalar {
		out.Val = editorVariable().ReplaceAllStringFunc(v.Val, func(s string) string {
			name := s[2 : len(s)-1]
			switch kind, rest, _ := strings.Cut(name, ":"); {
			case kind == "env":
				return "${" + rest + "}"
			case kind == "input":
				return "${secret:" + secretName(rest) + "}"
			case name == "workspaceFolder":
				return filepath.ToSlash(c.dir)
			case name == "workspaceFolderBasename":
				return filepath.Base(c.dir)
			case name == "userHome":
				return filepath.ToSlash(c.home)
			}
			return "/"
		})
	}
	return &out
}

// secretName makes a name that an entry of secrets may have.
func secretName(s string) string {
	s = strings.Map(func(r rune) rune {
		if r < 0x80 && tree.IsName(string(r)) {
			return r
		}
		return '-'
	}, s)
	return s[:min(len(s), 64)]
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
	c.claudeServer(root, entry, "servers."+name)
	c.section("servers", root).Append(name, root, entry)
	c.quote()
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
