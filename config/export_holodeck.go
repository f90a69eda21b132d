package config

import (
	"slices"
	"strconv"
	"strings"

	"github.com/tenonhq/tenon/servers"
)

// holodeck writes agent.yaml: one agent, its model, its servers.
func (e *export) holodeck() *node {
	root := &node{kind: mapNode}
	name, _ := e.root.get("name")
	if name == nil {
		name = text(e.c.Name)
	}
	root.put("name", name)
	model := ""
	first := true
	e.entries("agents", func(k, v *node, path string) {
		if !first {
			e.missing(k, path)
			return
		}
		first = false
		for i, key := range v.keys {
			val := v.vals[i]
			switch {
			case key.val == "description":
				root.put("description", val)
			case key.val == "model":
				model = val.val
			case key.val == "instructions":
				root.put("instructions", holodeckInstructions(val))
			case key.val == "response_format" && len(val.vals) == 1:
				root.put("response_format", val.vals[0])
			case val.src != nil && val.src.profile:
			default:
				e.missing(key, path+"."+key.val)
			}
		}
	})
	if model == "" {
		if all := e.c.ModelNames(); len(all) > 0 {
			model = all[0]
		}
	}
	e.entries("models", func(k, v *node, path string) {
		if k.val != model {
			e.missing(k, path)
			return
		}
		root.put("model", e.holodeckModel(v, path))
	})
	tools := &node{kind: listNode}
	e.entries("servers", func(k, v *node, path string) {
		if t := e.holodeckTool(k, v, path); t != nil {
			tools.vals = append(tools.vals, t)
		}
	})
	x, _ := e.root.get("x-holodeck")
	if others, _ := x.get("tools"); others != nil && others.kind == listNode {
		tools.vals = append(tools.vals, others.vals...)
	}
	root.put("tools", tools)
	e.restore(root, e.root)
	return root
}

func holodeckInstructions(v *node) *node {
	out := &node{kind: mapNode}
	for i, k := range v.keys {
		key := k.val
		if key == "text" {
			key = "inline"
		}
		out.put(key, v.vals[i])
	}
	return out
}

func (e *export) holodeckModel(v *node, path string) *node {
	m := &node{kind: mapNode}
	provider, _ := v.get("provider")
	base, _ := v.get("base_url")
	azure := provider != nil && provider.val == "openai-compatible" && base != nil &&
		strings.HasSuffix(base.val, "/openai/v1")
	for i, k := range v.keys {
		val := v.vals[i]
		switch {
		case k.val == "provider" && azure:
			m.put("provider", text("azure_openai"))
		case k.val == "provider":
			if !slices.Contains([]string{"anthropic", "openai", "ollama"}, val.val) {
				e.missing(k, path+".provider")
			}
			m.put("provider", val)
		case k.val == "model":
			m.put("name", val)
		case k.val == "temperature", k.val == "max_tokens", k.val == "top_p":
			if val.src == nil || !val.src.profile {
				m.put(k.val, val)
			}
		case k.val == "base_url":
			end := "/v1"
			if azure {
				end = "/openai/v1"
			} else if provider == nil || provider.val != "ollama" {
				end = ""
			}
			m.put("endpoint", text(strings.TrimSuffix(val.val, end)))
		case k.val == "api_key":
			if ref := e.reference(val); ref != "" {
				m.put("api_key", text(ref))
			} else {
				e.missing(k, path+".api_key")
			}
		case k.val == "headers" && azure && len(val.keys) == 1 && val.keys[0].val == "api-key":
			m.put("api_key", val.vals[0])
		case k.val == "x-holodeck", val.src != nil && val.src.profile:
		default:
			e.missing(k, path+"."+k.val)
		}
	}
	e.restore(m, v)
	return m
}

func (e *export) holodeckTool(k, v *node, path string) *node {
	if !holodeckName().MatchString(k.val) {
		e.missing(k, path)
		return nil
	}
	t := &node{kind: mapNode}
	t.put("type", text("mcp"))
	t.put("name", k)
	if d, _ := v.get("description"); d == nil {
		t.put("description", text("MCP server "+k.val)) // it has to have one there
	}
	kind := e.transport(k.val)
	if !slices.Contains([]string{servers.TransportStdio, servers.TransportSSE, servers.TransportHTTP,
		servers.TransportWebSocket}, kind) {
		e.missing(k, path)
		return nil
	}
	if kind != servers.TransportStdio {
		t.put("transport", text(kind))
	}
	rename := map[string]string{}
	for _, key := range []string{"description", "command", "args", "env", "env_file", "encoding", "url", "headers",
		"timeout", "sse_read_timeout", "terminate_on_close",
		"config", "load_tools", "load_prompts", "request_timeout", "is_retrieval", "registry_name"} {
		rename[key] = key
	}
	rename["defer"] = "defer_loading"
	done := []string{"transport", "type", "auth"}
	settings, _ := v.get("config")
	if include, _ := v.get("include"); include != nil {
		if allowed, _ := settings.get("allowed_tools"); allowed != nil && same(allowed, include) {
			done = append(done, "include")
		}
	}
	e.server(k, v, t, path, rename, done...)
	for _, key := range []string{"timeout", "sse_read_timeout", "request_timeout"} { // seconds there
		if d, _ := t.get(key); d != nil && d.tag == "!!str" {
			if dur, err := ParseDuration(d.val); err == nil {
				t.put(key, &node{tag: "!!int", val: strconv.FormatFloat(dur.Seconds(), 'f', -1, 64)})
			}
		}
	}
	if !e.auth(v, t, path+".auth") {
		_, at := v.get("auth")
		e.missing(at, path+".auth")
	}
	return t
}
