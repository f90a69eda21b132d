package holodeck

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/config/tree"
	"github.com/tenonhq/tenon/internal/lazyregexp"
	"github.com/tenonhq/tenon/policy"
	"github.com/tenonhq/tenon/servers"
)

// maxTools is the maximum number of tools of an agent.yaml.
const maxTools = 50

var (
	toolName = lazyregexp.New(`^[0-9A-Za-z_]+$`)
	// npmPackage matches the value of 'server': @scope/name, or the name of a known server.
	npmPackage = lazyregexp.New(
		`^(@[a-z0-9][a-z0-9._-]*/[a-z0-9][a-z0-9._-]*|server-[a-z0-9._-]+)(@[a-zA-Z0-9^~._-]+)?$`)
	// toolTypes are the types of HoloDeck's tools. The first one is supported.
	toolTypes = []string{"mcp", "vectorstore", "function", "prompt", "hierarchical_document", "decision_table"}
	// serverKeys are the keys of HoloDeck's tools of type mcp.
	serverKeys = []string{"name", "type", "description", "server", "transport", "command", "args", "env",
		"env_file", "envFile", "encoding", "url", "headers", "timeout", "sse_read_timeout", "terminate_on_close",
		"config", "load_tools", "load_prompts", "request_timeout", "is_retrieval", "registry_name", "defer_loading"}
)

// toolList converts the tools of an agent, or the servers of HoloDeck's user file.
func (c converter) toolList(k, list *tree.Node) {
	if list.IsNull() {
		return
	}
	if list.Kind != tree.List {
		hint := "write a list: - {type: mcp, name: NAME, command: …}"
		if list.Kind == tree.Map && len(list.Keys) > 0 {
			hint = fmt.Sprintf("write a list: - {type: mcp, name: %s, …}", list.Keys[0].Val)
		}
		c.Add(list, k.Val, "must be a list, is "+list.Form(), hint)
		return
	}
	if len(list.Vals) > maxTools {
		c.Add(list, k.Val, fmt.Sprintf("Maximum %d tools per agent", maxTools), "")
	}
	var others *tree.Node
	seen := map[string]bool{}
	for i, t := range list.Vals {
		path := tree.Index(k.Val, i)
		if !c.IsMap(t, path) {
			continue
		}
		name, ok := c.toolName(t, path, seen)
		if !ok {
			continue
		}
		switch kind := c.toolType(t, path, k.Val == "tools"); kind {
		case "":
		case "mcp":
			if e := c.Server(name, t, path); e != nil {
				c.tool(t, e, path)
			}
		default:
			at, _ := t.Get("type")
			c.Note(at, path, "tool '%s' of type %s is not supported; kept under x-holodeck", name.Val, kind)
			if others == nil {
				others = tree.ListAt(t)
			}
			others.Vals = append(others.Vals, t)
		}
	}
	if others != nil {
		c.Store(c.Out, k, "tools", others)
	}
}

// toolName returns the name of a tool. ok is false if it is missing, invalid or taken.
func (c converter) toolName(t *tree.Node, path string, seen map[string]bool) (name *tree.Node, ok bool) {
	name, _ = t.Get("name")
	switch {
	case name == nil:
		c.Add(t, path+".name", "'name' is required, of letters, digits and _", "")
		return nil, false
	case name.Kind != tree.Scalar || name.Val == "":
		c.Add(name, path+".name", "'name' is required, of letters, digits and _", "")
		return nil, false
	case !toolName().MatchString(name.Val):
		c.Add(name, path+".name", "'"+tenon.Visible(name.Val)+"' has other characters than letters, digits and _", "")
		return nil, false
	}
	if seen[name.Val] {
		c.Add(name, path+".name", "Duplicate tool names found: "+name.Val+". Each tool must have a unique name.", "")
		return nil, false
	}
	seen[name.Val] = true
	return name, true
}

// toolType returns the type of a tool, "" after an error.
func (c converter) toolType(t *tree.Node, path string, required bool) string {
	kind, _ := t.Get("type")
	switch {
	case kind == nil && required:
		c.Add(t, path+".type", "'type' is required", "write type: mcp for an MCP server")
		return ""
	case kind == nil:
		return "mcp"
	case kind.Kind != tree.Scalar || !slices.Contains(toolTypes, kind.Val):
		hint := "types: " + strings.Join(toolTypes, ", ")
		if near := tenon.Nearest(kind.Val, toolTypes); near != "" {
			hint = "did you mean '" + near + "'? " + hint
		}
		c.Add(kind, path+".type", fmt.Sprintf("no such type '%s'", kind.Val), hint)
		return ""
	}
	return kind.Val
}

