package peers

import (
	"strings"
	"testing"

	"github.com/tenonhq/tenon/internal/clitest"
)

// testTables goes the way of a tool table with real servers: their tools as tables,
// one table of them, an agent that gets it, its conversation.
func (p *peers) testTables(t *testing.T) {
	port := freePort(t)
	background(t, []string{"PORT=" + port}, p.server(t, "server-everything", "streamableHttp")...)
	url := "http://127.0.0.1:" + port + "/mcp"
	answers(t, url)
	s := p.shell(t)
	s.OK(t, "tools", "list", "--url", url, "--out", "everything.arrow")
	s.OK(t, append([]string{"tools", "list", "--out", "memory.arrow", "--"}, p.server(t, "server-memory")...)...)
	s.OK(t, "tables", "concat", "everything.arrow", "memory.arrow", "--out", "all.arrow")
	s.OK(t, "tables", "check", "all.arrow")
	if o := s.OK(t, "tables", "roundtrip", "all.arrow"); strings.TrimSpace(o.Out) != "identical" {
		t.Errorf("roundtrip: %s", o)
	}
	if o := s.OK(t, "tools", "call", "--table", "all.arrow", "get-sum", "a:=20", "b:=22"); !strings.Contains(o.Out, "42") {
		t.Errorf("call: %s", o)
	}
	// The command of server-memory stands in the table; it is agreed to once.
	if o := s.Run(t, "run", "--table", "all.arrow", "--model", "demo", "hi"); o.Status != 8 {
		t.Errorf("a command was started unasked: %s", o)
	}
	s.OK(t, "tools", "call", "--table", "all.arrow", "read_graph", "--yes")
	script := s.WriteFile(t, "both.yaml", `steps:
  - calls:
      - {name: get-sum, arguments: {a: 20, b: 22}}
      - {name: read_graph, arguments: {}}
  - {expect: "42", text: Both have answered.}
`)
	s.OK(t, "run", "--yes", "--table", "all.arrow", "--model", "script:"+script, "--conversation", "c.arrow", "go")
	rows := clitest.Decode[[]struct {
		Role, Name string
		Content    []struct{ Text string }
	}](t, s.OK(t, "tables", "show", "c.arrow", "-o", "json"))
	if len(rows) != 5 || rows[2].Name != "get-sum" || !strings.Contains(rows[2].Content[0].Text, "42") || rows[3].Name != "read_graph" || rows[4].Role != "AI" {
		t.Errorf("conversation: %+v", rows)
	}
}
