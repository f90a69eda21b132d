package config

import (
	"testing"

	"github.com/tenonhq/tenon/config/tree"
)

// TestRecognise checks files that could belong to several programs. The first matching sign decides.
func TestRecognise(t *testing.T) {
	for _, tt := range []struct{ name, in, want string }{
		{"empty", "", ""},
		{"version_is_ours", "version: 1\nmcpServers: {a: {command: x}}", ""},
		{"mcpServers_before_all", "mcpServers: {a: {command: x}}\nmcp_servers: []\nconnection: {}", "claude"},
		{"mcpServers_of_AIDK", "mcpServers: {a: {connection: {}}}", "aidk"},
		{"first_entry_of_mcpServers_decides", "mcpServers: {a: {type: mcp}, b: {connection: {}}}", "claude"},
		{"agent_before_servers", "model: {}\ninstructions: {}\nservers: [{id: a}]", "holodeck"},
		{"servers_with_id_before_sections", "servers: [{id: a}]\nagents: {}", "researchai"},
		{"sections_before_types", "servers: {a: {type: stdio}}\nmodels: {}", ""},
		{"types_before_groups", "servers: {a: {type: stdio}}\nmcp: {}\ntool: {}", "vscode"},
		{"groups", "mcp: {}\ntool: {}\nserverName: a", "trustgraph"},
		{"config_with_servers", "config: {}\nservers: {}", ""},
		{"entries_of_tool", "tool: {a: {mcp-tool: b}}", "trustgraph"},
		{"RP-17_tool_and_prompt", "tool: {a: {type: prompt, template: t}}\nprompt: {system: x}", "trustgraph"},
		{"RP-17_tool_as_text", `tool: {a: '{"type": "text-completion", "name": "a"}'}`, "trustgraph"},
		{"RP-17_other_tool_and_prompt", "tool: x\nprompt: y", ""},
		{"one_server_of_AIDK", "serverName: a\nmcp-tool: b", "aidk"},
		{"first_entry_of_a_list_decides", "[{x: 1}, {type: tool}, {serverName: a}]", "trustgraph"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			root := tree.Parse(&tree.Source{Label: "a.yaml"}, []byte(tt.in), &tree.Sink{})
			if got := recognise(root); got != tt.want {
				t.Errorf("got '%s', want '%s'", got, tt.want)
			}
		})
	}
}
