package config_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tenonhq/tenon/config"
)

// TestHints checks the hints about forms that other programs, or other keys of tenon.yaml, have.
func TestHints(t *testing.T) {
	for name, tt := range map[string]struct{ text, want string }{
		"a key of a model": {"secrets: {k: {env: K}}\nmodels: {x: {provider: openai, model: m, api_key: {secret: k}}}",
			"models.x.api_key.secret: unknown key\n    an entry of secrets is named without it: write NAME in place of"},
		"a token of serve": {"secrets: {k: {env: K}}\nserve: {auth: {tokens: {ann: {secret: k}}}}",
			"serve.auth.tokens.ann.secret: unknown key\n    an entry of secrets is named without it"},
		"env with a secret": {"secrets: {k: {env: K}}\nservers: {x: {command: c, env: {K: {secret: k}}}}",
			"servers.x.env.K: must be a text, is a map\n    write ${secret:k}"},
		"env with a variable": {"servers: {x: {command: c, env: {K: {env: V}}}}",
			"servers.x.env.K: must be a text, is a map\n    write ${V}"},
		"then of a rule": {"policy: {rules: [{when: 'tool == \"add\"', then: deny}]}",
			"policy.rules[0].then: unknown key\n    did you mean 'verdict'?"},
		"prefix of a server": {"servers: {x: {command: c, prefix: a_}}",
			"unknown key\n    write naming: {template: \"PREFIX_{tool}\"}"},
		"prefix of naming": {"servers: {x: {command: c, naming: {prefix: a_}}}",
			"unknown key\n    write naming: {template: \"PREFIX_{tool}\"}"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := config.Parse("tenon.yaml", []byte(tt.text), config.Options{Dir: t.TempDir()})
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("%v\nwant %s", err, tt.want)
			}
		})
	}
}

// TestEmptyAgentFile checks that an empty file of an agent is an error (HD-SC-004), and that an empty tenon.yaml is
// only empty.
func TestEmptyAgentFile(t *testing.T) {
	for name, bad := range map[string]bool{"agent.yaml": true, "agent.yml": true, "tenon.yaml": false} {
		for _, text := range []string{"", "# nothing\n", "{}\n"} {
			path := filepath.Join(t.TempDir(), name)
			if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			c, err := config.Load(t.Context(), config.Options{File: path, Home: t.TempDir(), NoUser: true})
			switch {
			case bad && (err == nil || !strings.Contains(err.Error(), "the file defines no agent")):
				t.Errorf("%s with %q: %v", name, text, err)
			case !bad && (err != nil || !c.IsEmpty()):
				t.Errorf("%s with %q: %v", name, text, err)
			}
		}
	}
}

// TestCredentialInURL checks that a URL whose credential is a variable is not reported as a literal credential.
func TestCredentialInURL(t *testing.T) {
	lookup := func(string) (string, bool) { return "p4ss", true }
	for url, literal := range map[string]bool{
		"http://user:${UP}@127.0.0.1:1/mcp?token=${MY_API_KEY}": false,
		"http://${U}:${UP}@127.0.0.1:1/mcp":                     false,
		"http://${U}@127.0.0.1:1/mcp":                           false,
		"http://user:pass@127.0.0.1:1/${U}":                     true,
		"http://user:a${UP}@127.0.0.1:1/mcp":                    true,
		"http://token@127.0.0.1:1/mcp":                          true,
	} {
		c, err := config.Parse("tenon.yaml", []byte("servers: {x: {url: \""+url+"\"}}\n"),
			config.Options{Dir: t.TempDir(), LookupEnv: lookup})
		if err != nil {
			t.Fatalf("%s: %v", url, err)
		}
		got := false
		for _, w := range c.Warnings {
			got = got || w.Message == "a literal credential in the file"
		}
		if got != literal {
			t.Errorf("%s: reported: %v, want %v; %v", url, got, literal, c.Warnings)
		}
	}
}

// TestImportReportsTokens checks that an import reports each literal token once, and none that it has extracted.
func TestImportReportsTokens(t *testing.T) {
	const token = "ghp_abcdefghijklmnopqrstuvwxyz0123456789"
	for name, tt := range map[string]struct {
		kind, text string
		extract    bool
		want       int
	}{
		"env": {"researchai", `{"servers": [{"id": "a", "transport": "stdio", "command": "c", "env": {"GITHUB_TOKEN": "` + token +
			`"}}]}`, false, 1},
		"extracted": {"researchai", `{"servers": [{"id": "a", "transport": "stdio", "command": "c", "env": {"GITHUB_TOKEN": "` +
			token + `"}}]}`, true, 0},
		"editor": {"claude", `{"mcpServers": {"a": {"url": "https://h.example/", "headers": {"authorization": "Bearer ` + token +
			`"}}}}`, false, 1},
		"aidk": {"aidk", `{"serverName": "a", "transport": "sse", "connection": {"url": "https://h.example/sse"},` +
			`"auth": {"type": "bearer", "token": "` + token + `"}}`, false, 1},
	} {
		t.Run(name, func(t *testing.T) {
			i, err := config.Import(config.Source{Label: "f.json", Dir: t.TempDir(), Data: []byte(tt.text), Kind: tt.kind,
				Extract: tt.extract, Home: t.TempDir()})
			if err != nil {
				t.Fatal(err)
			}
			got := 0
			for _, n := range i.Notes {
				if n.Message == "a literal token in the file" {
					got++
				}
			}
			if got != tt.want {
				t.Errorf("%d reports, want %d: %v", got, tt.want, i.Notes)
			}
		})
	}
}
