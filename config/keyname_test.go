package config_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/tenonhq/tenon/config"
)

// TestKeyName checks that a message names a key as it is written in the file that contains the server's entry.
func TestKeyName(t *testing.T) {
	agent := "name: x\nmodel: {provider: openai, name: m}\ninstructions: {inline: i}\n" +
		"tools:\n  - {name: s, type: mcp, command: c,\n     request_timeout: 5}\n"
	for _, c := range []struct{ name, file, text, path, want string }{
		{"RP-15_own", "tenon.yaml", "version: 1\nservers: {s: {command: c, request_timeout: 5s}}\n",
			"servers.s.request_timeout", "servers.s.request_timeout"},
		{"RP-15_agent", "agent.yaml", agent, "servers.s.request_timeout", "request_timeout of 's' (agent.yaml:6)"},
		{"RP-15_agent without the key", "agent.yaml", agent, "servers.s.auth", "auth of 's' in agent.yaml"},
		{"RP-15_no server", "agent.yaml", agent, "servers.other.auth", "servers.other.auth"},
		{"RP-15_no key", "agent.yaml", agent, "servers.s", "servers.s"},
		{"RP-15_other section", "agent.yaml", agent, "policy.defaults.timeout", "policy.defaults.timeout"},
		{"RP-15_editor", "mcp.json", `{"mcpServers": {"s": {"url": "http://h/", "headers": {"a": "b"}}}}`,
			"servers.s.headers", "headers of 's' (mcp.json:1)"},
		{"RP-15_editor without the key", "mcp.json", `{"mcpServers": {"s": {"command": "c"}}}`, "servers.s.timeout",
			"servers.s.timeout of a tenon.yaml, which 'tenon config import mcp.json' writes"},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			t.Chdir(dir)
			if err := os.WriteFile(filepath.Join(dir, c.file), []byte(c.text), 0o600); err != nil {
				t.Fatal(err)
			}
			cfg, err := config.Load(t.Context(), config.Options{File: c.file, Home: t.TempDir(),
				LookupEnv: func(string) (string, bool) { return "", false }})
			if err != nil {
				t.Fatal(err)
			}
			if got := cfg.KeyName(c.path); got != c.want {
				t.Errorf("the name is %q, want %q", got, c.want)
			}
		})
	}
}
