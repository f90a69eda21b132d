package config

import (
	"strings"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/agent"
	"github.com/tenonhq/tenon/model"
	"github.com/tenonhq/tenon/policy"
)

// holodeckKeys are the keys of an agent.yaml, and the keys of tenon that it may have as well.
var holodeckKeys = []string{"name", "description", "author", "model", "instructions", "response_format", "tools",
	"test_cases", "evaluations", "execution", "observability", "deployment", "embedding_provider", "tool_filtering",
	"claude", "openai", "providers", "vectorstores", "mcp_servers", "version", "limits", "policy", "secrets"}

// holodeck reads agent.yaml, one agent with its tools, or the user's config.yaml with servers and providers.
func (c *conversion) holodeck(root *node) {
	taken(c.out, "profile", root, like(root, kindHoloDeck))
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
		case "test_cases":
			c.testCases(k, v)
		case "limits", "policy", "secrets":
			c.holodeckSection(k, v)
		case "author", "evaluations", "execution", "observability", "deployment", "embedding_provider",
			"tool_filtering", "claude", "openai", "vectorstores", "version":
			c.keep(c.out, k, v, k.val)
		default:
			c.holodeckExtra(k, v)
		}
	}
}

// holodeckSection takes a section of tenon.yaml over. The keys may be next to others that ended up there.
func (c *conversion) holodeckSection(k, v *node) {
	if !c.isMap(v, k.val) {
		return
	}
	into := c.section(k.val, v)
	for i, key := range v.keys {
		taken(into, key.val, key, v.vals[i])
	}
}

// holodeckExtra takes a key that HoloDeck does not have: a limit of the run, or a rule for all tools.
func (c *conversion) holodeckExtra(k, v *node) {
	switch {
	case strings.HasPrefix(k.val, "x-"):
		taken(c.out, k.val, k, v)
	case supported[agent.Limits](k.val):
		taken(c.section("limits", k), k.val, k, v)
	case supported[policy.Block](k.val):
		into := c.section("policy", k)
		defaults, _ := into.get("defaults")
		if defaults == nil {
			defaults = emptyMap(k)
			taken(into, "defaults", k, defaults)
		}
		taken(defaults, k.val, k, v)
	default:
		c.mistyped(k, k.val, holodeckKeys)
	}
}

// mistyped reports a key that no version of HoloDeck and no section of tenon has. HoloDeck refuses such keys, too.
func (c *conversion) mistyped(k *node, path string, known []string) {
	hint := "keys: " + strings.Join(known, ", ")
	if near := tenon.Nearest(k.val, known); near != "" {
		hint = "did you mean '" + near + "'?"
	}
	c.add(k, path, "unknown key", hint)
}

// testCases keeps the test cases, which tenon eval reads from the file itself.
func (c *conversion) testCases(k, v *node) {
	if !c.direct {
		c.note(k, k.val, "kept; tenon eval %s runs them", k.src.label)
	}
	c.store(c.out, k, k.val, v)
}

// agentEntry converts the agent.
func (c *conversion) agentEntry(at *node) *node {
	agents := c.section("agents", at)
	e, _ := agents.get("default")
	if e == nil {
		e = emptyMap(at)
		taken(agents, "default", at, e)
	}
	return e
}

func (c *conversion) responseFormat(k, v *node) {
	if !supported[agent.Config]("response_format") {
		c.keep(c.out, k, v, k.val)
		return
	}
	f := emptyMap(v)
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
	m := emptyMap(n)
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
			if supported[model.Config](k.val) {
				taken(m, k.val, k, v)
				continue
			}
			c.mistyped(k, p, []string{"provider", "name", "temperature", "max_tokens", "top_p", "endpoint", "api_key",
				"api_version"})
		}
	}
}

// endpoint returns the base URL of a provider that is named by its host.
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

// apiKey converts the key of a model. tenon.yaml never contains a key itself.
func (c *conversion) apiKey(m, k, v *node, path string, azure bool) {
	name := onlyVariable(v.val)
	switch {
	case v.kind != scalarNode || v.tag != "!!str":
		c.add(v, path, "must be a text, is "+v.what(), "")
	case azure:
		headers := emptyMap(v)
		taken(headers, "api-key", k, v)
		taken(m, "headers", k, headers)
		if name == "" {
			c.literal(v, path)
		}
	case name != "":
		secret := emptyMap(v)
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
	out := emptyMap(n)
	for i, key := range n.keys {
		switch key.val {
		case "inline":
			taken(out, "text", key, n.vals[i])
		case "file":
			taken(out, "file", key, n.vals[i])
		default:
			c.mistyped(key, "instructions."+key.val, []string{"inline", "file"})
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
