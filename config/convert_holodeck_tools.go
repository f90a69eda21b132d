package config

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/internal/lazyregexp"
	"github.com/tenonhq/tenon/policy"
	"github.com/tenonhq/tenon/servers"
)

// holodeckTools is the maximum number of tools of an agent.yaml.
const holodeckTools = 50

var (
	holodeckName = lazyregexp.New(`^[0-9A-Za-z_]+$`)
	// npmPackage matches the value of 'server': @scope/name, or the name of a known server.
	npmPackage = lazyregexp.New(
		`^(@[a-z0-9][a-z0-9._-]*/[a-z0-9][a-z0-9._-]*|server-[a-z0-9._-]+)(@[a-zA-Z0-9^~._-]+)?$`)
	// holodeckTypes are the types of HoloDeck's tools. The first one is supported.
	holodeckTypes = []string{"mcp", "vectorstore", "function", "prompt", "hierarchical_document", "decision_table"}
	// holodeckServerKeys are the keys of HoloDeck's tools of type mcp.
	holodeckServerKeys = []string{"name", "type", "description", "server", "transport", "command", "args", "env",
		"env_file", "envFile", "encoding", "url", "headers", "timeout", "sse_read_timeout", "terminate_on_close",
		"config", "load_tools", "load_prompts", "request_timeout", "is_retrieval", "registry_name", "defer_loading"}
)

// holodeckToolList converts the tools of an agent, or the servers of HoloDeck's user file.
func (c *conversion) holodeckToolList(k, list *node) {
	if list.isNull() {
		return
	}
	if list.kind != listNode {
		hint := "write a list: - {type: mcp, name: NAME, command: …}"
		if list.kind == mapNode && len(list.keys) > 0 {
			hint = fmt.Sprintf("write a list: - {type: mcp, name: %s, …}", list.keys[0].val)
		}
		c.add(list, k.val, "must be a list, is "+list.what(), hint)
		return
	}
	if len(list.vals) > holodeckTools {
		c.add(list, k.val, fmt.Sprintf("Maximum %d tools per agent", holodeckTools), "")
	}
	var others *node
	seen := map[string]bool{}
	for i, t := range list.vals {
		path := index(k.val, i)
		if !c.isMap(t, path) {
			continue
		}
		name, ok := c.holodeckToolName(t, path, seen)
		if !ok {
			continue
		}
		switch kind := c.holodeckType(t, path, k.val == "tools"); kind {
		case "":
		case "mcp":
			if e := c.server(name, t, path); e != nil {
				c.holodeckTool(t, e, path)
			}
		default:
			at, _ := t.get("type")
			c.note(at, path, "tool '%s' of type %s is not supported; kept under x-holodeck", name.val, kind)
			if others == nil {
				others = emptyList(t)
			}
			others.vals = append(others.vals, t)
		}
	}
	if others != nil {
		c.store(c.out, k, "tools", others)
	}
}

// holodeckToolName returns the name of a tool. ok is false if it is missing, invalid or taken.
func (c *conversion) holodeckToolName(t *node, path string, seen map[string]bool) (name *node, ok bool) {
	name, _ = t.get("name")
	switch {
	case name == nil:
		c.add(t, path+".name", "'name' is required, of letters, digits and _", "")
		return nil, false
	case name.kind != scalarNode || name.val == "":
		c.add(name, path+".name", "'name' is required, of letters, digits and _", "")
		return nil, false
	case !holodeckName().MatchString(name.val):
		c.add(name, path+".name", "'"+tenon.Visible(name.val)+"' has other characters than letters, digits and _", "")
		return nil, false
	}
	if seen[name.val] {
		c.add(name, path+".name", "Duplicate tool names found: "+name.val+". Each tool must have a unique name.", "")
		return nil, false
	}
	seen[name.val] = true
	return name, true
}

// holodeckType returns the type of a tool, "" after an error.
func (c *conversion) holodeckType(t *node, path string, required bool) string {
	kind, _ := t.get("type")
	switch {
	case kind == nil && required:
		c.add(t, path+".type", "'type' is required", "write type: mcp for an MCP server")
		return ""
	case kind == nil:
		return "mcp"
	case kind.kind != scalarNode || !slices.Contains(holodeckTypes, kind.val):
		hint := "types: " + strings.Join(holodeckTypes, ", ")
		if near := tenon.Nearest(kind.val, holodeckTypes); near != "" {
			hint = "did you mean '" + near + "'? " + hint
		}
		c.add(kind, path+".type", fmt.Sprintf("no such type '%s'", kind.val), hint)
		return ""
	}
	return kind.val
}

