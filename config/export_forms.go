package config

import (
	"path/filepath"
	"slices"
	"strings"

	"github.com/tenonhq/tenon/config/tree"
	"github.com/tenonhq/tenon/servers"
)

// claude writes mcpServers.
func (e *export) claude() *tree.Node {
	root, list := &tree.Node{Kind: tree.Map}, &tree.Node{Kind: tree.Map}
	root.Put("mcpServers", list)
	e.entries("servers", func(k, v *tree.Node, path string) {
		if s := e.editor(k, v, path); s != nil {
			list.Put(shown(k, v), s)
		}
	})
	e.restore(root, e.root)
	return root
}

// vscode writes servers, and inputs for the secrets that are asked for.
func (e *export) vscode() *tree.Node {
	root, list, inputs := &tree.Node{Kind: tree.Map}, &tree.Node{Kind: tree.Map}, &tree.Node{Kind: tree.List}
	root.Put("servers", list)
	e.entries("servers", func(k, v *tree.Node, path string) {
		if s := e.editor(k, v, path); s != nil {
			list.Put(shown(k, v), s)
		}
	})
	e.entries("secrets", func(k, v *tree.Node, path string) {
		prompt, _ := v.Get("prompt")
		if prompt == nil {
			return // it is written where it is used, or missed there
		}
		in := &tree.Node{Kind: tree.Map}
		in.Put("type", tree.Text("promptString"))
		in.Put("id", k)
		in.Put("description", prompt)
		if p, _ := v.Get("password"); p != nil {
			in.Put("password", p)
		}
		e.restore(in, v)
		inputs.Vals = append(inputs.Vals, in)
	})
	if len(inputs.Vals) > 0 {
		root.Put("inputs", inputs)
	}
	e.restore(root, e.root)
	return root
}

// editor writes a server of Claude, Cursor or VS Code.
func (e *export) editor(k, v *tree.Node, path string) *tree.Node {
	s, kind := &tree.Node{Kind: tree.Map}, e.transport(k.Val)
	rename := map[string]string{"command": "command", "args": "args", "env": "env", "url": "url", "headers": "headers"}
	done := []string{"transport", "type", "auth", "enabled"}
	switch kind {
	case servers.TransportHTTP, servers.TransportSSE:
		s.Put("type", tree.Text(kind))
	case servers.TransportAuto:
		s.Put("type", tree.Text("http"))
	case servers.TransportStdio:
		if e.kind == kindVSCode {
			s.Put("type", tree.Text(kind))
		}
	default:
		e.missing(k, path)
		return nil
	}
	if e.kind != kindClaude {
		rename["env_file"] = "envFile"
	}
	if e.kind == kindVSCode {
		rename["cwd"] = "cwd"
		if cwd, _ := v.Get("cwd"); cwd != nil && filepath.Clean(cwd.Val) == filepath.Clean(e.c.Dir) {
			done = append(done, "cwd") // where it runs in any case
		}
	}
	e.server(k, v, s, path, rename, done...)
	if on, at := v.Get("enabled"); on != nil && on.Val == "false" {
		if e.kind == kindVSCode {
			e.missing(at, path+".enabled")
		} else {
			s.Put("disabled", &tree.Node{Tag: "!!bool", Val: "true"})
		}
	}
	auth, at := v.Get("auth")
	if t, _ := auth.Get("type"); t != nil && t.Val == servers.AuthOAuth {
		e.oauth(auth, s, path+".auth")
	} else if !e.auth(v, s, path+".auth") {
		e.missing(at, path+".auth")
	}
	return s
}

func (e *export) oauth(auth, into *tree.Node, path string) {
	out := &tree.Node{Kind: tree.Map}
	for i, k := range auth.Keys {
		switch theirs := map[string]string{"client_id": "clientId", "callback_port": "callbackPort",
			"scopes": "scopes"}[k.Val]; {
		case theirs != "":
			out.Put(theirs, auth.Vals[i])
		case k.Val != "type":
			e.missing(k, path+"."+k.Val)
		}
	}
	into.Put("oauth", out)
}

