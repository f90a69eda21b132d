package config

import (
	"slices"
	"strings"

	"github.com/tenonhq/tenon/config/tree"
	"github.com/tenonhq/tenon/servers"
)

// researchFormat is the form of ResearchAI's list of servers.
type researchFormat struct{}

// recognise implements compat.Format.
func (researchFormat) recognise(root *tree.Node) certainty {
	if servers, _ := root.Get("servers"); isList(servers) && hasEntry(servers, "id") {
		return surely
	}
	return unlike
}

// convert implements compat.Format.
func (researchFormat) convert(c *conversion, root *tree.Node) {
	c.out.Append("profile", root, tree.TextAt(root, kindResearchAI))
	if !c.isMap(root, "") {
		return
	}
	for i, k := range root.Keys {
		list := root.Vals[i]
		if k.Val != "servers" {
			c.unknown(k, k.Val)
			continue
		}
		if list.Kind != tree.List {
			c.Add(list, k.Val, "must be a list, is "+list.Form(), "")
			continue
		}
		c.section("servers", list)
		for j, s := range list.Vals {
			if path := tree.Index("servers", j); c.isMap(s, path) {
				researchServer(c, s, path)
			}
		}
	}
}

func researchServer(c *conversion, s *tree.Node, path string) {
	id, _ := s.Get("id")
	if id == nil || id.Kind != tree.Scalar || id.Val == "" {
		c.Add(s, path+".id", "'id' is required", "")
		return
	}
	e := c.server(id, s, path+".id")
	if e == nil {
		return
	}
	for i, k := range s.Keys {
		v, p := s.Vals[i], path+"."+k.Val
		switch k.Val {
		case "id":
		case "name":
			e.Put("title", v)
		case "description", "command", "args", "env", "url", "headers":
			e.Append(k.Val, k, v)
		case "enabled":
			if c.enabled == nil {
				e.Append("enabled", k, v)
			}
		case "transport":
			e.Append("transport", k, c.transport(tree.TextAt(v, strings.ToLower(v.Val))))
		default:
			c.unknown(k, p)
		}
	}
	if c.enabled != nil {
		e.Append("enabled", s, tree.BoolAt(s, slices.Contains(c.enabled, id.Val)))
	}
}

// export writes the list of servers.
func (researchFormat) export(e *export) *tree.Node {
	root, list := &tree.Node{Kind: tree.Map}, &tree.Node{Kind: tree.List}
	root.Put("servers", list)
	rename := map[string]string{"description": "description", "command": "command", "args": "args", "env": "env",
		"url": "url", "headers": "headers", "enabled": "enabled"}
	e.entries("servers", func(k, v *tree.Node, path string) {
		kind := e.transport(k.Val)
		if !slices.Contains([]string{servers.TransportStdio, servers.TransportSSE, servers.TransportWebSocket}, kind) {
			e.missing(k, path)
			return
		}
		s := &tree.Node{Kind: tree.Map}
		s.Put("id", k)
		name := k
		if title, _ := v.Get("title"); title != nil {
			name = title
		}
		s.Put("name", name)
		s.Put("transport", tree.Text(kind))
		e.server(k, v, s, path, rename, "title", "transport", "type", "auth")
		if on, _ := s.Get("enabled"); on == nil {
			s.Put("enabled", &tree.Node{Tag: "!!bool", Val: "true"})
		}
		if !e.auth(v, s, path+".auth") {
			_, at := v.Get("auth")
			e.missing(at, path+".auth")
		}
		list.Vals = append(list.Vals, s)
	})
	e.restore(root, e.root)
	return root
}

var (
	_ format   = researchFormat{}
	_ exporter = researchFormat{}
)
