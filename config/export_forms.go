package config

import (
	"path/filepath"
	"slices"
	"strings"

	"github.com/tenonhq/tenon/servers"
)

// claude writes mcpServers.
func (e *export) claude() *node {
	root, list := &node{kind: mapNode}, &node{kind: mapNode}
	root.put("mcpServers", list)
	e.entries("servers", func(k, v *node, path string) {
		if s := e.editor(k, v, path); s != nil {
			list.put(shown(k, v), s)
		}
	})
	e.restore(root, e.root)
	return root
}

// vscode writes servers, and inputs for the secrets that are asked for.
func (e *export) vscode() *node {
	root, list, inputs := &node{kind: mapNode}, &node{kind: mapNode}, &node{kind: listNode}
	root.put("servers", list)
	e.entries("servers", func(k, v *node, path string) {
		if s := e.editor(k, v, path); s != nil {
			list.put(shown(k, v), s)
		}
	})
	e.entries("secrets", func(k, v *node, path string) {
		prompt, _ := v.get("prompt")
		if prompt == nil {
			return // it is written where it is used, or missed there
		}
		in := &node{kind: mapNode}
		in.put("type", text("promptString"))
		in.put("id", k)
		in.put("description", prompt)
		if p, _ := v.get("password"); p != nil {
			in.put("password", p)
		}
		e.restore(in, v)
		inputs.vals = append(inputs.vals, in)
	})
	if len(inputs.vals) > 0 {
		root.put("inputs", inputs)
	}
	e.restore(root, e.root)
	return root
}

