package trustgraph

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/tenonhq/tenon/catalog"
	"github.com/tenonhq/tenon/compat"
	"github.com/tenonhq/tenon/config/tree"
)

// Format is the form of TrustGraph's configuration. Its groups are mcp (the tool's address), tool (its
// description) and prompt (templates). They are stored as maps by id, with objects or JSON text as values; the same
// under config; a list of {type, key, value}; a single tool. An entry that cannot be converted is kept under
// x-trustgraph, with the form of the file and all originals that an export cannot derive.
type Format struct{}

// Recognise implements compat.Format.
func (Format) Recognise(root *tree.Node) compat.Certainty {
	tool, _ := root.Get("tool")
	prompt, _ := root.Get("prompt")
	switch {
	case compat.HasKey(root, "mcp") && tool != nil, compat.HasKey(root, "config") && !compat.HasKey(root, "servers"),
		tool != nil && (compat.OfEntry(tool.Vals...) == compat.TrustGraph || areTools(tool)),
		tool != nil && tool.Kind == tree.Map && prompt != nil && prompt.Kind == tree.Map:
		return compat.ByKeys
	case compat.IsList(root) && compat.OfEntry(root.Vals...) == compat.TrustGraph,
		compat.OfEntry(root) == compat.TrustGraph:
		return compat.ByEntry
	}
	return compat.Unlike
}

// areTools reports whether an entry of the group tool, as an object or as JSON text, has a type of TrustGraph's tools.
func areTools(group *tree.Node) bool {
	return slices.ContainsFunc(group.Vals, func(v *tree.Node) bool {
		if v.Kind == tree.Scalar {
			v = jsonText(v)
		}
		kind, _ := v.Get("type")
		return kind != nil && slices.Contains([]string{graphMCP, graphPrompt, graphCompletion, "knowledge-query",
			"structured-query", "agent"}, kind.Val)
	})
}

// Convert implements compat.Format.
func (Format) Convert(c *compat.Conversion, root *tree.Node) {
	c.Out.Append("profile", root, tree.TextAt(root, compat.TrustGraph))
	t := &converter{Conversion: c, at: root, prompts: tree.MapAt(root), made: map[string]string{},
		remotes: map[string]bool{}, hosts: map[[2]string][]string{}}
	c.Retry = t.retryWithout
	t.collect(root)
	for _, e := range t.mcp {
		t.host(e)
	}
	for _, e := range t.tool {
		t.add(e)
	}
	t.finish()
}

// converter collects the groups by id.
type converter struct {
	*compat.Conversion
	at        *tree.Node // the file
	form      string
	order     *tree.Node // list form: the entries in order
	mcp, tool []*graphEntry
	prompts   *tree.Node             // the group prompt: key → value
	used      bool                   // a tool uses a prompt
	hosts     map[[2]string][]string // address and token → servers
	remotes   map[string]bool        // server and remote name; one tool at most may have each pair
	names     catalog.ToolNames
	made      map[string]string // path of our entry → path of TrustGraph's entry
}

// graphEntry is an entry of the group mcp or tool.
type graphEntry struct {
	id, raw *tree.Node
	val     *tree.Node   // raw, or the map in the JSON text of raw; nil if raw is neither
	keys    []*tree.Node // the keys of the JSON text, in order; nil if raw is a map

	// Of an entry of mcp:
	target [2]string  // address and token; an address of "" cannot be used
	remote string     // name of the tool on the server
	rest   *tree.Node // keys that the server's entry does not hold
	linked string     // name of our tool for the entry; "" if there are none or several
	server string     // name of the server that holds the entry
}

// order returns the keys of a JSON text as a list.
func (e *graphEntry) order() *tree.Node {
	return tree.ListAt(e.id, e.keys...)
}

// IsFileKey reports whether a key of x-trustgraph describes the form of a whole file.
func IsFileKey(key string) bool {
	return slices.Contains([]string{"form", "order", "without", "beside"}, key)
}

