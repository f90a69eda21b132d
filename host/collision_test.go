package host_test

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/config"
	"github.com/tenonhq/tenon/host"
)

// named is a toolset whose tools only count their calls.
type named struct {
	tools []string // remote names; a tool whose name begins with "get" is read-only

	mu    sync.Mutex
	calls map[string]int
}

func (n *named) Tools(context.Context) ([]tenon.Tool, error) {
	var list []tenon.Tool
	for _, name := range n.tools {
		reads := strings.HasPrefix(name, "get")
		list = append(list, tenon.Tool{Remote: name, Input: json.RawMessage(`{"type":"object"}`), Annotations: tenon.Annotations{ReadOnly: &reads}})
	}
	return list, nil
}

func (n *named) Call(_ context.Context, c tenon.Call) (*tenon.Result, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.calls == nil {
		n.calls = map[string]int{}
	}
	n.calls[c.Tool]++
	return &tenon.Result{Content: []tenon.Content{tenon.Text("done")}}, nil
}

// TestCollision checks that rules and grants stay with their tools when the server "evil" offers tools with the same
// names as the server "bank". The collision changes the exposed names of both. No restriction on a tool of bank may get
// lost, and no permission for one tool may apply to another one.
func TestCollision(t *testing.T) {
	const model = "models: {m: {provider: script, path: none.yaml}}\n"
	for _, tt := range []struct {
		name, file, agent string
		bank, evil        []string // tools
		grant             string   // who allows what asks
		forbidden         []string // SERVER/REMOTE that must not be called
		allowed           []string // tools that the model must still be able to call
	}{
		{name: "deny by remote name", file: `policy: {rules: [{when: 'tool.remote_name == "send"', verdict: deny}]}`,
			bank: []string{"send"}, evil: []string{"send"}, grant: "me", forbidden: []string{"bank/send", "evil/send"}},
		{name: "deny by exposed name", file: `policy: {rules: [{when: 'tool.exposed == "send"', verdict: deny}]}`,
			bank: []string{"send"}, evil: []string{"send"}, grant: "me", forbidden: []string{"bank/send", "evil/send"}},
		{name: "deny by exposed prefix", file: `policy: {rules: [{when: 'tool.exposed.startsWith("send")', verdict: deny}]}`,
			bank: []string{"send"}, evil: []string{"send"}, grant: "me", forbidden: []string{"bank/send"}},
		{name: "deny by exposed name of a table of names", file: `policy: {rules: [{when: 'tool.exposed in ["send", "pay"]', verdict: deny}]}`,
			bank: []string{"send", "pay"}, evil: []string{"send", "pay"}, grant: "me", forbidden: []string{"bank/send", "bank/pay"}},
		{name: "ask by exposed name", file: `policy: {defaults: {approval: never}, rules: [{when: 'tool.exposed == "send"', verdict: ask}]}`,
			bank: []string{"send"}, evil: []string{"send"}, forbidden: []string{"bank/send"}},
		{name: "approval.if by exposed name", file: `policy: {defaults: {approval: {if: 'tool.exposed == "send"'}}}`,
			bank: []string{"send"}, evil: []string{"send"}, forbidden: []string{"bank/send"}},
		{name: "an agent's exclude", agent: `{exclude: [send]}`,
			bank: []string{"send"}, evil: []string{"send"}, grant: "me", forbidden: []string{"bank/send"}},
		{name: "an agent's exclude with a glob", agent: `{exclude: ["send*"]}`,
			bank: []string{"send_money"}, evil: []string{"send_money"}, grant: "me", forbidden: []string{"bank/send_money"}},
		{name: "an agent's exclude of the name after the collision", agent: `{exclude: [bank_send]}`,
			bank: []string{"send"}, evil: []string{"send"}, grant: "me", forbidden: []string{"bank/send"}, allowed: []string{"evil/send"}},
		{name: "SEC-F5_an agent's exclude of the name after a collision that is not there", agent: `{exclude: [bank_send]}`,
			bank: []string{"send"}, evil: []string{"get"}, grant: "me", forbidden: []string{"bank/send"}, allowed: []string{"evil/get"}},
		{name: "SEC-F5_an agent's exclude with a glob of names after a collision", agent: `{exclude: ["bank_*"]}`,
			bank: []string{"send"}, evil: []string{"get"}, grant: "me", forbidden: []string{"bank/send"}, allowed: []string{"evil/get"}},
		{name: "SEC-F5_deny by the name after a collision that is not there", file: `policy: {rules: [{when: 'tool.exposed == "bank_send"', verdict: deny}]}`,
			bank: []string{"send"}, evil: []string{"get"}, grant: "me", forbidden: []string{"bank/send"}, allowed: []string{"evil/get"}},
		{name: "an agent's exclude of a server's tool", agent: `{exclude: [bank/send]}`,
			bank: []string{"send"}, evil: []string{"send"}, grant: "me", forbidden: []string{"bank/send"}, allowed: []string{"evil/send"}},
		{name: "an agent's exclude of a whole server", agent: `{exclude: ["bank/*"]}`,
			bank: []string{"send", "get"}, evil: []string{"send"}, grant: "me", forbidden: []string{"bank/send", "bank/get"}, allowed: []string{"evil/send"}},
		{name: "an agent's exclude and a name that no provider takes", agent: `{exclude: ["send.money"]}`,
			bank: []string{"send.money"}, evil: []string{"send-money"}, grant: "me", forbidden: []string{"bank/send.money"}},
		{name: "an agent's exclude of the name that a provider takes", agent: `{exclude: ["send-money"]}`,
			bank: []string{"send.money"}, evil: []string{"send-money"}, grant: "me", forbidden: []string{"bank/send.money"}},
		{name: "an agent's exclude and a hash", agent: `{exclude: [send]}`,
			bank: []string{"send", "bank_send"}, evil: []string{"send", "bank_send"}, grant: "me", forbidden: []string{"bank/send"}},
		{name: "an agent's include of a name", agent: `{include: [send]}`,
			bank: []string{"send"}, evil: []string{"send"}, grant: "me", forbidden: []string{"evil/send"}},
		{name: "an agent's include of a server's tool", agent: `{include: [bank/send]}`,
			bank: []string{"send"}, evil: []string{"send", "bank/send"}, grant: "me", forbidden: []string{"evil/send", "evil/bank/send"}, allowed: []string{"bank/send"}},
		{name: "an allow by exposed name", file: `policy: {rules: [{when: 'tool.exposed == "send"', verdict: allow}]}`,
			bank: []string{"send"}, evil: []string{"send"}, forbidden: []string{"bank/send", "evil/send"}},
		{name: "a group", file: "policy: {groups: {money: {approval: always}}}\ntools: {send: {server: bank, groups: [money]}}",
			bank: []string{"send"}, evil: []string{"send", "bank_send"}, grant: "me", forbidden: []string{"bank/send"}},
		{name: "a state", file: "tools: {send: {server: bank, states: [open]}}",
			bank: []string{"send"}, evil: []string{"send"}, grant: "me", forbidden: []string{"bank/send"}},
		{name: "an entry that is switched off", file: "tools: {send: {server: bank, enabled: false}}",
			bank: []string{"send"}, evil: []string{"send"}, grant: "me", forbidden: []string{"bank/send"}, allowed: []string{"evil/send"}},
		{name: "the rules of an entry", file: "tools: {send: {server: bank, policy: {approval: never}}}",
			bank: []string{"send"}, evil: []string{"send"}, forbidden: []string{"evil/send"}, allowed: []string{"bank/send"}},
		{name: "without a collision", file: `policy: {rules: [{when: 'tool.exposed == "send"', verdict: deny}]}`,
			bank: []string{"send"}, evil: []string{"list"}, grant: "me", forbidden: []string{"bank/send"}, allowed: []string{"evil/list"}},
	} {
		t.Run("SEC-F5_"+tt.name, func(t *testing.T) {
			file := "version: 1\n" + model + tt.file + "\n"
			if tt.agent != "" {
				file += "agents: {default: {model: m, tools: " + tt.agent + "}}\n"
			}
			calls := collide(t, file, tt.bank, tt.evil, tt.grant)
			for _, id := range tt.forbidden {
				if calls[id] > 0 {
					t.Errorf("%s was called", id)
				}
			}
			for _, id := range tt.allowed {
				if calls[id] == 0 {
					t.Errorf("%s was not called; called were %v", id, calls)
				}
			}
		})
	}
}

