package host_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/agent"
	"github.com/tenonhq/tenon/config"
	"github.com/tenonhq/tenon/host"
	"github.com/tenonhq/tenon/store/sqlite"
	"github.com/tenonhq/tenon/view"
	"github.com/tenonhq/tenon/workflow"
)

// flowFile reads a workflow from its body. It adds the header.
func flowFile(t *testing.T, body string) host.Workflow {
	t.Helper()
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, "data"), 0o700); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"workflow.yaml": "kind: workflow\nversion: 1\nname: w\ndescription: A workflow.\n" + body,
		"data/note.txt": "a note", "goods.csv": "thing,amount\ntea,3\nmilk,2\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	w, pack, err := config.ReadWorkflow(dir)
	if err != nil {
		t.Fatal(err)
	}
	return host.Workflow{Workflow: w, Pack: pack}
}

// flowHost opens a host with a shop and with workflows that can be called as tools.
func flowHost(t *testing.T, home string, s *shop, flows map[string]host.Workflow, m func(name string, req *tenon.Request) *tenon.Response) *host.Host {
	t.Helper()
	c := host.Config{Home: home, Toolsets: map[string]tenon.Toolset{"shop": s}, Workflows: flows, LookupEnv: func(string) (string, bool) { return "", false },
		Config: &config.Config{Agents: map[string]agent.Config{"helper": agent.Config{Instructions: agent.Instructions{Text: "helper"}}.WithDefaults()}}}
	if m != nil {
		c.Model = "m"
		c.Models = map[string]tenon.Model{"m": answering(func(req *tenon.Request) (*tenon.Response, error) { return m(req.System, req), nil })}
	}
	h, err := host.Open(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = h.Close() })
	return h
}

