package config

import (
	"slices"

	"github.com/tenonhq/tenon/catalog"
)

// trustgraph reads TrustGraph's two groups of its configuration, mcp (where a tool
// is) and tool (what the model is told of it), in any of the forms in which they
// are kept: maps by id, with values as objects or as texts of JSON; the same under
// config; a list of {type, key, value}; one tool alone.
func (c *conversion) trustgraph(root *node) {
	c.out.set("profile", like(root, kindTrustGraph))
	t := &trustgraph{conversion: c, mcp: &node{kind: mapNode}, tool: &node{kind: mapNode}}
	t.collect(root)
	t.servers()
	for i, id := range t.tool.keys {
		t.add(id, t.tool.vals[i])
	}
}

// trustgraph collects both groups by id.
type trustgraph struct {
	*conversion
	mcp, tool *node
	others    *node
	server    map[string]string // id in mcp → name of our server
	remote    map[string]*node  // id in mcp → remote-name
}

func (t *trustgraph) collect(root *node) {
	if root.kind == listNode {
		for i, e := range root.vals {
			path := index("", i)
			kind, _ := e.get("type")
			key, _ := e.get("key")
			value, _ := e.get("value")
			if !t.isMap(e, path) {
				continue
			}
			if kind == nil || key == nil || value == nil {
				t.single(e, path)
				continue
			}
			switch group := map[string]*node{"mcp": t.mcp, "tool": t.tool}[kind.val]; {
			case group != nil:
				taken(group, key.val, key, t.value(value, kind.val+"."+key.val))
			default:
				t.keep(t.out, like(kind, kind.val+"."+key.val), value, path)
			}
		}
		return
	}
	if !t.isMap(root, "") {
		return
	}
	if inner, _ := root.get("config"); inner != nil {
		if t.isMap(inner, "config") {
			t.collect(inner)
		}
		return
	}
	if kind, _ := root.get("type"); kind != nil {
		t.single(root, "")
		return
	}
	for i, k := range root.keys {
		v := root.vals[i]
		group := map[string]*node{"mcp": t.mcp, "tool": t.tool}[k.val]
		if group == nil {
			t.keep(t.out, k, v, k.val)
			continue
		}
		if t.isMap(v, k.val) {
			for j, id := range v.keys {
				taken(group, id.val, id, t.value(v.vals[j], k.val+"."+id.val))
			}
		}
	}
}

// single takes a tool that stands without an id.
func (t *trustgraph) single(n *node, path string) {
	name, _ := n.get("name")
	if name == nil || name.kind != scalarNode {
		t.conversion.add(n, join(path, "name"), "'name' is required", "")
		return
	}
	taken(t.tool, name.val, name, n)
}

// value reads a value that may be JSON in a text.
func (t *trustgraph) value(v *node, path string) *node {
	if v.kind != scalarNode || v.tag != "!!str" {
		return v
	}
	s := &sink{}
	inner := parse(&source{}, []byte(v.val), s)
	if inner == nil || len(s.errs) > 0 || inner.kind != mapNode {
		t.conversion.add(v, path, "is a text that holds no JSON object", "")
		return &node{kind: mapNode, line: v.line, col: v.col, src: v.src}
	}
	return inner.settle(v)
}

// settle gives a tree the place of the text that it was read from.
func (n *node) settle(at *node) *node {
	n.src, n.line, n.col = at.src, at.line, at.col
	for _, v := range slices.Concat(n.keys, n.vals) {
		v.settle(at)
	}
	return n
}

// servers makes one server of all entries with the same address and token.
func (t *trustgraph) servers() {
	t.server, t.remote = map[string]string{}, map[string]*node{}
	known := map[[2]string]string{}
	for i, id := range t.mcp.keys {
		n, path := t.mcp.vals[i], "mcp."+id.val
		if !t.isMap(n, path) {
			continue
		}
		url, _ := n.get("url")
		token, _ := n.get("auth-token")
		if url == nil || url.kind != scalarNode || url.val == "" {
			t.conversion.add(n, path+".url", "'url' is required", "")
			continue
		}
		t.remote[id.val], _ = n.get("remote-name")
		key := [2]string{url.val, ""}
		if token != nil {
			key[1] = token.val
		}
		if first, ok := known[key]; ok {
			t.server[id.val] = first
			continue
		}
		e := t.conversion.server(id, n, path)
		if e == nil {
			continue
		}
		list := t.section("servers", id)
		name := list.keys[len(list.keys)-1].val
		known[key], t.server[id.val] = name, name
		taken(e, "transport", id, like(url, "http"))
		for j, k := range n.keys {
			switch v := n.vals[j]; k.val {
			case "url":
				taken(e, "url", k, v)
			case "auth-token":
				t.credential(e, k, v, "bearer", "Authorization", path+".auth-token")
			case "remote-name":
			default:
				t.unknown(k, path+"."+k.val)
			}
		}
		taken(e, "load_tools", id, &node{tag: "!!bool", val: "false", line: id.line, col: id.col, src: id.src})
	}
}

