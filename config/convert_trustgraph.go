package config

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tenonhq/tenon/catalog"
)

// trustgraph reads the groups of TrustGraph's configuration: mcp (the tool's address), tool (its description) and
// prompt (templates). It accepts each form in which they are stored: maps by id, with objects or JSON text as values;
// the same under config; a list of {type, key, value}; a single tool. An entry that cannot be converted is kept
// under x-trustgraph, with the form of the file and all originals that an export cannot derive.
func (c *conversion) trustgraph(root *node) {
	taken(c.out, "profile", root, like(root, kindTrustGraph))
	t := &trustgraph{conversion: c, at: root, prompts: emptyMap(root), made: map[string]string{},
		remotes: map[string]bool{}, hosts: map[[2]string][]string{}}
	c.graph = t
	t.collect(root)
	for _, e := range t.mcp {
		t.host(e)
	}
	for _, e := range t.tool {
		t.add(e)
	}
	t.finish()
}

// trustgraph collects the groups by id.
type trustgraph struct {
	*conversion
	at        *node // the file
	form      string
	order     *node // list form: the entries in order
	mcp, tool []*graphEntry
	prompts   *node                  // the group prompt: key → value
	used      bool                   // a tool uses a prompt
	hosts     map[[2]string][]string // address and token → servers
	remotes   map[string]bool        // server and remote name, which one tool may have
	names     ToolNames
	made      map[string]string // path of our entry → path of theirs
}

// graphEntry is an entry of the group mcp or tool.
type graphEntry struct {
	id, raw *node
	val     *node   // the map that raw is, or holds as JSON text; nil: neither
	keys    []*node // of a JSON text, in order; nil: raw is a map

	// Of an entry of mcp:
	target [2]string // address and token; "" for the address: not usable
	remote string    // name of the tool on the server
	rest   *node     // keys that the server's entry does not hold
	linked string    // name of our tool that the entry is about; "" for none or several
	server string    // name of the server that holds the entry
}

// order returns the keys of a JSON text as a list.
func (e *graphEntry) order() *node {
	return emptyList(e.id, e.keys...)
}

// graphForm are the keys of x-trustgraph that describe the form of a whole file.
var graphForm = []string{"form", "order", "without", "beside"}

// The forms of files, as x-trustgraph.form; a file with maps by id has none.
const (
	graphConfig = "config" // the groups are under config
	graphList   = "list"   // a list of {type, key, value}, or of tools
	graphTool   = "tool"   // one tool
)

func (t *trustgraph) collect(root *node) {
	if root.kind == listNode {
		t.list(root)
		return
	}
	if !t.isMap(root, "") {
		return
	}
	if kind, _ := root.get("type"); kind != nil {
		t.form = graphTool
		t.single(root, 0)
		return
	}
	groups := root
	if inner, _ := root.get("config"); inner != nil {
		if !t.isMap(inner, "config") {
			return
		}
		t.form, groups = graphConfig, inner
		for i, k := range root.keys {
			if k.val != "config" {
				t.inFile("beside", k, root.vals[i])
			}
		}
	}
	for i, k := range groups.keys {
		t.group(k, groups.vals[i])
	}
	for _, name := range []string{"mcp", "tool"} {
		if v, _ := groups.get(name); v == nil {
			t.inFile("without", like(root, name), &node{tag: "!!bool", val: "true", line: 1, col: 1, src: root.src})
		}
	}
}

// group reads one group of a file with maps by id.
func (t *trustgraph) group(k, v *node) {
	if v.kind != mapNode || !slices.Contains([]string{"mcp", "tool", "prompt"}, k.val) {
		if !v.isNull() {
			t.warn(k, "", "kept, not used: "+k.val, "")
		}
		t.inFile("groups", k, v)
		return
	}
	if k.val == "prompt" {
		t.prompts = v
		return
	}
	for i, id := range v.keys {
		t.entry(k.val, id, v.vals[i])
	}
}

// entry adds an entry of mcp or tool.
func (t *trustgraph) entry(group string, id, v *node) {
	e := &graphEntry{id: id, raw: v, val: v, rest: emptyMap(id)}
	if v.kind == scalarNode && v.tag == "!!str" {
		if e.val = jsonText(v); e.val != nil {
			e.keys = e.val.keys
		}
	}
	if e.val == nil || e.val.kind != mapNode {
		e.val = nil
	}
	if group == "mcp" {
		t.mcp = append(t.mcp, e)
	} else {
		t.tool = append(t.tool, e)
	}
}

