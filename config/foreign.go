package config

import (
	"fmt"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"github.com/tenonhq/tenon"
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
var forms = map[string]func(*conversion, *node){
	kindClaude: (*conversion).claude, kindCursor: (*conversion).claude, kindVSCode: (*conversion).vscode,
	kindHoloDeck:   (*conversion).holodeck,
	kindTrustGraph: (*conversion).trustgraph, kindAIDK: (*conversion).aidk, kindResearchAI: (*conversion).researchai,
	KindKNIME: (*conversion).knime,
}

// loadable are the forms that are read without an import.
var loadable = []string{kindClaude, kindVSCode, kindHoloDeck}

// recognise tells by what is in it whose form a file has: "" is tenon.yaml's own.
func recognise(root *node) string {
	has := func(keys ...string) bool {
		return slices.ContainsFunc(keys, func(k string) bool { v, _ := root.get(k); return v != nil })
	}
	if root != nil && root.kind == listNode {
		return ofEntry(root)
	}
	if root == nil || root.kind != mapNode || has("version") {
		return ""
	}
	if servers, _ := root.get("mcpServers"); servers != nil {
		if ofEntry(servers) == kindAIDK {
			return kindAIDK
		}
		return kindClaude
	}
	tools, _ := root.get("tools")
	servers, _ := root.get("servers")
	switch {
	case tools != nil && tools.kind == listNode && has("model", "instructions"), has("mcp_servers"),
		isAgent(root):
		return kindHoloDeck
	case servers != nil && servers.kind == listNode && slices.ContainsFunc(servers.vals,
		func(v *node) bool { id, _ := v.get("id"); return id != nil }):
		return kindResearchAI
	case has("models", "agents", "tools", "policy", "limits", "secrets", "profile"):
		return ""
	case servers != nil &&
		(has("inputs") || slices.ContainsFunc(servers.vals,
			func(v *node) bool { t, _ := v.get("type"); return t != nil })):
		return kindVSCode
	case has("mcp") && has("tool"), has("config") && !has("servers"):
		return kindTrustGraph
	}
	if tool, _ := root.get("tool"); tool != nil && ofEntry(tool) == kindTrustGraph {
		return kindTrustGraph
	}
	return ofEntry(&node{kind: listNode, vals: []*node{root}})
}

// isAgent reports whether a file without a list of tools is a HoloDeck agent: it describes one agent with its model.
func isAgent(root *node) bool {
	instructions, _ := root.get("instructions")
	model, _ := root.get("model")
	return instructions != nil && model != nil && model.kind == mapNode
}

// ofEntry tells whose form the entries of a list or a map have.
func ofEntry(list *node) string {
	for _, e := range list.vals {
		if v, _ := e.get("connection"); v != nil {
			return kindAIDK
		}
		if v, _ := e.get("serverName"); v != nil {
			return kindAIDK
		}
		if v, _ := e.get("mcp-tool"); v != nil {
			return kindTrustGraph
		}
		if t, _ := e.get("type"); t != nil && slices.Contains([]string{"mcp-tool", "mcp", "tool"}, t.val) {
			return kindTrustGraph
		}
	}
	return ""
}

// foreign turns the tree of another program's file into ours, and returns our own
// files as they are. Keys that have no place are warnings there, because the file
// belongs to another program.
func foreign(root *node, o Options, s *sink) *node {
	kind := recognise(root)
	if list, at := root.get("mcpServers"); kind == "" && list != nil {
		return ownServers(root, list, at, s)
	}
	if kind == "" {
		return root
	}
	if !slices.Contains(loadable, kind) {
		s.add(root, "", "a file of "+kind+" cannot be used as it is", fmt.Sprintf("tenon config import %s --from %s",
			root.src.label, kind))
		return &node{kind: mapNode, line: 1, col: 1, src: root.src}
	}
	root.src.kind = kind
	root.src.dir = workspace(root.src.dir)
	c := &conversion{sink: s, kind: kind, direct: true, home: o.Home, dir: root.src.dir}
	return c.convert(root)
}

// ownServers reads mcpServers in a tenon.yaml like servers, with Claude's keys.
func ownServers(root, list, at *node, s *sink) *node {
	c := &conversion{sink: s, kind: kindClaude, out: emptyMap(root)}
	for i, k := range root.keys {
		if k.val != "mcpServers" {
			taken(c.out, k.val, k, root.vals[i])
		}
	}
	if own, _ := c.out.get("servers"); own != nil && own.kind != mapNode {
		return c.out // which is an error already
	}
	c.claude(&node{kind: mapNode, src: root.src, keys: []*node{at}, vals: []*node{list}})
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
	*sink
	kind      string
	direct    bool   // the file is loaded as it is
	home, dir string // values of the format's folder variables
	out       *node
	tokens    map[*node]bool // values that are secrets, whatever they look like
	enabled   []string       // researchai: the enabled servers; nil: all
	graph     *trustgraph    // trustgraph: the file under conversion
	// trustgraph: entries that are left out, by their paths → why. One bad tool never loses the others.
	refused map[string]string
}

func (c *conversion) convert(root *node) *node {
	c.out = emptyMap(root)
	c.tokens = map[*node]bool{}
	forms[c.kind](c, root)
	c.quote()
	return c.out
}

// section returns a section of our file, which is made where it is not there yet.
func (c *conversion) section(name string, at *node) *node {
	v, _ := c.out.get(name)
	if v == nil {
		v = emptyMap(at)
		taken(c.out, name, v, v)
	}
	return v
}

// unknown reports a key that the other program does not have either.
func (c *conversion) unknown(k *node, path string) {
	if c.direct {
		c.remark(k, path, "unknown key; it is not used", "")
		return
	}
	c.add(k, path, "unknown key", "no key of "+c.kind+"; remove it, or write it under x-"+c.kind+" after the import")
}

// keep puts what has no place into x-KIND of an entry or of the file.
func (c *conversion) keep(into, k, v *node, path string) {
	message := "kept, not used: " + path
	if c.direct {
		message = "not used: " + path
	}
	c.remark(k, "", message, "")
	c.store(into, k, k.val, v)
}

// store puts a value into x-KIND without a word.
func (c *conversion) store(into, at *node, key string, v *node) {
	x, _ := into.get("x-" + c.kind)
	if x == nil {
		x = emptyMap(at)
		taken(into, "x-"+c.kind, at, x)
	}
	taken(x, key, at, v)
}

// note reports a difference that the user may not expect.
func (c *conversion) note(at *node, path, format string, args ...any) {
	c.remark(at, path, fmt.Sprintf(format, args...), "")
}

// remark is a warning about the format of the file. Of a file that is used as it is, it is repeated only once a day.
func (c *conversion) remark(at *node, path, message, hint string) {
	before := len(c.warns)
	c.warn(at, path, message, hint)
	if len(c.warns) > before {
		c.warns[before].Daily = c.direct
	}
}

// isMap reports whether a value is a map, and says so where it is not.
func (c *conversion) isMap(n *node, path string) bool {
	if n.kind != mapNode {
		c.add(n, path, "must be a map, is "+n.what(), "")
	}
	return n.kind == mapNode
}

// server adds a server under a name that ours may have, and returns its entry, or
// nil where what is said about it is no map, or the name is taken.
func (c *conversion) server(k, v *node, path string) *node {
	if !c.isMap(v, path) {
		return nil
	}
	name := strings.Map(func(r rune) rune {
		if r < 0x80 && validName(string(r)) {
			return r
		}
		return '-'
	}, k.val)
	if name = name[:min(len(name), 64)]; name == "" {
		name = "-"
	}
	list := c.section("servers", k)
	if _, other := list.get(name); other != nil {
		hint := ""
		if name != k.val {
			hint = "characters that a name cannot have are replaced by -"
		}
		c.add(k, path, "there is a server '"+name+"' already", hint)
		return nil
	}
	e := emptyMap(k)
	taken(list, name, k, e)
	if name != k.val {
		taken(e, "title", k, like(k, k.val))
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
	if !varName(name) {
		return ""
	}
	return name
}

// editorVariable matches the variables of VS Code and Cursor that ours do not have.
var editorVariable = lazyregexp.New(
	`\$\{(env:[A-Za-z_][A-Za-z0-9_]*|workspaceFolder|workspaceFolderBasename|userHome|pathSeparator|/|input:[^}]*)\}`)

// variables replaces an editor's variables in a value and all that is in it.
func (c *conversion) variables(v *node) *node {
	if v.kind == scalarNode && !strings.Contains(v.val, "${") {
		return v
	}
	out := *v
	out.vals = make([]*node, len(v.vals))
	for i, e := range v.vals {
		out.vals[i] = c.variables(e)
	}
	if v.kind == scalarNode {
		out.val = editorVariable().ReplaceAllStringFunc(v.val, func(s string) string {
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
		if r < 0x80 && validName(string(r)) {
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
	s := &sink{}
	src := &source{label: "JSON"}
	root := parse(src, data, s)
	switch {
	case root != nil && root.kind != mapNode:
		s.add(root, "", "must be a map, is "+root.what(), "")
	case root == nil && len(s.errs) == 0:
		s.add(&node{src: src}, "", "is empty", "")
	}
	if len(s.errs) > 0 {
		return Change{}, Errors(sorted(s.errs))
	}
	c := &conversion{sink: s, kind: kindClaude, direct: true, out: &node{kind: mapNode, src: src}}
	entry := &node{kind: mapNode, src: src}
	c.claudeServer(root, entry, "servers."+name)
	taken(c.section("servers", root), name, root, entry)
	c.quote()
	entry = c.out.vals[0].vals[0]
	if list := append(s.errs, s.warns...); len(list) > 0 { // nothing is left out unasked
		return Change{}, Errors(sorted(list))
	}
	return Change{Section: "servers", Name: name, node: entry}, nil
}

// noKind is the error for a file of which nobody knows whose it is.
func noKind(label string) error {
	return tenon.Errorf(tenon.CodeInvalid, "the format of %s is unknown; name it with "+
		"--from: %s", label, strings.Join(Kinds(), ", "))
}
