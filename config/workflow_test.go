package config_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tenonhq/tenon/config"
)

// report is the workflow in the reference documentation.
const report = `kind: workflow
version: 1
name: monthly_report
description: Sum sales per city and write a short message.
parameters:
  city: {type: string, default: London, description: City to report on}
inputs:
  - {name: sales, type: table, description: Sales rows, columns: {city: string, amount: number}}
steps:
  - {id: agg, sql: "SELECT city, sum(amount) AS amount FROM sales WHERE city = :city GROUP BY city", params: {city: params.city}}
  - {id: rate, tool: get_rate, server: cloud, args: {base: "'EUR'"}}
  - {id: msg, template: "Total {{ steps.agg.rows[0].amount }} for {{ params.city }}"}
outputs:
  - {name: totals, description: Totals per city, from: agg}
message: {from: msg}
data: data/
`

func TestParseWorkflow(t *testing.T) {
	w, err := config.ParseWorkflow("w.yaml", []byte(report))
	if err != nil {
		t.Fatal(err)
	}
	if w.Name != "monthly_report" || len(w.Steps) != 3 || !strings.Contains(string(w.Schema()), `"city"`) {
		t.Errorf("%+v", w)
	}
}

// TestParseWorkflowWrong checks that the error about each mistake has a position and says what to do.
func TestParseWorkflowWrong(t *testing.T) {
	for _, c := range []struct{ name, from, to, want string }{
		{"unknown key", "message: {from: msg}", "mesage: {from: msg}", "w.yaml:15:1: mesage: "},
		{"unknown key of a step", "{id: rate, tool:", "{id: rate, tol:", "w.yaml:11:16: steps[1].tol: "},
		{"kind", "kind: workflow", "kind: agent", "w.yaml:1:7: kind: no such value 'agent'"},
		{"version", "version: 1", "version: 2", "w.yaml:2:10: version: unknown version 2"},
		{"no description", ", description: City to report on", "", "w.yaml:6:9: parameters.city: 'description' is required"},
		{"schema of an object", "  city: {", "  type: object\n  properties: {city: {}}\n  required: [city]\n  more: {", "w.yaml:6:3: parameters: must map each name to a JSON Schema; this is the schema of an object\n    remove the object around"},
		{"default of another type", "default: London", "default: 3", "w.yaml:6:9: parameters.city.default: the default does not match the schema"},
		{"unknown step", "steps.agg.rows", "steps.ag.rows", "w.yaml:12:25: steps[2].template: there is no step 'ag'\n    did you mean 'agg'?"},
		{"unknown field", "agg.rows[0]", "agg.row[0]", "steps[2].template: the result of step 'agg' has no 'row'\n    did you mean 'rows'?"},
		{"unknown parameter", "params.city }}", "params.ciy }}", "there is no parameter 'ciy'\n    did you mean 'city'?"},
		{"not CEL", `"'EUR'"`, `"'EUR"`, "w.yaml:11:60: steps[1].args.base: "},
		{"a word is no text", `"'EUR'"`, "EUR", `values are CEL; for a literal string write "'EUR'"`},
		{"two kinds", "{id: rate, ", `{id: rate, template: "x", `, "w.yaml:11:5: steps[1]: a step has only one of tool, template"},
		{"no kind", `tool: get_rate, server: cloud, args: {base: "'EUR'"}`, "timeout: 1s", "w.yaml:11:5: steps[1]: the step does nothing"},
		{"foreign key", "tool: get_rate", `tool: get_rate, message: "x"`, "a step of kind tool has no 'message'"},
		{"same id", "id: rate", "id: agg", "w.yaml:11:10: steps[1].id: there are two steps 'agg'"},
		{"output of a text", "from: agg", "from: msg", "w.yaml:14:56: outputs[0].from: step 'msg' returns a text, not a table"},
		{"unknown output", "from: agg}", "from: aggr}", "there is no input and no step 'aggr'\n    did you mean 'agg'?"},
		{"unknown type of a column", "amount: number", "amount: float", "w.yaml:8:89: inputs[0].columns.amount: unknown type 'float'"},
		{"cycle", "params: {city: params.city}", "params: {city: steps.msg.text}", "w.yaml:10:5: steps[0]: the steps wait for each other: agg -> msg -> agg"},
		{"itself", `"'EUR'"`, "steps.rate.text", "the steps wait for each other: rate -> rate"},
		{"data leads out", "data: data/", "data: ../data", "w.yaml:16:7: data: '../data' is outside the workflow's folder"},
		{"when is no condition", "tool: get_rate", `when: "'x'", tool: get_rate`, "steps[1].when: the expression gives string, not true or false"},
		{"item without foreach", "params.city }}", "item }}", "undeclared reference to 'item'"},
		{"retry of a text", "{id: msg, ", "{id: msg, retry: 2, ", "steps[2].retry: a step of kind template has the same result each time"},
		{"on_error", "tool: get_rate", "on_error: contine, tool: get_rate", "did you mean 'continue'?"},
		{"host by expression", `tool: get_rate, server: cloud, args: {base: "'EUR'"}`, `http: {url: "https://{{ args.h }}/x"}`, "scheme, host and port must be written out"},
		{"params in a request", `tool: get_rate, server: cloud, args: {base: "'EUR'"}`, `http: {url: "https://a.example/{{ params.city }}"}`, "add the value to the step's args"},
		{"name of a header", `tool: get_rate, server: cloud, args: {base: "'EUR'"}`, `http: {url: "https://a.example/", headers: {Bad Name: x}}`, "steps[1].http.headers.Bad Name: this is not a valid header name"},
		{"table from two", `tool: get_rate, server: cloud, args: {base: "'EUR'"}`, `table: {csv: a.csv, arrow: a.arrow}`, "steps[1].table: a table comes from one of rows, csv and arrow"},
		{"file leads out", `tool: get_rate, server: cloud, args: {base: "'EUR'"}`, `table: {csv: ../a.csv}`, "steps[1].table.csv: '../a.csv' is outside"},
	} {
		t.Run(c.name, func(t *testing.T) {
			text := strings.Replace(report, c.from, c.to, 1)
			if text == report {
				t.Fatalf("'%s' does not stand in the file", c.from)
			}
			_, err := config.ParseWorkflow("w.yaml", []byte(text))
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error\n%v\nwant\n%s", err, c.want)
			}
		})
	}
}