// runFlow runs a workflow until it ends or waits.
func runFlow(t *testing.T, h *host.Host, c host.WorkflowCall) (tenon.Run, []tenon.Event) {
	t.Helper()
	run, err := h.Workflows().Start(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	var events []tenon.Event
	for e, err := range h.Runs().Events(t.Context(), run.ID, 0) {
		if err != nil {
			t.Fatal(err)
		}
		events = append(events, e)
	}
	row, err := h.Runs().Get(t.Context(), run.ID)
	if err != nil {
		t.Fatal(err)
	}
	return row, events
}

func message(t *testing.T, h *host.Host, run string) string {
	t.Helper()
	r, err := h.Runs().Open(run).Data().Result(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return r.Message
}

// TestWorkflow runs each kind of step. Only the agent step needs a model.
func TestWorkflow(t *testing.T) {
	s := &shop{}
	home := t.TempDir()
	w := flowFile(t, `
parameters:
  city: {type: string, default: London, description: where}
steps:
  - {id: goods, table: {csv: goods.csv}}
  - {id: dear, sql: "SELECT thing, amount FROM goods WHERE amount > :least", params: {least: "2"}}
  - {id: prices, tool: price, server: shop, foreach: steps.goods.rows, args: {thing: item.thing}}
  - {id: asked, agent: helper, message: "What about {{ params.city }}?"}
  - {id: never, when: "params.city == 'Paris'", template: x}
  - {id: bad, tool: fail, server: shop, on_error: {default: 7}}
  - {id: note, tool: price, server: shop, args: {thing: "data + '/note.txt'"}}
  - id: msg
    template: "{{ steps.goods.count }} goods, {{ steps.dear.rows[0].thing }} {{ steps.dear.rows[0].amount + 1 }}: {{ steps.prices.text }}; {{ steps.asked.text }}; {{ steps.never.skipped }} {{ steps.bad.value }} {{ steps.bad.ok }} {{ steps.note.ok }}"
outputs: [{name: all, description: all goods, from: dear, columns: {thing: string, amount: integer}}]
message: msg
data: data
`)
	h := flowHost(t, home, s, nil, func(name string, req *tenon.Request) *tenon.Response { return says(name + " says " + lastText(req)) })
	row, events := runFlow(t, h, host.WorkflowCall{Workflow: w, Params: json.RawMessage(`{"city":"Rome"}`)})
	if row.State != tenon.RunCompleted {
		r, _ := h.Runs().Open(row.ID).Data().Result(t.Context())
		t.Fatalf("%+v %+v", row, r)
	}
	if got, want := message(t, h, row.ID), "2 goods, tea 4: 3 EUR\n3 EUR; helper says What about Rome?; true 7 false true"; got != want {
		t.Errorf("message\n%s\nwant\n%s", got, want)
	}
	r, err := h.Runs().Open(row.ID).Data().Result(t.Context())
	if err != nil || len(r.Outputs) != 1 || r.Outputs[0].Name != "all" || r.Outputs[0].Rows != 1 {
		t.Errorf("%+v %v", r, err)
	}
	want := []tenon.TableColumn{{Name: "thing", Type: "string"}, {Name: "amount", Type: "integer"}}
	if diff := cmp.Diff(want, r.Outputs[0].Columns); diff != "" {
		t.Error(diff)
	}
	if left, _ := os.ReadDir(filepath.Join(home, "workflows")); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
	calls := view.Of(kept(events)).Calls()
	if len(calls) != 4 || calls[0].Server != "shop" || calls[0].Verdict != tenon.Allow {
		t.Errorf("%d calls: %+v", len(calls), calls)
	}
	for _, st := range view.Of(kept(events)).Steps(row.Updated) {
		if st.Outcome == view.CallOpen || st.Outcome == "stopped" {
			t.Errorf("step %+v has no end", st)
		}
	}
	if child, err := h.Runs().Open(row.ID + "/asked").Report(t.Context()); err != nil || child.Agent != "helper" {
		t.Errorf("%+v %v", child, err)
	}
}

// TestWorkflowBudget checks that each workflow that a person starts outside of a session has a budget like that of a
// session. The workflow and the agents that it calls share it.
func TestWorkflowBudget(t *testing.T) {
	c := &config.Config{Budgets: agent.Budgets{Session: agent.Budget{Turns: 1}}, Agents: map[string]agent.Config{"helper": agent.Config{}.WithDefaults()}}
	h, _ := budgeted(t, t.TempDir(), c, &shop{}, func(*tenon.Request) (*tenon.Response, error) { return says("helped"), nil })
	one, two := flowFile(t, `
steps:
  - {id: first, agent: helper, message: x}
message: first
`), flowFile(t, `
steps:
  - {id: first, agent: helper, message: x}
  - {id: second, agent: helper, message: "{{ steps.first.text }}"}
message: second
`)
	for i, tt := range []struct {
		flow  host.Workflow
		state tenon.RunState
	}{{one, tenon.RunCompleted}, {one, tenon.RunCompleted}, {two, tenon.RunFailed}, {one, tenon.RunCompleted}} {
		row, _ := runFlow(t, h, host.WorkflowCall{Workflow: tt.flow})
		r, err := h.Runs().Open(row.ID).Data().Result(t.Context())
		if row.State != tt.state || err != nil {
			t.Errorf("run %d: %s, want %s: %+v %v", i, row.State, tt.state, r, err)
		}
		if tt.state == tenon.RunFailed && !strings.Contains(message(t, h, row.ID), "the budget of this session is used up: 1 model requests of 1") {
			t.Errorf("run %d: %+v", i, r)
		}
	}
}

// TestWorkflowBudgetDay checks that the agents of a workflow that a person starts are charged to the budget of the day.
// The tool calls of the workflow itself are not, because no model proposed them.
func TestWorkflowBudgetDay(t *testing.T) {
	c := &config.Config{Budgets: agent.Budgets{Day: agent.Budget{Turns: 1, ToolCalls: 1}}, Agents: map[string]agent.Config{"helper": agent.Config{}.WithDefaults()}}
	h, _ := budgeted(t, t.TempDir(), c, &shop{}, func(*tenon.Request) (*tenon.Response, error) { return says("helped"), nil })
	tools, asks := flowFile(t, `
steps:
  - {id: a, server: shop, tool: price, args: {thing: "'a'"}}
  - {id: b, server: shop, tool: price, args: {thing: "'b'"}}
  - {id: c, server: shop, tool: price, args: {thing: "'c'"}}
message: c
`), flowFile(t, `
steps:
  - {id: first, agent: helper, message: x}
message: first
`)
	for i, tt := range []struct {
		flow  host.Workflow
		state tenon.RunState
	}{{tools, tenon.RunCompleted}, {asks, tenon.RunCompleted}, {tools, tenon.RunCompleted}, {asks, tenon.RunFailed}} {
		row, _ := runFlow(t, h, host.WorkflowCall{Workflow: tt.flow})
		if row.State != tt.state {
			t.Errorf("run %d: %s, want %s: %s", i, row.State, tt.state, message(t, h, row.ID))
		}
		if tt.state == tenon.RunFailed && !strings.Contains(message(t, h, row.ID), "the budget of this day is used up") {
			t.Errorf("run %d: %s", i, message(t, h, row.ID))
		}
	}
}

func kept(events []tenon.Event) (list []tenon.Event) {
	for _, e := range events {
		if e.Seq > 0 {
			list = append(list, e)
		}
	}
	return list
}

// TestWorkflowAsks checks that a step can wait for a person, and that another process continues the workflow.
func TestWorkflowAsks(t *testing.T) {
	home, s := t.TempDir(), &shop{}
	w := flowFile(t, "steps:\n  - {id: sell, tool: sell, server: shop}\n  - {id: msg, template: 'sold: {{ steps.sell.text }}'}\nmessage: msg\n")
	h := flowHost(t, home, s, nil, nil)
	row, _ := runFlow(t, h, host.WorkflowCall{Workflow: w})
	if row.State != tenon.RunInputRequired || len(row.Waiting) != 1 || s.sold.Load() != 0 {
		t.Fatalf("%+v", row)
	}
	list, err := h.Approvals().List(t.Context(), "")
	if err != nil || len(list) != 1 || list[0].Asking.Remote != "sell" {
		t.Fatalf("%+v %v", list, err)
	}
	if err := h.Close(); err != nil {
		t.Fatal(err)
	}
	h = flowHost(t, home, s, nil, nil)
	if _, _, err := h.Approvals().Decide(t.Context(), row.ID, "sell.0", agent.Ruling{Verdict: tenon.Allow, By: "me"}); err != nil {
		t.Fatal(err)
	}
	if err := h.Runs().Resume(t.Context(), row.ID); err != nil {
		t.Fatal(err)
	}
	for _, err := range h.Runs().Events(t.Context(), row.ID, row.Seq) {
		if err != nil {
			t.Fatal(err)
		}
	}
	if s.sold.Load() != 1 {
		t.Errorf("sold %d", s.sold.Load())
	}
	if got := message(t, h, row.ID); !strings.HasPrefix(got, "sold: ") {
		t.Error(got)
	}
}

// TestWorkflowTool calls a workflow as a tool: from an agent, by a person, and from another workflow.
func TestWorkflowTool(t *testing.T) {
	s := &shop{}
	inner := flowFile(t, "parameters: {thing: {type: string, description: what}}\nsteps:\n  - {id: p, tool: price, server: shop, args: {thing: params.thing}}\n  - {id: m, template: '{{ params.thing }} is {{ steps.p.text }}'}\nmessage: m\n")
	outer := flowFile(t, "steps:\n  - {id: a, tool: inner, server: workflows, args: {thing: \"'tea'\"}}\n  - {id: m, template: 'it says {{ steps.a.text }}'}\nmessage: m\n")
	flows := map[string]host.Workflow{"inner": inner, "outer": outer}
	h := flowHost(t, t.TempDir(), s, flows, func(name string, req *tenon.Request) *tenon.Response {
		if last := lastText(req); last == "go" {
			return calls(`inner {"thing":"milk"}`)
		}
		return says("so " + lastText(req))
	})
	r, _ := ask(t, h, host.Question{Text: "go", Grant: "me"})
	if r.Answer != "so milk is 3 EUR" || len(r.ToolCalls) != 1 || r.ToolCalls[0].Kind != tenon.KindWorkflow {
		t.Errorf("%+v", r)
	}
	result, run, err := host.CallTool(t.Context(), h, "inner", json.RawMessage(`{"thing":"tea"}`), nil)
	if err != nil || result.Text() != "tea is 3 EUR" {
		t.Errorf("%+v %v", result, err)
	}
	if got := message(t, h, run); got != "tea is 3 EUR" {
		t.Error(got)
	}
	row, _ := runFlow(t, h, host.WorkflowCall{Workflow: outer, Grant: "me"})
	if got := message(t, h, row.ID); got != "it says tea is 3 EUR" {
		t.Error(got)
	}
}

// TestWorkflowCallsWithTables calls a workflow from a step with a table and parameters, and uses the table that it
// returns. An unknown parameter is an error when the workflow is called.
func TestWorkflowCallsWithTables(t *testing.T) {
	sums := flowFile(t, "parameters: {least: {type: integer, default: 0, description: the least amount}}\ninputs: [{name: goods, description: goods}]\n"+
		"steps: [{id: sum, sql: 'SELECT sum(amount) AS n FROM goods WHERE amount >= :least', params: {least: params.least}}]\noutputs: [{name: out, description: the sum, from: sum}]\n")
	plain := flowFile(t, "inputs: [{name: goods, description: goods}]\nsteps: [{id: n, sql: 'SELECT count(*) AS n FROM goods'}]\noutputs: [{name: out, description: how many, from: n}]\n")
	h := flowHost(t, t.TempDir(), &shop{}, map[string]host.Workflow{"sums": sums, "plain": plain}, nil)
	for name, tt := range map[string]struct{ call, want string }{
		"with parameters":    {"tool: sums, args: {least: '3'}, inputs: {goods: rows}", "it is 3"},
		"with their default": {"tool: sums, inputs: {goods: rows}", "it is 5"},
		"without parameters": {"tool: plain, inputs: {goods: rows}", "it is 2"},
		"unknown parameter":  {"tool: plain, args: {least: '3'}, inputs: {goods: rows}", "has no parameter 'least': it has no parameters"},
	} {
		t.Run(name, func(t *testing.T) {
			w := flowFile(t, "steps:\n  - {id: rows, table: {csv: goods.csv}}\n  - {id: call, server: workflows, "+tt.call+"}\n"+
				"  - {id: n, sql: 'SELECT n FROM call_out', tables: [call.out]}\n  - {id: said, template: 'it is {{ steps.n.rows[0].n }}'}\nmessage: said\n")
			row, _ := runFlow(t, h, host.WorkflowCall{Workflow: w, Grant: "me"})
			if got := message(t, h, row.ID); !strings.Contains(got, tt.want) {
				t.Errorf("%s %q, want %q", row.State, got, tt.want)
			}
		})
	}
}

// TestWorkflowPorts checks that missing or unknown input and output tables of called workflows are errors before the
// first step begins.
func TestWorkflowPorts(t *testing.T) {
	sums := flowFile(t, "inputs: [{name: goods, description: goods}]\nsteps: [{id: n, sql: 'SELECT count(*) AS n FROM goods'}]\noutputs: [{name: out, description: how many, from: n}]\n")
	s := &shop{}
	h := flowHost(t, t.TempDir(), s, map[string]host.Workflow{"sums": sums}, nil)
	for name, tt := range map[string]struct{ steps, want string }{
		"no table":       {"- {id: a, tool: sums}", "step 'a' of workflow 'w': Missing data inputs for ports: goods"},
		"another input":  {"- {id: a, tool: sums, inputs: {good: rows}}", "Missing data inputs for ports: goods; and workflow 'w' has no input 'good'; did you mean 'goods'?"},
		"one too many":   {"- {id: a, tool: sums, inputs: {goods: rows, more: rows}}", "workflow 'w' has no input 'more'; its inputs: goods"},
		"no such output": {"- {id: a, tool: sums, inputs: {goods: rows}}\n- {id: q, sql: 'SELECT 1', tables: [a.outs]}", "step 'q' of workflow 'w': there is no table 'a.outs': workflow 'w' returns no table of that name; did you mean 'out'?"},
		"as an input":    {"- {id: a, tool: sums, inputs: {goods: rows}}\n- {id: b, tool: sums, inputs: {goods: a.nothing}}", "step 'b' of workflow 'w': there is no table 'a.nothing': workflow 'w' returns no table of that name; there are: out"},
		"no workflow":    {"- {id: a, tool: price, inputs: {goods: rows}}", "step 'a' of workflow 'w': tool 'price' is no workflow and takes no tables"},
		"of no workflow": {"- {id: a, tool: price}\n- {id: q, sql: 'SELECT 1', tables: [a.out]}", "there is no table 'a.out': tool 'price' is no workflow"},
		"of an output":   {"- {id: a, tool: price}\noutputs: [{name: o, description: o, from: a.out}]", "output 'o' of workflow 'w': there is no table 'a.out': tool 'price' is no workflow"},
		"as they are":    {"- {id: a, tool: sums, inputs: {goods: rows}}\n- {id: q, sql: 'SELECT 1', tables: [a.out]}", ""},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := h.Workflows().Start(t.Context(), host.WorkflowCall{Workflow: flowFile(t, "steps:\n- {id: rows, table: {csv: goods.csv}}\n"+tt.steps+"\n"), Grant: "me"})
			switch {
			case tt.want == "" && err != nil:
				t.Error(err)
			case tt.want != "" && (tenon.ErrorCode(err) != tenon.CodeInvalid || !strings.Contains(err.Error(), tt.want)):
				t.Errorf("error %v, want %s", err, tt.want)
			}
		})
	}
}