// holodeckTool converts a server. Numbers are seconds in both formats. A key that HoloDeck does not have is a key of
// servers.NAME or of its policy.
func (c *conversion) holodeckTool(t, e *node, path string) {
	other := ""
	for _, key := range []string{"url", "command"} {
		if n, _ := t.get(key); n != nil {
			other = key
		}
	}
	for i, k := range t.keys {
		v, p := t.vals[i], path+"."+k.val
		switch k.val {
		case "name", "type":
		case "envFile":
			if other, _ := t.get("env_file"); other != nil && !same(other, v) {
				c.add(k, p, "'env_file' and 'envFile' are the same key and differ", "keep one of them")
			} else if other == nil {
				taken(e, "env_file", k, v)
			}
		case "transport":
			c.holodeckTransport(e, k, v, p)
		case "config":
			taken(e, "config", k, v)
			if allowed, at := v.get("allowed_tools"); allowed != nil {
				taken(e, "include", at, allowed)
			}
		case "server":
			c.holodeckPackage(t, e, k, v, p, other)
		case "defer_loading":
			taken(e, "defer", k, v)
		default:
			switch {
			case strings.HasPrefix(k.val, "x-"), supported[servers.Config](k.val):
				taken(e, k.val, k, v)
			case supported[policy.Block](k.val):
				c.serverRule(t, e, k, v, p)
			default:
				c.mistyped(k, p, slices.Concat(holodeckServerKeys, keysOf[servers.Config](), keysOf[policy.Block]()))
			}
		}
	}
	c.knownServer(t, e, path)
}

// serverRule takes a rule of a server that is written next to its other keys, such as approval or max_calls.
func (c *conversion) serverRule(t, e, k, v *node, path string) {
	if rules, _ := t.get("policy"); rules != nil {
		c.add(k, path, fmt.Sprintf("'%s' next to 'policy'", k.val), "write it under policy")
		return
	}
	rules, _ := e.get("policy")
	if rules == nil {
		rules = emptyMap(k)
		taken(e, "policy", k, rules)
	}
	taken(rules, k.val, k, v)
}

// keysOf returns the keys of one of our structs.
func keysOf[T any]() []string {
	var names []string
	for _, f := range fields(reflect.TypeFor[T]()) {
		names = append(names, f.name)
	}
	return names
}

// holodeckTransport converts the transport, also in the form {type, url} of HoloDeck's guides.
func (c *conversion) holodeckTransport(e, k, v *node, path string) {
	if v.kind != mapNode {
		taken(e, "transport", k, c.transport(v))
		return
	}
	for i, key := range v.keys {
		switch key.val {
		case "type":
			taken(e, "transport", key, c.transport(v.vals[i]))
		case "url", "command", "args":
			taken(e, key.val, key, v.vals[i])
		default:
			c.mistyped(key, path+"."+key.val, []string{"type", "url", "command", "args"})
		}
	}
}

// holodeckPackage returns the command for the npm package that older files name. other is the entry's key command or
// url, which counts instead of the package, or "".
func (c *conversion) holodeckPackage(t, e, k, v *node, path, other string) {
	switch {
	case other != "":
		c.note(k, path, "'server' has no effect next to '%s'; remove one of them", other)
		c.store(e, k, "server", v)
	case v.kind != scalarNode || !npmPackage().MatchString(v.val):
		c.add(v, path, "not an npm package of an MCP server", "write command and args")
	default:
		c.note(v, path, "'server' is deprecated; it becomes npx -y %s: write that as an explicit 'command' "+
			"with 'args'", v.val)
		taken(e, "command", k, like(v, "npx"))
		args := emptyList(v, like(v, "-y"), like(v, v.val))
		if more, _ := t.get("args"); more != nil {
			c.add(more, strings.TrimSuffix(path, "server")+"args", "'args' without 'command'",
				"write command: npx and args: [-y, "+v.val+", …]")
			return
		}
		settings, _ := t.get("config")
		args.vals = append(args.vals, packageArgs(v.val, settings)...)
		taken(e, "args", k, args)
	}
}
