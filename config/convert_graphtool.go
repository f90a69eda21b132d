package config

import (
	"bytes"
	"slices"
	"strings"

	"github.com/tenonhq/tenon"
)

// graphField is a key of our tools with its names in TrustGraph; the first of them is the usual one.
type graphField struct {
	ours   string
	theirs []string
	// convert returns our value, nil for none. report receives a text about each part that is not taken over.
	convert func(v *node, report func(at *node, text string)) *node
	// back returns their value. original is the value that an import changed, or nil.
	back func(ours, original *node) *node
}

// graphFields are the keys of tools that are converted one by one, in the order of an export.
func graphFields() []graphField {
	list := func(ours, _ *node) *node { return ours }
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

func silent(*node, string) {}

// severalTools is the name of the tool of an entry of mcp to which several tools lead.
const severalTools = "\x00"

// add converts one tool.
func (t *trustgraph) add(e *graphEntry) {
	path := "tool." + e.id.val
	kind, _ := e.val.get("type")
	switch {
	case t.refused[path] != "":
		t.unsupported("tools", e, path, t.refused[path])
		return
	case e.val == nil:
		t.unsupported("tools", e, path, "is not a JSON object")
		return
	case kind == nil:
		t.unsupported("tools", e, path, "'type' is missing")
		return
	case !slices.Contains([]string{graphMCP, graphPrompt, graphCompletion}, kind.val):
		t.unsupported("tools", e, path, "a tool of type "+tenon.Visible(kind.val)+" is not supported")
		return
	}
	entry, x, original := emptyMap(e.id), emptyMap(e.id), emptyMap(e.id)
	if kind.val != graphMCP && !t.prompt(e, kind.val, path, entry, x, original) {
		return
	}
	name := t.name(e, path, x, original)
	for _, f := range graphFields() {
		t.field(f, e.val, entry, original, path)
	}
	if kind.val == graphMCP {
		t.link(e, name, path, entry, x, original)
	}
	for i, k := range e.val.keys {
		if !t.reads(k.val, kind.val) {
			t.warn(k, "", "kept, not used: "+path+"."+k.val, "")
			taken(original, k.val, k, e.val.vals[i])
		}
	}
	if e.keys != nil {
		taken(x, "text", e.id, e.order())
	}
	if len(original.keys) > 0 {
		taken(x, "original", e.id, original)
	}
	for i, k := range x.keys {
		t.store(entry, e.id, k.val, x.vals[i])
	}
	taken(t.section("tools", e.id), name, e.id, entry)
	t.made["tools."+name] = path
}

// reads reports whether a key of a tool is converted.
func (t *trustgraph) reads(key, kind string) bool {
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

// without notes a key that an export writes by itself and that the original lacks.
func without(x, at *node, key string) {
	list, _ := x.get("without")
	if list == nil {
		list = emptyList(at)
		taken(x, "without", at, list)
	}
	list.vals = append(list.vals, like(at, key))
}

// name gives the tool a name that models accept.
func (t *trustgraph) name(e *graphEntry, path string, x, original *node) string {
	said, at := e.val.get("name")
	want := wantedName(said, e.id.val)
	name := t.names.Make(want)
	switch {
	case said == nil:
		without(x, e.id, "name")
	case said.tag != "!!str" || said.val != name:
		taken(original, "name", at, said)
	}
	if want != name {
		t.note(e.id, path+".name", "the tool '%s' is called '%s' here, because of the characters of its name or "+
			"another tool of that name", tenon.Visible(want), name)
	}
	if e.id.val != name {
		taken(x, "id", e.id, like(e.id, e.id.val))
	}
	return name
}

// wantedName returns the name that a tool has, or its id if it has none.
func wantedName(said *node, id string) string {
	if said != nil && said.kind == scalarNode && !said.isNull() && said.val != "" {
		return said.val
	}
	return id
}

// field converts a key of a tool. Everything that an export would write differently is kept.
func (t *trustgraph) field(f graphField, n, entry, original *node, path string) {
	set, several := false, 0
	for _, key := range f.theirs {
		if v, _ := n.get(key); v != nil {
			several++
		}
	}
	for i, key := range f.theirs {
		v, at := n.get(key)
		if v == nil {
			continue
		}
		var ours *node
		if !set {
			ours = f.convert(v, func(at *node, text string) { t.note(at, path+"."+key, "%s", text) })
		}
		if ours == nil {
			if v.kind != scalarNode || !v.isNull() && v.val != "" {
				t.warn(at, "", "kept, not used: "+path+"."+key, "")
			}
			taken(original, key, at, v)
			continue
		}
		set = true
		taken(entry, f.ours, at, ours)
		if i > 0 || several > 1 || !sameJSON(f.back(ours, nil), v) {
			taken(original, key, at, v)
		}
	}
}

// sameJSON reports whether two values are the same as JSON, with keys in the same order.
func sameJSON(a, b *node) bool {
	if a == nil || b == nil {
		return a == b
	}
	return bytes.Equal(a.json(), b.json())
}

// link sets the tool's server and remote name. Without an entry of mcp, the tool is disabled.
func (t *trustgraph) link(e *graphEntry, name, path string, entry, x, original *node) {
	id, at := e.val.get("mcp-tool")
	if other, k := e.val.get("mcp_tool_id"); other != nil {
		taken(original, "mcp_tool_id", k, other)
		if id == nil {
			id, at = other, k
		} else {
			taken(original, "mcp-tool", at, id)
		}
	}
	disable := func(at *node, reason string) {
		t.note(at, path, "%s; the tool is disabled", reason)
		taken(entry, "enabled", at, boolAt(at, false))
	}
	switch {
	case id == nil:
		without(x, e.id, "mcp-tool")
		disable(e.id, "'mcp-tool' is missing")
		return
	case id.kind != scalarNode || id.isNull():
		original.put(at.val, id)
		disable(at, "'mcp-tool' is not the id of an entry of mcp")
		return
	case id.tag != "!!str":
		original.put(at.val, id)
	}
	if id.val != name {
		taken(x, "mcp", at, like(id, id.val))
	}
	i := slices.IndexFunc(t.mcp, func(m *graphEntry) bool { return m.id.val == id.val && m.server != "" })
	if i < 0 {
		disable(id, "there is no usable entry mcp."+tenon.Visible(id.val))
		t.warns[len(t.warns)-1].Hint = "enable it with: tenon tools add " + name + " --server SERVER"
		if id.val != name {
			taken(entry, "remote_name", at, like(id, id.val))
		}
		return
	}
	m := t.mcp[i]
	server := t.free(m)
	taken(entry, "server", at, like(id, server))
	remote, _ := m.rest.get("remote-name")
	if m.remote != name || remote != nil && remote.val == m.remote {
		taken(entry, "remote_name", at, like(id, m.remote))
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
func (t *trustgraph) free(m *graphEntry) string {
	for _, server := range append([]string{m.server}, t.hosts[m.target]...) {
		if key := server + "\x00" + m.remote; !t.remotes[key] {
			t.remotes[key] = true
			return server
		}
	}
	url, _ := m.val.get("url")
	token, at := m.val.get("auth-token")
	server := t.newServer(m, url, token, at)
	t.remotes[server+"\x00"+m.remote] = true
	t.note(m.id, "mcp."+m.id.val, "several tools use this entry; '%s' is a second server with its address", server)
	return server
}

// graphText converts a text. An empty one says nothing.
func graphText(v *node, _ func(*node, string)) *node {
	if v.kind != scalarNode || v.isNull() || v.val == "" {
		return nil
	}
	return like(v, v.val)
}

func graphTextBack(ours, _ *node) *node { return like(ours, ours.val) }

// graphList1 converts a text or a list of texts to a list of texts.
func graphList1(v *node, report func(*node, string)) *node {
	out := emptyList(v)
	if v.kind == scalarNode {
		if v.isNull() || v.val == "" {
			return nil
		}
		out.vals = []*node{like(v, v.val)}
		return out
	}
	if v.kind != listNode {
		return nil
	}
	for _, one := range v.vals {
		if one.kind != scalarNode || one.isNull() || one.val == "" {
			report(one, "an entry that is not a text is not used")
			continue
		}
		out.vals = append(out.vals, like(one, one.val))
	}
	if len(out.vals) == 0 && len(v.vals) > 0 {
		return nil
	}
	return out
}

// graphTypes are names of types in TrustGraph's files that JSON Schema does not have.
var graphTypes = map[string]string{"int": "integer", "long": "integer", "float": "number", "double": "number",
	"bool": "boolean", "str": "string", "text": "string", "list": "array", "dict": "object", "map": "object",
	"json": "object", "none": "null"}

var schemaTypes = []string{"string", "number", "integer", "boolean", "object", "array", "null"}

// graphArguments converts a list of arguments, or a single argument.
func graphArguments(v *node, report func(*node, string)) *node {
	if v.kind == mapNode {
		list := emptyList(v, v)
		out := graphArguments(list, silent)
		if out != nil {
			report(v, "one argument that is not in a list is used as a list of one")
			out = graphArguments(list, report)
		}
		return out
	}
	if v.kind != listNode {
		return nil
	}
	out := *v
	out.vals = nil
	var seen []string
	for _, a := range v.vals {
		arg := graphArgument(a, report)
		if arg == nil {
			report(a, "an entry without a usable name is not used")
			continue
		}
		name, _ := arg.get("name")
		if slices.Contains(seen, name.val) {
			report(a, "a second argument '"+tenon.Visible(name.val)+"' is not used")
			continue
		}
		seen = append(seen, name.val)
		out.vals = append(out.vals, arg)
	}
	if len(out.vals) == 0 && len(v.vals) > 0 {
		return nil
	}
	return &out
}

// graphArgument converts one argument; nil if it has no name.
func graphArgument(a *node, report func(*node, string)) *node {
	name, _ := a.get("name")
	if name == nil || name.tag != "!!str" || name.val == "" || name.val != tenon.Visible(name.val) {
		return nil
	}
	out := emptyMap(a)
	for i, k := range a.keys {
		v := a.vals[i]
		switch {
		case k.val == "name", k.val == "description" && v.tag == "!!str":
			taken(out, k.val, k, like(v, v.val))
		case k.val == "type" && v.kind == scalarNode && !v.isNull() && v.val != "":
			taken(out, "type", k, like(v, graphType(v, report)))
		case k.val == "required" && v.tag == "!!bool":
			taken(out, "required", k, v)
		case v.isNull(), v.kind == scalarNode && v.val == "":
		default:
			report(k, "'"+tenon.Visible(k.val)+"' of an argument is kept, not used")
		}
	}
	return out
}

// graphType returns the type of JSON Schema for a type; an unknown one is string.
func graphType(v *node, report func(*node, string)) string {
	low := strings.ToLower(strings.TrimSpace(v.val))
	if ours := graphTypes[low]; ours != "" {
		return ours
	}
	if slices.Contains(schemaTypes, low) {
		return low
	}
	report(v, "the type '"+tenon.Visible(v.val)+"' is not known; the argument is a string")
	return "string"
}

// graphArgumentsBack writes arguments. An argument that is as it was imported gets its original form.
func graphArgumentsBack(ours, original *node) *node {
	out := &node{kind: listNode}
	for _, a := range ours.vals {
		name, _ := a.get("name")
		var was *node
		for i := 0; original != nil && i < len(original.vals) && was == nil; i++ {
			if n, _ := original.vals[i].get("name"); n != nil && name != nil && n.val == name.val {
				was = original.vals[i]
			}
		}
		if was != nil && sameJSON(graphArgument(was, silent), a) {
			out.vals = append(out.vals, was)
			continue
		}
		arg := &node{kind: mapNode}
		for i, k := range a.keys {
			v := a.vals[i]
			switch k.val {
			case "name", "description":
				arg.put(k.val, like(v, v.val))
			case "type":
				if t, _ := was.get("type"); t != nil && graphType(t, silent) == v.val {
					v = t
				}
				arg.put("type", v)
			}
		}
		for i := 0; was != nil && i < len(was.keys); i++ { // keys of which we know nothing
			if k := was.keys[i]; !slices.Contains([]string{"name", "type", "description", "required"}, k.val) {
				arg.put(k.val, was.vals[i])
			}
		}
		out.vals = append(out.vals, arg)
	}
	return out
}
