package agent_test

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/agent"
)

// driver is a minimal engine. It keeps the journal in memory and runs one command at a time. After each event, it
// checks that a new core with the same journal returns the same commands.
type driver struct {
	t       *testing.T
	spec    agent.Spec
	parent  *agent.State
	core    *agent.State
	journal []tenon.Event
	now     time.Time
	attempt map[string]int
	do      func(c tenon.Command) []tenon.Event
	prompts []*agent.Prompt
	done    *tenon.DoneData
	seldom  func(n int) int // nil: every event is checked
}

var began = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

func newDriver(t *testing.T, spec agent.Spec, do func(tenon.Command) []tenon.Event) *driver {
	d := &driver{t: t, spec: spec, do: do, now: began, attempt: map[string]int{}}
	d.core = agent.New(spec, nil)
	d.apply(tenon.Event{Kind: tenon.EventRun})
	return d
}

func (d *driver) apply(e tenon.Event) {
	d.t.Helper()
	d.now = d.now.Add(time.Millisecond)
	e.Run, e.Seq, e.Time = "run_1", uint64(len(d.journal)+1), d.now
	d.journal = append(d.journal, e)
	if err := d.core.Apply(e); err != nil {
		d.t.Fatalf("apply %d %s %s: %v", e.Seq, e.Kind, e.Step, err)
	}
	if d.seldom == nil || d.seldom(4) == 0 {
		d.check()
	}
}

// check compares the core with a new core that replays the journal, and checks that providers would accept the model's
// view of the conversation.
func (d *driver) check() {
	d.t.Helper()
	again := agent.New(d.spec, d.parent)
	for _, e := range d.journal {
		if err := again.Apply(e); err != nil {
			d.t.Fatalf("replay: %v", err)
		}
	}
	if diff := cmp.Diff(show(d.core.Next()), show(again.Next())); diff != "" {
		e := d.journal[len(d.journal)-1]
		d.t.Fatalf("after event %d (%s %s) a replay wants something else:\n%s", e.Seq, e.Kind, e.Step, diff)
	}
	checkHistory(d.t, d.core.Messages())
	checkHistory(d.t, d.core.History())
}

func show(cmds []tenon.Command) []string {
	var list []string
	for _, c := range cmds {
		local, err := json.Marshal(c.Local)
		if err != nil {
			panic(err)
		}
		list = append(list, fmt.Sprintf("%s %s idempotent=%v after=%s %s %s", c.Kind, c.Step, c.Idempotent, c.After, c.Data, local))
	}
	return list
}

// step carries out one command. It reports whether there was one.
func (d *driver) step(pick func(n int) int) bool {
	d.t.Helper()
	var open []tenon.Command
	for _, c := range d.core.Next() {
		if c.Kind != tenon.CommandWait {
			open = append(open, c)
		}
	}
	if len(open) == 0 {
		return false
	}
	c := open[pick(len(open))]
	if c.Kind == tenon.CommandDone {
		d.done = new(tenon.DoneData)
		if err := json.Unmarshal(c.Data, d.done); err != nil {
			d.t.Fatal(err)
		}
		d.apply(tenon.Event{Kind: tenon.EventDone, Data: c.Data})
		return true
	}
	if c.Kind != agent.CommandDecide {
		d.attempt[c.Step]++
		d.apply(tenon.Event{Step: c.Step, Kind: tenon.EventStarted, Attempt: d.attempt[c.Step],
			Data: data(tenon.StartedData{Kind: c.Kind, Idempotent: c.Idempotent})})
	}
	if p, ok := c.Local.(*agent.Prompt); ok {
		d.prompts = append(d.prompts, p)
		if c.Kind == agent.CommandModel || c.Kind == agent.CommandFinal {
			if diff := cmp.Diff(text(p.Messages), text(d.core.Messages())); diff != "" {
				d.t.Fatalf("the history is not what the model is asked (-asked +history):\n%s", diff)
			}
		}
	}
	for _, e := range d.do(c) {
		e.Attempt = d.attempt[c.Step]
		d.apply(e)
	}
	return true
}

