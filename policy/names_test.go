package policy

import (
	"testing"

	"github.com/tenonhq/tenon"
)

// TestRulesHoldUnderEveryName checks rules about tools that were renamed. A rule that restricts applies if it matches
// any name that the tool has or had. A rule that permits applies only if it matches all of them.
func TestRulesHoldUnderEveryName(t *testing.T) {
	plain := tenon.Tool{Server: "bank", Remote: "send", Name: "send"}
	moved := tenon.Tool{Server: "bank", Remote: "send", Name: "bank_send", Rules: tenon.ToolRules{Wanted: "send"}}
	renamed := tenon.Tool{Server: "bank", Remote: "tx-1", Name: "bank_send", Rules: tenon.ToolRules{Wanted: "send"}}
	thief := tenon.Tool{Server: "evil", Remote: "list", Name: "list"}
	for _, tt := range []struct {
		name, when string
		verdict    tenon.Verdict
		tool       tenon.Tool
		want       tenon.Verdict
	}{
		{"deny by name", `tool.name == "send"`, tenon.Deny, plain, tenon.Deny},
		{"deny by name after a collision", `tool.name == "send"`, tenon.Deny, moved, tenon.Deny},
		{"deny by the name that the model sees", `tool.name == "bank_send"`, tenon.Deny, moved, tenon.Deny},
		{"deny by the wanted name of a renamed tool", `tool.name == "send"`, tenon.Deny, renamed, tenon.Deny},
		{"deny by prefix", `tool.name.startsWith("send")`, tenon.Deny, moved, tenon.Deny},
		{"deny in a list", `tool.name in ["pay", "send"]`, tenon.Deny, moved, tenon.Deny},
		{"deny in a loop", `["send"].exists(n, tool.name == n)`, tenon.Deny, moved, tenon.Deny},
		{"deny by exposed name after a collision", `tool.exposed == "send"`, tenon.Deny, moved, tenon.Deny},
		{"deny by the exposed name itself", `tool.exposed == "bank_send"`, tenon.Deny, moved, tenon.Deny},
		{"deny by exposed name of a renamed tool", `tool.exposed == "send"`, tenon.Deny, renamed, tenon.Deny},
		{"deny by remote name", `tool.remote_name == "send"`, tenon.Deny, moved, tenon.Deny},
		{"deny all but one name", `tool.name != "bank_send"`, tenon.Deny, moved, tenon.Deny},
		{"ask by name after a collision", `tool.name == "send"`, tenon.Ask, moved, tenon.Ask},
		{"deny of two fields", `tool.name == "send" && tool.exposed == "bank_send"`, tenon.Deny, moved, tenon.Deny},
		{"allow by name", `tool.name == "list"`, tenon.Allow, thief, tenon.Allow},
		{"allow by name, which a collision gave", `tool.name == "bank_send"`, tenon.Allow, moved, tenon.Ask},
		{"allow by name, which a rename gave", `tool.name == "send"`, tenon.Allow, renamed, tenon.Ask},
		{"allow by remote name", `tool.remote_name == "send"`, tenon.Allow, moved, tenon.Allow},
		{"allow by exposed name", `tool.exposed == "bank_send"`, tenon.Allow, moved, tenon.Allow},
		{"allow by the name before the collision", `tool.exposed == "send"`, tenon.Allow, moved, tenon.Ask},
		{"allow all but one name", `tool.name != "send"`, tenon.Allow, moved, tenon.Ask},
		{"another tool", `tool.name == "send"`, tenon.Deny, thief, tenon.Ask},
	} {
		t.Run("SEC-F5_"+tt.name, func(t *testing.T) {
			r := &Rules{}
			if err := r.Add(Rule{When: tt.when, Verdict: string(tt.verdict)}); err != nil {
				t.Fatal(err)
			}
			if got := r.Judge(&Facts{Tool: &tt.tool}); got.Verdict != tt.want {
				t.Errorf("%s when %s gives %s (%s), want %s", tt.verdict, tt.when, got.Verdict, got.Reason, tt.want)
			}
		})
	}
}

