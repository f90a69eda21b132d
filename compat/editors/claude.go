package editors

import (
	"path/filepath"
	"strings"

	"github.com/tenonhq/tenon/compat"
	"github.com/tenonhq/tenon/config/tree"
	"github.com/tenonhq/tenon/internal/lazyregexp"
)

// Claude is the form of Claude and Cursor: mcpServers, in which a server has a command or a url.
type Claude struct{}

// Recognise implements compat.Format.
func (Claude) Recognise(root *tree.Node) compat.Certainty {
	if compat.HasKey(root, "mcpServers") {
		return compat.Surely
	}
	return compat.Unlike
}

// converter converts one file.
type converter struct{ *compat.Conversion }

// Convert implements compat.Format.
func (Claude) Convert(conv *compat.Conversion, root *tree.Node) {
	c := converter{conv}
	var left []string
	for i, k := range root.Keys {
		switch k.Val {
		case "mcpServers":
			if !c.IsMap(root.Vals[i], "mcpServers") {
				continue
			}
			c.Section("servers", root.Vals[i])
			for j, name := range root.Vals[i].Keys {
				path := "mcpServers." + name.Val
				if e := c.Conversion.Server(name, root.Vals[i].Vals[j], path); e != nil {
					c.server(root.Vals[i].Vals[j], e, path)
				}
			}
		case "$schema":
		case "inputs":
			c.inputs(root.Vals[i])
		default:
			left = append(left, k.Val)
			if c.Direct {
				c.Warn(k, k.Val, "unknown key; it is not used", "")
			}
		}
	}
	if len(left) > 0 && !c.Direct { // settings of the program, whose files contain more than servers
		c.Note(root, "", "not about MCP, left out: %s", first(left, 12))
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

// Server fills an entry of servers with the keys of an entry of mcpServers.
func Server(c *compat.Conversion, n, e *tree.Node, path string) {
	converter{c}.server(n, e, path)
}

func (c converter) server(n, e *tree.Node, path string) {
	for k, v := range n.All() {
		switch ours := claudeKeys[k.Val]; {
		case ours != "":
			e.Append(ours, k, c.variables(v))
		case k.Val == "type" || k.Val == "transport":
			e.Append("transport", k, c.Transport(v))
		case k.Val == "disabled" && v.Tag == "!!bool":
			turned := *v
			turned.Val = map[bool]string{true: "false", false: "true"}[tree.Truth(v.Val)]
			e.Append("enabled", k, &turned)
		case k.Val == "disabled":
			c.Add(v, path+".disabled", "must be true or false, is "+v.Form(), "")
		case k.Val == "oauth":
			c.oauth(v, k, e, path+".oauth")
		case claudeOther[k.Val]:
			c.Keep(e, k, v, path+"."+k.Val)
		default:
			c.Unknown(k, path+"."+k.Val)
		}
	}
}

// oauth converts OAuth settings.
func (c converter) oauth(n, k, e *tree.Node, path string) {
	if !c.IsMap(n, path) {
		return
	}
	auth := tree.MapAt(n)
	auth.Append("type", k, tree.TextAt(n, "oauth"))
	for key, v := range n.All() {
		switch key.Val {
		case "clientId", "client_id":
			auth.Append("client_id", key, v)
		case "callbackPort":
			auth.Append("callback_port", key, v)
		case "scopes", "scope":
			auth.Append("scopes", key, wordList(v))
		case "authServerMetadataUrl":
			c.Keep(e, key, v, path+"."+key.Val)
		default:
			c.Unknown(key, path+"."+key.Val)
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

// editorVariable matches the variables of VS Code and Cursor that ours do not have.
var editorVariable = lazyregexp.New(
	`\$\{(env:[A-Za-z_][A-Za-z0-9_]*|workspaceFolder|workspaceFolderBasename|userHome|pathSeparator|/|input:[^}]*)\}`)

// variables replaces an editor's variables in a value and all that is in it.
func (c converter) variables(v *tree.Node) *tree.Node {
	if v.Kind == tree.Scalar && !strings.Contains(v.Val, "${") {
		return v
	}
	out := *v
	out.Vals = make([]*tree.Node, len(v.Vals))
	for i, e := range v.Vals {
		out.Vals[i] = c.variables(e)
	}
	if v.Kind == tree.Scalar {
		out.Val = editorVariable().ReplaceAllStringFunc(v.Val, func(s string) string {
			name := s[2 : len(s)-1]
			switch kind, rest, _ := strings.Cut(name, ":"); {
			case kind == "env":
				return "${" + rest + "}"
			case kind == "input":
				return "${secret:" + compat.SecretName(rest) + "}"
			case name == "workspaceFolder":
				return filepath.ToSlash(c.Dir)
			case name == "workspaceFolderBasename":
				return filepath.Base(c.Dir)
			case name == "userHome":
				return filepath.ToSlash(c.Home)
			}
			return "/"
		})
	}
	return &out
}
