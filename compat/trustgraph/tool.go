package trustgraph

import (
	"slices"
	"strings"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/config/tree"
)

// graphField is a key of tools in tenon.yaml with its names in TrustGraph, of which the first one is the usual name.
type graphField struct {
	ours   string
	theirs []string
	// convert returns the value for tenon.yaml, or nil if there is none. report receives a text about each part that
	// is lost.
	convert func(v *tree.Node, report func(at *tree.Node, text string)) *tree.Node
	// back returns the value for TrustGraph. original is the value that an import changed, or nil.
	back func(ours, original *tree.Node) *tree.Node
}

// graphFields are the keys of tools that are converted one by one, in the order of an export.
func graphFields() []graphField {
	list := func(ours, _ *tree.Node) *tree.Node { return ours }
	return []graphField{
		{"description", []string{"description"}, graphText, graphTextBack},
		{"arguments", []string{"arguments"}, graphArguments, graphArgumentsBack},
		{"groups", []string{"group"}, graphList1, list},
		{"next_state", []string{"state"}, graphText, graphTextBack},
		{"states", []string{"applicable-states", "available_in_states"}, graphList1, list},
	}
}

// The types of tools that are converted.
const (
	graphMCP        = "mcp-tool"
	graphPrompt     = "prompt"
	graphCompletion = "text-completion"
)

func silent(*tree.Node, string) {}

// severalTools replaces the name of the tool of an entry of mcp that several tools use.
const severalTools = "\x00"

// add converts one tool.
func (t *converter) add(e *graphEntry) {
	path := "tool." + e.id.Val
	kind, _ := e.val.Get("type")
	switch {
	case t.Refused[path] != "":
		t.unsupported("tools", e, path, t.Refused[path])
		return
	case e.val == nil:
		t.unsupported("tools", e, path, "is not a JSON object")
		return
	case kind == nil:
		t.unsupported("tools", e, path, "'type' is missing")
		return
	case !slices.Contains([]string{graphMCP, graphPrompt, graphCompletion}, kind.Val):
		t.unsupported("tools", e, path, "a tool of type "+tenon.Visible(kind.Val)+" is not supported")
		return
	}
	entry, x, original := tree.MapAt(e.id), tree.MapAt(e.id), tree.MapAt(e.id)
	if kind.Val != graphMCP && !t.prompt(e, kind.Val, path, entry, x, original) {
		return
	}
	name := t.name(e, path, x, original)
	for _, f := range graphFields() {
		t.field(f, e.val, entry, original, path)
	}
	if kind.Val == graphMCP {
		t.link(e, name, path, entry, x, original)
	}
	for i, k := range e.val.Keys {
		if !converts(k.Val, kind.Val) {
			t.Warn(k, "", "kept, not used: "+path+"."+k.Val, "")
			original.Append(k.Val, k, e.val.Vals[i])
		}
	}
	if e.keys != nil {
		x.Append("text", e.id, e.order())
	}
	if len(original.Keys) > 0 {
		x.Append("original", e.id, original)
	}
	for i, k := range x.Keys {
		t.Store(entry, e.id, k.Val, x.Vals[i])
	}
	t.Section("tools", e.id).Append(name, e.id, entry)
	t.made["tools."+name] = path
}

// converts reports whether a key of a tool is converted.
func converts(key, kind string) bool {
	for _, f := range graphFields() {
		if slices.Contains(f.theirs, key) {
			return true
		}
	}
	switch key {
	case "type", "name":
		return true
	case "mcp-tool", "mcp_tool_id":
		return kind == graphMCP
	case "template", "template_id":
		return kind == graphPrompt
	}
	return false
}

// without records a key that the original lacks, but that an export would add.
func without(x, at *tree.Node, key string) {
	list, _ := x.Get("without")
	if list == nil {
		list = tree.ListAt(at)
		x.Append("without", at, list)
	}
	list.Vals = append(list.Vals, tree.TextAt(at, key))
}

// name gives the tool a name that models accept.
func (t *converter) name(e *graphEntry, path string, x, original *tree.Node) string {
	said, at := e.val.Get("name")
	want := wantedName(said, e.id.Val)
	name := t.names.Make(want)
	switch {
	case said == nil:
		without(x, e.id, "name")
	case said.Tag != "!!str" || said.Val != name:
		original.Append("name", at, said)
	}
	if want != name {
		t.Note(e.id, path+".name", "the tool '%s' is called '%s' here, because of the characters of its name or "+
			"another tool of that name", tenon.Visible(want), name)
	}
	if e.id.Val != name {
		x.Append("id", e.id, tree.TextAt(e.id, e.id.Val))
	}
	return name
}

// wantedName returns the name that a tool has, or its id if it has none.
func wantedName(said *tree.Node, id string) string {
	if said != nil && said.Kind == tree.Scalar && !said.IsNull() && said.Val != "" {
		return said.Val
	}
	return id
}