// jsonText parses a text that holds a JSON object, and returns nil for any other.
func jsonText(v *node) *node {
	s := &sink{}
	inner := parse(&source{}, []byte(v.val), s)
	if inner == nil || len(s.errs) > 0 || inner.kind != mapNode || !strings.HasPrefix(strings.TrimSpace(v.val), "{") {
		return nil
	}
	return inner.place(v.src, v)
}

// list reads a list of {type, key, value}, or of tools.
func (t *trustgraph) list(root *node) {
	t.form, t.order = graphList, emptyList(root)
	seen, groups := map[[2]string]bool{}, map[string]*node{}
	for i, e := range root.vals {
		kind, _ := e.get("type")
		key, _ := e.get("key")
		value, _ := e.get("value")
		if kind != nil && kind.kind == scalarNode && key == nil && value == nil {
			slot := emptyMap(e)
			taken(slot, "key", e, t.single(e, i))
			t.order.vals = append(t.order.vals, slot)
			continue
		}
		slot := emptyMap(e)
		t.order.vals = append(t.order.vals, slot)
		if kind == nil || key == nil || value == nil || kind.kind != scalarNode || key.kind != scalarNode ||
			seen[[2]string{kind.val, key.val}] {
			t.note(e, index("", i), "is no entry {type, key, value}, or repeats one; kept, not used")
			taken(slot, "value", e, e)
			continue
		}
		seen[[2]string{kind.val, key.val}] = true
		taken(slot, "type", kind, kind)
		taken(slot, "key", key, key)
		for j, k := range e.keys {
			if !slices.Contains([]string{"type", "key", "value"}, k.val) {
				taken(slot, k.val, k, e.vals[j])
			}
		}
		switch kind.val {
		case "mcp", "tool":
			t.entry(kind.val, key, value)
			continue
		case "prompt":
			taken(t.prompts, key.val, key, value)
			continue
		}
		t.warn(key, "", "kept, not used: "+kind.val+"."+key.val, "")
		group := groups[kind.val]
		if group == nil {
			group = emptyMap(kind)
			groups[kind.val] = group
			t.inFile("groups", kind, group)
		}
		taken(group, key.val, key, value)
	}
}

// single reads a tool without an id, and returns the id that it gets.
func (t *trustgraph) single(n *node, i int) *node {
	id := like(n, fmt.Sprintf("tool%d", i+1))
	if name, _ := n.get("name"); name != nil && name.kind == scalarNode && name.val != "" {
		id = like(name, name.val)
	}
	for slices.ContainsFunc(t.tool, func(e *graphEntry) bool { return e.id.val == id.val }) {
		id.val += "+"
	}
	t.entry("tool", id, n)
	return id
}

// inFile keeps a value under x-trustgraph of the file.
func (t *trustgraph) inFile(section string, k, v *node) {
	x, _ := t.out.get("x-" + kindTrustGraph)
	into, _ := x.get(section)
	if into == nil {
		into = emptyMap(k)
		t.store(t.out, k, section, into)
	}
	taken(into, k.val, k, v)
}

// unsupported keeps an entry as it is.
func (t *trustgraph) unsupported(section string, e *graphEntry, path, reason string) {
	t.note(e.id, path, "%s; kept under x-trustgraph", reason)
	t.inFile(section, e.id, e.raw)
}

// host makes a server of an entry of mcp, or uses the server of an earlier entry with the same address and token.
func (t *trustgraph) host(e *graphEntry) {
	path := "mcp." + e.id.val
	if reason := t.refused[path]; reason != "" || e.val == nil {
		if reason == "" {
			reason = "is not a JSON object"
		}
		t.unsupported("mcp", e, path, reason)
		return
	}
	url, _ := e.val.get("url")
	if url == nil || url.tag != "!!str" || strings.TrimSpace(url.val) == "" {
		t.unsupported("mcp", e, path, "'url' is required")
		return
	}
	token, at := e.val.get("auth-token")
	usable := token != nil && token.tag == "!!str" && token.val != ""
	e.target = [2]string{url.val, ""}
	if usable {
		e.target[1] = token.val
	}
	t.variableNote(url, path+".url")
	if usable {
		t.variableNote(token, path+".auth-token")
	}
	e.remote = e.id.val
	for i, k := range e.val.keys {
		v := e.val.vals[i]
		switch {
		case k.val == "url", k.val == "auth-token" && usable:
			continue
		case k.val == "remote-name" && v.tag == "!!str" && v.val != "":
			e.remote = v.val
		case k.val == "remote-name", k.val == "auth-token" && (v.isNull() || v.val == ""):
		default:
			t.warn(k, "", "kept, not used: "+path+"."+k.val, "")
		}
		taken(e.rest, k.val, k, v)
	}
	if list := t.hosts[e.target]; len(list) > 0 {
		e.server = list[0]
	} else {
		e.server = t.newServer(e, url, token, at)
	}
}