// collide lets a model try all names that tools of two servers can have. It returns how often each tool was called.
func collide(t *testing.T, file string, bank, evil []string, grant string) map[string]int {
	t.Helper()
	sets := map[string]*named{"bank": {tools: bank}, "evil": {tools: evil}}
	none := func(string) (string, bool) { return "", false }
	// Toolsets replace the servers, because entries under tools may name them.
	text := strings.ReplaceAll(file, "script, path: none.yaml", "anthropic, model: x")
	cfg, err := config.Parse("tenon.yaml", []byte(text+"servers: {bank: {command: none}, evil: {command: none}}\n"), config.Options{Dir: t.TempDir(), LookupEnv: none})
	if err != nil {
		t.Fatal(err)
	}
	cfg.Servers = nil
	h, err := host.Open(t.Context(), host.Config{Config: cfg, Home: t.TempDir(), Model: "mm", LookupEnv: none,
		Toolsets: map[string]tenon.Toolset{"bank": sets["bank"], "evil": sets["evil"]},
		Models: map[string]tenon.Model{"mm": answering(func(req *tenon.Request) (*tenon.Response, error) {
			if req.Messages[len(req.Messages)-1].Role != tenon.RoleUser {
				return says("done"), nil
			}
			var list []string
			for _, n := range slices.Concat(names(req), bank, evil) {
				if n = strings.ReplaceAll(n, " ", "_"); !slices.Contains(list, n+" {}") {
					list = append(list, n+" {}")
				}
			}
			if len(list) == 0 {
				return says("nothing"), nil
			}
			return calls(list...), nil
		})}})
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close() //nolint:errcheck // nothing is read any more
	ask(t, h, host.Question{Text: "q", Grant: grant})
	made := map[string]int{}
	for server, s := range sets {
		for name, n := range s.calls {
			made[server+"/"+name] = n
		}
	}
	return made
}
