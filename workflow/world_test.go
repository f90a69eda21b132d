package workflow_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/agent"
	"github.com/tenonhq/tenon/config"
	"github.com/tenonhq/tenon/workflow"
)

// world drives a run. It executes commands and keeps the journal. Every prefix of the journal must lead to the same
// commands.
type world struct {
	t       *testing.T
	w       *workflow.Workflow
	spec    workflow.Spec
	s       *workflow.State
	journal []tenon.Event
	now     time.Time
	// call executes a tool call, an agent or a request. If nil, the result is "did NAME ARGUMENTS".
	call  func(name string, args json.RawMessage, attempt int) []tenon.Event
	tries map[string]int
	most  int // maximum number of concurrent commands
	after map[string]time.Duration
	done  *tenon.DoneData
	begun []string // steps in the order of their starts
	safe  bool     // a call with an unknown outcome may be repeated
}

// compile reads a workflow file.
func compile(data []byte) (*workflow.Workflow, error) {
	var f workflow.File
	doc, err := config.ParseDocument("w.yaml", data, ".", &f)
	if err != nil {
		return nil, err
	}
	w, err := workflow.Compile(f, doc)
	if err == nil {
		err = doc.Err()
	}
	return w, err
}

func parse(t *testing.T, body string) *workflow.Workflow {
	t.Helper()
	w, err := compile([]byte("kind: workflow\nversion: 1\nname: w\ndescription: d\n" + body))
	if err != nil {
		t.Fatal(err)
	}
	return w
}

func newWorld(t *testing.T, body, params string) *world {
	t.Helper()
	d := &world{t: t, w: parse(t, body), now: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), tries: map[string]int{},
		after: map[string]time.Duration{}}
	p, err := d.w.Params(json.RawMessage(params))
	if err != nil {
		t.Fatal(err)
	}
	d.spec = workflow.Spec{Workflow: "sha256:0", Name: "w", Params: p, Names: map[string]string{}, MaxDepth: 3}
	for _, s := range d.w.Steps {
		d.spec.Names[s.ID] = s.Tool
	}
	d.reset()
	d.record(tenon.Event{Kind: tenon.EventRun})
	return d
}

func (d *world) reset() {
	d.t.Helper()
	s, err := workflow.New(d.w, d.spec)
	if err != nil {
		d.t.Fatal(err)
	}
	d.s = s
}

func (d *world) record(events ...tenon.Event) {
	d.t.Helper()
	for _, e := range events {
		e.Run, e.Seq, e.Time = "run_1", uint64(len(d.journal)+1), d.now
		d.journal = append(d.journal, e)
		if err := d.s.Apply(e); err != nil {
			d.t.Fatalf("event %d %s %s: %v", e.Seq, e.Step, e.Kind, err)
		}
	}
}

func data(v any) json.RawMessage {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return b
}

// result returns the event that ends a call.
func result(text string, isError bool) tenon.Event {
	r := &tenon.Result{Content: []tenon.Content{tenon.Text(text)}, IsError: isError}
	return tenon.Event{Kind: agent.EventResult, Data: data(agent.Outcome{Result: r})}
}

func failed(code tenon.Code, text string) tenon.Event {
	return tenon.Event{Kind: agent.EventFailed, Data: data(agent.Failure{Error: tenon.Errorf(code, "%s", text)})}
}

// run executes commands until the run has ended or waits.
func (d *world) run() {
	d.t.Helper()
	for n := 0; n < 10_000 && d.done == nil; n++ {
		cmds := d.s.Next()
		if again := d.s.Next(); cmp.Diff(kinds(cmds), kinds(again)) != "" {
			d.t.Fatalf("Next is not pure: %v then %v", kinds(cmds), kinds(again))
		}
		var start []tenon.Command
		inline, waits := false, 0
		for _, c := range cmds {
			switch c.Kind {
			case agent.CommandDecide:
				inline = true
				d.decide(c)
			case tenon.CommandDone:
				d.done = new(tenon.DoneData)
				if err := json.Unmarshal(c.Data, d.done); err != nil {
					d.t.Fatal(err)
				}
				d.record(tenon.Event{Kind: tenon.EventDone, Data: c.Data})
			case tenon.CommandWait:
				waits++
			default:
				start = append(start, c)
			}
		}
		if inline || d.done != nil {
			continue
		}
		if len(start) == 0 {
			if waits == 0 {
				d.t.Fatal("the run is stuck")
			}
			return
		}
		d.most = max(d.most, len(start))
		for _, c := range start {
			d.after[c.Step] = c.After
			d.begun = append(d.begun, c.Step)
			d.record(tenon.Event{Step: c.Step, Kind: tenon.EventStarted, Attempt: 1,
				Data: data(tenon.StartedData{Kind: c.Kind})})
		}
		d.now = d.now.Add(time.Second)
		for _, c := range start {
			d.carryOut(c)
		}
	}
}

