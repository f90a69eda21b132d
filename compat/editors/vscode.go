package editors

import (
	"fmt"
	"path/filepath"
	"strings"

	"github.com/tenonhq/tenon/compat"
	"github.com/tenonhq/tenon/config/tree"
)

// VSCode is the form of VS Code's mcp.json: servers and inputs.
type VSCode struct{}

// Recognise implements compat.Format.
func (VSCode) Recognise(root *tree.Node) compat.Certainty {
	servers, _ := root.Get("servers")
	if servers != nil && (compat.HasKey(root, "inputs") || compat.HasEntry(servers, "type")) {
		return compat.ByKeys
	}
	return compat.Unlike
}

// Convert implements compat.Format.
func (VSCode) Convert(conv *compat.Conversion, root *tree.Node) {
	c := converter{conv}
	for k, v := range root.All() {
		switch k.Val {
		case "servers":
			if !c.IsMap(v, "servers") {
				continue
			}
			c.Section("servers", v)
			for j, name := range v.Keys {
				path := "servers." + name.Val
				e := c.Conversion.Server(name, v.Vals[j], path)
				if e == nil {
					continue
				}
				c.server(v.Vals[j], e, path)
				if command, at := e.Get("command"); command != nil {
					if cwd, _ := e.Get("cwd"); cwd == nil && c.Dir != "" {
						e.Append("cwd", at, tree.TextAt(command, c.Dir))
					}
				}
				for _, key := range []string{"cwd", "env_file"} { // seen from the workspace
					if p, _ := e.Get(key); p != nil && p.Kind == tree.Scalar && p.Val != "" && c.Dir != "" {
						e.Put(key, tree.TextAt(p, absolute(c.Dir, p.Val)))
					}
				}
			}
		case "inputs":
			c.inputs(v)
		case "$schema":
		default:
			c.Unknown(k, k.Val)
		}
	}
}

// inputs converts inputs, the values that VS Code asks the user for, to entries of secrets.
func (c converter) inputs(list *tree.Node) {
	if list.Kind != tree.List {
		c.Add(list, "inputs", "must be a list, is "+list.Form(), "")
		return
	}
	for i, in := range list.Vals {
		path := fmt.Sprintf("inputs[%d]", i)
		if !c.IsMap(in, path) {
			continue
		}
		id, at := in.Get("id")
		if id == nil || id.Kind != tree.Scalar || id.Val == "" {
			c.Add(in, path+".id", "'id' is required", "")
			continue
		}
		secret := tree.MapAt(in)
		text := tree.TextAt(id, id.Val)
		for k, v := range in.All() {
			switch k.Val {
			case "id":
			case "type":
				if v.Val != "promptString" {
					c.Note(v, path+".type", "'%s' is asked for as a text", v.Val)
				}
			case "description":
				if v.Kind == tree.Scalar && v.Val != "" {
					text = tree.TextAt(v, v.Val)
				}
			case "password":
				secret.Append("password", k, v)
			case "default", "options", "command", "args":
				c.Keep(secret, k, v, path+"."+k.Val)
			default:
				c.Unknown(k, path+"."+k.Val)
			}
		}
		secret.Append("prompt", at, text)
		secrets := c.Section("secrets", list)
		name := compat.SecretName(id.Val)
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
