package config

import (
	"strings"

	"github.com/tenonhq/tenon/config/tree"
)

// claude reads mcpServers in the form of Claude and Cursor: a server has a command or a url.
func (c *conversion) claude(root *tree.Node) {
	var left []string
	for i, k := range root.Keys {
		switch k.Val {
		case "mcpServers":
			if !c.isMap(root.Vals[i], "mcpServers") {
				continue
			}
			c.section("servers", root.Vals[i])
			for j, name := range root.Vals[i].Keys {
				path := "mcpServers." + name.Val
				if e := c.server(name, root.Vals[i].Vals[j], path); e != nil {
					c.claudeServer(root.Vals[i].Vals[j], e, path)
				}
			}
		case "$schema":
		case "inputs":
			c.inputs(root.Vals[i])
		default:
			left = append(left, k.Val)
			if c.direct {
				c.Warn(k, k.Val, "unknown key; it is not used", "")
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
func (c *conversion) claudeServer(n, e *tree.Node, path string) {
	for i, k := range n.Keys {
		v := n.Vals[i]
		switch ours := claudeKeys[k.Val]; {
		case ours != "":
			e.Append(ours, k, c.variables(v))
		case k.Val == "type" || k.Val == "transport":
			e.Append("transport", k, c.transport(v))
		case k.Val == "disabled" && v.Tag == "!!bool":
			turned := *v
			turned.Val = map[bool]string{true: "false", false: "true"}[tree.Truth(v.Val)]
			e.Append("enabled", k, &turned)
		case k.Val == "disabled":
			c.Add(v, path+".disabled", "must be true or false, is "+v.Form(), "")
		case k.Val == "oauth":
			c.oauth(v, k, e, path+".oauth")
		case claudeOther[k.Val]:
			c.keep(e, k, v, path+"."+k.Val)
		default:
			c.unknown(k, path+"."+k.Val)
		}
	}
}

// transport converts the usual names of transports. VS Code falls back to the older one by itself if http fails.
func (c *conversion) transport(v *tree.Node) *tree.Node {
	ours := map[string]string{"streamable-http": "http", "streamableHttp": "http", "streamable_http": "http",
		"ws": "websocket"}[v.Val]
	if c.kind == kindVSCode && (v.Val == "http" || ours == "http") {
		ours = "auto"
	}
	if v.Kind != tree.Scalar || ours == "" {
		return v
	}
	return tree.TextAt(v, ours)
}

// oauth converts OAuth settings.
func (c *conversion) oauth(n, k, e *tree.Node, path string) {
	if !c.isMap(n, path) {
		return
	}
	auth := tree.MapAt(n)
	auth.Append("type", k, tree.TextAt(n, "oauth"))
	for i, key := range n.Keys {
		v := n.Vals[i]
		switch key.Val {
		case "clientId", "client_id":
			auth.Append("client_id", key, v)
		case "callbackPort":
			auth.Append("callback_port", key, v)
		case "scopes", "scope":
			auth.Append("scopes", key, wordList(v))
		case "authServerMetadataUrl":
			c.keep(e, key, v, path+"."+key.Val)
		default:
			c.unknown(key, path+"."+key.Val)
		}
	}
	e.Append("auth", k, auth)
}

// wordList splits a text into a list of words.
func wordList(v *tree.Node) *tree.Node {
	if v.Kind != tree.Scalar {
		return v
	}
	list := tree.ListAt(v)
	for _, w := range strings.Fields(v.Val) {
		list.Vals = append(list.Vals, tree.TextAt(v, w))
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
