package host_test

import (
	"strings"
	"testing"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/agent"
	"github.com/tenonhq/tenon/catalog"
	"github.com/tenonhq/tenon/config"
	"github.com/tenonhq/tenon/host"
	"github.com/tenonhq/tenon/model"
	"github.com/tenonhq/tenon/servers"
)

// TestRP16_ReferencesOfAProgram opens hosts whose entries refer to entries that do not exist. The entries are made by
// the program, and the errors are the same as for a file. References to models and toolsets that only the program has
// are not errors.
func TestRP16_ReferencesOfAProgram(t *testing.T) {
	agents := func(a agent.Config) config.Config {
		return config.Config{Agents: map[string]agent.Config{"a": a}}
	}
	tool := func(entry catalog.Tool) config.Config {
		return config.Config{Tools: map[string]catalog.Tool{"x": entry}}
	}
	models := func(fallback string) config.Config {
		return config.Config{Models: map[string]model.Config{"main": {Provider: "openai", Model: "gpt", Fallback: []string{fallback}}}}
	}
	for name, tc := range map[string]struct {
		c    config.Config
		want string // part of the error; if empty, the host opens
	}{
		"model of an agent":         {agents(agent.Config{Model: "nope"}), "agents.a.model: no model 'nope'; models: own"},
		"model of a compaction":     {agents(agent.Config{Compaction: agent.Compaction{Model: "nope"}}), "agents.a.compaction.model: no model 'nope'"},
		"handoff":                   {agents(agent.Config{Handoffs: []string{"a", "nope"}}), "agents.a.handoffs[1]: no agent 'nope'; agents: a"},
		"agent of a tool":           {tool(catalog.Tool{Kind: tenon.KindAgent, Agent: "nope"}), "tools.x.agent: no agent 'nope'"},
		"model of a tool":           {tool(catalog.Tool{Kind: tenon.KindPrompt, Description: "x", Template: "x", Model: "nope"}), "tools.x.model: no model 'nope'"},
		"a server that comes later": {tool(catalog.Tool{Server: "later"}), ""},
		"fallback of a model":       {models("nope"), "models.main.fallback[0]: no model 'nope'"},
		"model of a server":         {config.Config{Servers: map[string]servers.Config{"s": {Command: "x", SamplingModel: "nope"}}}, "servers.s.sampling_model: no model 'nope'"},
		"a model of the program":    {agents(agent.Config{Model: "own", Handoffs: []string{"a"}}), ""},
		"a model of a provider":     {agents(agent.Config{Model: "openai/gpt"}), ""},
		"a toolset":                 {tool(catalog.Tool{Server: "mine", RemoteName: "x"}), ""},
		"a disabled server":         {config.Config{Servers: map[string]servers.Config{"off": {Command: "x", Enabled: new(false)}}, Tools: map[string]catalog.Tool{"x": {Server: "off"}}}, ""},
		"a tool that is disabled":   {tool(catalog.Tool{Server: "nope", Enabled: new(false)}), ""},
	} {
		t.Run(name, func(t *testing.T) {
			h, err := host.Open(t.Context(), host.Config{Home: t.TempDir(), Config: &tc.c, Models: map[string]tenon.Model{"own": once()},
				Toolsets: map[string]tenon.Toolset{"mine": ownTools{}}})
			if err == nil {
				if err := h.Close(); err != nil {
					t.Error(err)
				}
			}
			if (err == nil) != (tc.want == "") || err != nil && (tenon.ErrorCode(err) != tenon.CodeConfig || !strings.Contains(err.Error(), tc.want)) {
				t.Errorf("%v, want %q", err, tc.want)
			}
		})
	}
}
