package researchai

import (
	"slices"
	"strings"

	"github.com/tenonhq/tenon/compat"
	"github.com/tenonhq/tenon/config/tree"
	"github.com/tenonhq/tenon/servers"
)

// Format is the form of ResearchAI's list of servers.
type Format struct{}

// Recognise implements compat.Format.
func (Format) Recognise(root *tree.Node) compat.Certainty {
	if servers, _ := root.Get("servers"); compat.IsList(servers) && compat.HasEntry(servers, "id") {
		return compat.Surely
	}
	return compat.Unlike
}

// Convert implements compat.Format.
func (Format) Convert(c *compat.Conversion, root *tree.Node) {
	c.Out.Append("profile", root, tree.TextAt(root, compat.ResearchAI))
	if !c.IsMap(root, "") {
		return
	}
	for k, list := range root.All() {
		if k.Val != "servers" {
			c.Unknown(k, k.Val)
			continue
		}
		if list.Kind != tree.List {
			c.Add(list, k.Val, "must be a list, is "+list.Form(), "")
			continue
		}
		c.Section("servers", list)
		for j, s := range list.Vals {
			if path := tree.Index("servers", j); c.IsMap(s, path) {
				server(c, s, path)
			}
		}
	}
}

func server(c *compat.Conversion, s *tree.Node, path string) {
	id, _ := s.Get("id")
	if id == nil || id.Kind != tree.Scalar || id.Val == "" {
		c.Add(s, path+".id", "'id' is required", "")
		return
	}
	e := c.Server(id, s, path+".id")
	if e == nil {
		return
	}
	for k, v := range s.All() {
		p := path + "." + k.Val
		switch k.Val {
		case "id":
		case "name":
			e.Put("title", v)
		case "description", "command", "args", "env", "url", "headers":
			e.Append(k.Val, k, v)
		case "enabled":
			if c.Enabled == nil {
				e.Append("enabled", k, v)
			}
		case "transport":
			e.Append("transport", k, c.Transport(tree.TextAt(v, strings.ToLower(v.Val))))
		default:
			c.Unknown(k, p)
		}
	}
	if c.Enabled != nil {
		e.Append("enabled", s, tree.BoolAt(s, slices.Contains(c.Enabled, id.Val)))
	}
}

// Export writes the list of servers.
func (Format) Export(e *compat.Export) *tree.Node {
	root, list := &tree.Node{Kind: tree.Map}, &tree.Node{Kind: tree.List}
	root.Put("servers", list)
	rename := map[string]string{"description": "description", "command": "command", "args": "args", "env": "env",
		"url": "url", "headers": "headers", "enabled": "enabled"}
	e.Entries("servers", func(k, v *tree.Node, path string) {
		kind := e.Transport(k.Val)
		if !slices.Contains([]string{servers.TransportStdio, servers.TransportSSE, servers.TransportWebSocket}, kind) {
			e.Missing(k, path)
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
		e.Server(k, v, s, path, rename, "title", "transport", "type", "auth")
		if on, _ := s.Get("enabled"); on == nil {
			s.Put("enabled", &tree.Node{Tag: "!!bool", Val: "true"})
		}
		if !e.Auth(v, s, path+".auth") {
			_, at := v.Get("auth")
			e.Missing(at, path+".auth")
		}
		list.Vals = append(list.Vals, s)
	})
	e.Restore(root, e.Root)
	return root
}

var _ compat.Exporter = Format{}
