package config

import (
	"strings"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/agent"
	"github.com/tenonhq/tenon/config/tree"
	"github.com/tenonhq/tenon/model"
	"github.com/tenonhq/tenon/policy"
)

// holodeckKeys are the keys of an agent.yaml, and the keys of tenon that it may have as well.
var holodeckKeys = []string{"name", "description", "author", "model", "instructions", "response_format", "tools",
	"test_cases", "evaluations", "execution", "observability", "deployment", "embedding_provider", "tool_filtering",
	"claude", "openai", "providers", "vectorstores", "mcp_servers", "version", "limits", "policy", "secrets"}

// holodeck reads agent.yaml, one agent with its tools, or the user's config.yaml with servers and providers.
func (c *conversion) holodeck(root *tree.Node) {
	c.out.Append("profile", root, tree.TextAt(root, kindHoloDeck))
	for i, k := range root.Keys {
		v := root.Vals[i]
		switch k.Val {
		case "name":
			c.out.Append("name", k, v)
		case "description":
			c.agentEntry(k).Append("description", k, v)
		case "model":
			c.holodeckModel(k, v, "main", "model")
		case "instructions":
			c.holodeckInstructions(k, v)
		case "tools", "mcp_servers":
			c.holodeckToolList(k, v)
		case "providers":
			if c.isMap(v, "providers") {
				for j, name := range v.Keys {
					c.holodeckModel(name, v.Vals[j], secretName(name.Val), "providers."+name.Val)
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
			c.keep(c.out, k, v, k.Val)
		default:
			c.holodeckExtra(k, v)
		}
	}
}

// holodeckSection takes a section of tenon.yaml over. The keys may be next to others that ended up there.
func (c *conversion) holodeckSection(k, v *tree.Node) {
	if !c.isMap(v, k.Val) {
		return
	}
	into := c.section(k.Val, v)
	for i, key := range v.Keys {
		into.Append(key.Val, key, v.Vals[i])
	}
}

// holodeckExtra takes a key that HoloDeck does not have: a limit of the run, or a rule for all tools.
func (c *conversion) holodeckExtra(k, v *tree.Node) {
	switch {
	case strings.HasPrefix(k.Val, "x-"):
		c.out.Append(k.Val, k, v)
	case supported[agent.Limits](k.Val):
		c.section("limits", k).Append(k.Val, k, v)
	case supported[policy.Block](k.Val):
		into := c.section("policy", k)
		defaults, _ := into.Get("defaults")
		if defaults == nil {
			defaults = tree.MapAt(k)
			into.Append("defaults", k, defaults)
		}
		defaults.Append(k.Val, k, v)
	default:
		c.mistyped(k, k.Val, holodeckKeys)
	}
}

// mistyped reports a key that no version of HoloDeck and no section of tenon has. HoloDeck refuses such keys, too.
func (c *conversion) mistyped(k *tree.Node, path string, known []string) {
	hint := "keys: " + strings.Join(known, ", ")
	if near := tenon.Nearest(k.Val, known); near != "" {
		hint = "did you mean '" + near + "'?"
	}
	c.Add(k, path, "unknown key", hint)
}

// testCases keeps the test cases, which tenon eval reads from the file itself.
func (c *conversion) testCases(k, v *tree.Node) {
	if !c.direct {
		c.note(k, k.Val, "kept; tenon eval %s runs them", k.Src.Label)
	}
	c.store(c.out, k, k.Val, v)
}

// agentEntry converts the agent.
func (c *conversion) agentEntry(at *tree.Node) *tree.Node {
	agents := c.section("agents", at)
	e, _ := agents.Get("default")
	if e == nil {
		e = tree.MapAt(at)
		agents.Append("default", at, e)
	}
	return e
}

func (c *conversion) responseFormat(k, v *tree.Node) {
	if !supported[agent.Config]("response_format") {
		c.keep(c.out, k, v, k.Val)
		return
	}
	f := tree.MapAt(v)
	key := "schema"
	if v.Kind == tree.Scalar {
		key = "file"
	}
	f.Append(key, k, v)
	c.agentEntry(k).Append("response_format", k, f)
}

func (c *conversion) holodeckModel(at, n *tree.Node, name, path string) {
	if !c.isMap(n, path) {
		return
	}
	m := tree.MapAt(n)
	c.section("models", at).Append(name, at, m)
	provider, _ := n.Get("provider")
	azure := provider != nil && provider.Val == "azure_openai"
	for i, k := range n.Keys {
		v, p := n.Vals[i], path+"."+k.Val
		switch k.Val {
		case "provider":
			if azure {
				c.note(v, p, "azure_openai becomes openai-compatible with the address ENDPOINT/openai/v1")
				v = tree.TextAt(v, "openai-compatible")
			}
			m.Append("provider", k, v)
		case "name", "model":
			m.Append("model", k, v)
		case "temperature", "max_tokens", "top_p":
			m.Append(k.Val, k, v)
		case "endpoint":
			m.Append("base_url", k, endpoint(v, provider))
		case "api_key":
			c.apiKey(m, k, v, p, azure)
		case "api_version":
			c.keep(m, k, v, p)
		default:
			if supported[model.Config](k.Val) {
				m.Append(k.Val, k, v)
				continue
			}
			c.mistyped(k, p, []string{"provider", "name", "temperature", "max_tokens", "top_p", "endpoint", "api_key",
				"api_version"})
		}
	}
}

// endpoint returns the base URL of a provider that is named by its host.
func endpoint(v, provider *tree.Node) *tree.Node {
	if provider == nil || v.Kind != tree.Scalar {
		return v
	}
	end := map[string]string{"azure_openai": "/openai/v1", "ollama": "/v1"}[provider.Val]
	if end == "" || strings.HasSuffix(strings.TrimRight(v.Val, "/"), end) {
		return v
	}
	return tree.TextAt(v, strings.TrimRight(v.Val, "/")+end)
}

// apiKey converts the key of a model. tenon.yaml never contains a key itself.
func (c *conversion) apiKey(m, k, v *tree.Node, path string, azure bool) {
	name := onlyVariable(v.Val)
	switch {
	case v.Kind != tree.Scalar || v.Tag != "!!str":
		c.Add(v, path, "must be a text, is "+v.Form(), "")
	case azure:
		headers := tree.MapAt(v)
		headers.Append("api-key", k, v)
		m.Append("headers", k, headers)
		if name == "" {
			c.literal(v, path)
		}
	case name != "":
		secret := tree.MapAt(v)
		secret.Append("env", k, tree.TextAt(v, name))
		m.Append("api_key", k, secret)
	default:
		c.literal(v, path)
		m.Append("api_key", k, v)
	}
}

func (c *conversion) holodeckInstructions(k, n *tree.Node) {
	if !c.isMap(n, "instructions") {
		return
	}
	out := tree.MapAt(n)
	for i, key := range n.Keys {
		switch key.Val {
		case "inline":
			out.Append("text", key, n.Vals[i])
		case "file":
			out.Append("file", key, n.Vals[i])
		default:
			c.mistyped(key, "instructions."+key.Val, []string{"inline", "file"})
		}
	}
	if inline, _ := n.Get("inline"); inline != nil {
		if _, at := n.Get("file"); at != nil {
			c.Add(at, "instructions.file", "Cannot provide both 'file' and 'inline'", "")
			return
		}
	}
	c.agentEntry(k).Append("instructions", k, out)
}