// field converts a key of a tool. Everything that an export would write differently is kept.
func (t *converter) field(f graphField, n, entry, original *tree.Node, path string) {
	set, several := false, 0
	for _, key := range f.theirs {
		if v, _ := n.Get(key); v != nil {
			several++
		}
	}
	for i, key := range f.theirs {
		v, at := n.Get(key)
		if v == nil {
			continue
		}
		var ours *tree.Node
		if !set {
			ours = f.convert(v, func(at *tree.Node, text string) { t.Note(at, path+"."+key, "%s", text) })
		}
		if ours == nil {
			if v.Kind != tree.Scalar || !v.IsNull() && v.Val != "" {
				t.Warn(at, "", "kept, not used: "+path+"."+key, "")
			}
			original.Append(key, at, v)
			continue
		}
		set = true
		entry.Append(f.ours, at, ours)
		if i > 0 || several > 1 || !tree.SameJSON(f.back(ours, nil), v) {
			original.Append(key, at, v)
		}
	}
}

// link sets the tool's server and remote name. Without an entry of mcp, the tool is disabled.
func (t *converter) link(e *graphEntry, name, path string, entry, x, original *tree.Node) {
	id, at := e.val.Get("mcp-tool")
	if other, k := e.val.Get("mcp_tool_id"); other != nil {
		original.Append("mcp_tool_id", k, other)
		if id == nil {
			id, at = other, k
		} else {
			original.Append("mcp-tool", at, id)
		}
	}
	disable := func(at *tree.Node, reason string) {
		t.Note(at, path, "%s; the tool is disabled", reason)
		entry.Append("enabled", at, tree.BoolAt(at, false))
	}
	switch {
	case id == nil:
		without(x, e.id, "mcp-tool")
		disable(e.id, "'mcp-tool' is missing")
		return
	case id.Kind != tree.Scalar || id.IsNull():
		original.Put(at.Val, id)
		disable(at, "'mcp-tool' is not the id of an entry of mcp")
		return
	case id.Tag != "!!str":
		original.Put(at.Val, id)
	}
	if id.Val != name {
		x.Append("mcp", at, tree.TextAt(id, id.Val))
	}
	i := slices.IndexFunc(t.mcp, func(m *graphEntry) bool { return m.id.Val == id.Val && m.server != "" })
	if i < 0 {
		disable(id, "there is no usable entry mcp."+tenon.Visible(id.Val))
		t.Warns[len(t.Warns)-1].Hint = "enable it with: tenon tools add " + name + " --server SERVER"
		if id.Val != name {
			entry.Append("remote_name", at, tree.TextAt(id, id.Val))
		}
		return
	}
	m := t.mcp[i]
	server := t.free(m)
	entry.Append("server", at, tree.TextAt(id, server))
	remote, _ := m.rest.Get("remote-name")
	if m.remote != name || remote != nil && remote.Val == m.remote {
		entry.Append("remote_name", at, tree.TextAt(id, m.remote))
	}
	switch {
	case server != m.server || m.linked != "":
		m.linked = severalTools
	default:
		m.linked = name
	}
}

// free returns a server with the entry's address on which the remote name is free. A server has one entry per
// tool, so a second description of the tool needs a second server.
func (t *converter) free(m *graphEntry) string {
	for _, server := range append([]string{m.server}, t.hosts[m.target]...) {
		if key := server + "\x00" + m.remote; !t.remotes[key] {
			t.remotes[key] = true
			return server
		}
	}
	url, _ := m.val.Get("url")
	token, at := m.val.Get("auth-token")
	server := t.newServer(m, url, token, at)
	t.remotes[server+"\x00"+m.remote] = true
	t.Note(m.id, "mcp."+m.id.Val, "several tools use this entry; '%s' is a second server with its address", server)
	return server
}

// graphText converts a text. It returns nil for an empty text, and for any other value.
func graphText(v *tree.Node, _ func(*tree.Node, string)) *tree.Node {
	if v.Kind != tree.Scalar || v.IsNull() || v.Val == "" {
		return nil
	}
	return tree.TextAt(v, v.Val)
}

func graphTextBack(ours, _ *tree.Node) *tree.Node { return tree.TextAt(ours, ours.Val) }

// graphList1 converts a text or a list of texts to a list of texts.
func graphList1(v *tree.Node, report func(*tree.Node, string)) *tree.Node {
	out := tree.ListAt(v)
	if v.Kind == tree.Scalar {
		if v.IsNull() || v.Val == "" {
			return nil
		}
		out.Vals = []*tree.Node{tree.TextAt(v, v.Val)}
		return out
	}
	if v.Kind != tree.List {
		return nil
	}
	for _, one := range v.Vals {
		if one.Kind != tree.Scalar || one.IsNull() || one.Val == "" {
			report(one, "an entry that is not a text is not used")
			continue
		}
		out.Vals = append(out.Vals, tree.TextAt(one, one.Val))
	}
	if len(out.Vals) == 0 && len(v.Vals) > 0 {
		return nil
	}
	return out
}

