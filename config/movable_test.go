package config

import (
	"strings"
	"testing"
)

// TestMovableNames checks which tool names in an agent's include and exclude are refused. A name is refused if a
// collision with another server's tool could make it mean another tool. The error suggests globs.
func TestMovableNames(t *testing.T) {
	const (
		suffix = "servers: {a: {command: x, naming: {on_collision: suffix}}, b: {command: y}}\n"
		prefix = "servers: {a: {command: x}, b: {command: y}}\n"
		one    = "servers: {a: {command: x, naming: {on_collision: suffix}}, b: {command: y, enabled: false}}\n"
	)
	for name, tt := range map[string]struct{ file, want string }{
		"SEC-F5_a number":               {suffix + "agents: {own: {tools: {exclude: [add_1]}}}", "agents.own.tools.exclude[0]: 'add_1' is ambiguous"},
		"SEC-F5_the rewritten glob":     {suffix + "agents: {own: {tools: {exclude: [add_1]}}}", "write a/add for a tool 'add', or a/add_1 for a tool 'add_1'"},
		"SEC-F5_a number in include":    {suffix + "agents: {own: {tools: {include: [add_2]}}}", "agents.own.tools.include[0]: 'add_2' is ambiguous"},
		"SEC-F5_a hash":                 {suffix + "agents: {own: {tools: {exclude: [add_0123abcd]}}}", "is ambiguous"},
		"SEC-F5_a profile that numbers": {"profile: knime\nservers: {a: {command: x}, b: {command: y}}\nagents: {own: {tools: {exclude: [add_1]}}}", "is ambiguous"},
		"one source":                    {one + "agents: {own: {tools: {exclude: [add_1]}}}", ""},
		"names with a prefix stay":      {prefix + "agents: {own: {tools: {exclude: [a_add, add_1]}}}", ""},
		"a name of an entry":            {suffix + "tools: {add_1: {server: a, remote_name: add}}\nagents: {own: {tools: {exclude: [add_1]}}}", ""},
		"by the server":                 {suffix + "agents: {own: {tools: {exclude: [a/add_1, 'add_*']}}}", ""},
		"a server without the tool":     {"servers: {a: {command: x, include: [sub], naming: {on_collision: suffix}}, b: {command: y}}\nagents: {own: {tools: {exclude: [add_1]}}}", ""},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := layers(t, map[string]string{"PROJECT": tt.file})
			if tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
				t.Errorf("%v, want %q", err, tt.want)
			}
		})
	}
}