// The forms of files, as x-trustgraph.form; a file with maps by id has none.
const (
	graphConfig = "config" // the groups are under config
	graphList   = "list"   // a list of {type, key, value}, or of tools
	graphTool   = "tool"   // one tool
)

func (t *converter) collect(root *tree.Node) {
	if root.Kind == tree.List {
		t.list(root)
		return
	}
	if !t.IsMap(root, "") {
		return
	}
	if kind, _ := root.Get("type"); kind != nil {
		t.form = graphTool
		t.single(root, 0)
		return
	}
	groups := root
	if inner, _ := root.Get("config"); inner != nil {
		if !t.IsMap(inner, "config") {
			return
		}
		t.form, groups = graphConfig, inner
		for i, k := range root.Keys {
			if k.Val != "config" {
				t.inFile("beside", k, root.Vals[i])
			}
		}
	}
	for i, k := range groups.Keys {
		t.group(k, groups.Vals[i])
	}
	for _, name := range []string{"mcp", "tool"} {
		if v, _ := groups.Get(name); v == nil {
			top := &tree.Node{Line: 1, Col: 1, Src: root.Src}
			t.inFile("without", tree.TextAt(root, name), tree.BoolAt(top, true))
		}
	}
}

// group reads one group of a file with maps by id.
func (t *converter) group(k, v *tree.Node) {
	if v.Kind != tree.Map || !slices.Contains([]string{"mcp", "tool", "prompt"}, k.Val) {
		if !v.IsNull() {
			t.Warn(k, "", "kept, not used: "+k.Val, "")
		}
		t.inFile("groups", k, v)
		return
	}
	if k.Val == "prompt" {
		t.prompts = v
		return
	}
	for i, id := range v.Keys {
		t.entry(k.Val, id, v.Vals[i])
	}
}

// entry adds an entry of mcp or tool.
func (t *converter) entry(group string, id, v *tree.Node) {
	e := &graphEntry{id: id, raw: v, val: v, rest: tree.MapAt(id)}
	if v.Kind == tree.Scalar && v.Tag == "!!str" {
		if e.val = jsonText(v); e.val != nil {
			e.keys = e.val.Keys
		}
	}
	if e.val == nil || e.val.Kind != tree.Map {
		e.val = nil
	}
	if group == "mcp" {
		t.mcp = append(t.mcp, e)
	} else {
		t.tool = append(t.tool, e)
	}
}

// jsonText parses a text that holds a JSON object, and returns nil for any other.
func jsonText(v *tree.Node) *tree.Node {
	s := &tree.Sink{}
	inner := tree.Parse(&tree.Source{}, []byte(v.Val), s)
	if inner == nil || len(s.Errs) > 0 || inner.Kind != tree.Map || !strings.HasPrefix(strings.TrimSpace(v.Val), "{") {
		return nil
	}
	return inner.Place(v.Src, v)
}

// list reads a list of {type, key, value}, or of tools.
func (t *converter) list(root *tree.Node) {
	t.form, t.order = graphList, tree.ListAt(root)
	seen, groups := map[[2]string]bool{}, map[string]*tree.Node{}
	for i, e := range root.Vals {
		kind, _ := e.Get("type")
		key, _ := e.Get("key")
		value, _ := e.Get("value")
		if kind != nil && kind.Kind == tree.Scalar && key == nil && value == nil {
			slot := tree.MapAt(e)
			slot.Append("key", e, t.single(e, i))
			t.order.Vals = append(t.order.Vals, slot)
			continue
		}
		slot := tree.MapAt(e)
		t.order.Vals = append(t.order.Vals, slot)
		if kind == nil || key == nil || value == nil || kind.Kind != tree.Scalar || key.Kind != tree.Scalar ||
			seen[[2]string{kind.Val, key.Val}] {
			t.Note(e, tree.Index("", i), "is no entry {type, key, value}, or repeats one; kept, not used")
			slot.Append("value", e, e)
			continue
		}
		seen[[2]string{kind.Val, key.Val}] = true
		slot.Append("type", kind, kind)
		slot.Append("key", key, key)
		for j, k := range e.Keys {
			if !slices.Contains([]string{"type", "key", "value"}, k.Val) {
				slot.Append(k.Val, k, e.Vals[j])
			}
		}
		switch kind.Val {
		case "mcp", "tool":
			t.entry(kind.Val, key, value)
			continue
		case "prompt":
			t.prompts.Append(key.Val, key, value)
			continue
		}
		t.Warn(key, "", "kept, not used: "+kind.Val+"."+key.Val, "")
		group := groups[kind.Val]
		if group == nil {
			group = tree.MapAt(kind)
			groups[kind.Val] = group
			t.inFile("groups", kind, group)
		}
		group.Append(key.Val, key, value)
	}
}

