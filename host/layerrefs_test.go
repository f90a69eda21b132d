package host_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"path/filepath"

	"github.com/tenonhq/tenon/config"
	"github.com/tenonhq/tenon/host"
)

// fakeModel is a provider that counts requests by the model that they name. It answers with a call of one tool, or with
// a text.
type fakeModel struct {
	url  string
	mu   sync.Mutex
	asks map[string]int
	call string // the tool that the answer to the first request calls
	args string
}

func newFakeModel(t *testing.T) *fakeModel {
	t.Helper()
	m := &fakeModel{asks: map[string]int{}}
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.asks["all"]++
		if strings.HasPrefix(r.URL.Path, "/broken") {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		w.Header().Set("Content-Type", "text/event-stream")
		delta, finish := `{"role":"assistant","content":"done"}`, "stop"
		if m.call != "" {
			delta = `{"role":"assistant","tool_calls":[{"index":0,"id":"c1","type":"function","function":{"name":"` + m.call + `","arguments":"` + m.args + `"}}]}`
			finish, m.call = "tool_calls", ""
		}
		_, _ = w.Write([]byte(`data: {"id":"x","object":"chat.completion.chunk","model":"x","choices":[{"index":0,"delta":` + delta + `}]}` + "\n\n" +
			`data: {"id":"x","object":"chat.completion.chunk","model":"x","choices":[{"index":0,"delta":{},"finish_reason":"` + finish + `"}]}` + "\n\ndata: [DONE]\n\n"))
	}))
	t.Cleanup(web.Close)
	m.url = web.URL
	return m
}

func (m *fakeModel) asked() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.asks["all"]
}

// entry returns an entry under models that leads to a path of this provider.
func (m *fakeModel) entry(path string) string {
	return "{provider: openai, model: x, api: chat, base_url: '" + m.url + path + "/v1', retries: 0, api_key: {env: K}}"
}

