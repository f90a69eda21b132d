package kill

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/config"
	"github.com/tenonhq/tenon/engine"
	"github.com/tenonhq/tenon/host"
	"github.com/tenonhq/tenon/internal/clitest"
	"github.com/tenonhq/tenon/internal/longtest"
	"github.com/tenonhq/tenon/workflow"
)

// flowTool is a workflow that another one calls with a table.
const flowTool = "inner"

// The workflows of the tests: tables and queries, concurrent calls that may and must not be repeated, a call
// for each row, a call that needs a decision, another workflow, and an agent. The final message depends on
// the tables.
const (
	outerFlow = `kind: workflow
version: 1
name: outer
description: A workflow that is killed.
parameters: {ms: {type: integer, default: 0, description: How long a call takes}}
steps:
  - {id: rows, table: {rows: [{n: 1}, {n: 2}, {n: 3}]}}
  - {id: safe, tool: SAFE, args: {ms: params.ms}}
  - {id: one, tool: UNSAFE, args: {ms: params.ms}, on_error: continue}
  - {id: other, tool: UNSAFE, args: {ms: params.ms}, on_error: continue}
  - {id: doubled, sql: "SELECT n, 2 * n AS m FROM rows"}
  - {id: each, tool: UNSAFE, foreach: {items: steps.doubled.rows, concurrency: 2},
     args: {ms: params.ms + item.n}, on_error: continue}
  - {id: ask, tool: ASKED, args: {a: "steps.doubled.rows[2].m", b: "36"}, on_error: continue, after: [safe, one, other]}
  - {id: call, tool: inner, args: {ms: params.ms}, inputs: {rows: doubled}, after: [ask]}
  - {id: agent, agent: helper, message: "please help with {{ steps.doubled.count }}", after: [one]}
  - {id: total, sql: "SELECT total FROM call_sum", tables: [call.sum]}
  - id: said
    template: "all done: {{ steps.total.rows[0].total }} of {{ steps.each.count }}, {{ steps.agent.text }}"
message: said
`
	innerFlow = `kind: workflow
version: 1
name: inner
description: A workflow that another one calls.
parameters: {ms: {type: integer, default: 0, description: How long a call takes}}
inputs: [{name: rows, description: Rows}]
steps:
  - {id: again, tool: SAFE, args: {ms: params.ms}}
  - {id: once, tool: UNSAFE, args: {ms: params.ms}, on_error: continue, after: [again]}
  - {id: sum, sql: "SELECT sum(m) AS total FROM rows"}
outputs: [{name: sum, description: The sum, from: sum}]
`
	flowSays       = "all done: 12 of 3, helped"
	outerCalls     = 8 // including the call of inner
	innerCalls     = 2
	flowRunsOf     = 3 // the workflow, inner and the agent
	pointsOfHelper = 2
)

// flowOf returns the workflow with the tools of a scenario.
func flowOf(text, safe, unsafe, asked string) string {
	return strings.NewReplacer("SAFE,", safe+",", "UNSAFE,", unsafe+",", "ASKED,", asked+",").Replace(text)
}

// TestKillWorkflow does the same as TestKill, with workflows in place of agents.
func TestKillWorkflow(t *testing.T) {
	t.Parallel()
	longtest.Skip(t)
	kills := 6
	if s := os.Getenv(envKill); s != "" {
		var err error
		if kills, err = strconv.Atoi(s); err != nil {
			t.Fatal(err)
		}
	}
	f := newField(t)
	conf, err := os.ReadFile(filepath.Join(f.Dir, "tenon.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	f.WriteFile(t, "tenon.yaml", strings.Replace(string(conf), "tools:\n",
		"tools:\n  inner: {kind: workflow, path: inner.yaml, policy: {approval: never}}\n", 1))
	f.WriteFile(t, "inner.yaml", flowOf(innerFlow, safeTool, unsafeTool, askedTool)+"data: notes/\n")
	if err := os.Mkdir(filepath.Join(f.Dir, "notes"), 0o700); err != nil {
		t.Fatal(err)
	}
	f.WriteFile(t, "notes/note.txt", "a note")
	flow := f.WriteFile(t, "outer.yaml", flowOf(outerFlow, safeTool, unsafeTool, askedTool))
	begun := time.Now()
	for f.killed < kills && !t.Failed() {
		f.play(t, kills, []string{"workflows", "run", "--no-input", flow, "ms:=60"}, f.checkFlow)
	}
	f.resumeLost(t, f.checkFlow)
	f.model.check(t)
	if left, _ := os.ReadDir(filepath.Join(f.Dir, ".tenon", "workflows")); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
	t.Logf("%s: %s", time.Since(begun).Round(time.Millisecond), f.tally)
}

