package config

import (
	"fmt"
	"path/filepath"
	"strings"

	"github.com/tenonhq/tenon/config/tree"
)

// vscode reads mcp.json of VS Code: servers and inputs.
func (c *conversion) vscode(root *tree.Node) {
	for i, k := range root.Keys {
		v := root.Vals[i]
		switch k.Val {
		case "servers":
			if !c.isMap(v, "servers") {
				continue
			}
			c.section("servers", v)
			for j, name := range v.Keys {
				path := "servers." + name.Val
				e := c.server(name, v.Vals[j], path)
				if e == nil {
					continue
				}
				c.claudeServer(v.Vals[j], e, path)
				if command, at := e.Get("command"); command != nil {
					if cwd, _ := e.Get("cwd"); cwd == nil && c.dir != "" {
						e.Append("cwd", at, tree.TextAt(command, c.dir))
					}
				}
				for _, key := range []string{"cwd", "env_file"} { // seen from the workspace
					if p, _ := e.Get(key); p != nil && p.Kind == tree.Scalar && p.Val != "" && c.dir != "" {
						e.Put(key, tree.TextAt(p, absolute(c.dir, p.Val)))
					}
				}
			}
		case "inputs":
			c.inputs(v)
		case "$schema":
		default:
			c.unknown(k, k.Val)
		}
	}
}

// inputs converts inputs, the values that VS Code asks the user for, to entries of secrets.
func (c *conversion) inputs(list *tree.Node) {
	if list.Kind != tree.List {
		c.Add(list, "inputs", "must be a list, is "+list.Form(), "")
		return
	}
	for i, in := range list.Vals {
		path := fmt.Sprintf("inputs[%d]", i)
		if !c.isMap(in, path) {
			continue
		}
		id, at := in.Get("id")
		if id == nil || id.Kind != tree.Scalar || id.Val == "" {
			c.Add(in, path+".id", "'id' is required", "")
			continue
		}
		secret := tree.MapAt(in)
		text := tree.TextAt(id, id.Val)
		for j, k := range in.Keys {
			v := in.Vals[j]
			switch k.Val {
			case "id":
			case "type":
				if v.Val != "promptString" {
					c.note(v, path+".type", "'%s' is asked for as a text", v.Val)
				}
			case "description":
				if v.Kind == tree.Scalar && v.Val != "" {
					text = tree.TextAt(v, v.Val)
				}
			case "password":
				secret.Append("password", k, v)
			case "default", "options", "command", "args":
				c.keep(secret, k, v, path+"."+k.Val)
			default:
				c.unknown(k, path+"."+k.Val)
			}
		}
		secret.Append("prompt", at, text)
		secrets := c.section("secrets", list)
		name := secretName(id.Val)
		if _, other := secrets.Get(name); other != nil {
			c.Add(id, path+".id", "there is an input '"+id.Val+"' already", "")
			continue
		}
		secrets.Append(name, at, secret)
	}
}

// absolute makes a path absolute, unless it begins with a variable or the home folder.
func absolute(dir, p string) string {
	if strings.HasPrefix(p, "~") || strings.HasPrefix(p, "${") || filepath.IsAbs(p) {
		return p
	}
	return filepath.ToSlash(filepath.Join(dir, p))
}