func kinds(cmds []tenon.Command) (list []string) {
	for _, c := range cmds {
		list = append(list, c.Step+" "+c.Kind+" "+string(c.Data)+" "+string(data(c.Local)))
	}
	return list
}

func (d *world) decide(c tenon.Command) {
	if p, ok := c.Local.(*workflow.PlanCommand); ok {
		d.record(tenon.Event{Step: c.Step, Kind: workflow.EventPlanned, Data: data(p.Plan)})
		return
	}
	dc, err := tenon.CommandData[agent.DecideCommand](c)
	if err != nil {
		d.t.Fatal(err)
	}
	v := agent.Decision{Verdict: tenon.Allow, By: agent.ByPolicy, Server: "s", Remote: dc.Call.Name,
		Arguments: dc.Call.Arguments}
	switch {
	case dc.Again && d.safe: // the rules say by now that a repeat is safe
	case dc.Again:
		v.Verdict, v.Again, v.Reason = tenon.Ask, true, agent.AgainReason
	case dc.Tool != nil:
		v.Server = dc.Tool.Server
	case strings.HasPrefix(dc.Call.Name, "ask") && dc.Grant == "":
		v.Verdict = tenon.Ask
	case strings.HasPrefix(dc.Call.Name, "no"):
		v.Verdict, v.Reason = tenon.Deny, "not here"
	case strings.HasPrefix(dc.Call.Name, "flow"):
		v.Kind = agent.KindWorkflow
	}
	d.record(tenon.Event{Step: c.Step, Kind: agent.EventProposed, Data: data(dc.Call)},
		tenon.Event{Step: c.Step, Kind: agent.EventDecided, Data: data(v)})
}

// called returns the events that end a call of a tool or an agent.
func (d *world) called(name string, args json.RawMessage) []tenon.Event {
	d.tries[name]++
	if d.call != nil {
		if events := d.call(name, args, d.tries[name]); events != nil {
			return events
		}
	}
	return []tenon.Event{result(fmt.Sprintf("did %s %s", name, args), false)}
}

func (d *world) carryOut(c tenon.Command) {
	var events []tenon.Event
	switch c.Kind {
	case agent.CommandTool:
		call, err := tenon.CommandData[agent.ToolCommand](c)
		if err != nil {
			d.t.Fatal(err)
		}
		events = d.called(call.Remote, call.Arguments)
	case agent.CommandChild:
		call, err := tenon.CommandData[agent.ChildCommand](c)
		if err != nil {
			d.t.Fatal(err)
		}
		events = d.called(call.Agent, call.Arguments)
	case workflow.CommandTable, workflow.CommandSQL:
		t := tenon.Table{Name: c.Step, Digest: "sha256:" + c.Step, Rows: 2,
			Columns: []tenon.TableColumn{{Name: "a", Type: "string"}, {Name: "n", Type: "integer"}}}
		o := agent.Outcome{Result: &tenon.Result{Structured: json.RawMessage(
			`[{"a":"x","n":1},{"a":"y","n":9007199254740993}]`)}, Outputs: []tenon.Table{t}}
		events = []tenon.Event{{Kind: agent.EventResult, Data: data(o)}}
	default:
		d.t.Fatalf("nobody knows %s", c.Kind)
	}
	for _, e := range events {
		e.Step = c.Step
		d.record(e)
	}
}

// replay folds each prefix of the journal and checks that the next events follow.
func (d *world) replay() {
	d.t.Helper()
	for n := 1; n <= len(d.journal); n++ {
		s, err := workflow.New(d.w, d.spec)
		if err != nil {
			d.t.Fatal(err)
		}
		for _, e := range d.journal[:n] {
			if err := s.Apply(e); err != nil {
				d.t.Fatalf("a journal of %d events does not fold: %v", n, err)
			}
		}
		s.Next()
	}
}