// TestWorkflowDepth checks that a workflow that calls itself ends at the limit of depth.
func TestWorkflowDepth(t *testing.T) {
	w := flowFile(t, "steps:\n  - {id: again, tool: w, server: workflows}\n")
	h := flowHost(t, t.TempDir(), &shop{}, map[string]host.Workflow{"w": w}, nil)
	row, _ := runFlow(t, h, host.WorkflowCall{Workflow: w, Grant: "me"})
	if got := message(t, h, row.ID); row.State != tenon.RunFailed || !strings.Contains(got, "3 deep") {
		t.Error(row.State, got)
	}
}

// TestWorkflowFails checks that the error names the failed step, and that debug mode keeps the workflow's folder.
func TestWorkflowFails(t *testing.T) {
	home := t.TempDir()
	w := flowFile(t, "steps:\n  - {id: t, table: {rows: [{a: 1}]}}\n  - {id: f, tool: fail, server: shop, args: {x: steps.t.count}}\n  - {id: after, template: '{{ steps.f.text }}'}\nmessage: after\n")
	h := flowHost(t, home, &shop{}, nil, nil)
	for _, debug := range []bool{false, true} {
		row, _ := runFlow(t, h, host.WorkflowCall{Workflow: w, Debug: debug})
		r, err := h.Runs().Open(row.ID).Data().Result(t.Context())
		if err != nil || row.State != tenon.RunFailed || !strings.HasPrefix(r.Message, workflow.MessageFailed+"step 'f': ") {
			t.Fatalf("%+v %v", r, err)
		}
		if debug != (r.Folder != "") {
			t.Fatalf("folder %q", r.Folder)
		}
		if !debug {
			if left, _ := os.ReadDir(filepath.Join(home, "workflows")); len(left) > 0 {
				t.Errorf("left behind: %v", left)
			}
			continue
		}
		for name, want := range map[string]string{"steps/f.0.json": `"x": 1`, "steps/t.json": `"a": 1`, "t.arrow": "", "parameters.json": "{}"} {
			b, err := os.ReadFile(filepath.Join(r.Folder, name))
			if err != nil || !strings.Contains(string(b), want) {
				t.Errorf("%s: %s %v", name, b, err)
			}
		}
	}
}

