package holodeck

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/tenonhq/tenon/compat"
	"github.com/tenonhq/tenon/config/tree"
	"github.com/tenonhq/tenon/servers"
)

// exporter writes one file.
type exporter struct{ *compat.Export }

// Export writes agent.yaml: one agent, its model, its servers.
func (Format) Export(to *compat.Export) *tree.Node {
	e := exporter{to}
	e.Holds, e.YAML = []string{"models", "agents"}, true
	root := &tree.Node{Kind: tree.Map}
	name, _ := e.Root.Get("name")
	if name == nil {
		name = tree.Text(e.Name)
	}
	root.Put("name", name)
	model := ""
	first := true
	e.Entries("agents", func(k, v *tree.Node, path string) {
		if !first {
			e.Missing(k, path)
			return
		}
		first = false
		for key, val := range v.All() {
			switch {
			case key.Val == "description":
				root.Put("description", val)
			case key.Val == "model":
				model = val.Val
			case key.Val == "instructions":
				root.Put("instructions", instructionsBack(val))
			case key.Val == "response_format" && len(val.Vals) == 1:
				root.Put("response_format", val.Vals[0])
			case val.Src != nil && val.Src.Profile:
			default:
				e.Missing(key, path+"."+key.Val)
			}
		}
	})
	model = cmp.Or(model, e.Model)
	e.Entries("models", func(k, v *tree.Node, path string) {
		if k.Val != model {
			e.Missing(k, path)
			return
		}
		root.Put("model", e.model(v, path))
	})
	tools := &tree.Node{Kind: tree.List}
	e.Entries("servers", func(k, v *tree.Node, path string) {
		if t := e.tool(k, v, path); t != nil {
			tools.Vals = append(tools.Vals, t)
		}
	})
	x, _ := e.Root.Get("x-holodeck")
	if others, _ := x.Get("tools"); others != nil && others.Kind == tree.List {
		tools.Vals = append(tools.Vals, others.Vals...)
	}
	root.Put("tools", tools)
	e.Restore(root, e.Root)
	return root
}

func instructionsBack(v *tree.Node) *tree.Node {
	out := &tree.Node{Kind: tree.Map}
	for i, k := range v.Keys {
		key := k.Val
		if key == "text" {
			key = "inline"
		}
		out.Put(key, v.Vals[i])
	}
	return out
}

func (e exporter) model(v *tree.Node, path string) *tree.Node {
	m := &tree.Node{Kind: tree.Map}
	provider, _ := v.Get("provider")
	base, _ := v.Get("base_url")
	azure := provider != nil && provider.Val == "openai-compatible" && base != nil &&
		strings.HasSuffix(base.Val, "/openai/v1")
	for k, val := range v.All() {
		switch {
		case k.Val == "provider" && azure:
			m.Put("provider", tree.Text("azure_openai"))
		case k.Val == "provider":
			if !slices.Contains([]string{"anthropic", "openai", "ollama"}, val.Val) {
				e.Missing(k, path+".provider")
			}
			m.Put("provider", val)
		case k.Val == "model":
			m.Put("name", val)
		case k.Val == "temperature", k.Val == "max_tokens", k.Val == "top_p":
			if val.Src == nil || !val.Src.Profile {
				m.Put(k.Val, val)
			}
		case k.Val == "base_url":
			end := "/v1"
			if azure {
				end = "/openai/v1"
			} else if provider == nil || provider.Val != "ollama" {
				end = ""
			}
			m.Put("endpoint", tree.Text(strings.TrimSuffix(val.Val, end)))
		case k.Val == "api_key":
			if ref := e.Reference(val); ref != "" {
				m.Put("api_key", tree.Text(ref))
			} else {
				e.Missing(k, path+".api_key")
			}
		case k.Val == "headers" && azure && len(val.Keys) == 1 && val.Keys[0].Val == "api-key":
			m.Put("api_key", val.Vals[0])
		case k.Val == "x-holodeck", val.Src != nil && val.Src.Profile:
		default:
			e.Missing(k, path+"."+k.Val)
		}
	}
	e.Restore(m, v)
	return m
}

func (e exporter) tool(k, v *tree.Node, path string) *tree.Node {
	if !toolName().MatchString(k.Val) {
		e.Missing(k, path)
		return nil
	}
	t := &tree.Node{Kind: tree.Map}
	t.Put("type", tree.Text("mcp"))
	t.Put("name", k)
	if d, _ := v.Get("description"); d == nil {
		t.Put("description", tree.Text("MCP server "+k.Val)) // HoloDeck requires a description
	}
	kind := e.Transport(k.Val)
	if !slices.Contains([]string{servers.TransportStdio, servers.TransportSSE, servers.TransportHTTP,
		servers.TransportWebSocket}, kind) {
		e.Missing(k, path)
		return nil
	}
	if kind != servers.TransportStdio {
		t.Put("transport", tree.Text(kind))
	}
	rename := map[string]string{}
	for _, key := range []string{"description", "command", "args", "env", "env_file", "encoding", "url", "headers",
		"timeout", "sse_read_timeout", "terminate_on_close",
		"config", "load_tools", "load_prompts", "request_timeout", "is_retrieval", "registry_name"} {
		rename[key] = key
	}
	rename["defer"] = "defer_loading"
	done := []string{"transport", "type", "auth"}
	settings, _ := v.Get("config")
	if include, _ := v.Get("include"); include != nil {
		if allowed, _ := settings.Get("allowed_tools"); allowed != nil && tree.Same(allowed, include) {
			done = append(done, "include")
		}
	}
	e.Server(k, v, t, path, rename, done...)
	for _, key := range []string{"timeout", "sse_read_timeout", "request_timeout"} { // seconds there
		if d, _ := t.Get(key); d != nil && d.Tag == "!!str" {
			if dur, err := e.Duration(d.Val); err == nil {
				t.Put(key, &tree.Node{Tag: "!!int", Val: strconv.FormatFloat(dur.Seconds(), 'f', -1, 64)})
			}
		}
	}
	if !e.Auth(v, t, path+".auth") {
		_, at := v.Get("auth")
		e.Missing(at, path+".auth")
	}
	return t
}

var _ compat.Exporter = Format{}