// researchai writes the list of servers.
func (e *export) researchai() *tree.Node {
	root, list := &tree.Node{Kind: tree.Map}, &tree.Node{Kind: tree.List}
	root.Put("servers", list)
	rename := map[string]string{"description": "description", "command": "command", "args": "args", "env": "env",
		"url": "url", "headers": "headers", "enabled": "enabled"}
	e.entries("servers", func(k, v *tree.Node, path string) {
		kind := e.transport(k.Val)
		if !slices.Contains([]string{servers.TransportStdio, servers.TransportSSE, servers.TransportWebSocket}, kind) {
			e.missing(k, path)
			return
		}
		s := &tree.Node{Kind: tree.Map}
		s.Put("id", k)
		name := k
		if title, _ := v.Get("title"); title != nil {
			name = title
		}
		s.Put("name", name)
		s.Put("transport", tree.Text(kind))
		e.server(k, v, s, path, rename, "title", "transport", "type", "auth")
		if on, _ := s.Get("enabled"); on == nil {
			s.Put("enabled", &tree.Node{Tag: "!!bool", Val: "true"})
		}
		if !e.auth(v, s, path+".auth") {
			_, at := v.Get("auth")
			e.missing(at, path+".auth")
		}
		list.Vals = append(list.Vals, s)
	})
	e.restore(root, e.root)
	return root
}

// aidk writes a list of MCPConfig.
func (e *export) aidk() *tree.Node {
	list := &tree.Node{Kind: tree.List}
	e.entries("servers", func(k, v *tree.Node, path string) {
		s, connection, kind := &tree.Node{Kind: tree.Map}, &tree.Node{Kind: tree.Map}, e.transport(k.Val)
		theirs := map[string]string{servers.TransportStdio: "stdio", servers.TransportSSE: "sse",
			servers.TransportHTTP: "websocket"}[kind]
		if url, _ := v.Get("url"); theirs == "" || theirs == "websocket" && !strings.HasPrefix(url.Val, "http") {
			e.missing(k, path)
			return
		}
		s.Put("serverName", tree.Text(shown(k, v)))
		s.Put("transport", tree.Text(theirs))
		s.Put("connection", connection)
		for i, key := range v.Keys {
			val := v.Vals[i]
			switch key.Val {
			case "command", "args", "env", "url", "cwd":
				connection.Put(key.Val, val)
			case "include", "exclude":
				s.Put(key.Val, val)
			case "headers":
				e.aidkHeaders(val, s, connection)
			case "transform":
				if len(val.Vals) == 1 && len(val.Vals[0].Keys) == 1 && val.Vals[0].Keys[0].Val == "prefix" {
					s.Put("toolPrefix", val.Vals[0].Vals[0])
				} else {
					e.missing(key, path+"."+key.Val)
				}
			case "provider_options":
				s.Put("providerOptions", aidkOptions(val))
			case "auth":
				if !e.aidkAuth(val, s) {
					e.missing(key, path+"."+key.Val)
				}
			case "transport", "type", "x-aidk":
			case "title":
				if shown(k, v) != val.Val {
					e.missing(key, path+"."+key.Val)
				}
			default:
				if val.Src == nil || !val.Src.Profile {
					e.missing(key, path+"."+key.Val)
				}
			}
		}
		e.restore(s, v)
		list.Vals = append(list.Vals, s)
	})
	return list
}

// aidkHeaders writes the header that a token became back as auth.
func (e *export) aidkHeaders(headers, s, connection *tree.Node) {
	rest := &tree.Node{Kind: tree.Map}
	for i, k := range headers.Keys {
		v := headers.Vals[i]
		token, bearer := strings.CutPrefix(v.Val, "Bearer ")
		if bearer && k.Val == "Authorization" {
			auth := &tree.Node{Kind: tree.Map}
			auth.Put("type", tree.Text("bearer"))
			auth.Put("token", tree.Text(token))
			s.Put("auth", auth)
			continue
		}
		rest.Put(k.Val, v)
	}
	if len(rest.Keys) > 0 {
		connection.Put("headers", rest)
	}
}

func (e *export) aidkAuth(auth, s *tree.Node) bool {
	kind, _ := auth.Get("type")
	secret, _ := auth.Get("secret")
	if kind == nil || secret == nil {
		return kind != nil && kind.Val == servers.AuthNone
	}
	theirs := map[string]string{servers.AuthBearer: "bearer", servers.AuthAPIKey: "api_key",
		servers.AuthHeader: "custom"}[kind.Val]
	token := e.reference(secret)
	if theirs == "" || token == "" {
		return false
	}
	out := &tree.Node{Kind: tree.Map}
	out.Put("type", tree.Text(theirs))
	out.Put("token", tree.Text(token))
	if header, _ := auth.Get("header"); header != nil {
		out.Put("header", header)
	}
	s.Put("auth", out)
	return true
}

func aidkOptions(n *tree.Node) *tree.Node {
	out := &tree.Node{Kind: tree.Map}
	for i, k := range n.Keys {
		v := n.Vals[i]
		if strict, _ := v.Get("strict"); k.Val == "openai" && strict != nil && len(v.Keys) == 1 {
			f := &tree.Node{Kind: tree.Map}
			f.Put("function", v)
			v = f
		}
		out.Put(k.Val, v)
	}
	return out
}
