package config

import "strings"

// claude reads mcpServers in the form of Claude and Cursor: a server has a command or a url.
func (c *conversion) claude(root *node) {
	var left []string
	for i, k := range root.keys {
		switch k.val {
		case "mcpServers":
			if !c.isMap(root.vals[i], "mcpServers") {
				continue
			}
			c.section("servers", root.vals[i])
			for j, name := range root.vals[i].keys {
				path := "mcpServers." + name.val
				if e := c.server(name, root.vals[i].vals[j], path); e != nil {
					c.claudeServer(root.vals[i].vals[j], e, path)
				}
			}
		case "$schema":
		case "inputs":
			c.inputs(root.vals[i])
		default:
			left = append(left, k.val)
			if c.direct {
				c.warn(k, k.val, "unknown key; it is not used", "")
			}
		}
	}
	if len(left) > 0 && !c.direct { // settings of the program, whose files contain more than servers
		c.note(root, "", "not about MCP, left out: %s", first(left, 12))
	}
}

// claudeKeys maps Claude's keys to tenon's.
var claudeKeys = map[string]string{"command": "command", "args": "args", "env": "env", "url": "url",
	"headers": "headers", "cwd": "cwd",
	"envFile": "env_file", "env_file": "env_file", "description": "description", "inherit_env": "inherit_env"}

// claudeOther are further keys of clients that use this format. tenon has no equivalent.
var claudeOther = map[string]bool{"alwaysAllow": true, "autoApprove": true, "timeout": true, "gallery": true,
	"version": true, "metadata": true,
	"iconUrl": true, "trust": true, "tools": true, "disabledTools": true, "includeTools": true, "excludeTools": true,
	"sandbox": true, "dev": true, "sandboxEnabled": true}

// claudeServer fills an entry.
func (c *conversion) claudeServer(n, e *node, path string) {
	for i, k := range n.keys {
		v := n.vals[i]
		switch ours := claudeKeys[k.val]; {
		case ours != "":
			taken(e, ours, k, c.variables(v))
		case k.val == "type" || k.val == "transport":
			taken(e, "transport", k, c.transport(v))
		case k.val == "disabled" && v.tag == "!!bool":
			turned := *v
			turned.val = map[bool]string{true: "false", false: "true"}[truth(v.val)]
			taken(e, "enabled", k, &turned)
		case k.val == "disabled":
			c.add(v, path+".disabled", "must be true or false, is "+v.what(), "")
		case k.val == "oauth":
			c.oauth(v, k, e, path+".oauth")
		case claudeOther[k.val]:
			c.keep(e, k, v, path+"."+k.val)
		default:
			c.unknown(k, path+"."+k.val)
		}
	}
}

// transport converts the usual names of transports. VS Code falls back to the older one by itself if http fails.
func (c *conversion) transport(v *node) *node {
	ours := map[string]string{"streamable-http": "http", "streamableHttp": "http", "streamable_http": "http",
		"ws": "websocket"}[v.val]
	if c.kind == kindVSCode && (v.val == "http" || ours == "http") {
		ours = "auto"
	}
	if v.kind != scalarNode || ours == "" {
		return v
	}
	return like(v, ours)
}

// oauth converts OAuth settings.
func (c *conversion) oauth(n, k, e *node, path string) {
	if !c.isMap(n, path) {
		return
	}
	auth := emptyMap(n)
	taken(auth, "type", k, like(n, "oauth"))
	for i, key := range n.keys {
		v := n.vals[i]
		switch key.val {
		case "clientId", "client_id":
			taken(auth, "client_id", key, v)
		case "callbackPort":
			taken(auth, "callback_port", key, v)
		case "scopes", "scope":
			taken(auth, "scopes", key, wordList(v))
		case "authServerMetadataUrl":
			c.keep(e, key, v, path+"."+key.val)
		default:
			c.unknown(key, path+"."+key.val)
		}
	}
	taken(e, "auth", k, auth)
}

// wordList splits a text into a list of words.
func wordList(v *node) *node {
	if v.kind != scalarNode {
		return v
	}
	list := emptyList(v)
	for _, w := range strings.Fields(v.val) {
		list.vals = append(list.vals, like(v, w))
	}
	return list
}

// first joins the first n texts of a list.
func first(list []string, n int) string {
	if len(list) <= n {
		return strings.Join(list, ", ")
	}
	return strings.Join(list[:n], ", ") + ", …"
}