// variableNote says that a text has a variable: TrustGraph has none, but an export of ours writes them.
func (t *trustgraph) variableNote(v *node, path string) {
	if found := plainVariable().FindString(v.val); found != "" {
		t.note(v, path, "%s is a variable here; TrustGraph sends it as a text", found)
	}
}

// newServer adds a server for the address of an entry of mcp.
func (t *trustgraph) newServer(e *graphEntry, url, token, at *node) string {
	base := entryName(e.id.val)
	if slices.Contains(catalog.OwnServers(), base) {
		base += "-server"
	}
	list := t.section("servers", e.id)
	name := base
	for i := 2; ; i++ {
		if other, _ := list.get(name); other == nil {
			break
		}
		end := fmt.Sprintf("-%d", i)
		name = base[:min(len(base), 64-len(end))] + end
	}
	entry := emptyMap(e.id)
	taken(list, name, e.id, entry)
	if base != e.id.val {
		taken(entry, "title", e.id, like(e.id, e.id.val))
	}
	taken(entry, "transport", e.id, like(url, "http"))
	taken(entry, "url", url, url)
	if e.target[1] != "" {
		t.credential(entry, at, token, "bearer", "Authorization", "mcp."+e.id.val+".auth-token")
	}
	taken(entry, "load_tools", e.id, boolAt(e.id, false))
	t.hosts[e.target] = append(t.hosts[e.target], name)
	t.made["servers."+name] = "mcp." + e.id.val
	return name
}

// entryName makes a text a name of at most 64 characters that an entry may have.
func entryName(s string) string {
	s = strings.Map(func(r rune) rune {
		if r < 0x80 && validName(string(r)) {
			return r
		}
		return '-'
	}, s)
	if s == "" {
		return "-"
	}
	return s[:min(len(s), 64)]
}

// finish records what the entries do not imply.
func (t *trustgraph) finish() {
	servers, _ := t.out.get("servers")
	for i := 0; servers != nil && i < len(servers.keys); i++ {
		t.record(servers.keys[i].val, servers.vals[i])
	}
	if len(t.prompts.keys) > 0 {
		if !t.used {
			t.warn(t.prompts.keys[0], "", "kept, not used: prompt", "")
		}
		t.inFile("groups", like(t.prompts, "prompt"), t.prompts)
	}
	if t.form != "" {
		t.store(t.out, t.at, "form", like(t.at, t.form))
	}
	if t.form == graphList {
		t.store(t.out, t.at, "order", t.order)
	}
}

// record keeps the entries of mcp that became a server, unless an export finds them without a record.
func (t *trustgraph) record(name string, entry *node) {
	ids, texts, implied := emptyMap(entry), emptyMap(entry), true
	for _, e := range t.mcp {
		if e.server != name {
			continue
		}
		taken(ids, e.id.val, e.id, e.rest)
		if e.keys != nil {
			taken(texts, e.id.val, e.id, e.order())
		}
		remote, _ := e.rest.get("remote-name")
		switch {
		case e.linked == severalTools:
			implied = false
		case e.linked == "":
			implied = implied && len(e.rest.keys) == 0 && e.id.val == name
		default:
			plain := remote != nil && remote.tag == "!!str" && remote.val == e.remote && len(e.rest.keys) == 1
			implied = implied && (plain || len(e.rest.keys) == 0 && e.id.val == e.linked)
		}
	}
	if len(ids.keys) > 1 || !implied || len(texts.keys) > 0 {
		t.store(entry, entry, "mcp", ids)
	}
	if len(texts.keys) > 0 {
		t.store(entry, entry, "text", texts)
	}
}

// refuse finds the entries that the errors of a converted file are about, so that the next conversion leaves them
// out. It returns false if there is none.
func (t *trustgraph) refuse(errs []Error, refused map[string]string) bool {
	found := false
	for _, e := range errs {
		best := ""
		for path := range t.made {
			if (e.Path == path || strings.HasPrefix(e.Path, path+".")) && len(path) > len(best) {
				best = path
			}
		}
		id := t.made[best]
		if best == "" || refused[id] != "" {
			continue
		}
		found, refused[id] = true, strings.TrimPrefix(e.Path, best+".")+": "+e.Message
	}
	return found
}
