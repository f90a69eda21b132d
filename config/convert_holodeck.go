package config

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/tenonhq/tenon/agent"
	"github.com/tenonhq/tenon/servers"
)

// holodeckTools is the most tools that an agent.yaml may have.
const holodeckTools = 50

var (
	holodeckName = regexp.MustCompile(`^[0-9A-Za-z_]+$`)
	// npmPackage matches what 'server' may name: @scope/name, or a name that is that
	// of a server.
	npmPackage = regexp.MustCompile(`^(@[a-z0-9][a-z0-9._-]*/[a-z0-9][a-z0-9._-]*|server-[a-z0-9._-]+)(@[a-zA-Z0-9^~._-]+)?$`)
)

// holodeck reads agent.yaml: one agent with its tools; or the user's config.yaml,
// which has servers and providers.
func (c *conversion) holodeck(root *node) {
	c.out.set("profile", like(root, kindHoloDeck))
	for i, k := range root.keys {
		v := root.vals[i]
		switch k.val {
		case "name":
			taken(c.out, "name", k, v)
		case "description":
			taken(c.agentEntry(k), "description", k, v)
		case "model":
			c.holodeckModel(k, v, "main", "model")
		case "instructions":
			c.holodeckInstructions(k, v)
		case "tools", "mcp_servers":
			c.holodeckToolList(k, v)
		case "providers":
			if c.isMap(v, "providers") {
				for j, name := range v.keys {
					c.holodeckModel(name, v.vals[j], secretName(name.val), "providers."+name.val)
				}
			}
		case "response_format":
			c.responseFormat(k, v)
		case "author", "evaluations", "test_cases", "execution", "observability", "deployment", "embedding_provider", "claude", "openai", "vectorstores", "version":
			c.keep(c.out, k, v, k.val)
		default:
			c.unknown(k, k.val)
		}
	}
}

// agentEntry is the entry of the one agent.
func (c *conversion) agentEntry(at *node) *node {
	agents := c.section("agents", at)
	e, _ := agents.get("default")
	if e == nil {
		e = &node{kind: mapNode, line: at.line, col: at.col, src: at.src}
		taken(agents, "default", at, e)
	}
	return e
}

func (c *conversion) responseFormat(k, v *node) {
	if !supported[agent.Config]("response_format") {
		c.keep(c.out, k, v, k.val)
		return
	}
	f := &node{kind: mapNode, line: v.line, col: v.col, src: v.src}
	key := "schema"
	if v.kind == scalarNode {
		key = "file"
	}
	taken(f, key, k, v)
	taken(c.agentEntry(k), "response_format", k, f)
}

func (c *conversion) holodeckModel(at, n *node, name, path string) {
	if !c.isMap(n, path) {
		return
	}
	m := &node{kind: mapNode, line: n.line, col: n.col, src: n.src}
	taken(c.section("models", at), name, at, m)
	provider, _ := n.get("provider")
	azure := provider != nil && provider.val == "azure_openai"
	for i, k := range n.keys {
		v, p := n.vals[i], path+"."+k.val
		switch k.val {
		case "provider":
			if azure {
				c.note(v, p, "azure_openai becomes openai-compatible with the address ENDPOINT/openai/v1")
				v = like(v, "openai-compatible")
			}
			taken(m, "provider", k, v)
		case "name", "model":
			taken(m, "model", k, v)
		case "temperature", "max_tokens", "top_p":
			taken(m, k.val, k, v)
		case "endpoint":
			taken(m, "base_url", k, endpoint(v, provider))
		case "api_key":
			c.apiKey(m, k, v, p, azure)
		case "api_version":
			c.keep(m, k, v, p)
		default:
			c.unknown(k, p)
		}
	}
}

// endpoint is the base URL of a provider that is named by its host.
func endpoint(v, provider *node) *node {
	if provider == nil || v.kind != scalarNode {
		return v
	}
	end := map[string]string{"azure_openai": "/openai/v1", "ollama": "/v1"}[provider.val]
	if end == "" || strings.HasSuffix(strings.TrimRight(v.val, "/"), end) {
		return v
	}
	return like(v, strings.TrimRight(v.val, "/")+end)
}

