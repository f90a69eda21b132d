package aidk

import (
	"strings"

	"github.com/tenonhq/tenon/compat"
	"github.com/tenonhq/tenon/config/tree"
	"github.com/tenonhq/tenon/servers"
)

// exporter writes one file.
type exporter struct{ *compat.Export }

// Export writes a list of MCPConfig.
func (Format) Export(to *compat.Export) *tree.Node {
	e := exporter{to}
	list := &tree.Node{Kind: tree.List}
	e.Entries("servers", func(k, v *tree.Node, path string) {
		s, connection, kind := &tree.Node{Kind: tree.Map}, &tree.Node{Kind: tree.Map}, e.Transport(k.Val)
		theirs := map[string]string{servers.TransportStdio: "stdio", servers.TransportSSE: "sse",
			servers.TransportHTTP: "websocket"}[kind]
		if url, _ := v.Get("url"); theirs == "" || theirs == "websocket" && !strings.HasPrefix(url.Val, "http") {
			e.Missing(k, path)
			return
		}
		s.Put("serverName", tree.Text(compat.Shown(k, v)))
		s.Put("transport", tree.Text(theirs))
		s.Put("connection", connection)
		for key, val := range v.All() {
			switch key.Val {
			case "command", "args", "env", "url", "cwd":
				connection.Put(key.Val, val)
			case "include", "exclude":
				s.Put(key.Val, val)
			case "headers":
				e.headers(val, s, connection)
			case "transform":
				if len(val.Vals) == 1 && len(val.Vals[0].Keys) == 1 && val.Vals[0].Keys[0].Val == "prefix" {
					s.Put("toolPrefix", val.Vals[0].Vals[0])
				} else {
					e.Missing(key, path+"."+key.Val)
				}
			case "provider_options":
				s.Put("providerOptions", optionsBack(val))
			case "auth":
				if !e.auth(val, s) {
					e.Missing(key, path+"."+key.Val)
				}
			case "transport", "type", "x-aidk":
			case "title":
				if compat.Shown(k, v) != val.Val {
					e.Missing(key, path+"."+key.Val)
				}
			default:
				if val.Src == nil || !val.Src.Profile {
					e.Missing(key, path+"."+key.Val)
				}
			}
		}
		e.Restore(s, v)
		list.Vals = append(list.Vals, s)
	})
	return list
}

// headers writes the header that a token became back as auth.
func (e exporter) headers(headers, s, connection *tree.Node) {
	rest := &tree.Node{Kind: tree.Map}
	for k, v := range headers.All() {
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

func (e exporter) auth(auth, s *tree.Node) bool {
	kind, _ := auth.Get("type")
	secret, _ := auth.Get("secret")
	if kind == nil || secret == nil {
		return kind != nil && kind.Val == servers.AuthNone
	}
	theirs := map[string]string{servers.AuthBearer: "bearer", servers.AuthAPIKey: "api_key",
		servers.AuthHeader: "custom"}[kind.Val]
	token := e.Reference(secret)
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

func optionsBack(n *tree.Node) *tree.Node {
	out := &tree.Node{Kind: tree.Map}
	for k, v := range n.All() {
		if strict, _ := v.Get("strict"); k.Val == "openai" && strict != nil && len(v.Keys) == 1 {
			f := &tree.Node{Kind: tree.Map}
			f.Put("function", v)
			v = f
		}
		out.Put(k.Val, v)
	}
	return out
}

var _ compat.Exporter = Format{}