// editor writes a server of Claude, Cursor or VS Code.
func (e *export) editor(k, v *node, path string) *node {
	s, kind := &node{kind: mapNode}, e.transport(k.val)
	rename := map[string]string{"command": "command", "args": "args", "env": "env", "url": "url", "headers": "headers"}
	done := []string{"transport", "type", "auth", "enabled"}
	switch kind {
	case servers.TransportHTTP, servers.TransportSSE:
		s.put("type", text(kind))
	case servers.TransportAuto:
		s.put("type", text("http"))
	case servers.TransportStdio:
		if e.kind == kindVSCode {
			s.put("type", text(kind))
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
		if cwd, _ := v.get("cwd"); cwd != nil && filepath.Clean(cwd.val) == filepath.Clean(e.c.Dir) {
			done = append(done, "cwd") // where it runs in any case
		}
	}
	e.server(k, v, s, path, rename, done...)
	if on, at := v.get("enabled"); on != nil && on.val == "false" {
		if e.kind == kindVSCode {
			e.missing(at, path+".enabled")
		} else {
			s.put("disabled", &node{tag: "!!bool", val: "true"})
		}
	}
	auth, at := v.get("auth")
	if t, _ := auth.get("type"); t != nil && t.val == servers.AuthOAuth {
		e.oauth(auth, s, path+".auth")
	} else if !e.auth(v, s, path+".auth") {
		e.missing(at, path+".auth")
	}
	return s
}

func (e *export) oauth(auth, into *node, path string) {
	out := &node{kind: mapNode}
	for i, k := range auth.keys {
		switch theirs := map[string]string{"client_id": "clientId", "callback_port": "callbackPort",
			"scopes": "scopes"}[k.val]; {
		case theirs != "":
			out.put(theirs, auth.vals[i])
		case k.val != "type":
			e.missing(k, path+"."+k.val)
		}
	}
	into.put("oauth", out)
}

// researchai writes the list of servers.
func (e *export) researchai() *node {
	root, list := &node{kind: mapNode}, &node{kind: listNode}
	root.put("servers", list)
	rename := map[string]string{"description": "description", "command": "command", "args": "args", "env": "env",
		"url": "url", "headers": "headers", "enabled": "enabled"}
	e.entries("servers", func(k, v *node, path string) {
		kind := e.transport(k.val)
		if !slices.Contains([]string{servers.TransportStdio, servers.TransportSSE, servers.TransportWebSocket}, kind) {
			e.missing(k, path)
			return
		}
		s := &node{kind: mapNode}
		s.put("id", k)
		name := k
		if title, _ := v.get("title"); title != nil {
			name = title
		}
		s.put("name", name)
		s.put("transport", text(kind))
		e.server(k, v, s, path, rename, "title", "transport", "type", "auth")
		if on, _ := s.get("enabled"); on == nil {
			s.put("enabled", &node{tag: "!!bool", val: "true"})
		}
		if !e.auth(v, s, path+".auth") {
			_, at := v.get("auth")
			e.missing(at, path+".auth")
		}
		list.vals = append(list.vals, s)
	})
	e.restore(root, e.root)
	return root
}

// aidk writes a list of MCPConfig.
func (e *export) aidk() *node {
	list := &node{kind: listNode}
	e.entries("servers", func(k, v *node, path string) {
		s, connection, kind := &node{kind: mapNode}, &node{kind: mapNode}, e.transport(k.val)
		theirs := map[string]string{servers.TransportStdio: "stdio", servers.TransportSSE: "sse",
			servers.TransportHTTP: "websocket"}[kind]
		if url, _ := v.get("url"); theirs == "" || theirs == "websocket" && !strings.HasPrefix(url.val, "http") {
			e.missing(k, path)
			return
		}
		s.put("serverName", text(shown(k, v)))
		s.put("transport", text(theirs))
		s.put("connection", connection)
		for i, key := range v.keys {
			switch val := v.vals[i]; key.val {
			case "command", "args", "env", "url", "cwd":
				connection.put(key.val, val)
			case "include", "exclude":
				s.put(key.val, val)
			case "headers":
				e.aidkHeaders(val, s, connection)
			case "transform":
				if len(val.vals) == 1 && len(val.vals[0].keys) == 1 && val.vals[0].keys[0].val == "prefix" {
					s.put("toolPrefix", val.vals[0].vals[0])
				} else {
					e.missing(key, path+"."+key.val)
				}
			case "provider_options":
				s.put("providerOptions", aidkOptions(val))
			case "auth":
				if !e.aidkAuth(val, s) {
					e.missing(key, path+"."+key.val)
				}
			case "transport", "type", "x-aidk":
			case "title":
				if shown(k, v) != val.val {
					e.missing(key, path+"."+key.val)
				}
			default:
				if val.src == nil || !val.src.profile {
					e.missing(key, path+"."+key.val)
				}
			}
		}
		e.restore(s, v)
		list.vals = append(list.vals, s)
	})
	return list
}

// aidkHeaders writes the header that a token became back as auth.
func (e *export) aidkHeaders(headers, s, connection *node) {
	rest := &node{kind: mapNode}
	for i, k := range headers.keys {
		v := headers.vals[i]
		token, bearer := strings.CutPrefix(v.val, "Bearer ")
		if bearer && k.val == "Authorization" {
			auth := &node{kind: mapNode}
			auth.put("type", text("bearer"))
			auth.put("token", text(token))
			s.put("auth", auth)
			continue
		}
		rest.put(k.val, v)
	}
	if len(rest.keys) > 0 {
		connection.put("headers", rest)
	}
}

func (e *export) aidkAuth(auth, s *node) bool {
	kind, _ := auth.get("type")
	secret, _ := auth.get("secret")
	if kind == nil || secret == nil {
		return kind != nil && kind.val == servers.AuthNone
	}
	theirs := map[string]string{servers.AuthBearer: "bearer", servers.AuthAPIKey: "api_key",
		servers.AuthHeader: "custom"}[kind.val]
	token := e.reference(secret)
	if theirs == "" || token == "" {
		return false
	}
	out := &node{kind: mapNode}
	out.put("type", text(theirs))
	out.put("token", text(token))
	if header, _ := auth.get("header"); header != nil {
		out.put("header", header)
	}
	s.put("auth", out)
	return true
}

func aidkOptions(n *node) *node {
	out := &node{kind: mapNode}
	for i, k := range n.keys {
		v := n.vals[i]
		if strict, _ := v.get("strict"); k.val == "openai" && strict != nil && len(v.keys) == 1 {
			f := &node{kind: mapNode}
			f.put("function", v)
			v = f
		}
		out.put(k.val, v)
	}
	return out
}