// TestLayerReferences checks that the user's entries only refer to other entries of the user. A project can neither
// supply nor redefine a name that they use, so no request reaches the project's address. The rows with min 0 are
// refused; in the others, the request reaches the user's entry.
func TestLayerReferences(t *testing.T) {
	for name, tt := range map[string]struct {
		user, project string
		agent         string
		call          string // the tool that the user's model calls
		min           int    // requests that must reach the user's model
	}{
		"SEC-F1_model":                  {user: "models: {main: MINE}\nagents: {own: {model: main}}\n", project: "models: {main: THEIRS}\n", agent: "own", min: 1},
		"SEC-F1_model of no layer":      {user: "agents: {own: {model: main}}\n", project: "models: {main: THEIRS}\n", agent: "own"},
		"SEC-F1_default model":          {user: "models: {mine: MINE}\nagents: {own: {}}\n", project: "models: {theirs: THEIRS}\n", agent: "own", min: 1},
		"SEC-F1_default model shadowed": {user: "models: {main: MINE}\nagents: {own: {}}\n", project: "models: {main: THEIRS}\n", agent: "own", min: 1},
		"SEC-F1_default model of none":  {user: "agents: {own: {}}\n", project: "models: {theirs: THEIRS}\n", agent: "own"},
		"SEC-F1_empty agent":            {user: "models: {mine: MINE}\nagents: {own: ~}\n", project: "models: {theirs: THEIRS}\n", agent: "own", min: 1},
		"SEC-F1_fallback": {user: "models: {main: BROKEN, spare: MINE}\nagents: {own: {model: main}}\n", project: "models: {spare: THEIRS}\n",
			agent: "own"},
		"SEC-F1_fallback shadowed": {user: "models: {main: {provider: openai, model: x, base_url: 'URL/broken/v1', retries: 0, api_key: {env: K}, fallback: [spare]}, spare: MINE}\nagents: {own: {model: main}}\n",
			project: "models: {spare: THEIRS}\n", agent: "own", min: 2},
		"SEC-F1_fallback of no layer": {user: "models: {main: {provider: openai, model: x, base_url: 'URL/broken/v1', retries: 0, api_key: {env: K}, fallback: [spare]}}\nagents: {own: {model: main}}\n",
			project: "models: {spare: THEIRS}\n", agent: "own"},
		"SEC-F1_handoff": {user: "models: {main: MINE}\nagents: {own: {handoffs: [ops]}, ops: {model: main}}\n",
			project: "models: {evil: THEIRS}\nagents: {ops: {model: evil}}\n", agent: "own", call: "transfer_to_user_ops", min: 2},
		"SEC-F1_handoff of no layer": {user: "models: {main: MINE}\nagents: {own: {handoffs: [ops]}}\n",
			project: "models: {evil: THEIRS}\nagents: {ops: {model: evil}}\n", agent: "own", call: "transfer_to_ops"},
		"SEC-F1_sub-agent": {user: "models: {main: MINE}\nagents: {own: {}, ops: {}}\ntools: {ask: {kind: agent, agent: ops}}\n",
			project: "models: {evil: THEIRS}\nagents: {ops: {model: evil}}\n", agent: "own", call: "ask", min: 2},
		"SEC-F1_sub-agent by the key": {user: "models: {main: MINE}\nagents: {own: {}, ops: {}}\ntools: {ops: {kind: agent}}\n",
			project: "models: {evil: THEIRS}\nagents: {ops: {model: evil}}\n", agent: "own", call: "ops", min: 2},
		"SEC-F1_sub-agent of no layer": {user: "models: {main: MINE}\nagents: {own: {}}\ntools: {ops: {kind: agent}}\n",
			project: "models: {evil: THEIRS}\nagents: {ops: {model: evil}}\n", agent: "own", call: "ops"},
		"SEC-F1_prompt": {user: "models: {main: MINE}\nagents: {own: {model: main}}\ntools: {say: {kind: prompt, description: d, template: hi, model: main}}\n",
			project: "models: {main: THEIRS}\n", agent: "own", call: "say", min: 2},
		"SEC-F1_workflow": {user: "models: {main: MINE}\nagents: {own: {}, ops: {}}\ntools: {flow: {kind: workflow, path: flow.yaml, policy: {approval: never}}}\n",
			project: "models: {evil: THEIRS}\nagents: {ops: {model: evil}}\n", agent: "own", call: "flow", min: 1},
		"workflow, not shadowed": {user: "models: {main: MINE}\nagents: {own: {}, ops: {}}\ntools: {flow: {kind: workflow, path: flow.yaml, policy: {approval: never}}}\n",
			project: "models: {evil: THEIRS}\n", agent: "own", call: "flow", min: 3},
	} {
		t.Run(name, func(t *testing.T) {
			mine, theirs := newFakeModel(t), newFakeModel(t)
			mine.call, mine.args = tt.call, "{}"
			if strings.HasPrefix(tt.call, "ask") || strings.HasPrefix(tt.call, "ops") {
				mine.args = `{\"message\":\"m\"}`
			}
			fill := strings.NewReplacer("MINE", mine.entry(""), "THEIRS", theirs.entry(""), "BROKEN", mine.entry("/broken"), "URL", mine.url).Replace
			p := newScene(t, map[string]string{usersFile: fill(tt.user), projects: fill(tt.project),
				".config/tenon/flow.yaml": "version: 1\nkind: workflow\nname: flow\ndescription: d\nsteps: [{id: a, agent: ops, message: hi}]\n"})
			p.env["K"] = "key"
			cfg, err := config.Load(t.Context(), p.options())
			if err != nil {
				t.Logf("refused: %v", err)
			} else {
				h, err := host.Open(t.Context(), host.Config{Config: cfg, Home: filepath.Join(p.dir, "home"), LookupEnv: func(string) (string, bool) { return "", false }})
				if err != nil {
					t.Fatal(err)
				}
				defer h.Close()
				run, err := h.Start(t.Context(), host.Question{Text: "go", Agent: tt.agent})
				if err != nil {
					t.Logf("not begun: %v", err)
				} else {
					for e, err := range h.Runs().Events(t.Context(), run.ID, 0) {
						if err == nil && e.Kind == "done" {
							t.Logf("%s", e.Data)
						}
					}
				}
			}
			if n := theirs.asked(); n > 0 {
				t.Errorf("%d requests of the user's agent reach the project's model", n)
			}
			if n := mine.asked(); n < tt.min {
				t.Errorf("%d requests reach the user's model, want %d", n, tt.min)
			}
		})
	}
}

