package model_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/model"
)

// TestSwitches checks that members of models.NAME.extra which switch on tools of a provider are such tools for the
// rules, and are sent only if the rules allow them.
func TestSwitches(t *testing.T) {
	for name, c := range map[string]struct {
		wire, provider, extra string
		tools                 string // as the rules see them; * marks tools that are not read-only
		sent, left            string // parts of a request with and without the tools
	}{
		"MD-6_plugins":       {"chat", "openrouter", `{"plugins":[{"id":"web","max_results":3}]}`, "web_search", `"plugins":[{"id":"web","max_results":3}]`, `"plugins":[]`},
		"MD-6_other_plugins": {"chat", "openrouter", `{"plugins":[{"id":"file-parser"},{"id":"web"},{"id":"auto-router"}],"route":"x"}`, "web_search", `{"id":"web"}`, `"plugins":[{"id":"file-parser"},{"id":"auto-router"}]`},
		"MD-6_harmless":      {"chat", "openrouter", `{"plugins":[{"id":"file-parser"}]}`, "", `"plugins":[{"id":"file-parser"}]`, `"plugins":[{"id":"file-parser"}]`},
		"MD-6_options":       {"chat", "openai", `{"web_search_options":{},"user":"u"}`, "web_search", `"web_search_options":{}`, `"user":"u"`},
		"MD-6_parameters":    {"chat", "xai", `{"search_parameters":{"mode":"on"}}`, "web_search", `"search_parameters":{"mode":"on"}`, ``},
		"MD-6_off":           {"chat", "xai", `{"search_parameters":{"mode":"off"}}`, "", `"search_parameters":{"mode":"off"}`, `"search_parameters":{"mode":"off"}`},
		"MD-6_false":         {"chat", "openai-compatible", `{"enable_search":false}`, "", `"enable_search":false`, `"enable_search":false`},
		"MD-6_dashscope":     {"chat", "openai-compatible", `{"enable_search":true}`, "web_search", `"enable_search":true`, ``},
		"MD-6_azure_data":    {"chat", "openai-compatible", `{"data_sources":[{"type":"azure_search"}]}`, "file_search", `"data_sources":[`, ``},
		"MD-6_servers":       {"anthropic", "anthropic", `{"mcp_servers":[{"type":"url","url":"https://evil.example/mcp","name":"e"}]}`, "mcp_servers*", `evil.example`, ``},
		"MD-6_converse":      {"bedrock", "bedrock", `{"additionalModelRequestFields":{"tools":[{"type":"x"}],"top_k":5}}`, "tools*", `"tools":[{"type":"x"}]`, `"additionalModelRequestFields":{"top_k":5}`},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := model.Config{Provider: c.provider, Model: "m", Extra: []byte(c.extra)}
			var seen, names []string
			for _, h := range cfg.Hosted() {
				if h.Server != model.HostedServer {
					t.Errorf("%+v", h)
				}
				names = append(names, h.Remote)
				if h.Annotations.ReadOnly == nil || !*h.Annotations.ReadOnly {
					h.Name += "*"
				}
				seen = append(seen, h.Name)
			}
			if got := strings.Join(seen, ","); got != c.tools || !slices.Equal(names, cfg.SwitchedOn()) {
				t.Errorf("the tools are %s, want %s", got, c.tools)
			}
			if c.wire != "bedrock" {
				cfg.Provider = "" // settingsSent fills it in
			}
			sent := settingsSent(t, c.wire, cfg, &tenon.Request{Messages: question.Messages, Hosted: names})
			if !strings.Contains(sent, c.sent) {
				t.Errorf("%s\nlacks %s", sent, c.sent)
			}
			left := settingsSent(t, c.wire, cfg, &tenon.Request{Messages: question.Messages})
			if !strings.Contains(left, c.left) || c.sent != c.left && strings.Contains(left, c.sent) {
				t.Errorf("%s\nlacks %s, or has %s", left, c.left, c.sent)
			}
		})
	}
	for name, c := range map[string]struct {
		cfg  model.Config
		want string
	}{
		"MD-6_online":        {model.Config{Name: "m", Provider: "openrouter", Model: "openai/gpt-4o:online"}, "models.m.model: ':online' at the end switches on a tool of the provider; write openai/gpt-4o, and use models.m.tools: {web_search: {}}"},
		"MD-6_online_host":   {model.Config{Name: "m", Provider: "openai-compatible", BaseURL: "https://openrouter.ai/api/v1", Model: "x:online"}, "switches on a tool"},
		"MD-6_online_list":   {model.Config{Name: "m", Provider: "openrouter", Model: "x", Extra: []byte(`{"models":["a","b:online"]}`)}, "models.m.extra: 'models' has a name that ends with ':online'"},
		"MD-6_online_ollama": {model.Config{Name: "m", Provider: "ollama", Model: "x:online"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			err := c.cfg.Check()
			if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}