// tool converts a server. Numbers are seconds in both formats. A key that HoloDeck does not have is a key of
// servers.NAME or of its policy.
func (c converter) tool(t, e *tree.Node, path string) {
	other := ""
	for _, key := range []string{"url", "command"} {
		if n, _ := t.Get(key); n != nil {
			other = key
		}
	}
	for k, v := range t.All() {
		p := path + "." + k.Val
		switch k.Val {
		case "name", "type":
		case "envFile":
			if other, _ := t.Get("env_file"); other != nil && !tree.Same(other, v) {
				c.Add(k, p, "'env_file' and 'envFile' are the same key and differ", "keep one of them")
			} else if other == nil {
				e.Append("env_file", k, v)
			}
		case "transport":
			c.transport(e, k, v, p)
		case "config":
			e.Append("config", k, v)
			if allowed, at := v.Get("allowed_tools"); allowed != nil {
				e.Append("include", at, allowed)
			}
		case "server":
			c.npmPackage(t, e, k, v, p, other)
		case "defer_loading":
			e.Append("defer", k, v)
		default:
			switch {
			case strings.HasPrefix(k.Val, "x-"), supported[servers.Config](k.Val):
				e.Append(k.Val, k, v)
			case supported[policy.Block](k.Val):
				c.serverRule(t, e, k, v, p)
			default:
				c.mistyped(k, p, slices.Concat(serverKeys, keysOf[servers.Config](), keysOf[policy.Block]()))
			}
		}
	}
	c.knownServer(t, e, path)
}

// serverRule copies a rule of a server, such as approval or max_calls, into the block policy of the entry. In
// agent.yaml, the rule is next to the other keys of the server.
func (c converter) serverRule(t, e, k, v *tree.Node, path string) {
	if rules, _ := t.Get("policy"); rules != nil {
		c.Add(k, path, fmt.Sprintf("'%s' next to 'policy'", k.Val), "write it under policy")
		return
	}
	e.Child("policy", k).Append(k.Val, k, v)
}

// transport converts the transport, also in the form {type, url} of HoloDeck's guides.
func (c converter) transport(e, k, v *tree.Node, path string) {
	if v.Kind != tree.Map {
		e.Append("transport", k, c.Transport(v))
		return
	}
	for i, key := range v.Keys {
		switch key.Val {
		case "type":
			e.Append("transport", key, c.Transport(v.Vals[i]))
		case "url", "command", "args":
			e.Append(key.Val, key, v.Vals[i])
		default:
			c.mistyped(key, path+"."+key.Val, []string{"type", "url", "command", "args"})
		}
	}
}

// npmPackage returns the command for the npm package that older files name. other is the entry's key command or
// url, which counts instead of the package, or "".
func (c converter) npmPackage(t, e, k, v *tree.Node, path, other string) {
	switch {
	case other != "":
		c.Note(k, path, "'server' has no effect next to '%s'; remove one of them", other)
		c.Store(e, k, "server", v)
	case v.Kind != tree.Scalar || !npmPackage().MatchString(v.Val):
		c.Add(v, path, "not an npm package of an MCP server", "write command and args")
	default:
		c.Note(v, path, "'server' is deprecated; it becomes npx -y %s: write that as an explicit 'command' "+
			"with 'args'", v.Val)
		e.Append("command", k, tree.TextAt(v, "npx"))
		args := tree.ListAt(v, tree.TextAt(v, "-y"), tree.TextAt(v, v.Val))
		if more, _ := t.Get("args"); more != nil {
			c.Add(more, strings.TrimSuffix(path, "server")+"args", "'args' without 'command'",
				"write command: npx and args: [-y, "+v.Val+", …]")
			return
		}
		settings, _ := t.Get("config")
		args.Vals = append(args.Vals, packageArgs(v.Val, settings)...)
		e.Append("args", k, args)
	}
}

// keysOf returns the YAML keys of one of tenon's config structs.
func keysOf[T any]() []string {
	var names []string
	t := reflect.TypeFor[T]()
	for i := range t.NumField() {
		if name, _, _ := strings.Cut(t.Field(i).Tag.Get("yaml"), ","); name != "" && name != "-" {
			names = append(names, name)
		}
	}
	return names
}

// supported reports whether one of tenon's config structs has a YAML key.
func supported[T any](key string) bool { return slices.Contains(keysOf[T](), key) }