// apiKey takes the key of a model, which our file never holds itself.
func (c *conversion) apiKey(m, k, v *node, path string, azure bool) {
	name := onlyVariable(v.val)
	switch {
	case v.kind != scalarNode || v.tag != "!!str":
		c.add(v, path, "must be a text, is "+v.what(), "")
	case azure:
		headers := &node{kind: mapNode, line: v.line, col: v.col, src: v.src}
		taken(headers, "api-key", k, v)
		taken(m, "headers", k, headers)
		if name == "" {
			c.literal(v, path)
		}
	case name != "":
		secret := &node{kind: mapNode, line: v.line, col: v.col, src: v.src}
		taken(secret, "env", k, like(v, name))
		taken(m, "api_key", k, secret)
	default:
		c.literal(v, path)
		taken(m, "api_key", k, v)
	}
}

func (c *conversion) holodeckInstructions(k, n *node) {
	if !c.isMap(n, "instructions") {
		return
	}
	out := &node{kind: mapNode, line: n.line, col: n.col, src: n.src}
	for i, key := range n.keys {
		switch key.val {
		case "inline":
			taken(out, "text", key, n.vals[i])
		case "file":
			taken(out, "file", key, n.vals[i])
		default:
			c.unknown(key, "instructions."+key.val)
		}
	}
	if inline, _ := n.get("inline"); inline != nil {
		if _, at := n.get("file"); at != nil {
			c.add(at, "instructions.file", "Cannot provide both 'file' and 'inline'", "")
			return
		}
	}
	taken(c.agentEntry(k), "instructions", k, out)
}

func (c *conversion) holodeckToolList(k, list *node) {
	if list.kind != listNode {
		c.add(list, k.val, "must be a list, is "+list.what(), "")
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
		name, _ := t.get("name")
		if name == nil || name.kind != scalarNode || !holodeckName.MatchString(name.val) {
			at := name
			if at == nil {
				at = t
			}
			c.add(at, path+".name", "'name' is required, of letters, digits and _", "")
			continue
		}
		if seen[name.val] {
			c.add(name, path+".name", "Duplicate tool names found: "+name.val+". Each tool must have a unique name.", "")
			continue
		}
		seen[name.val] = true
		kind, _ := t.get("type")
		if kind == nil && k.val == "tools" {
			c.add(t, path+".type", "'type' is required", "mcp is the one that is connected")
			continue
		}
		if kind != nil && kind.val != "mcp" {
			c.note(kind, path, "tool '%s' of type %s is not supported; kept under x-holodeck", name.val, kind.val)
			if others == nil {
				others = &node{kind: listNode, line: t.line, col: t.col, src: t.src}
			}
			others.vals = append(others.vals, t)
			continue
		}
		if e := c.server(name, t, path); e != nil {
			c.holodeckTool(t, e, path, name.val)
		}
	}
	if others != nil {
		c.store(c.out, k, "tools", others)
	}
}

// holodeckTool fills the entry of a server. Numbers are seconds there and here.
func (c *conversion) holodeckTool(t, e *node, path, name string) {
	command, _ := t.get("command")
	for i, k := range t.keys {
		v, p := t.vals[i], path+"."+k.val
		switch k.val {
		case "name", "type":
		case "description", "command", "args", "env", "env_file", "url", "headers", "timeout", "sse_read_timeout", "terminate_on_close",
			"load_tools", "load_prompts", "request_timeout":
			taken(e, k.val, k, v)
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
			c.holodeckPackage(e, k, v, p, command != nil)
		case "defer_loading":
			c.maybe(supported[servers.Config]("defer"), e, "defer", k, v, p)
		case "encoding", "is_retrieval", "registry_name":
			c.maybe(supported[servers.Config](k.val), e, k.val, k, v, p)
		default:
			c.unknown(k, p)
		}
	}
}

// maybe takes a key where ours has it, and keeps it else.
func (c *conversion) maybe(ok bool, e *node, key string, k, v *node, path string) {
	if ok {
		taken(e, key, k, v)
		return
	}
	c.keep(e, k, v, path)
}

// holodeckTransport takes the transport, also as the guides write it: {type, url}.
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
			c.unknown(key, path+"."+key.val)
		}
	}
}

// holodeckPackage makes a command of the npm package that older files name.
func (c *conversion) holodeckPackage(e, k, v *node, path string, hasCommand bool) {
	switch {
	case hasCommand:
		c.store(e, k, "server", v)
	case v.kind != scalarNode || !npmPackage.MatchString(v.val):
		c.add(v, path, "not an npm package of an MCP server", "write command and args")
	default:
		c.note(v, path, "'server' is deprecated; it becomes npx -y %s: write that as an explicit 'command' with 'args'", v.val)
		taken(e, "command", k, like(v, "npx"))
		args := &node{kind: listNode, line: v.line, col: v.col, src: v.src, vals: []*node{like(v, "-y"), like(v, v.val)}}
		taken(e, "args", k, args)
	}
}
