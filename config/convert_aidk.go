package config

import (
	"slices"
	"strings"

	"github.com/tenonhq/tenon/config/tree"
)

// aidk reads AIDK's MCPConfig: a map mcpServers, one object, or a list of them.
func (c *conversion) aidk(root *tree.Node) {
	c.out.Append("profile", root, tree.TextAt(root, kindAIDK))
	switch {
	case root.Kind == tree.List:
		for i, e := range root.Vals {
			c.aidkServer(e, nil, tree.Index("", i))
		}
		return
	case root.Kind != tree.Map:
		c.isMap(root, "")
		return
	}
	list, _ := root.Get("mcpServers")
	if list == nil {
		c.aidkServer(root, nil, "")
		return
	}
	for _, k := range root.Keys {
		if k.Val != "mcpServers" && k.Val != "$schema" {
			c.unknown(k, k.Val)
		}
	}
	if c.isMap(list, "mcpServers") {
		for i, name := range list.Keys {
			c.aidkServer(list.Vals[i], name, "mcpServers."+name.Val)
		}
	}
}

func (c *conversion) aidkServer(n, name *tree.Node, path string) {
	if !c.isMap(n, path) {
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
	e := c.server(at, n, path)
	if e == nil {
		return
	}
	if name == nil {
		path = at.Val
	}
	include, _ := n.Get("include")
	for i, k := range n.Keys {
		v, p := n.Vals[i], path+"."+k.Val
		switch k.Val {
		case "serverName":
		case "connection":
			if c.isMap(v, p) {
				for j, key := range v.Keys {
					if !slices.Contains([]string{"command", "args", "env", "url", "cwd", "headers"}, key.Val) {
						c.keep(e, key, v.Vals[j], p+"."+key.Val)
						continue
					}
					e.Append(key.Val, key, v.Vals[j])
				}
			}
		case "command", "args", "env", "url", "cwd", "headers":
			e.Append(k.Val, k, v)
		case "transport":
			e.Append("transport", k, c.aidkTransport(n, v))
		case "auth":
			c.aidkAuth(e, k, v, p)
		case "include":
			e.Append("include", k, v)
		case "exclude":
			if include != nil {
				c.note(k, p, "left out: aidk ignores it if include is set")
				continue
			}
			e.Append("exclude", k, v)
		case "toolPrefix":
			step := tree.MapAt(v)
			step.Append("prefix", k, v)
			e.Append("transform", k, tree.ListAt(v, step))
		case "providerOptions":
			c.aidkOptions(e, k, v, p)
		case "runtimeConfig":
			c.note(k, p, "left out: give it with each request instead")
		default:
			c.unknown(k, p)
		}
	}
}

// aidkTransport converts a transport. In AIDK, websocket with an https URL is Streamable HTTP.
func (c *conversion) aidkTransport(n, v *tree.Node) *tree.Node {
	url, _ := n.Get("url")
	if connection, _ := n.Get("connection"); connection != nil {
		url, _ = connection.Get("url")
	}
	if v.Val == "websocket" && url != nil && strings.HasPrefix(url.Val, "http") {
		scheme, _, _ := strings.Cut(url.Val, ":")
		c.note(v, "", "aidk: transport 'websocket' with %s url imported as 'http'", scheme)
		return tree.TextAt(v, "http")
	}
	return c.transport(v)
}

func (c *conversion) aidkAuth(e, k, n *tree.Node, path string) {
	if !c.isMap(n, path) {
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
		c.keep(e, k, n, path)
		return
	}
	for _, key := range n.Keys {
		if !slices.Contains([]string{"type", "token", "apiKey", "header"}, key.Val) {
			v, _ := n.Get(key.Val)
			c.keep(e, key, v, path+"."+key.Val)
		}
	}
	c.credential(e, k, token, kind.Val, name, path+".token")
}

// credential adds a token to an entry: a variable becomes a secret, a literal token a header, until it is extracted.
func (c *conversion) credential(e, k, token *tree.Node, kind, header, path string) {
	if token.Kind != tree.Scalar || token.Tag != "!!str" || token.Val == "" {
		c.Add(token, path, "must be a text, is "+token.Form(), "")
		return
	}
	if name := onlyVariable(token.Val); name != "" {
		secret := tree.MapAt(token)
		secret.Append("env", k, tree.TextAt(token, name))
		e.Append("auth", k, authOf(token, kind, header, secret))
		return
	}
	v := token
	if kind == "bearer" {
		v = tree.TextAt(token, "Bearer "+token.Val)
	}
	headers, _ := e.Get("headers")
	if headers == nil {
		headers = tree.MapAt(token)
		e.Append("headers", k, headers)
	}
	headers.Append(header, k, v)
	c.tokens[v] = true
	c.literal(token, path)
}

// authOf returns a block auth.
func authOf(at *tree.Node, kind, header string, secret *tree.Node) *tree.Node {
	auth := tree.MapAt(at)
	if kind == "custom" {
		kind = "header"
	}
	auth.Append("type", at, tree.TextAt(at, kind))
	if kind == "header" || kind == "api_key" && header != "X-API-Key" {
		auth.Append("header", at, tree.TextAt(at, header))
	}
	auth.Append("secret", at, secret)
	return auth
}

// literal records a secret that is written in the file.
func (c *conversion) literal(v *tree.Node, path string) {
	c.tokens[v] = true
	c.Warn(v, path, "a literal token in the file", "--extract-secrets puts a variable in its place")
}

// aidkOptions converts the options of a provider: openai.function.strict becomes openai.strict.
func (c *conversion) aidkOptions(e, k, n *tree.Node, path string) {
	if !c.isMap(n, path) {
		return
	}
	out := tree.MapAt(n)
	for i, key := range n.Keys {
		v := n.Vals[i]
		if f, _ := v.Get("function"); key.Val == "openai" && f != nil && len(v.Keys) == 1 {
			v = f
		}
		out.Append(key.Val, key, v)
	}
	e.Append("provider_options", k, out)
}

// researchai reads the list of servers of ResearchAI.
func (c *conversion) researchai(root *tree.Node) {
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
				c.researchServer(s, path)
			}
		}
	}
}

func (c *conversion) researchServer(s *tree.Node, path string) {
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
