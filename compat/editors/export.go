package editors

import (
	"path/filepath"

	"github.com/tenonhq/tenon/compat"
	"github.com/tenonhq/tenon/config/tree"
	"github.com/tenonhq/tenon/servers"
)

// exporter writes one file.
type exporter struct{ *compat.Export }

// Export writes mcpServers.
func (Claude) Export(to *compat.Export) *tree.Node {
	e := exporter{to}
	root := &tree.Node{Kind: tree.Map}
	root.Put("mcpServers", e.list())
	e.Restore(root, e.Root)
	return root
}

// Export writes servers, and inputs for the secrets that are asked for.
func (VSCode) Export(to *compat.Export) *tree.Node {
	e := exporter{to}
	root, inputs := &tree.Node{Kind: tree.Map}, &tree.Node{Kind: tree.List}
	root.Put("servers", e.list())
	e.Entries("secrets", func(k, v *tree.Node, path string) {
		prompt, _ := v.Get("prompt")
		if prompt == nil {
			return // a secret without a prompt is written, or reported as missing, where it is used
		}
		in := &tree.Node{Kind: tree.Map}
		in.Put("type", tree.Text("promptString"))
		in.Put("id", k)
		in.Put("description", prompt)
		if p, _ := v.Get("password"); p != nil {
			in.Put("password", p)
		}
		e.Restore(in, v)
		inputs.Vals = append(inputs.Vals, in)
	})
	if len(inputs.Vals) > 0 {
		root.Put("inputs", inputs)
	}
	e.Restore(root, e.Root)
	return root
}

// list writes the servers.
func (e exporter) list() *tree.Node {
	list := &tree.Node{Kind: tree.Map}
	e.Entries("servers", func(k, v *tree.Node, path string) {
		if s := e.editor(k, v, path); s != nil {
			list.Put(compat.Shown(k, v), s)
		}
	})
	return list
}

// editor writes a server of Claude, Cursor or VS Code.
func (e exporter) editor(k, v *tree.Node, path string) *tree.Node {
	s, kind := &tree.Node{Kind: tree.Map}, e.Transport(k.Val)
	rename := map[string]string{"command": "command", "args": "args", "env": "env", "url": "url", "headers": "headers"}
	done := []string{"transport", "type", "auth", "enabled"}
	switch kind {
	case servers.TransportHTTP, servers.TransportSSE:
		s.Put("type", tree.Text(kind))
	case servers.TransportAuto:
		s.Put("type", tree.Text("http"))
	case servers.TransportStdio:
		if e.Kind == compat.VSCode {
			s.Put("type", tree.Text(kind))
		}
	default:
		e.Missing(k, path)
		return nil
	}
	if e.Kind != compat.Claude {
		rename["env_file"] = "envFile"
	}
	if e.Kind == compat.VSCode {
		rename["cwd"] = "cwd"
		if cwd, _ := v.Get("cwd"); cwd != nil && filepath.Clean(cwd.Val) == filepath.Clean(e.Dir) {
			done = append(done, "cwd") // VS Code runs a server in this folder by default
		}
	}
	e.Server(k, v, s, path, rename, done...)
	if on, at := v.Get("enabled"); on != nil && on.Val == "false" {
		if e.Kind == compat.VSCode {
			e.Missing(at, path+".enabled")
		} else {
			s.Put("disabled", &tree.Node{Tag: "!!bool", Val: "true"})
		}
	}
	auth, at := v.Get("auth")
	if t, _ := auth.Get("type"); t != nil && t.Val == servers.AuthOAuth {
		e.oauth(auth, s, path+".auth")
	} else if !e.Auth(v, s, path+".auth") {
		e.Missing(at, path+".auth")
	}
	return s
}

func (e exporter) oauth(auth, into *tree.Node, path string) {
	out := &tree.Node{Kind: tree.Map}
	for i, k := range auth.Keys {
		switch theirs := map[string]string{"client_id": "clientId", "callback_port": "callbackPort",
			"scopes": "scopes"}[k.Val]; {
		case theirs != "":
			out.Put(theirs, auth.Vals[i])
		case k.Val != "type":
			e.Missing(k, path+"."+k.Val)
		}
	}
	into.Put("oauth", out)
}

var (
	_ compat.Exporter = Claude{}
	_ compat.Exporter = VSCode{}
)
