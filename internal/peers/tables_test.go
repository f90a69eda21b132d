package peers

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tenonhq/tenon/internal/clitest"
)

// testTables tests tool tables with real servers: a table with the tools of each server, one table with all of them, a
// table that also contains a workflow, an agent that uses such a table, and the table of its conversation.
func (p *peers) testTables(t *testing.T) {
	port := clitest.FreePort(t)
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
	if o := s.OK(t, "tools", "call", "--table", "all.arrow", "get-sum", "a:=20",
		"b:=22"); !strings.Contains(o.Out, "42") {
		t.Errorf("call: %s", o)
	}
	// The table contains the command of server-memory, which requires consent once.
	if o := s.Run(t, "run", "--table", "all.arrow", "--model", "demo", "hi"); o.Status != 8 {
		t.Errorf("a command was started without consent: %s", o)
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
	if len(rows) != 5 || rows[2].Name != "get-sum" || !strings.Contains(rows[2].Content[0].Text, "42") ||
		rows[3].Name != "read_graph" || rows[4].Role != "AI" {
		t.Errorf("conversation: %+v", rows)
	}

	// Add a workflow to the table, in the same column as the tools.
	s.WriteFile(t, "report.yaml", `kind: workflow
version: 1
name: monthly_report
description: Reports the sales of a city.
parameters: {city: {type: string, description: City to report on}}
steps:
  - {id: sales, table: {rows: [{city: Rome, amount: 40}, {city: Oslo, amount: 1}, {city: Rome, amount: 2}]}}
  - {id: sum, sql: "SELECT sum(amount) AS amount FROM sales WHERE city = :city", params: {city: params.city}}
  - {id: said, template: "{{ params.city }} sold {{ steps.sum.rows[0].amount }}"}
message: said
`)
	s.OK(t, "workflows", "pack", "report.yaml", "--table", "w.arrow")
	s.OK(t, "tables", "concat", "everything.arrow", "w.arrow", "--out", "line.arrow")
	s.OK(t, "tables", "check", "line.arrow")
	line := s.WriteFile(t, "line.yaml", `steps:
  - calls:
      - {name: monthly_report, arguments: {city: Rome}}
      - {name: get-sum, arguments: {a: 20, b: 22}}
  - {expect: "42", text: Rome and the sum agree.}
`)
	s.OK(t, "run", "--yes", "--table", "line.arrow", "--model", "script:"+line, "--conversation", "line_c.arrow",
		"Do they agree?")
	var got []string
	for _, row := range clitest.Decode[[]struct {
		Role, Name string
		Content    []struct{ Text string }
	}](t, s.OK(t, "tables", "show", "line_c.arrow", "-o", "json")) {
		said := row.Role + " " + row.Name + ":"
		for _, c := range row.Content {
			said += " " + c.Text
		}
		got = append(got, said)
	}
	want := []string{"USER : Do they agree?", "AI :", "TOOL monthly_report: Rome sold 42",
		"TOOL get-sum: The sum of 20 and 22 is 42.", "AI : Rome and the sum agree."}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("conversation of the line (-want +got):\n%s", diff)
	}
}
