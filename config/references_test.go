package config

import (
	"strings"
	"testing"
)

// TestReferences checks which entry a key of the user's or the administrator's file refers to if a less trusted layer
// has an entry of the same name.
func TestReferences(t *testing.T) {
	const (
		mine   = "models: {main: {provider: openai, model: x}, second: {provider: openai, model: y}}\n"
		theirs = "models: {main: {provider: openai, model: z}}\nagents: {ops: {}}\n"
	)
	for name, tt := range map[string]struct{ admin, user, project, path, want string }{
		"SEC-F1_compaction":            {"", mine + "agents: {own: {compaction: {model: main}}}", theirs, "agents.own.compaction.model", `"user:main" (user)`},
		"SEC-F1_sampling":              {"", mine + "servers: {a: {command: x, sampling: ask, sampling_model: main}}", theirs, "servers.a.sampling_model", `"user:main" (user)`},
		"SEC-F1_serve":                 {"", mine + "agents: {ops: {}}\nserve: {agent: ops}", theirs, "serve.agent", `"user:ops" (user)`},
		"RP-29_embeddings":             {"", mine + "tool_search: {embeddings: main}", theirs, "tool_search.embeddings", `"user:main" (user)`},
		"a name that nobody shadows":   {"", mine + "agents: {own: {model: second}}", theirs, "agents.own.model", "second (user)"},
		"the project's own":            {"", mine, theirs + "servers: {a: {command: x, sampling: ask, sampling_model: main}}", "servers.a.sampling_model", "main (project)"},
		"the project's, of the user":   {"", mine, theirs + "servers: {a: {command: x, sampling: ask, sampling_model: second}}", "servers.a.sampling_model", "second (project)"},
		"SEC-F1_admin, user shadows":   {mine + "agents: {own: {model: main}}", theirs, "name: p", "agents.own.model", `"admin:main" (admin)`},
		"SEC-F1_user, of the admin":    {mine, "agents: {own: {model: main}}", theirs, "agents.own.model", `"admin:main" (user)`},
		"user, of the admin":           {mine, "agents: {own: {model: second}}", theirs, "agents.own.model", "second (user)"},
		"SEC-F1_kept, with references": {"", "models: {main: {provider: openai, model: x, fallback: [spare]}, spare: {provider: openai, model: y}}\nagents: {own: {model: main}}", theirs + "servers: {x: {command: x}}", "models.user:main.fallback", "[spare] (user)"},
		"SEC-F1_a circle":              {"", "models: {main: {provider: openai, model: x, fallback: [spare]}, spare: {provider: openai, model: y, fallback: [main]}}\nagents: {own: {model: main}}", theirs, "models.user:main.fallback", "[spare] (user)"},
		"SEC-F1_limits of the kept":    {"agents: {ops: {limits: {max_turns: 3}}}\n", mine + "agents: {own: {handoffs: [ops]}, ops: {limits: {max_turns: 9}}}", theirs, "agents.user:ops.limits.max_turns", "3 (admin)"},
		"SEC-F1_an alias key":          {"", mine + "x-a: &a main\nagents: {own: {model: *a}}", theirs, "agents.own.model", `"user:main" (user)`},
	} {
		t.Run(name, func(t *testing.T) {
			files := map[string]string{"PROJECT": tt.project, "USER": tt.user}
			if tt.admin != "" {
				files["ADMIN"] = tt.admin
			}
			c, err := layers(t, files)
			if err != nil {
				t.Fatal(err)
			}
			if got := inEffect(c, tt.path); got != tt.want {
				t.Errorf("%s is %s, want %s", tt.path, got, tt.want)
			}
			for _, n := range append(c.ModelNames(), c.AgentNames()...) {
				if strings.Contains(n, ":") {
					t.Errorf("the list of names has the qualified name %s", n)
				}
			}
		})
	}
}

