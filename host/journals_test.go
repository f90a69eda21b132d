package host_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/agent"
	"github.com/tenonhq/tenon/config"
	"github.com/tenonhq/tenon/host"
	"github.com/tenonhq/tenon/policy"
	"github.com/tenonhq/tenon/servers"
	"github.com/tenonhq/tenon/view"
)

var update = flag.Bool("update", false, "rewrite the golden journals")

// golden is a journal with the result of [view.Run]. web/app/src/journals.test.ts folds the same events.
type golden struct {
	Events []tenon.Event `json:"events"`
	Report view.Report   `json:"report"`
	Steps  []view.Step   `json:"steps"`
}

type goldenRun struct {
	name string
	run  func(t *testing.T) []tenon.Event
}

// goldenRuns are runs with golden journals.
var goldenRuns = []goldenRun{
	{"answer", func(t *testing.T) []tenon.Event {
		return script(t, "steps: [{thinking: hm, text: hello, usage: {input_tokens: 7, output_tokens: 2}}]")
	}},
	{"calls", func(t *testing.T) []tenon.Event {
		return script(t, `steps: # one call a turn: the order of calls that run at the same time is not fixed
- {text: I look., calls: [{name: price, arguments: {thing: tea}}, {name: nope}, {name: price, arguments: {thing: 1}}]}
- {calls: [{name: fail}]}
- {calls: [{name: gone}]}
- {text: three}`)
	}},
	{"approval", func(t *testing.T) []tenon.Event {
		return decide(t, agent.Ruling{Verdict: tenon.Allow, By: "ann", Arguments: json.RawMessage(`{"n":2}`)})
	}},
	{"denial", func(t *testing.T) []tenon.Event {
		return decide(t, agent.Ruling{Verdict: tenon.Deny, By: "ann", Reason: "too dear"})
	}},
	{"model_error", func(t *testing.T) []tenon.Event {
		return script(t, "steps: [{error: {code: model_error, status: 400, message: no such model}}]")
	}},
	{"child", func(t *testing.T) []tenon.Event {
		return delegated(t, "research", `{"message":"how many?"}`)
	}},
	{"handoff", func(t *testing.T) []tenon.Event {
		return delegated(t, "transfer_to_clerk", `{}`)
	}},
	{"question", func(t *testing.T) []tenon.Event {
		_, events := callAsked(t, openCurious(t, true, servers.Config{}), ask1("elicitation/create", whoForm),
			agent.Ruling{Verdict: tenon.Allow, By: "ann", Arguments: json.RawMessage(`{"name":"Bo"}`)})
		for i := range events { // the target is a digest of an address with a random port
			events[i].Data = targetDigest.ReplaceAll(events[i].Data, []byte(`"target":"sha256:00"`))
		}
		return events
	}},
	{"RP-12_tool", func(t *testing.T) []tenon.Event {
		one := 1
		return limited(t, tenon.StopToolUse, agent.Limits{}, policy.Block{MaxCalls: policy.CallLimit{Run: &one}})
	}},
	{"RP-12_calls", func(t *testing.T) []tenon.Event {
		return limited(t, tenon.StopToolUse, agent.Limits{ToolCalls: 1, OnLimit: agent.OnLimitFinal}, policy.Block{})
	}},
	{"RP-12_final", func(t *testing.T) []tenon.Event {
		return limited(t, tenon.StopToolUse, agent.Limits{Tokens: 100, OnLimit: agent.OnLimitFinal}, policy.Block{})
	}},
	{"RP-12_fails", func(t *testing.T) []tenon.Event {
		return limited(t, tenon.StopToolUse, agent.Limits{Tokens: 100}, policy.Block{})
	}},
	{"RP-12_cut_off", func(t *testing.T) []tenon.Event {
		return limited(t, tenon.StopMaxTokens, agent.Limits{}, policy.Block{})
	}},
	{"UX-8_failed", func(t *testing.T) []tenon.Event {
		return script(t, "steps: [{thinking: hm, text: half an, error: {code: model_error, status: 400, message: "+
			"cut off}}]")
	}},
	{"UX-8_stopped", stopped},
	{"RP-8_tools", func(t *testing.T) []tenon.Event {
		events := slices.DeleteFunc(script(t, "steps: [{text: hello}]"), func(e tenon.Event) bool { return e.Seq == 0 })
		at := slices.IndexFunc(events, func(e tenon.Event) bool { return e.Kind == agent.EventModel })
		e := events[at]
		e.Kind, e.Data = agent.EventTools, tenon.EventData(agent.ToolsChanged{Tools: "sha256:00",
			Added: []string{"rent", "lend"}, Removed: []string{"sell"}})
		events = slices.Insert(events, at, e)
		for i := range events {
			events[i].Seq = uint64(i + 1)
		}
		return events
	}},
	{"workflow", func(t *testing.T) []tenon.Event {
		w := flowFile(t, `steps:
- {id: cost, tool: price, server: shop, args: {thing: "'tea'"}}
- {id: each, foreach: "[1, 2]", template: "{{ item }} of {{ steps.cost.text }}"}
- {id: rows, sql: "SELECT 1 AS n WHERE :ready", params: {ready: steps.each.ok}}
message: each
`)
		h := flowHost(t, t.TempDir(), &shop{}, nil, nil)
		_, events := runFlow(t, h, host.WorkflowCall{Workflow: w})
		return events
	}},
}