// add makes the entry of one tool.
func (t *trustgraph) add(id, n *node) {
	path := "tool." + id.val
	if !t.isMap(n, path) {
		return
	}
	kind, _ := n.get("type")
	if kind == nil {
		t.conversion.add(n, path+".type", "'type' is required", "mcp-tool is the one that is connected")
		return
	}
	if kind.val != "mcp-tool" {
		t.note(kind, path, "a tool of type %s is not supported; kept under x-trustgraph", kind.val)
		if t.others == nil {
			t.others = &node{kind: mapNode, line: id.line, col: id.col, src: id.src}
			t.store(t.out, id, "tools", t.others)
		}
		taken(t.others, id.val, id, n)
		return
	}
	name, _ := n.get("name")
	if name == nil || name.kind != scalarNode || !validName(name.val) {
		t.conversion.add(n, path+".name", "'name' is required, of letters, digits, _ . and -", "")
		return
	}
	list := t.section("tools", id)
	if _, other := list.get(name.val); other != nil {
		t.conversion.add(name, path+".name", "there is a tool '"+name.val+"' already", "")
		return
	}
	e := &node{kind: mapNode, line: id.line, col: id.col, src: id.src}
	taken(list, name.val, name, e)
	x := &node{kind: mapNode, line: id.line, col: id.col, src: id.src}
	if id.val != name.val {
		taken(x, "id", id, like(id, id.val))
	}
	linked := false
	for i, k := range n.keys {
		v, p := n.vals[i], path+"."+k.val
		switch k.val {
		case "type", "name":
		case "description":
			taken(e, "description", k, v)
		case "mcp-tool", "mcp_tool_id":
			linked = true
			t.link(e, x, name, k, v, p)
		case "arguments":
			taken(e, "arguments", k, t.arguments(v, p))
		case "group":
			taken(e, "groups", k, oneOrMore(v))
		case "applicable-states", "available_in_states":
			taken(e, "states", k, oneOrMore(v))
		case "state":
			t.maybe(supported[catalog.Tool]("next_state"), e, "next_state", k, v, p)
		case "template_id", "template":
			t.keep(e, k, v, p)
		default:
			t.unknown(k, p)
		}
	}
	if !linked {
		t.conversion.add(n, path+".mcp-tool", "'mcp-tool' is required", "")
	}
	if len(x.keys) > 0 {
		for i, k := range x.keys {
			t.store(e, id, k.val, x.vals[i])
		}
	}
}

// link says where the tool is. The id of the entry of mcp is kept where it does not
// follow from the name.
func (t *trustgraph) link(e, x, name, k, v *node, path string) {
	server, ok := t.server[v.val]
	if !ok {
		t.note(v, path, "there is no entry mcp.%s; the tool is disabled", v.val)
		taken(e, "enabled", k, &node{tag: "!!bool", val: "false", line: v.line, col: v.col, src: v.src})
		taken(x, "mcp", k, v)
		return
	}
	taken(e, "server", k, like(v, server))
	if remote := t.remote[v.val]; remote != nil {
		taken(e, "remote_name", k, remote)
	} else if v.val != name.val {
		taken(e, "remote_name", k, like(v, v.val))
	}
	if v.val != name.val {
		taken(x, "mcp", k, v)
	}
}

// arguments takes the words that are in use for types.
func (t *trustgraph) arguments(list *node, path string) *node {
	if list.kind != listNode {
		t.conversion.add(list, path, "must be a list, is "+list.what(), "")
		return list
	}
	out := *list
	out.vals = nil
	for i, a := range list.vals {
		p := index(path, i)
		if !t.isMap(a, p) {
			continue
		}
		arg := &node{kind: mapNode, line: a.line, col: a.col, src: a.src}
		for j, k := range a.keys {
			v := a.vals[j]
			switch k.val {
			case "type":
				if ours := map[string]string{"int": "integer", "float": "number", "bool": "boolean", "str": "string", "list": "array", "dict": "object"}[v.val]; ours != "" {
					v = like(v, ours)
				}
			case "name", "description", "required":
			default:
				t.unknown(k, p+"."+k.val)
				continue
			}
			taken(arg, k.val, k, v)
		}
		out.vals = append(out.vals, arg)
	}
	return &out
}

// oneOrMore makes a list of a single text.
func oneOrMore(v *node) *node {
	if v.kind != scalarNode {
		return v
	}
	return &node{kind: listNode, line: v.line, col: v.col, src: v.src, vals: []*node{v}}
}
