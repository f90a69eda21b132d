package config

import (
	"strings"
	"testing"
)

func TestCommandName(t *testing.T) {
	for command, want := range map[string]string{
		"nope":                          "nope",
		"/usr/bin/my-server arg":        "my-server",
		"./bin/mcp.exe":                 "mcp",
		"npx -y @scope/server-memory":   "memory",
		"npx -y @scope/pkg@1.2.3":       "pkg",
		"uvx mcp-server-git":            "mcp-server-git",
		"python3 -m thing":              "thing",
		"node dist/index.js":            "index",
		"npx":                           "npx",
		"npx -y":                        "npx",
		"docker run -i image/of:latest": "docker",
	} {
		if got := CommandName(strings.Fields(command)); got != want {
			t.Errorf("CommandName(%s) = %s, want %s", command, got, want)
		}
	}
}