func (d *driver) run() {
	d.t.Helper()
	for i := 0; d.step(func(int) int { return 0 }); i++ {
		if i > 10_000 {
			d.t.Fatal("the run does not end")
		}
	}
}

// text returns a conversation as lines, for comparison.
func text(messages []*tenon.Message) (list []string) {
	for _, m := range messages {
		b, _ := json.Marshal(m)
		list = append(list, string(b))
	}
	return list
}

// checkHistory checks what every provider demands: each call has exactly one result, in the next message, in the order
// of the calls.
func checkHistory(t *testing.T, msgs []*tenon.Message) {
	t.Helper()
	for i, m := range msgs {
		calls := m.Calls()
		if m.Role == tenon.RoleTool && (i == 0 || len(msgs[i-1].Calls()) == 0) {
			t.Fatalf("message %d holds results without calls before it", i)
		}
		if len(calls) == 0 {
			continue
		}
		if i+1 == len(msgs) || msgs[i+1].Role != tenon.RoleTool || len(msgs[i+1].Parts) != len(calls) {
			t.Fatalf("message %d has %d calls without as many results after it", i, len(calls))
		}
		for j, p := range msgs[i+1].Parts {
			if p.Result == nil || p.Result.ID != calls[j].ID {
				t.Fatalf("message %d: call %d has the result of another", i, j)
			}
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

// answer returns a model's answer to a step: a text, or calls of the named tools.
func answer(step, text string, calls ...string) []tenon.Event {
	r := tenon.Response{Stop: tenon.StopEnd, Usage: &tenon.Usage{Input: 10, Output: 2}, Cost: new(tenon.USD(7)), Message: &tenon.Message{Role: tenon.RoleAssistant}}
	if text != "" {
		r.Message.Parts = append(r.Message.Parts, tenon.Part{Type: tenon.PartText, Text: text})
	}
	for i, name := range calls {
		r.Stop = tenon.StopToolUse
		r.Message.Parts = append(r.Message.Parts, tenon.Part{Type: tenon.PartCall,
			Call: &tenon.ToolCall{ID: fmt.Sprintf("id-%s-%d", step, i), Name: name, Arguments: json.RawMessage(`{"n":1}`)}})
	}
	events := []tenon.Event{{Step: step, Kind: agent.EventModel, Data: data(r)}}
	for i, c := range r.Message.Calls() {
		events = append(events, tenon.Event{Step: fmt.Sprintf("%s.%d", step, i), Kind: agent.EventProposed, Data: data(c)})
	}
	return events
}

// said returns the decoded data of a command.
func said[T any](c tenon.Command) *T {
	v, err := tenon.CommandData[T](c)
	if err != nil {
		panic(err)
	}
	return v
}

func decided(c tenon.Command, v tenon.Verdict, idempotent bool) []tenon.Event {
	dc := said[agent.DecideCommand](c)
	return []tenon.Event{{Step: c.Step, Kind: agent.EventDecided, Data: data(agent.Decision{Verdict: v, By: agent.ByPolicy,
		Server: "s", Remote: dc.Call.Name, Arguments: dc.Call.Arguments, Idempotent: idempotent})}}
}

// compacted returns the result of a compaction command.
func compacted(c tenon.Command) []tenon.Event {
	var cc agent.CompactCommand
	if err := json.Unmarshal(c.Data, &cc); err != nil {
		panic(err)
	}
	out := agent.Compacted{Why: cc.Why, Cut: cc.Cut, Clear: cc.Clear, Usage: &tenon.Usage{Input: 5, Output: 1}}
	if cc.Cut > 0 {
		out.Summary = "the gist"
	}
	return []tenon.Event{{Step: c.Step, Kind: agent.EventCompacted, Data: data(out)}}
}

func result(step, text string, isError bool) []tenon.Event {
	return []tenon.Event{{Step: step, Kind: agent.EventResult, Data: data(agent.Outcome{Result: &tenon.Result{Content: []tenon.Content{tenon.Text(text)}, IsError: isError}})}}
}
