package config

import (
	"errors"
	"strings"
	"testing"
)

// TestAmbiguousName checks that tool.name in a rule is an error if the exposed name of a tool can differ from its
// remote name, and that the error prints the corrected expression.
func TestAmbiguousName(t *testing.T) {
	const rules = "policy: {rules: [{when: 'tool.name == \"send\"', verdict: deny}]}\n"
	const rewritten = `tool.remote_name == "send"`
	for _, tt := range []struct{ name, file, path, hint string }{
		{"one server", "servers: {a: {command: a}}\n" + rules, "", ""},
		{"two servers", "servers: {a: {command: a}, b: {command: b}}\n" + rules, "policy.rules[0].when", rewritten},
		{"a disabled server does not count", "servers: {a: {command: a}, b: {command: b, enabled: false}}\n" + rules, "", ""},
		{"a server and a request", "servers: {a: {command: a}}\ntools: {x: {kind: http, description: d, request: {url: 'http://127.0.0.1/'}}}\n" + rules, "policy.rules[0].when", rewritten},
		{"a naming template", "servers: {a: {command: a, naming: {template: '{server}_{tool}'}}}\n" + rules, "policy.rules[0].when", rewritten},
		{"a prefix", "servers: {a: {command: a, transform: [{prefix: a_}]}}\n" + rules, "policy.rules[0].when", rewritten},
		{"a rename", "servers: {a: {command: a, transform: [{rename: {send: pay}}]}}\n" + rules, "policy.rules[0].when", rewritten},
		{"another step of transform", "servers: {a: {command: a, transform: [{describe: x}]}}\n" + rules, "", ""},
		{"an entry with another name", "servers: {a: {command: a}}\ntools: {pay: {server: a, remote_name: send}}\n" + rules, "policy.rules[0].when", rewritten},
		{"an entry with the same name", "servers: {a: {command: a}}\ntools: {send: {server: a}}\n" + rules, "", ""},
		{"remote_name", "servers: {a: {command: a}, b: {command: b}}\n" + strings.ReplaceAll(rules, "tool.name", "tool.remote_name"), "", ""},
		{"exposed", "servers: {a: {command: a}, b: {command: b}}\n" + strings.ReplaceAll(rules, "tool.name", "tool.exposed"), "", ""},
		{"approval.if of the defaults", "servers: {a: {command: a}, b: {command: b}}\npolicy: {defaults: {approval: {if: 'tool.name == \"send\"'}}}\n", "policy.defaults.approval.if", rewritten},
		{"approval.if of a server", "servers: {a: {command: a, policy: {approval: {if: 'tool.name == \"send\"'}}}, b: {command: b}}\n", "servers.a.policy.approval.if", rewritten},
		{"where of a server that renames", "servers: {a: {command: a, where: 'tool.name == \"send\"', transform: [{prefix: a_}]}}\n", "servers.a.where", rewritten},
		{"where beside another server", "servers: {a: {command: a, where: 'tool.name == \"send\"'}, b: {command: b}}\n", "", ""},
		{"where of a server beside one that renames", "servers: {a: {command: a, where: 'tool.name == \"send\"'}, b: {command: b, transform: [{prefix: b_}]}}\n", "", ""},
		{"a long condition", "servers: {a: {command: a}, b: {command: b}}\npolicy: {rules: [{when: 'tool.server == \"a\" && (tool.name in [\"x\", \"y\"] || tool.name.startsWith(\"z\"))', verdict: ask}]}\n",
			"policy.rules[0].when", `tool.server == "a" && (tool.remote_name in ["x", "y"] || tool.remote_name.startsWith("z"))`},
	} {
		t.Run("SEC-F5_"+tt.name, func(t *testing.T) {
			_, err := Parse("tenon.yaml", []byte("version: 1\n"+tt.file), Options{LookupEnv: env()})
			if tt.path == "" {
				if err != nil {
					t.Fatal(err)
				}
				return
			}
			var list Errors
			if !errors.As(err, &list) || len(list) != 1 || list[0].Path != tt.path || !strings.Contains(list[0].Message, "tool.name is ambiguous") ||
				!strings.Contains(strings.ReplaceAll(list[0].Hint, `\"`, `"`), tt.hint) {
				t.Errorf("error %v", err)
			}
		})
	}
}