// graphTypes are names of types in TrustGraph's files that JSON Schema does not have.
var graphTypes = map[string]string{"int": "integer", "long": "integer", "float": "number", "double": "number",
	"bool": "boolean", "str": "string", "text": "string", "list": "array", "dict": "object", "map": "object",
	"json": "object", "none": "null"}

var schemaTypes = []string{"string", "number", "integer", "boolean", "object", "array", "null"}

// graphArguments converts a list of arguments, or a single argument, to the key arguments of a tool. It returns nil if
// no argument has a usable name.
func graphArguments(v *tree.Node, report func(*tree.Node, string)) *tree.Node {
	if v.Kind == tree.Map {
		list := tree.ListAt(v, v)
		out := graphArguments(list, silent)
		if out != nil {
			report(v, "one argument that is not in a list is used as a list of one")
			out = graphArguments(list, report)
		}
		return out
	}
	if v.Kind != tree.List {
		return nil
	}
	out := *v
	out.Vals = nil
	var seen []string
	for _, a := range v.Vals {
		arg := graphArgument(a, report)
		if arg == nil {
			report(a, "an entry without a usable name is not used")
			continue
		}
		name, _ := arg.Get("name")
		if slices.Contains(seen, name.Val) {
			report(a, "a second argument '"+tenon.Visible(name.Val)+"' is not used")
			continue
		}
		seen = append(seen, name.Val)
		out.Vals = append(out.Vals, arg)
	}
	if len(out.Vals) == 0 && len(v.Vals) > 0 {
		return nil
	}
	return &out
}

// graphArgument converts one argument. It returns nil if the argument has no name.
func graphArgument(a *tree.Node, report func(*tree.Node, string)) *tree.Node {
	name, _ := a.Get("name")
	if name == nil || name.Tag != "!!str" || name.Val == "" || name.Val != tenon.Visible(name.Val) {
		return nil
	}
	out := tree.MapAt(a)
	for k, v := range a.All() {
		switch {
		case k.Val == "name", k.Val == "description" && v.Tag == "!!str":
			out.Append(k.Val, k, tree.TextAt(v, v.Val))
		case k.Val == "type" && v.Kind == tree.Scalar && !v.IsNull() && v.Val != "":
			out.Append("type", k, tree.TextAt(v, graphType(v, report)))
		case k.Val == "required" && v.Tag == "!!bool":
			out.Append("required", k, v)
		case v.IsNull(), v.Kind == tree.Scalar && v.Val == "":
		default:
			report(k, "'"+tenon.Visible(k.Val)+"' of an argument is kept, not used")
		}
	}
	return out
}

// graphType returns the type in JSON Schema for a type of TrustGraph. An unknown type becomes string.
func graphType(v *tree.Node, report func(*tree.Node, string)) string {
	low := strings.ToLower(strings.TrimSpace(v.Val))
	if ours := graphTypes[low]; ours != "" {
		return ours
	}
	if slices.Contains(schemaTypes, low) {
		return low
	}
	report(v, "the type '"+tenon.Visible(v.Val)+"' is not known; the argument is a string")
	return "string"
}

// graphArgumentsBack returns arguments for TrustGraph. An argument that has not changed since the import gets its
// original form.
func graphArgumentsBack(ours, original *tree.Node) *tree.Node {
	out := &tree.Node{Kind: tree.List}
	for _, a := range ours.Vals {
		name, _ := a.Get("name")
		var was *tree.Node
		for i := 0; original != nil && i < len(original.Vals) && was == nil; i++ {
			if n, _ := original.Vals[i].Get("name"); n != nil && name != nil && n.Val == name.Val {
				was = original.Vals[i]
			}
		}
		if was != nil && tree.SameJSON(graphArgument(was, silent), a) {
			out.Vals = append(out.Vals, was)
			continue
		}
		arg := &tree.Node{Kind: tree.Map}
		for k, v := range a.All() {
			switch k.Val {
			case "name", "description":
				arg.Put(k.Val, tree.TextAt(v, v.Val))
			case "type":
				if t, _ := was.Get("type"); t != nil && graphType(t, silent) == v.Val {
					v = t
				}
				arg.Put("type", v)
			}
		}
		for k, v := range was.All() { // keys that tenon does not know
			if !slices.Contains([]string{"name", "type", "description", "required"}, k.Val) {
				arg.Put(k.Val, v)
			}
		}
		out.Vals = append(out.Vals, arg)
	}
	return out
}
