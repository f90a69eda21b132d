package holodeck

import (
	"slices"
	"strings"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/agent"
	"github.com/tenonhq/tenon/compat"
	"github.com/tenonhq/tenon/config/tree"
	"github.com/tenonhq/tenon/model"
	"github.com/tenonhq/tenon/policy"
)

// agentKeys are the keys of an agent.yaml, and the keys of tenon that it may have as well.
var agentKeys = []string{"name", "description", "author", "model", "instructions", "response_format", "tools",
	"test_cases", "evaluations", "execution", "observability", "deployment", "embedding_provider", "tool_filtering",
	"claude", "openai", "providers", "vectorstores", "mcp_servers", "version", "limits", "policy", "secrets"}

// Format is the form of agent.yaml, one agent with its tools, or of the user's config.yaml with servers and
// providers.
type Format struct{}

// Recognise implements compat.Format.
func (Format) Recognise(root *tree.Node) compat.Certainty {
	tools, _ := root.Get("tools")
	model, _ := root.Get("model")
	if compat.IsList(tools) && compat.HasKey(root, "model", "instructions") || compat.HasKey(root, "mcp_servers") ||
		compat.HasKey(root, "instructions") && model != nil && model.Kind == tree.Map { // one agent without tools
		return compat.Surely
	}
	return compat.Unlike
}

// converter converts one file.
type converter struct{ *compat.Conversion }

// Convert implements compat.Format.
func (Format) Convert(conv *compat.Conversion, root *tree.Node) {
	c := converter{conv}
	c.Out.Append("profile", root, tree.TextAt(root, compat.HoloDeck))
	for k, v := range root.All() {
		switch k.Val {
		case "name":
			c.Out.Append("name", k, v)
		case "description":
			c.agentEntry(k).Append("description", k, v)
		case "model":
			c.model(k, v, "main", "model")
		case "instructions":
			c.instructions(k, v)
		case "tools", "mcp_servers":
			c.toolList(k, v)
		case "providers":
			if c.IsMap(v, "providers") {
				for j, name := range v.Keys {
					c.model(name, v.Vals[j], compat.SecretName(name.Val), "providers."+name.Val)
				}
			}
		case "response_format":
			c.responseFormat(k, v)
		case "test_cases":
			c.testCases(k, v)
		case "limits", "policy", "secrets":
			c.section(k, v)
		case "author", "evaluations", "execution", "observability", "deployment", "embedding_provider",
			"tool_filtering", "claude", "openai", "vectorstores", "version":
			c.Keep(c.Out, k, v, k.Val)
		default:
			c.extra(k, v)
		}
	}
}

// section copies a section of tenon.yaml into the output. The output may have keys of this section already, because
// other keys of agent.yaml were converted to them.
func (c converter) section(k, v *tree.Node) {
	if !c.IsMap(v, k.Val) {
		return
	}
	into := c.Section(k.Val, v)
	for i, key := range v.Keys {
		into.Append(key.Val, key, v.Vals[i])
	}
}

// extra copies a key that HoloDeck does not have to its place in tenon.yaml: a limit of the run, or a rule for all
// tools.
func (c converter) extra(k, v *tree.Node) {
	switch {
	case strings.HasPrefix(k.Val, "x-"):
		c.Out.Append(k.Val, k, v)
	case supported[agent.Limits](k.Val):
		c.Section("limits", k).Append(k.Val, k, v)
	case supported[policy.Block](k.Val):
		c.Section("policy", k).Child("defaults", k).Append(k.Val, k, v)
	default:
		c.mistyped(k, k.Val, agentKeys)
	}
}

// mistyped reports a key that no version of HoloDeck and no section of tenon has. HoloDeck refuses such keys, too.
func (c converter) mistyped(k *tree.Node, path string, known []string) {
	sorted := slices.Clone(known) // HoloDeck and tenon share keys
	slices.Sort(sorted)
	hint := "keys: " + strings.Join(slices.Compact(sorted), ", ")
	near := tenon.Nearest(k.Val, known)
	if near == "" && slices.Contains(known, "env") && tenon.Nearest(k.Val, []string{"environment"}) != "" {
		near = "env"
	}
	if near != "" {
		hint = "did you mean '" + near + "'?"
	}
	c.Add(k, path, "unknown key", hint)
}

// testCases keeps the test cases, which tenon eval reads from the file itself.
func (c converter) testCases(k, v *tree.Node) {
	if !c.Direct {
		c.Note(k, k.Val, "kept; tenon eval %s runs them", k.Src.Label)
	}
	c.Store(c.Out, k, k.Val, v)
}

// agentEntry returns the agent's entry in the output, agents.default. If it is missing, it is added with the position
// of at.
func (c converter) agentEntry(at *tree.Node) *tree.Node {
	return c.Section("agents", at).Child("default", at)
}

func (c converter) responseFormat(k, v *tree.Node) {
	if !supported[agent.Config]("response_format") {
		c.Keep(c.Out, k, v, k.Val)
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

func (c converter) model(at, n *tree.Node, name, path string) {
	if !c.IsMap(n, path) {
		return
	}
	m := tree.MapAt(n)
	c.Section("models", at).Append(name, at, m)
	provider, _ := n.Get("provider")
	azure := provider != nil && provider.Val == "azure_openai"
	for k, v := range n.All() {
		p := path + "." + k.Val
		switch k.Val {
		case "provider":
			if azure {
				c.Note(v, p, "azure_openai becomes openai-compatible with the address ENDPOINT/openai/v1")
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
			c.Keep(m, k, v, p)
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
func (c converter) apiKey(m, k, v *tree.Node, path string, azure bool) {
	name := compat.OnlyVariable(v.Val)
	switch {
	case v.Kind != tree.Scalar || v.Tag != "!!str":
		c.Add(v, path, "must be a text, is "+v.Form(), "")
	case azure:
		headers := tree.MapAt(v)
		headers.Append("api-key", k, v)
		m.Append("headers", k, headers)
		if name == "" {
			c.Literal(v, path)
		}
	case name != "":
		secret := tree.MapAt(v)
		secret.Append("env", k, tree.TextAt(v, name))
		m.Append("api_key", k, secret)
	default:
		c.Literal(v, path)
		m.Append("api_key", k, v)
	}
}

func (c converter) instructions(k, n *tree.Node) {
	if !c.IsMap(n, "instructions") {
		return
	}
	if len(n.Keys) == 0 {
		c.Add(n, "instructions", "Exactly one of 'file' and 'inline' is required",
			"write inline: with the text, or file:")
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