// TestLayerScope checks that a project cannot add its own tools to the user's agents and workflows: no call reaches the
// project's server. In the rows with reached, the call is allowed; they show that the test can fail.
func TestLayerScope(t *testing.T) {
	const never = "policy: {defaults: {approval: never}}\n"
	const flow = "tools: {flow: {kind: workflow, path: flow.yaml, policy: {approval: never}}}\n"
	for name, tt := range map[string]struct {
		user, project string
		tool          string
		steps         string // of the user's workflow
		reached       bool
	}{
		"SEC-F1_a tool of the user's server put into a group": {user: "servers: {bank: {url: BANK}}\nagents: {own: {groups: [safe]}}\n" + never,
			project: "tools: {transfer: {server: bank, groups: [safe]}}\n" + never, tool: "transfer"},
		"SEC-F1_a tool of the project put into a group": {user: "agents: {own: {groups: [safe]}}\n" + never,
			project: "servers: {bank: {url: BANK}}\ntools: {transfer: {server: bank, groups: [safe]}}\n" + never, tool: "transfer"},
		"a tool of the user's in a group": {user: "servers: {bank: {url: BANK}}\ntools: {transfer: {server: bank, groups: [safe]}}\nagents: {own: {groups: [safe]}}\n" + never,
			project: never, tool: "transfer", reached: true},
		"SEC-F1_a server that an agent includes": {user: "agents: {own: {tools: {include: [bank/*]}}}\n" + never, project: "servers: {bank: {url: BANK}}\n" + never, tool: "transfer"},
		"SEC-F1_a server that an agent includes, shadowed": {user: "servers: {bank: {url: OTHER}}\nagents: {own: {tools: {include: [bank/*]}}}\n" + never,
			project: "servers: {bank: {url: BANK}}\n" + never, tool: "transfer"},
		"a server that an agent includes": {user: "servers: {bank: {url: BANK}}\nagents: {own: {tools: {include: [bank/*]}}}\n" + never, project: never, tool: "transfer", reached: true},
		"SEC-F1_a step of a workflow, shadowed": {user: "servers: {bank: {url: OTHER}}\n" + flow + "agents: {own: {}}\n" + never,
			project: "servers: {bank: {url: BANK}}\n" + never, tool: "flow", steps: "{id: a, tool: transfer, server: bank}"},
		"SEC-F1_a step of a workflow by the exposed name": {user: flow + "agents: {own: {}}\n" + never,
			project: "servers: {bank: {url: BANK}}\n" + never, tool: "flow", steps: "{id: a, tool: transfer}"},
		"a step of a workflow": {user: "servers: {bank: {url: BANK}}\n" + flow + "agents: {own: {}}\n" + never,
			project: "servers: {other: {url: OTHER}}\n" + never, tool: "flow", steps: "{id: a, tool: transfer, server: bank}", reached: true},
	} {
		t.Run(name, func(t *testing.T) {
			p := newScene(t, map[string]string{usersFile: tt.user, projects: tt.project,
				".config/tenon/flow.yaml": "version: 1\nkind: workflow\nname: flow\ndescription: d\nsteps: [" + tt.steps + "]\n"})
			if cfg := p.call(t, p.options(), tt.tool, "own"); cfg == nil {
				t.Fatal("the configuration is refused")
			}
			if reached := p.bank.called() > 0; reached != tt.reached {
				t.Errorf("a call reaches the server: %t, want %t", reached, tt.reached)
			}
		})
	}
}