// TestParseWorkflowOnce checks that all mistakes are reported together, without errors that only follow from another
// mistake.
func TestParseWorkflowOnce(t *testing.T) {
	for _, c := range []struct{ name, body, want string }{
		{"keys and what they say", "nmae: w\nparameters:\n  n: {type: integr, description: n}\nsteps:\n  - {id: a, templat: x}\n  - {id: b, template: '{{ steps.c.text }}', on_error: contine}\n  - {id: b, template: '{{ params.m }}'}\n",
			`w.yaml:3:1: nmae: unknown key
    did you mean 'name'?
w.yaml:5:6: parameters.n.type: unknown type 'integr'
    did you mean 'integer'? types: string, integer, number, boolean, array, object, null
w.yaml:7:13: steps[0].templat: unknown key
    did you mean 'template'?
w.yaml:8:23: steps[1].template: there is no step 'c'
    did you mean 'a'?
w.yaml:8:55: steps[1].on_error.do: no such value 'contine'
    did you mean 'continue'? values: fail, continue
w.yaml:9:10: steps[2].id: there are two steps 'b'
w.yaml:9:23: steps[2].template: there is no parameter 'm'
    did you mean 'n'?`},
		{"what would stand in it", "name: w\nsteps:\n  - {id: a, http: 5}\n  - {id: b, template: x}\nmessage: c\n", `w.yaml:5:19: steps[0].http: must be a map, is a number
w.yaml:7:10: message.from: there is no step 'c'
    did you mean 'a'?`},
		{"what has no name", "name: w\nsteps:\n  - {id: 5, template: x}\n  - {id: b, template: '{{ steps.a.text }}'}\n", `w.yaml:5:10: steps[0].id: must be a text, is a number
    put it in quotes: "5"`},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := config.ParseWorkflow("w.yaml", []byte("kind: workflow\nversion: 1\n"+c.body))
			if diff := cmp.Diff(c.want, fmt.Sprint(err)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestWorkflowCircle checks that a workflow that always calls itself is an error when it is parsed. Otherwise its steps
// would run several times before the limit of depth is reached.
func TestWorkflowCircle(t *testing.T) {
	flow := func(steps string) string {
		return "kind: workflow\nversion: 1\nname: w\ndescription: Does it.\nsteps: [" + steps + "]\n"
	}
	for _, c := range []struct{ name, a, b, want string }{
		{"itself", "{id: s, tool: a}", "{id: s, template: x}", "tools.a.path: the workflow calls itself without an end: a -> a"},
		{"one another", "{id: t, template: x}, {id: s, tool: b, server: workflows, after: [t]}", "{id: s, tool: a}", "tools.a.path: the workflow calls itself without an end: a -> b -> a"},
		{"behind the first", "{id: s, tool: b}", "{id: s, tool: b}", "tools.b.path: the workflow calls itself without an end: b -> b"},
		{"another mistake", "{id: s, tool: b}, {id: s, template: '{{ steps.u.text }}'}", "{id: s, template: x}", "a.yaml:5:32: steps[1].id: there are two steps 's'; and 1 more\n    tenon workflows validate "},
		{"one mistake", "{id: s, templat: x}", "{id: s, template: x}", "a.yaml:5:17: steps[0].templat: unknown key\n    tenon workflows validate "},
		{"a server's tool", "{id: s, tool: a, server: a}", "{id: s, tool: b, server: a}", ""},
		{"as long as there is more", "{id: s, tool: a, when: params.size() > 0}", "{id: s, tool: a}", ""},
		{"for each", "{id: s, tool: a, foreach: '[]'}", "{id: s, tool: a}", ""},
		{"behind what may be left out", "{id: t, template: x, when: 'false'}, {id: s, tool: a, after: [t]}", "{id: s, tool: a}", ""},
		{"caught", "{id: s, tool: a, on_error: continue}", "{id: s, tool: a, on_error: {default: 1}}", ""},
		{"one twice", "{id: s, tool: b}, {id: t, tool: b}", "{id: s, template: x}", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			for name, text := range map[string]string{"a.yaml": flow(c.a), "b.yaml": flow(c.b)} {
				if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			file := "servers:\n  a: {command: x}\ntools:\n  a: {kind: workflow, path: a.yaml}\n  b: {kind: workflow, path: b.yaml}\n"
			_, err := config.Parse("tenon.yaml", []byte(file), config.Options{Dir: dir, LookupEnv: func(string) (string, bool) { return "", false }})
			switch {
			case c.want == "" && err != nil:
				t.Error(err)
			case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
				t.Errorf("%v, want %s", err, c.want)
			}
		})
	}
}

// TestValidateWorkflowPromises checks an output with 60 levels of queries, each of which reads both queries of the
// level before. Each query must be checked only once, because the number of paths grows exponentially.
func TestValidateWorkflowPromises(t *testing.T) {
	var b strings.Builder
	b.WriteString("kind: workflow\nversion: 1\nname: w\ndescription: d\noutputs: [{name: o, from: a60, columns: {n: integer, m: integer}}]\nsteps:\n" +
		"  - {id: a0, sql: SELECT 1 AS n}\n  - {id: b0, sql: SELECT 1 AS n}\n")
	for i := range 60 {
		for _, id := range []string{"a", "b"} {
			fmt.Fprintf(&b, "  - {id: %s%d, sql: \"SELECT count(*) AS n FROM a%d, b%d\"}\n", id, i+1, i, i)
		}
	}
	path := filepath.Join(t.TempDir(), "w.yaml")
	if err := os.WriteFile(path, []byte(b.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	_, _, err := config.ValidateWorkflow(path)
	if want := "outputs[0].columns.m: step 'a60' gives no column 'm'"; err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "columns.n") {
		t.Errorf("%v; want %s", err, want)
	}
}