// TestApprovalIfHoldsUnderEveryName checks that a name clash cannot evade a condition for approval.
func TestApprovalIfHoldsUnderEveryName(t *testing.T) {
	tool := tenon.Tool{Server: "bank", Remote: "send", Name: "bank_send", Rules: tenon.ToolRules{Wanted: "send"}}
	for _, when := range []string{`tool.name == "send"`, `tool.exposed == "send"`, `tool.exposed == "bank_send"`, `tool.remote_name == "send"`} {
		t.Run("SEC-F5_"+when, func(t *testing.T) {
			r := &Rules{Defaults: Block{Approval: Approval{If: when}}}
			if err := r.Compile(); err != nil {
				t.Fatal(err)
			}
			if got := r.Judge(&Facts{Tool: &tool}); got.Verdict != tenon.Ask {
				t.Errorf("approval.if %s gives %s", when, got.Verdict)
			}
		})
	}
}

// TestServerConditions checks conditions on what a server is, such as its host or command, which hold under any entry
// name.
func TestServerConditions(t *testing.T) {
	tool := tenon.Tool{Server: "harmless", Remote: "send", Name: "send"}
	web := Server{Host: "api.example.com"}
	program := Server{Command: "npx", Args: []string{"-y", "@scope/server"}}
	for _, tt := range []struct {
		name, when string
		server     Server
		want       bool
	}{
		{"host", `server.host == "api.example.com"`, web, true},
		{"domain", `server.host.endsWith(".example.com")`, web, true},
		{"no host", `server.host == ""`, program, true},
		{"command", `server.command == "npx"`, program, true},
		{"arguments", `"@scope/server" in server.args`, program, true},
		{"no arguments", `size(server.args) == 0`, web, true},
		{"loop", `server.args.exists(a, a.startsWith("@scope/"))`, program, true},
		{"identity", `tool.identity == "project:bank"`, program, true},
		{"entry name", `tool.server == "harmless"`, program, true},
		{"another host", `server.host == "example.com"`, web, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			for name, language := range map[string]func() (*Language, error){"rules": NewLanguage, "where": NewToolLanguage} {
				l, err := language()
				if err != nil {
					t.Fatal(err)
				}
				c, err := l.Condition(tt.when)
				if err != nil {
					t.Fatalf("%s: %v", name, err)
				}
				if got, err := c.Holds(&Facts{Tool: &tool, Identity: "project:bank", Server: tt.server}); err != nil || got != tt.want {
					t.Errorf("%s: %v, %v; want %v", name, got, err, tt.want)
				}
			}
		})
	}
}

func TestWithName(t *testing.T) {
	l, err := NewLanguage()
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct{ in, want string }{
		{`tool.name == "send"`, `tool.remote_name == "send"`},
		{`"tool.name" == tool.name`, `"tool.name" == tool.remote_name`},
		{`tool . name == 'ä' && tool.name != "ö"`, `tool . remote_name == 'ä' && tool.remote_name != "ö"`},
		{`["ä", tool.name].exists(n, n == tool.name)`, `["ä", tool.remote_name].exists(n, n == tool.remote_name)`},
		{`[tool].exists(t, t.name == "x")`, `[tool].exists(t, t.remote_name == "x")`},
		{`args.name == "x" && agent == tool.name`, `args.name == "x" && agent == tool.remote_name`},
		{"tool.annotations.read_only ||\n  tool.name in ['a', 'b']", "tool.annotations.read_only ||\n  tool.remote_name in ['a', 'b']"},
		{`{"name": tool.name}.name == "x"`, `{"name": tool.remote_name}.name == "x"`},
	} {
		c, err := l.Condition(tt.in)
		if err != nil {
			t.Fatalf("%s: %v", tt.in, err)
		}
		if got := c.WithName("remote_name"); got != tt.want || !c.UsesName() {
			t.Errorf("%s is rewritten as\n%s, want\n%s", tt.in, got, tt.want)
		}
		again, err := l.Condition(tt.want)
		if err != nil || again.UsesName() {
			t.Errorf("%s: %v, uses tool.name: %v", tt.want, err, again.UsesName())
		}
	}
	for _, text := range []string{`args.name == "x"`, `tool.remote_name == "name"`, `{"name": "x"}.name == "x"`, `[args].exists(tool, tool.name == "x")`} {
		if c, err := l.Condition(text); err != nil || c.UsesName() {
			t.Errorf("%s: %v, uses tool.name", text, err)
		}
	}
}
