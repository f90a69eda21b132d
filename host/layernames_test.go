package host_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/tenonhq/tenon/config"
	"github.com/tenonhq/tenon/host"
)

// TestLayerToolNames checks that a project's entry for a tool of the user's server neither removes a rule nor makes the
// user's file invalid. In the rows with reached, the call is allowed; they show that the test can fail.
func TestLayerToolNames(t *testing.T) {
	const (
		never   = "policy: {defaults: {approval: never}}\n"
		bank    = "servers: {bank: {url: BANK}}\n"
		pay     = "tools: {pay: {server: bank, remote_name: transfer}}\n"
		x       = "tools: {x: {server: bank, remote_name: transfer}}\n"
		savings = "servers: {savings: {url: BANK}, bank: {enabled: false, url: OTHER}}\n"
	)
	for name, tt := range map[string]struct {
		user, project, tool, agent string
		reached                    bool
	}{
		"two entries":                           {bank + pay + never, x + never, "x", "", true},
		"SEC-F1_two entries, the user asks":     {bank + "tools: {pay: {server: bank, remote_name: transfer, policy: {approval: always}}}\n", "tools: {x: {server: bank, remote_name: transfer, policy: {approval: never}}}\n" + never, "x", "", false},
		"two entries, the project asks":         {bank + "tools: {pay: {server: bank, remote_name: transfer, policy: {approval: never}}}\n", "tools: {x: {server: bank, remote_name: transfer, policy: {approval: always}}}\n" + never, "x", "", false},
		"SEC-F1_two entries, the user's is off": {bank + "tools: {pay: {server: bank, remote_name: transfer, enabled: false}}\n", x + never, "x", "", false},
		"two entries, the project's is off":     {bank + pay + never, "tools: {x: {server: bank, remote_name: transfer, enabled: false}}\n" + never, "pay", "", false},
		"SEC-F1_the user's name is gone":        {bank + pay + never, x + never, "pay", "", false},
		"SEC-F1_tool.exposed":                   {bank + pay + "policy: {rules: [{when: 'tool.exposed == \"pay\"', verdict: deny}]}\n", x + never, "x", "", false},
		"SEC-F1_tool.exposed, same target":      {bank + pay + "policy: {rules: [{when: 'tool.exposed == \"pay\"', verdict: deny}]}\n", savings + never, "transfer", "", false},
		"SEC-F1_exclude of the user's agent":    {bank + pay + never + "agents: {own: {tools: {exclude: [pay]}}}\n", x + never, "x", "own", false},
		"SEC-F1_exclude, same target":           {bank + pay + never + "agents: {own: {tools: {exclude: [pay]}}}\n", savings + never, "transfer", "own", false},
		"SEC-F1_exclude, agent shadowed":        {bank + pay + never + "agents: {own: {tools: {exclude: [pay]}}}\n", x + never + "agents: {own: {}}\n", "x", "own", false},
		"SEC-F1_include of the user's agent":    {bank + never + "agents: {own: {tools: {include: [balance]}}}\n", "tools: {balance: {server: bank, remote_name: transfer}}\n" + never, "balance", "own", false},
		"SEC-F1_include, agent shadowed":        {bank + never + "agents: {own: {tools: {include: [balance]}}}\n", "tools: {balance: {server: bank, remote_name: transfer}}\n" + never + "agents: {own: {}}\n", "balance", "own", false},
		"SEC-F1_include, project's server":      {never + "agents: {own: {tools: {include: [transfer]}}}\n", bank + never, "transfer", "own", false},
		"include of everything":                 {never + "agents: {own: {tools: {include: ['*']}}}\n", bank + never, "transfer", "own", true},
		"include by the user's name":            {bank + pay + never + "agents: {own: {tools: {include: [pay]}}}\n", x + never, "x", "own", true},
		"an agent of the project":               {bank + pay + never, x + never + "agents: {theirs: {tools: {include: [x]}}}\n", "x", "theirs", true},
	} {
		t.Run(name, func(t *testing.T) {
			p := newScene(t, map[string]string{usersFile: tt.user, projects: tt.project})
			if cfg := p.call(t, p.options(), tt.tool, tt.agent); cfg == nil {
				t.Error("the project makes the configuration wrong")
			}
			if reached := p.bank.called() > 0; reached != tt.reached {
				t.Errorf("the call reaches the server: %t, want %t", reached, tt.reached)
			}
		})
	}
}

// TestExcludeOfNothing checks that a name in an agent's exclude that matches no tool is reported, with a suggestion of
// a glob that also matches the tool if a collision with another server renames it.
func TestExcludeOfNothing(t *testing.T) {
	for name, tt := range map[string]struct {
		exclude string
		want    string // part of the problem; "" if there is none
	}{
		"SEC-F5_no such tool":    {"nothing", "agents.own.tools.exclude[0]: 'nothing' matches no tool of any server; write SERVER/REMOTE_NAME"},
		"a tool":                 {"transfer", ""},
		"a name after a clash":   {"bank_transfer", ""},
		"the server's tool":      {"bank/transfer", ""},
		"tenon's own tool":       {"find_tools", ""},
		"a glob":                 {"nothing*", ""},
		"a tool that is no more": {"bank/gone", "'bank/gone' matches no tool"},
	} {
		t.Run(name, func(t *testing.T) {
			p := newScene(t, map[string]string{projects: "servers: {bank: {url: BANK}}\nagents: {own: {tools: {exclude: ['" + tt.exclude + "']}}}\n"})
			cfg, err := config.Load(t.Context(), p.options())
			if err != nil {
				t.Fatal(err)
			}
			h, err := host.Open(t.Context(), host.Config{Config: cfg, Home: filepath.Join(p.dir, "home"), LookupEnv: func(string) (string, bool) { return "", false }})
			if err != nil {
				t.Fatal(err)
			}
			defer h.Close()
			_, problems, err := h.Tools().Snapshot(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, p := range problems {
				got = append(got, p.Err.Error())
			}
			if text := strings.Join(got, "\n"); !strings.Contains(text, tt.want) || tt.want == "" && text != "" {
				t.Errorf("the problems are %q, want %q", text, tt.want)
			}
		})
	}
}