// TestGoldenJournals runs agents, calls and workflows and compares their journals with golden files. A difference
// means that runs of earlier versions may no longer replay, or that surfaces show something else of them.
func TestGoldenJournals(t *testing.T) {
	for _, x := range goldenRuns {
		t.Run(x.name, func(t *testing.T) { checkGoldenJournal(t, x) })
	}
}

// checkGoldenJournal compares what a run is folded into with the golden file, or writes it.
func checkGoldenJournal(t *testing.T, x goldenRun) {
	got := fold(normal(t, x.run(t)))
	file := filepath.Join("..", "view", "testdata", "journals", x.name+".json")
	if *update {
		writeJSON(t, file, got)
	}
	raw, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var want golden
	if err := json.Unmarshal(raw, &want); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(text1(t, want), text1(t, got)); diff != "" {
		t.Errorf("(-want +got; go test ./host -run GoldenJournals -update rewrites)\n%s", diff)
	}
}

var targetDigest = regexp.MustCompile(`"target":"sha256:[0-9a-f]+"`)

// script runs a question with a model that plays the steps.
func script(t *testing.T, steps string) []tenon.Event {
	_, events := ask(t, open(t, t.TempDir(), steps, &shop{}), host.Question{Text: "q"})
	return events
}

// limited runs a question whose model proposes two calls in one turn and stops for the given reason.
func limited(t *testing.T, stop tenon.StopReason, l agent.Limits, b policy.Block) []tenon.Event {
	m := answers(spendTwo(stop), responds(tenon.StopEnd, textPart("done")))
	h := openModel(t, t.TempDir(), m, &config.Config{
		Agents: map[string]agent.Config{"default": {Model: "own", Limits: l}}, Policy: policy.Config{Defaults: b}})
	var n atomic.Int32
	a, _ := host.Ask(t.Context(), h, host.Question{Text: "q", Functions: []host.Function{counterTool(&n).ReadOnly()}})
	_, events := follow(t, h, a.Run.ID)
	return events
}

// decide runs a question whose call is decided by the ruling.
func decide(t *testing.T, r agent.Ruling) []tenon.Event {
	h := open(t, t.TempDir(), sellSteps, &shop{})
	row, _ := ask(t, h, host.Question{Text: "q"})
	if _, _, err := h.Approvals().Decide(t.Context(), row.Run, "1.0", r); err != nil {
		t.Fatal(err)
	}
	if err := h.Runs().Resume(t.Context(), row.Run); err != nil {
		t.Fatal(err)
	}
	_, events := follow(t, h, row.Run)
	return events
}

// delegated runs a question that the lead of a team delegates to another agent with a tool.
func delegated(t *testing.T, tool, args string) []tenon.Event {
	h := team(t, t.TempDir(), &shop{}, func(name string, req *tenon.Request) *tenon.Response {
		if name == "lead" && len(req.Messages) == 1 {
			return calls(tool + " " + args)
		}
		return says("42, says the " + name)
	})
	_, events := ask(t, h, host.Question{Text: "q", Agent: "lead", Grant: "--yes"})
	return events
}

var (
	ids       = regexp.MustCompile(`\b(run|ses|sig)_[0-9a-z]{8,}`)
	files     = regexp.MustCompile(`/[^" ]*/steps\.yaml`)
	durations = regexp.MustCompile(`"duration_ns":\d+`)
	instants  = regexp.MustCompile(`"\d{4}-\d\d-\d\dT[0-9:.]+(Z|[+-]\d\d:\d\d)"`)
)

// normal replaces the parts of stored events that differ from run to run: ids, times, durations and temporary files.
func normal(t *testing.T, events []tenon.Event) []tenon.Event {
	t.Helper()
	began := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	known := map[string]string{}
	name := func(id []byte) []byte {
		if known[string(id)] == "" {
			known[string(id)] = fmt.Sprintf("%s_%d", id[:3], len(known)+1)
		}
		return []byte(known[string(id)])
	}
	var list []tenon.Event
	for _, e := range events {
		if e.Seq == 0 {
			continue
		}
		e.Run = string(ids.ReplaceAllFunc([]byte(e.Run), name))
		e.Time = began.Add(time.Duration(len(list)) * 10 * time.Millisecond)
		e.Data = ids.ReplaceAllFunc(e.Data, name)
		e.Data = files.ReplaceAll(e.Data, []byte("steps.yaml"))
		e.Data = durations.ReplaceAll(e.Data, []byte(`"duration_ns":5000000`))
		e.Data = instants.ReplaceAll(e.Data, []byte(`"2026-01-02T03:04:05Z"`))
		list = append(list, e)
	}
	return list
}

func fold(events []tenon.Event) golden {
	r := view.Of(events)
	last := events[len(events)-1].Time
	row := tenon.Run{ID: events[0].Run, State: tenon.RunWorking}
	return golden{Events: events, Report: r.Report(row), Steps: r.Steps(last)}
}

func writeJSON(t *testing.T, file string, v any) {
	t.Helper()
	if err := os.WriteFile(file, []byte(text1(t, v)), 0o644); err != nil {
		t.Fatal(err)
	}
}

func text1(t *testing.T, v any) string {
	t.Helper()
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetIndent("", " ")
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		t.Fatal(err)
	}
	return b.String()
}