// single reads a tool without an id, and returns the id that it gets.
func (t *converter) single(n *tree.Node, i int) *tree.Node {
	id := tree.TextAt(n, fmt.Sprintf("tool%d", i+1))
	if name, _ := n.Get("name"); name != nil && name.Kind == tree.Scalar && name.Val != "" {
		id = tree.TextAt(name, name.Val)
	}
	for slices.ContainsFunc(t.tool, func(e *graphEntry) bool { return e.id.Val == id.Val }) {
		id.Val += "+"
	}
	t.entry("tool", id, n)
	return id
}

// inFile keeps a value under x-trustgraph of the file.
func (t *converter) inFile(section string, k, v *tree.Node) {
	x, _ := t.Out.Get("x-" + compat.TrustGraph)
	into, _ := x.Get(section)
	if into == nil {
		into = tree.MapAt(k)
		t.Store(t.Out, k, section, into)
	}
	into.Append(k.Val, k, v)
}

// unsupported keeps an entry as it is.
func (t *converter) unsupported(section string, e *graphEntry, path, reason string) {
	t.Note(e.id, path, "%s; kept under x-trustgraph", reason)
	t.inFile(section, e.id, e.raw)
}

// host makes a server of an entry of mcp, or uses the server of an earlier entry with the same address and token.
func (t *converter) host(e *graphEntry) {
	path := "mcp." + e.id.Val
	if reason := t.Refused[path]; reason != "" || e.val == nil {
		reason = cmp.Or(reason, "is not a JSON object")
		t.unsupported("mcp", e, path, reason)
		return
	}
	url, _ := e.val.Get("url")
	if url == nil || url.Tag != "!!str" || strings.TrimSpace(url.Val) == "" {
		t.unsupported("mcp", e, path, "'url' is required")
		return
	}
	token, at := e.val.Get("auth-token")
	usable := token != nil && token.Tag == "!!str" && token.Val != ""
	e.target = [2]string{url.Val, ""}
	if usable {
		e.target[1] = token.Val
	}
	t.variableNote(url, path+".url")
	if usable {
		t.variableNote(token, path+".auth-token")
	}
	e.remote = e.id.Val
	for k, v := range e.val.All() {
		switch {
		case k.Val == "url", k.Val == "auth-token" && usable:
			continue
		case k.Val == "remote-name" && v.Tag == "!!str" && v.Val != "":
			e.remote = v.Val
		case k.Val == "remote-name", k.Val == "auth-token" && (v.IsNull() || v.Val == ""):
		default:
			t.Warn(k, "", "kept, not used: "+path+"."+k.Val, "")
		}
		e.rest.Append(k.Val, k, v)
	}
	if list := t.hosts[e.target]; len(list) > 0 {
		e.server = list[0]
	} else {
		e.server = t.newServer(e, url, token, at)
	}
}

