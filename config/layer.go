package config

import (
	"cmp"
	"net/http"
	"strings"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/catalog"
	"github.com/tenonhq/tenon/config/tree"
)

// TargetID returns the identity of a server or tool that is identified by the digest of its target.
func TargetID(digest string) string { return "target:" + digest }

// Layer is the author of a part of the configuration: administrator, user or project. The rules of each layer are
// evaluated separately, and the strictest verdict wins.
type Layer = tree.Layer

// The layers, the most trusted first.
const (
	LayerAdmin   = tree.LayerAdmin   // the administrator's file
	LayerUser    = tree.LayerUser    // the user's own file
	LayerProject = tree.LayerProject // the project's file, whether it was found or named with -c
	LayerProgram = tree.LayerProgram // a Go program that filled in the Config itself
	LayerNone    = tree.LayerNone    // a built-in default
)

// Layer returns the layer of the value at a path, such as servers.github.timeout.
func (c *Config) Layer(path string) Layer {
	n := c.node(path)
	switch {
	case n == nil && c.tree == nil:
		return LayerProgram
	case n == nil || n.Src.Profile:
		return LayerNone
	}
	return cmp.Or(n.Src.Layer, LayerProject)
}

// IsTarget reports whether an identity was made by [TargetID]: for a server that only a table or the command line
// names.
func IsTarget(id string) bool { return strings.HasPrefix(id, "target:") }

// ServerID returns the identity of a server for rules, grants, pins and everything
// else that outlives a process. The identity of a configured server is its layer and
// entry name, such as "project:github". A server that only a table or the command line
// names is identified by its target, such as "target:sha256:…". The result is "" for a
// name that is not in c.Servers.
func (c *Config) ServerID(name string) string {
	entry, ok := c.Servers[name]
	switch path := "servers." + name; {
	case !ok:
		return ""
	case c.added[path] || c.rows[path] != nil:
		return TargetID(TargetDigest(entry))
	default:
		return string(c.Layer(path)) + ":" + name
	}
}

// ToolID returns the identity of the server of a tool, by the key of the tool's entry in c.Tools. A tool without an
// MCP server has an identity such as "project:http_tools". An entry that came from a table is identified by its
// definition.
func (c *Config) ToolID(key string) string {
	t, ok := c.Tools[key]
	if !ok {
		return ""
	}
	if t.Kind == "" || t.Kind == tenon.KindMCP {
		return c.ServerID(t.Server)
	}
	path, server := "tools."+key, t.WithDefaults(key).Server
	if !c.added[path] && c.rows[path] == nil {
		return string(c.Layer(path)) + ":" + server
	}
	if t.Kind == tenon.KindAgent { // the tool calls an agent of the configuration
		return string(c.Layer("agents."+t.WithDefaults(key).RemoteName)) + ":" + server
	}
	return TargetID(ToolDigest(t))
}

// ToolDigest returns the digest of the request or prompt of a tool, in the form of [TargetDigest]. It returns "" for
// a tool of an MCP server, an agent or a workflow.
func ToolDigest(t catalog.Tool) string {
	if t.Kind == tenon.KindHTTP {
		r := t.Request
		return digest(t.Kind, cmp.Or(r.Method, http.MethodGet), r.URL, r.Headers, r.Body, r.AllowPrivate)
	}
	if t.Kind == tenon.KindPrompt {
		return digest(t.Kind, t.Template, t.Model)
	}
	return ""
}

// layerName returns the layer of a value, as shown to people. A value of a profile has the layer of the file that
// names the profile.
func (c *Config) layerName(path string) string {
	if strings.HasPrefix(path, "agents.") && c.nodes[path] == nil {
		if i := strings.LastIndex(path, ".limits."); i > 0 {
			return c.layerName(path[i+1:])
		}
	}
	n := c.nodes[path]
	if n == nil {
		n = c.rowNode(path)
	}
	switch {
	case n == nil && c.tree == nil:
		return string(LayerProgram)
	case n == nil || n.Src.Layer == "":
		return "default"
	}
	return string(n.Src.Layer)
}
