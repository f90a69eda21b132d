package config

import (
	"bytes"
	"encoding/json"
	"path/filepath"
	"reflect"
	"testing"

	"github.com/tenonhq/tenon/workflow"
)

const workflowHead = "<!-- Made by go test ./config -update. Do not edit. -->\n\n" + `# Workflow files

A workflow is a tool made of steps. It runs without a model, with the same rules, approvals, cache and records as a
model's tool calls. A workflow that was killed is resumed with ` + "`tenon runs resume`" + `.

` + "```yaml" + `
kind: workflow
version: 1
name: monthly_report
description: Sum sales per city and write a short message.
parameters:                       # each needs a description; all are required unless they have a default
  city: {type: string, default: London, description: City to report on}
inputs:
  - {name: sales, description: Sales rows, columns: {city: string, amount: number}}
steps:
  - {id: agg, sql: "SELECT city, sum(amount) AS amount FROM sales WHERE city = :city GROUP BY city", params: {city: params.city}}
  - {id: rate, tool: get_rate, server: cloud, args: {base: "'EUR'"}}
  - {id: msg, template: "Total {{ steps.agg.rows[0].amount * steps.rate.value }} for {{ params.city }}"}
outputs:
  - {name: totals, description: Totals per city, from: agg}
message: msg                      # the text for the caller
data: data/                       # copied for every call
` + "```" + `

` + "```sh" + `
tenon workflows validate report.yaml
tenon workflows run report.yaml city=London --in sales=sales.arrow --out totals=totals.arrow
tenon workflows graph report.yaml --svg --out report.svg
tenon workflows pack report.yaml --table tools.arrow        # a tool of a table, for tools call, tables concat and run
` + "```" + `

An entry of ` + "`tools`" + ` makes it a tool for agents, people and other workflows:
` + "`tools: {report: {kind: workflow, path: report.yaml}}`" + `. For a model, a workflow with tables has the arguments
` + "`configuration`" + ` (the parameters) and ` + "`data_inputs`" + ` (the ids of tables); without tables, its arguments are the
parameters. A call may leave out ` + "`configuration`" + ` if all parameters have defaults. The tool asks like any tool that is
not marked as read-only. Use ` + "`annotations: {read_only: true}`" + ` if it changes nothing. Each step is judged separately,
whatever the verdict on the workflow.

## Order, values, failures

A step begins when all its references are available. Independent steps run at the same time. In SQL, tables have the
names of inputs and steps. The table of a port of a called workflow is ` + "`STEP.PORT`" + `, in SQL (under ` + "`tables`" + `)
` + "`STEP_PORT`" + `.

Values are CEL (see config.md) over ` + "`params`" + `, ` + "`inputs.NAME`" + `, ` + "`steps.ID`" + `, the path ` + "`data`" + `, and within foreach ` + "`item`" + `
and ` + "`index`" + `. A step's result has:

| of | keys |
| --- | --- |
| every step | ` + "`ok`, `skipped`, `error`" + ` (a text) |
| tool, agent, http, template | ` + "`text`, `value`" + ` (the structured content, else the text as JSON, else the text) |
| sql, table, and inputs | ` + "`rows`" + ` (the first 100, at most 64 KiB), ` + "`columns`, `count`" + `; of steps ` + "`text`" + `, the first cell if it is a text |
| tool that is a workflow | ` + "`tables.PORT`" + ` with ` + "`columns`" + ` and ` + "`count`" + ` |
| foreach | ` + "`items`" + ` (a result each), ` + "`count`, `text`" + ` (a line each) |

Use SQL for more rows: an expression that needs all ` + "`rows`" + `, such as foreach, a condition or an argument, fails if the
table has more. ` + "`count`, `columns` and single rows (`rows[0]`)" + ` are always right.

Cells of number columns and parameters of type number are fractions, even if they are whole: 5.0 / 2 is 2.5. A whole
number becomes a fraction if it is combined with one. A tool's number is whole if it is written so;
` + "`double(steps.rate.value)`" + ` always makes a fraction.

A failed step fails the workflow, unless ` + "`on_error`" + ` says otherwise; running steps end first. ` + "`tenon runs resume`" + `
continues a failed workflow without repeating finished steps. If the outcome of a call is unknown, it asks before it
makes the call again; to deny that ends the run. ` + "`--out`" + ` writes its tables. ` + "`--debug`" + ` keeps a folder with the inputs of
the steps. Workflows may call workflows, up to a depth of ` + "`limits.max_depth`" + `.

The caller receives the text of ` + "`message`" + `. Without it, the text is
` + "`Tool executed successfully (no custom tool message output)`" + `; if it is empty,
` + "`Tool executed successfully (empty custom tool message)`" + `; after a failure, ` + "`Tool execution failed with: `" + ` and the
cause.

A workflow of a table is not trusted: it asks, and so do all its requests. A packed workflow has at most 64 MiB, 256
MiB unpacked. Links, and names that lead out of it, are refused. ` + "`tables.max_bytes`" + ` bounds
a table of a run. A table of more than 64 MiB is read and written in pieces.

## Every key

| key | type | default | meaning |
| --- | --- | --- | --- |
`

// TestWorkflowReference checks that workflow.schema.json and docs/reference/workflow.md are up to date.
func TestWorkflowReference(t *testing.T) {
	g := &generator{t: t, docs: map[string]map[string]string{}, defs: map[string]any{}}
	for _, dir := range []string{"../workflow", "../catalog"} {
		g.comments(dir)
	}
	g.page.WriteString(workflowHead)
	root := g.object(reflect.TypeFor[workflow.File](), place{})
	root["$schema"] = "https://json-schema.org/draft/2020-12/schema"
	root["$id"] = "https://raw.githubusercontent.com/tenonhq/tenon/main/config/workflow.schema.json"
	root["title"] = "workflow.yaml"
	root["$defs"] = g.defs
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(root); err != nil {
		t.Fatal(err)
	}
	golden(t, "workflow.schema.json", b.Bytes())
	golden(t, filepath.Join("..", "docs", "reference", "workflow.md"), []byte(g.page.String()))
}