// variableNote reports that a text contains a variable. TrustGraph has no variables, but exports of tenon write them.
func (t *converter) variableNote(v *tree.Node, path string) {
	if found := compat.VariableIn(v.Val); found != "" {
		t.Note(v, path, "%s is a variable here; TrustGraph sends it as a text", found)
	}
}

// newServer adds a server for the address of an entry of mcp.
func (t *converter) newServer(e *graphEntry, url, token, at *tree.Node) string {
	base := compat.EntryName(e.id.Val)
	if slices.Contains(catalog.OwnServers(), base) {
		base += "-server"
	}
	list := t.Section("servers", e.id)
	name := base
	for i := 2; ; i++ {
		if other, _ := list.Get(name); other == nil {
			break
		}
		end := fmt.Sprintf("-%d", i)
		name = base[:min(len(base), 64-len(end))] + end
	}
	entry := tree.MapAt(e.id)
	list.Append(name, e.id, entry)
	if base != e.id.Val {
		entry.Append("title", e.id, tree.TextAt(e.id, e.id.Val))
	}
	entry.Append("transport", e.id, tree.TextAt(url, "http"))
	entry.Append("url", url, url)
	if e.target[1] != "" {
		t.Credential(entry, at, token, "bearer", "Authorization", "mcp."+e.id.Val+".auth-token")
	}
	entry.Append("load_tools", e.id, tree.BoolAt(e.id, false))
	t.hosts[e.target] = append(t.hosts[e.target], name)
	t.made["servers."+name] = "mcp." + e.id.Val
	return name
}

// finish records facts for an export that the entries do not imply.
func (t *converter) finish() {
	servers, _ := t.Out.Get("servers")
	for k, v := range servers.All() {
		t.record(k.Val, v)
	}
	if len(t.prompts.Keys) > 0 {
		if !t.used {
			t.Warn(t.prompts.Keys[0], "", "kept, not used: prompt", "")
		}
		t.inFile("groups", tree.TextAt(t.prompts, "prompt"), t.prompts)
	}
	if t.form != "" {
		t.Store(t.Out, t.at, "form", tree.TextAt(t.at, t.form))
	}
	if t.form == graphList {
		t.Store(t.Out, t.at, "order", t.order)
	}
}

// record keeps the entries of mcp that became a server, unless an export finds them without a record.
func (t *converter) record(name string, entry *tree.Node) {
	ids, texts, implied := tree.MapAt(entry), tree.MapAt(entry), true
	for _, e := range t.mcp {
		if e.server != name {
			continue
		}
		ids.Append(e.id.Val, e.id, e.rest)
		if e.keys != nil {
			texts.Append(e.id.Val, e.id, e.order())
		}
		remote, _ := e.rest.Get("remote-name")
		switch {
		case e.linked == severalTools:
			implied = false
		case e.linked == "":
			implied = implied && len(e.rest.Keys) == 0 && e.id.Val == name
		default:
			plain := remote != nil && remote.Tag == "!!str" && remote.Val == e.remote && len(e.rest.Keys) == 1
			implied = implied && (plain || len(e.rest.Keys) == 0 && e.id.Val == e.linked)
		}
	}
	if len(ids.Keys) > 1 || !implied || len(texts.Keys) > 0 {
		t.Store(entry, entry, "mcp", ids)
	}
	if len(texts.Keys) > 0 {
		t.Store(entry, entry, "text", texts)
	}
}

// retryWithout finds the entries that the errors of a converted file are about, so that the next conversion leaves
// them out. It returns false if there is none.
func (t *converter) retryWithout(errs []tree.Error) bool {
	found := false
	for _, e := range errs {
		best := ""
		for path := range t.made {
			if (e.Path == path || strings.HasPrefix(e.Path, path+".")) && len(path) > len(best) {
				best = path
			}
		}
		id := t.made[best]
		if best == "" || t.Refused[id] != "" {
			continue
		}
		found, t.Refused[id] = true, strings.TrimPrefix(e.Path, best+".")+": "+e.Message
	}
	return found
}