// TestWorkflowFoldersAreSwept checks that a process removes the folder of a workflow whose process died right after the
// workflow ended, and that it removes no other folder.
func TestWorkflowFoldersAreSwept(t *testing.T) {
	home := t.TempDir()
	h := flowHost(t, home, &shop{}, nil, nil)
	ended, _ := runFlow(t, h, host.WorkflowCall{Workflow: flowFile(t, "data: data/\nsteps: [{id: a, template: hello}]\n")})
	waits, _ := runFlow(t, h, host.WorkflowCall{Workflow: flowFile(t, "data: data/\nsteps: [{id: a, http: {method: POST, url: 'http://127.0.0.1:1/'}}]\n")})
	failed, _ := runFlow(t, h, host.WorkflowCall{Workflow: flowFile(t, "steps: [{id: a, tool: fail, server: shop, args: {x: '1'}}]\n"), Debug: true})
	if ended.State != tenon.RunCompleted || waits.State != tenon.RunInputRequired || failed.State != tenon.RunFailed {
		t.Fatal(ended.State, waits.State, failed.State)
	}
	folder := func(name string) string { return filepath.Join(home, "workflows", name) }
	for _, name := range []string{ended.ID, waits.ID, "mine"} {
		if err := os.MkdirAll(filepath.Join(folder(name), "data"), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	flowHost(t, home, &shop{}, nil, nil)
	for name, stays := range map[string]bool{ended.ID: false, waits.ID: true, failed.ID: true, "mine": true} {
		if _, err := os.Stat(folder(name)); (err == nil) != stays {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestForeignWorkflow checks that a workflow from a table gets no secrets, and that each of its requests needs an
// approval, even one that only reads.
func TestForeignWorkflow(t *testing.T) {
	h := flowHost(t, t.TempDir(), &shop{}, nil, nil)
	w := flowFile(t, "steps:\n  - {id: a, http: {url: 'http://127.0.0.1:1/', headers: {Authorization: '{{ secrets.key }}'}}}\n")
	w.Foreign = true
	if _, err := h.Workflows().Start(t.Context(), host.WorkflowCall{Workflow: w, Grant: "me"}); tenon.ErrorCode(err) != tenon.CodeDenied || !strings.Contains(err.Error(), "wants the secret 'key'") {
		t.Errorf("error %v", err)
	}
	w = flowFile(t, "steps:\n  - {id: a, http: {url: 'http://127.0.0.1:1/'}}\n")
	w.Foreign = true
	row, _ := runFlow(t, h, host.WorkflowCall{Workflow: w})
	if row.State != tenon.RunInputRequired {
		t.Errorf("%+v", row)
	}
	w.Foreign = false
	if row, _ = runFlow(t, h, host.WorkflowCall{Workflow: w}); row.State != tenon.RunFailed {
		t.Errorf("%+v", row)
	}
}

// TestFolderOfNoRun checks that a workflow that does not start leaves no temporary folder behind. With a store that the
// program supplies, its folder is a temporary one.
func TestFolderOfNoRun(t *testing.T) {
	const steps = "data: data\nsteps: [{id: a, template: hi}]\n"
	const secret = "data: data\nsteps: [{id: a, http: {url: 'https://example.com/', headers: {Authorization: '{{ secrets.TOKEN }}'}}}]\n"
	for name, test := range map[string]struct {
		body    string
		foreign bool
		closed  bool
		code    tenon.Code
	}{
		"a secret that it must not have": {secret, true, false, tenon.CodeDenied},
		"a store that is closed":         {steps, false, true, ""},
	} {
		t.Run(name, func(t *testing.T) {
			w := flowFile(t, test.body)
			w.Foreign = test.foreign
			st, err := sqlite.Open(t.Context(), sqlite.Config{Path: filepath.Join(t.TempDir(), "tenon.db")})
			if err != nil {
				t.Fatal(err)
			}
			defer st.Close()
			h, err := host.Open(t.Context(), host.Config{Store: st, Config: &config.Config{}, LookupEnv: func(string) (string, bool) { return "", false }})
			if err != nil {
				t.Fatal(err)
			}
			defer h.Close()
			temp := t.TempDir()
			t.Setenv("TMPDIR", temp)
			if test.closed {
				_ = st.Close() // other tests check this error
			}
			_, err = h.Workflows().Start(t.Context(), host.WorkflowCall{Workflow: w})
			if err == nil || test.code != "" && tenon.ErrorCode(err) != test.code {
				t.Errorf("error %v", err)
			}
			left, err := os.ReadDir(temp)
			if err != nil || len(left) > 0 {
				t.Errorf("left: %v %v", left, err)
			}
		})
	}
}