// TestReferenceErrors checks that a reference to a name that only a less trusted layer defines is an error in the file
// with the reference.
func TestReferenceErrors(t *testing.T) {
	const theirs = "models: {main: {provider: openai, model: z}}\nagents: {ops: {}}\n"
	for name, tt := range map[string]struct{ user, project, want string }{
		"SEC-F1_model":      {"agents: {own: {model: main}}", theirs, "config.yaml:1:23: agents.own.model: no model 'main' in this file"},
		"SEC-F1_compaction": {"agents: {own: {compaction: {model: main}}}", theirs, "agents.own.compaction.model: no model 'main' in this file"},
		"SEC-F1_handoff":    {"agents: {own: {handoffs: [ops]}}", theirs, "agents.own.handoffs[0]: no agent 'ops' in this file"},
		"SEC-F1_sub-agent":  {"tools: {ask: {kind: agent, agent: ops}}", theirs, "tools.ask.agent: no agent 'ops' in this file"},
		"SEC-F1_prompt":     {"tools: {say: {kind: prompt, description: d, template: x, model: main}}", theirs, "tools.say.model: no model 'main' in this file"},
		"SEC-F1_sampling":   {"servers: {a: {command: x, sampling: ask, sampling_model: main}}", theirs, "servers.a.sampling_model: no model 'main' in this file"},
		"SEC-F1_fallback":   {"models: {m: {provider: openai, model: x, fallback: [main]}}", theirs, "models.m.fallback[0]: no model 'main' in this file"},
		"SEC-F1_serve":      {"serve: {agent: ops}", theirs, "serve.agent"},
		"RP-29_embeddings":  {"tool_search: {embeddings: main}", theirs, "tool_search.embeddings: no model 'main' in this file"},
		"RP-29_no entry":    {"", "tool_search: {embeddings: nobody}", "tool_search.embeddings: no model 'nobody'"},
		"RP-29_no provider": {"", "tool_search: {embeddings: nobody/x}", "tool_search.embeddings: no model 'nobody/x'"},
		"RP-29_no name":     {"", "tool_search: {embeddings: openai/}", "tool_search.embeddings: no model 'openai/'"},
		"SEC-F1_a qualified name": {"models: {main: {provider: openai, model: x}}\nagents: {own: {model: main}}",
			"models: {main: {provider: openai, model: z}, 'user:main': {provider: openai, model: evil}}", "a name has 1 to 64"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := layers(t, map[string]string{"PROJECT": tt.project, "USER": tt.user})
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("%v, want %s", err, tt.want)
			}
		})
	}
}

// TestModelOfRun checks which model a run uses if the configuration has changed since the run began.
func TestModelOfRun(t *testing.T) {
	const mine = "models: {main: {provider: openai, model: x}}\nagents: {own: {model: main}}\n"
	for name, tt := range map[string]struct{ project, agent, model, want string }{
		"SEC-F1_a project shadows it since": {"models: {main: {provider: openai, model: z}}", "own", "main", "user:main"},
		"a project shadows it no longer":    {"name: p", "own", "user:main", "main"},
		"the same":                          {"models: {main: {provider: openai, model: z}}", "own", "user:main", "user:main"},
		"an agent of the project":           {"models: {main: {provider: openai, model: z}}\nagents: {other: {}}", "other", "main", "main"},
		"a model of no file":                {"name: p", "own", "openai/gpt-5", "openai/gpt-5"},
		"SEC-F1_a layer without the entry":  {"models: {spare: {provider: openai, model: z}}", "own", "user:spare", "user:spare"},
	} {
		t.Run(name, func(t *testing.T) {
			c, err := layers(t, map[string]string{"PROJECT": tt.project, "USER": mine})
			if err != nil {
				t.Fatal(err)
			}
			if got := c.ModelOfRun(tt.agent, tt.model); got != tt.want {
				t.Errorf("%s, want %s", got, tt.want)
			}
		})
	}
}
