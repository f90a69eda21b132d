package aidk

import (
	"slices"
	"strings"

	"github.com/tenonhq/tenon/compat"
	"github.com/tenonhq/tenon/config/tree"
)

// Format is the form of AIDK's MCPConfig: a map mcpServers, one object, or a list of them.
type Format struct{}

// Recognise implements compat.Format.
func (Format) Recognise(root *tree.Node) compat.Certainty {
	if list, _ := root.Get("mcpServers"); list != nil && compat.OfEntry(list.Vals...) == compat.AIDK {
		return compat.Surely
	}
	if compat.IsList(root) && compat.OfEntry(root.Vals...) == compat.AIDK || compat.OfEntry(root) == compat.AIDK {
		return compat.ByEntry
	}
	return compat.Unlike
}

// converter converts one file.
type converter struct{ *compat.Conversion }

// Convert implements compat.Format.
func (Format) Convert(conv *compat.Conversion, root *tree.Node) {
	c := converter{conv}
	c.Out.Append("profile", root, tree.TextAt(root, compat.AIDK))
	switch {
	case root.Kind == tree.List:
		for i, e := range root.Vals {
			c.server(e, nil, tree.Index("", i))
		}
		return
	case root.Kind != tree.Map:
		c.IsMap(root, "")
		return
	}
	list, _ := root.Get("mcpServers")
	if list == nil {
		c.server(root, nil, "")
		return
	}
	for _, k := range root.Keys {
		if k.Val != "mcpServers" && k.Val != "$schema" {
			c.Unknown(k, k.Val)
		}
	}
	if c.IsMap(list, "mcpServers") {
		for i, name := range list.Keys {
			c.server(list.Vals[i], name, "mcpServers."+name.Val)
		}
	}
}

func (c converter) server(n, name *tree.Node, path string) {
	if !c.IsMap(n, path) {
		return
	}
	at := name
	if own, _ := n.Get("serverName"); own != nil {
		if own.Kind != tree.Scalar || own.Val == "" {
			c.Add(own, tree.Join(path, "serverName"), "must be a text", "")
			return
		}
		at = own
	}
	if at == nil {
		c.Add(n, tree.Join(path, "serverName"), "'serverName' is required", "")
		return
	}
	e := c.Server(at, n, path)
	if e == nil {
		return
	}
	if name == nil {
		path = at.Val
	}
	include, _ := n.Get("include")
	for k, v := range n.All() {
		p := path + "." + k.Val
		switch k.Val {
		case "serverName":
		case "connection":
			if c.IsMap(v, p) {
				for j, key := range v.Keys {
					if !slices.Contains([]string{"command", "args", "env", "url", "cwd", "headers"}, key.Val) {
						c.Keep(e, key, v.Vals[j], p+"."+key.Val)
						continue
					}
					e.Append(key.Val, key, v.Vals[j])
				}
			}
		case "command", "args", "env", "url", "cwd", "headers":
			e.Append(k.Val, k, v)
		case "transport":
			e.Append("transport", k, c.transport(n, v))
		case "auth":
			c.auth(e, k, v, p)
		case "include":
			e.Append("include", k, v)
		case "exclude":
			if include != nil {
				c.Note(k, p, "left out: aidk ignores it if include is set")
				continue
			}
			e.Append("exclude", k, v)
		case "toolPrefix":
			step := tree.MapAt(v)
			step.Append("prefix", k, v)
			e.Append("transform", k, tree.ListAt(v, step))
		case "providerOptions":
			c.options(e, k, v, p)
		case "runtimeConfig":
			c.Note(k, p, "left out: give it with each request instead")
		default:
			c.Unknown(k, p)
		}
	}
}

// transport converts a transport. In AIDK, websocket with an https URL is Streamable HTTP.
func (c converter) transport(n, v *tree.Node) *tree.Node {
	url, _ := n.Get("url")
	if connection, _ := n.Get("connection"); connection != nil {
		url, _ = connection.Get("url")
	}
	if v.Val == "websocket" && url != nil && strings.HasPrefix(url.Val, "http") {
		scheme, _, _ := strings.Cut(url.Val, ":")
		c.Note(v, "", "aidk: transport 'websocket' with %s url imported as 'http'", scheme)
		return tree.TextAt(v, "http")
	}
	return c.Transport(v)
}

func (c converter) auth(e, k, n *tree.Node, path string) {
	if !c.IsMap(n, path) {
		return
	}
	kind, _ := n.Get("type")
	token, _ := n.Get("token")
	if token == nil {
		token, _ = n.Get("apiKey")
	}
	header, _ := n.Get("header")
	name := "Authorization"
	switch {
	case kind == nil || kind.Kind != tree.Scalar:
		c.Add(n, path+".type", "'type' is required", "bearer, api_key or custom")
		return
	case kind.Val == "api_key" || kind.Val == "custom" && header != nil:
		name = "X-API-Key"
		if header != nil {
			name = header.Val
		}
	case kind.Val != "bearer" && kind.Val != "custom":
		c.Add(kind, path+".type", "no such value '"+kind.Val+"'", "values: bearer, api_key, custom")
		return
	}
	if token == nil || kind.Val == "custom" && header == nil {
		c.Keep(e, k, n, path)
		return
	}
	for _, key := range n.Keys {
		if !slices.Contains([]string{"type", "token", "apiKey", "header"}, key.Val) {
			v, _ := n.Get(key.Val)
			c.Keep(e, key, v, path+"."+key.Val)
		}
	}
	c.Credential(e, k, token, kind.Val, name, path+".token")
}

// options converts the options of a provider: openai.function.strict becomes openai.strict.
func (c converter) options(e, k, n *tree.Node, path string) {
	if !c.IsMap(n, path) {
		return
	}
	out := tree.MapAt(n)
	for key, v := range n.All() {
		if f, _ := v.Get("function"); key.Val == "openai" && f != nil && len(v.Keys) == 1 {
			v = f
		}
		out.Append(key.Val, key, v)
	}
	e.Append("provider_options", k, out)
}
