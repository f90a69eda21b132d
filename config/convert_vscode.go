package config

import (
	"fmt"
	"path/filepath"
	"strings"
)

// vscode reads mcp.json of VS Code: servers and inputs.
func (c *conversion) vscode(root *node) {
	for i, k := range root.keys {
		v := root.vals[i]
		switch k.val {
		case "servers":
			if !c.isMap(v, "servers") {
				continue
			}
			c.section("servers", v)
			for j, name := range v.keys {
				path := "servers." + name.val
				e := c.server(name, v.vals[j], path)
				if e == nil {
					continue
				}
				c.claudeServer(v.vals[j], e, path)
				if command, at := e.get("command"); command != nil {
					if cwd, _ := e.get("cwd"); cwd == nil && c.dir != "" {
						taken(e, "cwd", at, like(command, c.dir))
					}
				}
				for _, key := range []string{"cwd", "env_file"} { // seen from the workspace
					if p, _ := e.get(key); p != nil && p.kind == scalarNode && p.val != "" && c.dir != "" {
						e.put(key, like(p, absolute(c.dir, p.val)))
					}
				}
			}
		case "inputs":
			c.inputs(v)
		case "$schema":
		default:
			c.unknown(k, k.val)
		}
	}
}

// inputs converts inputs, the values that VS Code asks the user for, to entries of secrets.
func (c *conversion) inputs(list *node) {
	if list.kind != listNode {
		c.add(list, "inputs", "must be a list, is "+list.what(), "")
		return
	}
	for i, in := range list.vals {
		path := fmt.Sprintf("inputs[%d]", i)
		if !c.isMap(in, path) {
			continue
		}
		id, at := in.get("id")
		if id == nil || id.kind != scalarNode || id.val == "" {
			c.add(in, path+".id", "'id' is required", "")
			continue
		}
		secret := emptyMap(in)
		text := like(id, id.val)
		for j, k := range in.keys {
			v := in.vals[j]
			switch k.val {
			case "id":
			case "type":
				if v.val != "promptString" {
					c.note(v, path+".type", "'%s' is asked for as a text", v.val)
				}
			case "description":
				if v.kind == scalarNode && v.val != "" {
					text = like(v, v.val)
				}
			case "password":
				taken(secret, "password", k, v)
			case "default", "options", "command", "args":
				c.keep(secret, k, v, path+"."+k.val)
			default:
				c.unknown(k, path+"."+k.val)
			}
		}
		taken(secret, "prompt", at, text)
		secrets := c.section("secrets", list)
		name := secretName(id.val)
		if _, other := secrets.get(name); other != nil {
			c.add(id, path+".id", "there is an input '"+id.val+"' already", "")
			continue
		}
		taken(secrets, name, at, secret)
	}
}

// absolute makes a path absolute, unless it begins with a variable or the home folder.
func absolute(dir, p string) string {
	if strings.HasPrefix(p, "~") || strings.HasPrefix(p, "${") || filepath.IsAbs(p) {
		return p
	}
	return filepath.ToSlash(filepath.Join(dir, p))
}
