package config

import (
	"strings"

	"github.com/tenonhq/tenon/config/tree"
	"github.com/tenonhq/tenon/servers"
)

// aidkExporter writes one file.
type aidkExporter struct{ *export }

// export writes a list of MCPConfig.
func (aidkFormat) export(to *export) *tree.Node {
	e := aidkExporter{to}
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
				s.Put("providerOptions", aidkOptionsBack(val))
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
func (e aidkExporter) aidkHeaders(headers, s, connection *tree.Node) {
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

func (e aidkExporter) aidkAuth(auth, s *tree.Node) bool {
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

func aidkOptionsBack(n *tree.Node) *tree.Node {
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

var (
	_ format   = aidkFormat{}
	_ exporter = aidkFormat{}
)
