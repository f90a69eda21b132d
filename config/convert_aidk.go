package config

import (
	"slices"
	"strings"
)

// aidk reads AIDK's MCPConfig: a map mcpServers, one object, or a list of them.
func (c *conversion) aidk(root *node) {
	taken(c.out, "profile", root, like(root, kindAIDK))
	switch {
	case root.kind == listNode:
		for i, e := range root.vals {
			c.aidkServer(e, nil, index("", i))
		}
		return
	case root.kind != mapNode:
		c.isMap(root, "")
		return
	}
	list, _ := root.get("mcpServers")
	if list == nil {
		c.aidkServer(root, nil, "")
		return
	}
	for _, k := range root.keys {
		if k.val != "mcpServers" && k.val != "$schema" {
			c.unknown(k, k.val)
		}
	}
	if c.isMap(list, "mcpServers") {
		for i, name := range list.keys {
			c.aidkServer(list.vals[i], name, "mcpServers."+name.val)
		}
	}
}

func (c *conversion) aidkServer(n, name *node, path string) {
	if !c.isMap(n, path) {
		return
	}
	at := name
	if own, _ := n.get("serverName"); own != nil {
		if own.kind != scalarNode || own.val == "" {
			c.add(own, join(path, "serverName"), "must be a text", "")
			return
		}
		at = own
	}
	if at == nil {
		c.add(n, join(path, "serverName"), "'serverName' is required", "")
		return
	}
	e := c.server(at, n, path)
	if e == nil {
		return
	}
	if name == nil {
		path = at.val
	}
	include, _ := n.get("include")
	for i, k := range n.keys {
		v, p := n.vals[i], path+"."+k.val
		switch k.val {
		case "serverName":
		case "connection":
			if c.isMap(v, p) {
				for j, key := range v.keys {
					if !slices.Contains([]string{"command", "args", "env", "url", "cwd", "headers"}, key.val) {
						c.keep(e, key, v.vals[j], p+"."+key.val)
						continue
					}
					taken(e, key.val, key, v.vals[j])
				}
			}
		case "command", "args", "env", "url", "cwd", "headers":
			taken(e, k.val, k, v)
		case "transport":
			taken(e, "transport", k, c.aidkTransport(n, v))
		case "auth":
			c.aidkAuth(e, k, v, p)
		case "include":
			taken(e, "include", k, v)
		case "exclude":
			if include != nil {
				c.note(k, p, "left out: aidk ignores it if include is set")
				continue
			}
			taken(e, "exclude", k, v)
		case "toolPrefix":
			step := emptyMap(v)
			taken(step, "prefix", k, v)
			taken(e, "transform", k, emptyList(v, step))
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
func (c *conversion) aidkTransport(n, v *node) *node {
	url, _ := n.get("url")
	if connection, _ := n.get("connection"); connection != nil {
		url, _ = connection.get("url")
	}
	if v.val == "websocket" && url != nil && strings.HasPrefix(url.val, "http") {
		scheme, _, _ := strings.Cut(url.val, ":")
		c.note(v, "", "aidk: transport 'websocket' with %s url imported as 'http'", scheme)
		return like(v, "http")
	}
	return c.transport(v)
}

func (c *conversion) aidkAuth(e, k, n *node, path string) {
	if !c.isMap(n, path) {
		return
	}
	kind, _ := n.get("type")
	token, _ := n.get("token")
	if token == nil {
		token, _ = n.get("apiKey")
	}
	header, _ := n.get("header")
	name := "Authorization"
	switch {
	case kind == nil || kind.kind != scalarNode:
		c.add(n, path+".type", "'type' is required", "bearer, api_key or custom")
		return
	case kind.val == "api_key" || kind.val == "custom" && header != nil:
		name = "X-API-Key"
		if header != nil {
			name = header.val
		}
	case kind.val != "bearer" && kind.val != "custom":
		c.add(kind, path+".type", "no such value '"+kind.val+"'", "values: bearer, api_key, custom")
		return
	}
	if token == nil || kind.val == "custom" && header == nil {
		c.keep(e, k, n, path)
		return
	}
	for _, key := range n.keys {
		if !slices.Contains([]string{"type", "token", "apiKey", "header"}, key.val) {
			v, _ := n.get(key.val)
			c.keep(e, key, v, path+"."+key.val)
		}
	}
	c.credential(e, k, token, kind.val, name, path+".token")
}

// credential adds a token to an entry: a variable becomes a secret, a literal token a header, until it is extracted.
func (c *conversion) credential(e, k, token *node, kind, header, path string) {
	if token.kind != scalarNode || token.tag != "!!str" || token.val == "" {
		c.add(token, path, "must be a text, is "+token.what(), "")
		return
	}
	if name := onlyVariable(token.val); name != "" {
		secret := emptyMap(token)
		taken(secret, "env", k, like(token, name))
		taken(e, "auth", k, authOf(token, kind, header, secret))
		return
	}
	v := token
	if kind == "bearer" {
		v = like(token, "Bearer "+token.val)
	}
	headers, _ := e.get("headers")
	if headers == nil {
		headers = emptyMap(token)
		taken(e, "headers", k, headers)
	}
	taken(headers, header, k, v)
	c.tokens[v] = true
	c.literal(token, path)
}

// authOf returns a block auth.
func authOf(at *node, kind, header string, secret *node) *node {
	auth := emptyMap(at)
	if kind == "custom" {
		kind = "header"
	}
	taken(auth, "type", at, like(at, kind))
	if kind == "header" || kind == "api_key" && header != "X-API-Key" {
		taken(auth, "header", at, like(at, header))
	}
	taken(auth, "secret", at, secret)
	return auth
}

// literal records a secret that is written in the file.
func (c *conversion) literal(v *node, path string) {
	c.tokens[v] = true
	c.warn(v, path, "a literal token in the file", "--extract-secrets puts a variable in its place")
}

// aidkOptions converts the options of a provider: openai.function.strict becomes openai.strict.
func (c *conversion) aidkOptions(e, k, n *node, path string) {
	if !c.isMap(n, path) {
		return
	}
	out := emptyMap(n)
	for i, key := range n.keys {
		v := n.vals[i]
		if f, _ := v.get("function"); key.val == "openai" && f != nil && len(v.keys) == 1 {
			v = f
		}
		taken(out, key.val, key, v)
	}
	taken(e, "provider_options", k, out)
}

// researchai reads the list of servers of ResearchAI.
func (c *conversion) researchai(root *node) {
	taken(c.out, "profile", root, like(root, kindResearchAI))
	if !c.isMap(root, "") {
		return
	}
	for i, k := range root.keys {
		list := root.vals[i]
		if k.val != "servers" {
			c.unknown(k, k.val)
			continue
		}
		if list.kind != listNode {
			c.add(list, k.val, "must be a list, is "+list.what(), "")
			continue
		}
		c.section("servers", list)
		for j, s := range list.vals {
			if path := index("servers", j); c.isMap(s, path) {
				c.researchServer(s, path)
			}
		}
	}
}

func (c *conversion) researchServer(s *node, path string) {
	id, _ := s.get("id")
	if id == nil || id.kind != scalarNode || id.val == "" {
		c.add(s, path+".id", "'id' is required", "")
		return
	}
	e := c.server(id, s, path+".id")
	if e == nil {
		return
	}
	for i, k := range s.keys {
		v, p := s.vals[i], path+"."+k.val
		switch k.val {
		case "id":
		case "name":
			e.put("title", v)
		case "description", "command", "args", "env", "url", "headers":
			taken(e, k.val, k, v)
		case "enabled":
			if c.enabled == nil {
				taken(e, "enabled", k, v)
			}
		case "transport":
			taken(e, "transport", k, c.transport(like(v, strings.ToLower(v.val))))
		default:
			c.unknown(k, p)
		}
	}
	if c.enabled != nil {
		taken(e, "enabled", s, boolAt(s, slices.Contains(c.enabled, id.val)))
	}
}
