package config_test

import (
	"strings"
	"testing"
)

// loose is a configuration whose rules depend on the project's own descriptions of tools.
const loose = `version: 1
secrets:
  key: {env: KEY}
  gone: {env: OTHER}
servers:
  demo: {command: demo, naming: {template: "x_{tool}"}, transform: [{prefix: p_}], sampling: ask, sampling_model: n}
  web: {command: web}
tools:
  counter: {server: demo, groups: [g, default], title: Danger, description: Danger}
  c: {server: demo, remote_name: other}
  ask: {kind: prompt, template: "x", model: n, description: Asks, groups: [g]}
models:
  first: {provider: openai, model: first}
  m: {provider: openai, model: a}
  n: {provider: anthropic, model: b, fallback: [m], extra: {user: x}}
  z: {provider: anthropic, model: z}
agents:
  default: {description: d, model: n, compaction: {model: n}}
  other: {model: m}
serve: {agent: other}
policy: {defaults: {approval: never}, groups: {g: {approval: always}}RULES}
`

type factUpdate struct {
	rules, user, old, now string
	path                  string // path of the difference that is held back; "" if there is none
	starts                bool
}

// TestUpdateFacts changes the file of a running tenon. No such edit may change the values that a rule reads, or the
// model that answers, without the owner's consent.
func TestUpdateFacts(t *testing.T) {
	const (
		title       = `, rules: [{when: 'tool.title == "Danger"', verdict: deny}]`
		description = `, rules: [{when: 'tool.description.contains("Danger")', verdict: deny}]`
		firstModel  = "  first: {provider: openai, model: first}\n  m: {provider: openai, model: a}\n"
		lastModel   = "  m: {provider: openai, model: a}\n  first: {provider: openai, model: first}\n"
		asks        = `, groups: {h: {approval: {if: 'tool.title == "Danger"'}}}`
	)
	tests := map[string]factUpdate{
		"a group":                        {"", "", "[g, default]", "[default]", "tools.counter.groups", false},
		"a further group":                {"", "", "[g, default]", "[g, default, safe]", "tools.counter.groups", false},
		"all groups":                     {"", "", "groups: [g, default], ", "", "tools.counter.groups", false},
		"a title":                        {title, "", "title: Danger", "title: Fine", "tools.counter.title", false},
		"no title":                       {title, "", "title: Danger, ", "", "tools.counter.title", false},
		"a title, the user's rule":       {"", "policy: {" + title[2:] + "}\n", "title: Danger", "title: Fine", "tools.counter.title", false},
		"a title, the user's condition":  {"", "policy: {" + asks[2:] + "}\n", "title: Danger", "title: Fine", "tools.counter.title", false},
		"a title, a server's filter":     {"", "servers: {u: {command: u, where: 'tool.title != \"x\"'}}\n", "title: Danger", "title: Fine", "tools.counter.title", false},
		"a title that no rule reads":     {description, "", "title: Danger", "title: Fine", "", false},
		"a description":                  {description, "", "description: Danger", "description: Fine", "tools.counter.description", false},
		"a description that no one read": {title, "", "description: Danger", "description: Fine", "", false},
		"a naming template":              {"", "", "x_{tool}", "y_{tool}", "servers.demo.naming.template", false},
		"no naming":                      {"", "", `naming: {template: "x_{tool}"}, `, "", "servers.demo.naming.template", false},
		"further naming":                 {"", "", `template: "x_{tool}"`, `template: "x_{tool}", max_len: 20`, "servers.demo.naming.max_len", false},
		"on_collision":                   {"", "", `template: "x_{tool}"`, `template: "x_{tool}", on_collision: suffix`, "servers.demo.naming.on_collision", false},
		"a prefix":                       {"", "", "p_", "q_", "servers.demo.transform", false},
		"a tool's entry":                 {"", "", "  c: {server: demo, remote_name: other}\n", "", "tools.c", false},
		"tools not loaded":               {"", "", "sampling_model: n", "sampling_model: n, load_tools: false", "servers.demo.load_tools", true},
		"the order of models":            {"", "", firstModel, lastModel, "models", true},
		"the first model":                {"", "", "  first: {provider: openai, model: first}\n", "", "models.first", true},
		"a model":                        {"", "", "  z: {provider: anthropic, model: z}\n", "", "models.z", true},
		"the sampling model":             {"", "", ", sampling_model: n", "", "servers.demo.sampling_model", true},
		"the model of a prompt":          {"", "", `"x", model: n`, `"x"`, "tools.ask.model", true},
		"a fallback":                     {"", "", ", fallback: [m]", "", "models.n.fallback", false},
		"extra":                          {"", "", ", extra: {user: x}", "", "models.n.extra", false},
		"an agent's model":               {"", "", "model: n, compaction", "compaction", "agents.default.model", true},
		"an agent's provider tools":      {"", "", "description: d, model: n", "description: d, provider_tools: {x: {mcp: 'https://evil.example/mcp'}}, model: n", "agents.default.provider_tools", true},
		"a compaction model":             {"", "", ", compaction: {model: n}", "", "agents.default.compaction.model", true},
		"an agent":                       {"", "", "  default: {description: d, model: n, compaction: {model: n}}\n", "", "agents.default", true},
		"a new agent":                    {"", "", "agents:\n", "agents:\n  more: {description: x}\n", "agents.more", false},
		"the agent of serve":             {"", "", "serve: {agent: other}\n", "", "serve.agent", true},
		"a secret of the user":           {"", "secrets: {gone: {env: MINE}}\n", "  gone: {env: OTHER}\n", "", "secrets.gone", true},
		"a secret of nobody else":        {"", "", "  gone: {env: OTHER}\n", "", "", false},
		"a server of the user":           {"", "servers: {web: {command: mine}}\n", "  web: {command: web}\n", "", "servers.web", true},
		"a server of nobody else":        {"", "", "  web: {command: web}\n", "", "", false},
	}
	for name, tt := range tests {
		t.Run("SEC-G1_"+strings.ReplaceAll(name, " ", "_"), func(t *testing.T) { checkFactUpdate(t, tt) })
	}
}

// checkFactUpdate changes the file, alone and together with a restriction, and checks which difference is held back.
func checkFactUpdate(t *testing.T, tt factUpdate) {
	text := strings.Replace(loose, "RULES", tt.rules, 1)
	after := strings.Replace(text, tt.old, tt.now, 1)
	if after == text {
		t.Fatalf("%s is not in the file", tt.old)
	}
	files := map[string]string{"tenon.yaml": text}
	if tt.user != "" {
		files["~/.config/tenon/config.yaml"] = tt.user
	}
	p := newProject(t, files)
	for _, more := range []string{"", "limits: {max_turns: 1}\n"} { // the edit alone, and together with a restriction
		p.write(map[string]string{"tenon.yaml": after + more})
		u, err := p.update()
		if err != nil {
			t.Fatal(err)
		}
		held := false
		for _, d := range u.Held {
			held = held || d.Path == tt.path && d.Starts == tt.starts
		}
		if held != (tt.path != "") || tt.path == "" && u.Now != u.Whole {
			t.Errorf("held back: %+v, want %q (starts %t)", u.Held, tt.path, tt.starts)
		}
		if tt.path == "" || u.Now == nil {
			continue
		}
		if got := u.Now.ModelNames(); got[0] != "first" {
			t.Errorf("the first model is %s", got[0])
		}
		if got := u.Now.Limits.MaxTurns; more != "" && got != 1 {
			t.Errorf("the limit that tightens does not hold: %d", got)
		}
	}
}
