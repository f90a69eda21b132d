package trustgraph

import (
	"fmt"

	"github.com/tenonhq/tenon/compat"
	"github.com/tenonhq/tenon/config/tree"
)

// link writes the tool's entry of mcp, and its id.
func (g *exporter) link(k, v, t, x, original *tree.Node, lacks func(string) bool) {
	id := k.Val
	if own, _ := x.Get("mcp"); own != nil {
		id = own.Val
	}
	main := "mcp-tool"
	was, _ := original.Get(main)
	if other, _ := original.Get("mcp_tool_id"); other != nil {
		t.Put("mcp_tool_id", other)
		if was == nil {
			main, was = "mcp_tool_id", other
		}
	}
	server, at := v.Get("server")
	if server == nil {
		if was == nil && !lacks(main) {
			was = tree.Text(id)
		}
		if was != nil {
			t.Put(main, was)
		}
		return
	}
	own, _ := x.Get("mcp")
	defer func() {
		if was == nil || was.Val != id {
			was = tree.Text(id)
		}
		t.Put(main, was)
	}()
	g.used[server.Val] = true
	list, _ := g.Root.Get("servers")
	entry, name := list.Get(server.Val)
	if entry == nil {
		g.Missing(at, "servers."+server.Val)
		return
	}
	m := g.address(name, entry, "servers."+server.Val)
	if m == nil {
		return
	}
	rest, owner := g.record(list, id)
	if owner != nil && !tree.SameJSON(g.address(owner, listValue(list, owner.Val), ""), m) {
		id = k.Val // the tool now belongs to another server
		rest = nil
	}
	remote := k.Val
	if own, _ := v.Get("remote_name"); own != nil {
		remote = own.Val
	}
	// An entry that other tools have too is not changed: the tool gets its own.
	switch {
	case rest != nil && remote != remoteOf(rest, id) && g.linked(id, k, false), rest == nil && own == nil &&
		g.linked(id, k, true):
		id, rest = g.free(k), nil
	}
	e := g.entry(id, m.Clone(), rest, remote, v)
	if there, _ := g.mcp.Get(id); there != nil && !tree.SameJSON(there, e) {
		id, rest = g.free(k), nil
		e = g.entry(id, m, nil, remote, v)
	}
	g.mcp.Put(id, e)
	if rest != nil {
		g.texts(owner)
	}
}

// entry returns entry id of TrustGraph's group mcp, for a tool whose remote name is remote. m has the server's address
// and token. rest has the other keys of the entry as imported. It is nil if the entry was not imported, or belonged to
// another server.
func (g *exporter) entry(id string, m, rest *tree.Node, remote string, tool *tree.Node) *tree.Node {
	if rest == nil {
		if own, _ := tool.Get("remote_name"); own != nil || remote != id {
			m.Put("remote-name", tree.Text(remote))
		}
		return m
	}
	for i, k := range rest.Keys {
		m.Put(k.Val, rest.Vals[i])
	}
	if remote != remoteOf(rest, id) {
		m.Put("remote-name", tree.Text(remote))
	}
	return m
}

// remoteOf returns the name that an imported entry of mcp calls on its server.
func remoteOf(rest *tree.Node, id string) string {
	if r, _ := rest.Get("remote-name"); r != nil && r.Tag == "!!str" && r.Val != "" {
		return r.Val
	}
	return id
}

// linked reports whether a tool other than k has the entry of mcp with this id. only counts tools that an import has
// linked to it by another name.
func (g *exporter) linked(id string, k *tree.Node, only bool) bool {
	list, _ := g.Root.Get("tools")
	for other, v := range list.All() {
		x, _ := v.Get("x-" + compat.TrustGraph)
		own, _ := x.Get("mcp")
		server, _ := v.Get("server")
		switch {
		case other == k || server == nil:
		case own != nil && own.Val == id, own == nil && !only && other.Val == id:
			return true
		}
	}
	return false
}

// free returns the id of a tool's own entry of mcp: its name, with a number if another entry has it.
func (g *exporter) free(k *tree.Node) string {
	list, _ := g.Root.Get("servers")
	id := k.Val
	for n := 2; ; n++ {
		there, _ := g.mcp.Get(id)
		rest, _ := g.record(list, id)
		if there == nil && rest == nil && !g.linked(id, k, false) {
			return id
		}
		id = fmt.Sprintf("%s-%d", k.Val, n)
	}
}

// texts records which entries of a server were JSON text.
func (g *exporter) texts(owner *tree.Node) {
	list, _ := g.Root.Get("servers")
	entry := listValue(list, owner.Val)
	x, _ := entry.Get("x-" + compat.TrustGraph)
	texts, _ := x.Get("text")
	for id, keys := range texts.All() {
		g.textMCP[id.Val] = keys
	}
}

func listValue(list *tree.Node, key string) *tree.Node {
	v, _ := list.Get(key)
	return v
}

// record finds the record of an entry of mcp, and the key of the server that has it.
func (g *exporter) record(list *tree.Node, id string) (rest, owner *tree.Node) {
	for name, entry := range list.All() {
		x, _ := entry.Get("x-" + compat.TrustGraph)
		ids, _ := x.Get("mcp")
		if rest, _ := ids.Get(id); rest != nil {
			return rest, name
		}
	}
	return nil, nil
}