// checkFlow compares the run of a workflow and its called runs with the observed events and effects.
func (f *field) checkFlow(t *testing.T, run string, said []event) {
	t.Helper()
	f.known[run] = true
	journals := map[string][]event{}
	for id, calls := range map[string]int{run: outerCalls, run + "/call.0": innerCalls,
		run + "/agent": helperCallsOfRun} {
		journals[id] = clitest.Lines[event](t, f.OK(t, "runs", "events", id, "-c", "tenon.yaml", "-o", "jsonl"))
		f.events += len(journals[id])
		f.checkCalls(t, id, journals[id], calls)
	}
	for _, e := range said {
		if j := journals[e.Run]; e.Seq > uint64(len(j)) || !same(e, j[e.Seq-1]) {
			t.Errorf("run %s: event %d (%s of step %s) was observed but is lost", e.Run, e.Seq, e.Kind, e.Step)
		}
	}
	f.acked += len(said)
	checkFlow(t, journals)
	var replayed struct{ Same bool }
	if o := f.OK(t, "runs", "replay", run, "-c", "tenon.yaml", "-o", "json"); json.Unmarshal([]byte(o.Out),
		&replayed) != nil || !replayed.Same {
		t.Errorf("the replay differs\n%s", o)
	}
}

// checkFlow checks the parts of workflow journals other than calls: each attempt is planned once, each query
// and table ends once, and the final message is correct.
func checkFlow(t *testing.T, journals map[string][]event) {
	t.Helper()
	for run, journal := range journals {
		seen := map[string]int{}
		for i, e := range journal {
			if e.Seq != uint64(i+1) {
				t.Errorf("run %s: event %d is at position %d", run, e.Seq, i+1)
			}
			seen[e.Kind+" "+e.Step]++
		}
		for what, n := range seen {
			if kind, step, _ := strings.Cut(what, " "); n > 1 && (kind == workflow.EventPlanned || kind == "result") {
				t.Errorf("run %s: %d events %s of step %s", run, n, kind, step)
			}
		}
		if strings.Contains(run, "/") {
			continue
		}
		for _, step := range []string{"rows", "doubled", "total", "call.0", "agent"} {
			if seen["result "+step] != 1 {
				t.Errorf("run %s: step %s has %d results", run, step, seen["result "+step])
			}
		}
		if last := journal[len(journal)-1]; last.Kind != "done" || !strings.Contains(string(last.Data), flowSays) {
			t.Errorf("run %s: the last event is %s %s", run, last.Kind, last.Data)
		}
	}
}

// flowMain drives the workflow of TestWorkflowPoints from its current state to its end.
func flowMain(ctx context.Context, h *host.Host, home string) error {
	runs, err := h.Runs().List(ctx, engine.Filter{Limit: 100})
	if err != nil {
		return err
	}
	i := slices.IndexFunc(runs, func(r tenon.Run) bool { return r.Caller == "" })
	if i < 0 {
		w, pack, err := config.ReadWorkflow(flowPath(home, "outer"))
		if err != nil {
			return err
		}
		run, err := h.Workflows().Start(ctx, host.WorkflowCall{Workflow: host.Workflow{Workflow: w, Pack: pack}})
		if err != nil {
			return err
		}
		return toItsEnd(ctx, h, run.ID)
	}
	if !runs[i].State.Ended() {
		if err := h.Runs().Resume(ctx, runs[i].ID); err != nil {
			return err
		}
	}
	return toItsEnd(ctx, h, runs[i].ID)
}

func flowPath(home, name string) string {
	return filepath.Join(home, fmt.Sprintf("%s.flow.yaml", name))
}

// TestWorkflowPoints kills a workflow before and after every durable write and every effect, like TestPoints.
func TestWorkflowPoints(t *testing.T) {
	longtest.Skip(t)
	newScene := func(t *testing.T) *scene {
		return &scene{home: t.TempDir(), flow: true, want: flowRunsOf, made: outerCalls - 1 + innerCalls +
			pointsOfHelper}
	}
	killAt(t, newScene(t).walk(t), newScene)
}
