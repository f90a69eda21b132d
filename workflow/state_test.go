package workflow_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/agent"
	"github.com/tenonhq/tenon/workflow"
)

type runCase struct {
	name, body, params string
	call               func(name string, args json.RawMessage, attempt int) []tenon.Event
	want               string // message or error
	tries              map[string]int
	most, depth        int
}

// runCases are workflows with a message or an error as their outcome.
var runCases = []runCase{
	{name: "text",
		body: "parameters: {c: {type: string, description: c}}\nsteps: [{id: m, template: 'Hi {{ params.c }}'}]\n" +
			"message: m", params: `{"c":"Ann"}`, want: "Hi Ann"},
	{name: "nothing to tell", body: "steps: [{id: m, template: x}]", want: workflow.MessageNone},
	{name: "nothing told", body: "steps: [{id: m, template: '{{ \"\" }}'}]\nmessage: m",
		want: workflow.MessageEmpty},
	{name: "a chain",
		body: "steps:\n- {id: b, tool: two, args: {x: steps.a.text}}\n- {id: a, tool: one}\nmessage: b",
		want: `did two {"x":"did one {}"}`, most: 1},
	{name: "side by side", body: "steps:\n- {id: a, tool: one}\n- {id: b, tool: two}\n- {id: c, tool: three}",
		want: workflow.MessageNone, most: 3},
	{name: "two at a time",
		body: "parallel: 2\nsteps:\n- {id: a, tool: one}\n- {id: b, tool: two}\n- {id: c, tool: three}",
		want: workflow.MessageNone, most: 2},
	{name: "skipped",
		body: "steps:\n- {id: a, when: '1 > 2', tool: one}\n" +
			"- {id: m, template: '{{ steps.a.skipped }} {{ steps.a.ok }} {{ steps.a.value }}'}\nmessage: m",
		want: "true false null", tries: map[string]int{}},
	{name: "foreach",
		body:  "steps:\n- {id: a, foreach: '[1, 2, 3]', tool: one, args: {n: item, i: index}}\nmessage: a",
		want:  "did one {\"i\":0,\"n\":1}\ndid one {\"i\":1,\"n\":2}\ndid one {\"i\":2,\"n\":3}",
		tries: map[string]int{"one": 3}, most: 3},
	{name: "foreach two at a time",
		body: "steps:\n- {id: a, foreach: {items: '[1, 2, 3]', concurrency: 2}, tool: one}\nmessage: a",
		want: "did one {}\ndid one {}\ndid one {}", most: 2},
	{name: "foreach of nothing",
		body: "steps:\n- {id: a, foreach: '[]', tool: one}\n- {id: m, template: '{{ steps.a.count }}'}\nmessage: m",
		want: "0"},
	{name: "foreach of no list", body: "steps:\n- {id: a, foreach: '1', tool: one}",
		want: "step 'a': foreach: '1' does not return a list"},
	{name: "foreach of too many",
		body:   "parameters: {l: {type: array, description: l}}\nsteps:\n- {id: a, foreach: params.l, tool: one}",
		params: `{"l":[` + strings.Repeat("1,", 1000) + `1]}`,
		want:   "step 'a': foreach: 'params.l' returns 1001 values; the limit is 1000"},
	{name: "each skipped by its own",
		body: "steps:\n- {id: a, foreach: '[1, 2]', when: item == 2, template: 'n{{ item }}'}\nmessage: a",
		want: "\nn2"},
	{name: "a tool's error", body: "steps:\n- {id: a, tool: bad}\n- {id: b, tool: two, args: {x: steps.a.text}}",
		call: bad, want: "step 'a': it broke", tries: map[string]int{"bad": 1}},
	{name: "continue",
		body: "steps:\n- {id: a, tool: bad, on_error: continue}\n" +
			"- {id: m, template: '{{ steps.a.ok }} {{ steps.a.error }}'}\nmessage: m", call: bad,
		want: "false it broke"},
	{name: "default",
		body: "steps:\n- {id: a, tool: bad, on_error: {default: {n: 7}}}\n" +
			"- {id: m, template: '{{ steps.a.value.n }}'}\nmessage: m", call: bad, want: "7"},
	{name: "retry", body: "steps:\n- {id: a, tool: flaky, retry: 3}\nmessage: a", call: flaky, want: "third time",
		tries: map[string]int{"flaky": 3}},
	{name: "too few attempts", body: "steps:\n- {id: a, tool: flaky, retry: 2}\nmessage: a", call: flaky,
		want: "step 'a': not yet", tries: map[string]int{"flaky": 2}},
	{name: "retry of one item",
		body: "steps:\n- {id: a, foreach: '[1]', tool: flaky, retry: {attempts: 3}}\nmessage: a", call: flaky,
		want: "third time"},
	{name: "an unknown outcome is not repeated", body: "steps:\n- {id: a, tool: lost, retry: 3}", call: lost,
		tries: map[string]int{"lost": 1},
		want: "step 'a': the outcome of this call is unknown: gone. It may or may not have taken effect; check " +
			"before you repeat it. If the run is resumed, a person is asked before the call is made again."},
	{name: "denied is not repeated", body: "steps:\n- {id: a, tool: nono, retry: 3}",
		want: "step 'a': the call was denied by policy: not here", tries: map[string]int{}},
	{name: "no value",
		body:   "parameters: {o: {type: object, description: o}}\nsteps:\n- {id: a, template: '{{ params.o.x }}'}",
		params: `{"o":{}}`, want: "step 'a': template: 'params.o.x' has no value: no such key: x"},
	{name: "structured",
		body: "steps:\n- {id: a, tool: json}\n- {id: m, template: '{{ steps.a.value.n }}'}\nmessage: m",
		call: structured, want: "9007199254740993"},
	{name: "structured null",
		body: "steps:\n- {id: a, tool: json}\n- {id: m, template: '{{ steps.a.value.n }}'}\nmessage: m",
		call: structuredNull, want: "7"},
	{name: "null in a sum",
		body: "steps:\n- {id: a, tool: json}\n- {id: m, template: '{{ steps.a.value.none + 1 }}'}",
		call: structuredNull,
		want: "step 'm': template: 'steps.a.value.none + 1' has no value: no such overload: a value is null, or " +
			"of a type that the operation does not take; string(), int() and double() convert, and X == null " +
			"tells"},
	{name: "table",
		body: "steps:\n- {id: t, table: {rows: [{a: x}]}}\n- {id: m, template: '{{ steps.t.rows[1].n }} of {{ " +
			"steps.t.count }}, {{ steps.t.columns.n }}'}\nmessage: m", want: "9007199254740993 of 2, integer"},
	{name: "first cell", body: "steps:\n- {id: t, table: {rows: [{a: x}]}}\nmessage: t", want: "x"},
	{name: "sql",
		body: "steps:\n- {id: t, table: {csv: a.csv}}\n- {id: q, sql: 'select * from t -- steps', params: {x: " +
			"'1'}}\noutputs: [{name: o, from: q, description: o, columns: {n: integer}}]\nmessage: q", want: "x"},
	{name: "promised otherwise",
		body: "steps:\n- {id: t, table: {csv: a.csv}}\noutputs: [{name: o, from: t, description: o, columns: {n: " +
			"string}}]",
		want: "the table for output 'o' does not match its declaration: its column 'n' is integer, not string"},
	{name: "output of a skipped step",
		body: "steps:\n- {id: t, when: 'false', table: {csv: a.csv}}\n" +
			"outputs: [{name: o, from: t, description: o}]",
		want: "there is no table for output 'o': step 't' was skipped or failed"},
	{name: "agent", body: "steps:\n- {id: a, agent: helper, message: 'Who?'}\nmessage: a",
		want: `did helper {"message":"Who?"}`},
	{name: "request",
		body: "steps:\n- {id: a, http: {url: 'http://a.example/{{ args.q }}'}, args: {q: \"'x'\"}}\nmessage: a",
		want: `did w.a {"q":"x"}`},
	{name: "out of time in the midst", body: "timeout: 1s\nsteps:\n- {id: a, tool: slow}", call: slow,
		want: "step 'a': workflow 'w' exceeded its time limit; raise its timeout or reduce its work"},
	{name: "a step out of time", body: "timeout: 10m\nsteps:\n- {id: a, tool: slow}", call: slow,
		want: "step 'a': timed out after 7ns"},
	{name: "too deep", depth: 3, body: "steps:\n- {id: a, agent: helper, message: 'Who?'}",
		want: "step 'a': not run: agents and workflows may call one another 3 deep; raise limits.max_depth, or " +
			"have less of them call others"},
	{name: "out of time",
		body:  "timeout: 1s\nsteps:\n- {id: a, tool: one}\n- {id: b, tool: two, args: {x: steps.a.text}}",
		want:  "workflow 'w' exceeded its time limit; raise its timeout or reduce its work",
		tries: map[string]int{"one": 1}},
}

func TestRuns(t *testing.T) {
	for _, c := range runCases {
		t.Run(c.name, func(t *testing.T) {
			d := newWorld(t, c.body, c.params)
			d.call = c.call
			if c.depth > 0 {
				d.spec.Depth, d.journal = c.depth, nil
				d.reset()
				d.record(tenon.Event{Kind: tenon.EventRun})
			}
			d.run()
			if d.done == nil {
				t.Fatal("it waits")
			}
			got := d.done.Answer
			if d.done.State != tenon.RunCompleted {
				got = d.done.Error.Message
			}
			if got != c.want {
				t.Errorf("message\n%s\nwant\n%s", got, c.want)
			}
			if c.tries != nil && cmp.Diff(c.tries, d.tries) != "" {
				t.Errorf("calls %v, want %v", d.tries, c.tries)
			}
			if c.most > 0 && d.most != c.most {
				t.Errorf("%d concurrent, want %d", d.most, c.most)
			}
			d.replay()
		})
	}
}

func bad(string, json.RawMessage, int) []tenon.Event { return []tenon.Event{result("it broke", true)} }

func slow(string, json.RawMessage, int) []tenon.Event {
	return []tenon.Event{failed(tenon.CodeTimeout, "timed out after 7ns")}
}

func flaky(_ string, _ json.RawMessage, n int) []tenon.Event {
	if n < 3 {
		return []tenon.Event{failed(tenon.CodeUnreachable, "not yet")}
	}
	return []tenon.Event{result("third time", false)}
}

func lost(string, json.RawMessage, int) []tenon.Event {
	return []tenon.Event{{Kind: tenon.EventUnknown,
		Data: data(agent.Failure{Error: tenon.Errorf(tenon.CodeUnknown, "gone")})}}
}

func structured(string, json.RawMessage, int) []tenon.Event {
	return []tenon.Event{{Kind: agent.EventResult,
		Data: data(agent.Outcome{Result: &tenon.Result{Structured: json.RawMessage(`{"n":9007199254740993}`)}})}}
}

// structuredNull is the result of a server that writes null for absent structured content.
func structuredNull(string, json.RawMessage, int) []tenon.Event {
	return []tenon.Event{{Kind: agent.EventResult, Data: data(agent.Outcome{Result: &tenon.Result{
		Content: []tenon.Content{tenon.Text(`{"n":7,"none":null}`)}, Structured: json.RawMessage("null")}})}}
}

// TestRetryDelay checks that the delay doubles.
func TestRetryDelay(t *testing.T) {
	d := newWorld(t, "steps:\n- {id: a, tool: flaky, retry: {attempts: 3, delay: 10s}}", "")
	d.call = flaky
	d.run()
	want := map[string]time.Duration{"a.0": 0, "a.0~2": 10 * time.Second, "a.0~3": 20 * time.Second}
	if diff := cmp.Diff(want, d.after); diff != "" {
		t.Error(diff)
	}
}

// TestRetryDelayIsBounded checks that doubling the delay does not overflow.
func TestRetryDelayIsBounded(t *testing.T) {
	d := newWorld(t, "steps:\n- {id: a, tool: fails, retry: {attempts: 10, delay: 1000000h}}", "")
	d.call = func(string, json.RawMessage, int) []tenon.Event {
		return []tenon.Event{failed(tenon.CodeUnreachable, "never")}
	}
	d.run()
	for step, after := range d.after {
		if step != "a.0" && after != 10*time.Minute {
			t.Errorf("%s begins after %s", step, after)
		}
	}
	if len(d.after) != 10 {
		t.Errorf("%d attempts, want 10", len(d.after))
	}
}

// TestAsks waits for a person and continues after the decision. The decision applies to the rest of the run if the
// person says so.
func TestAsks(t *testing.T) {
	d := newWorld(t,
		"steps:\n- {id: a, tool: ask}\n- {id: b, tool: one}\n- {id: c, tool: ask2, args: {x: steps.a.text}}\n"+
			"message: c", "")
	d.run()
	if d.done != nil || !slices.Equal(d.begun, []string{"b.0"}) {
		t.Fatalf("%+v %v", d.done, d.begun)
	}
	d.record(tenon.Event{Step: "a.0", Kind: agent.EventDecision,
		Data: data(agent.Ruling{Verdict: tenon.Allow, By: "me"})})
	d.run()
	d.record(tenon.Event{Step: "c.0", Kind: agent.EventDecision,
		Data: data(agent.Ruling{Verdict: tenon.Deny, By: "me", Reason: "no"})})
	d.run()
	if d.done == nil || d.done.Error == nil || d.done.Error.Message != "step 'c': the call was denied by me: no" ||
		d.done.Error.Code != tenon.CodeDenied {
		t.Errorf("%+v", d.done)
	}
	d.replay()
}

// TestGoesOn retries a failed run. Completed steps must not run again.
func TestGoesOn(t *testing.T) {
	d := newWorld(t,
		"steps:\n- {id: a, tool: one}\n- {id: b, foreach: '[1, 2]', tool: flaky, args: {x: steps.a.ok}}\nmessage: b",
		"")
	d.call = func(name string, args json.RawMessage, n int) []tenon.Event {
		if name == "one" {
			return nil
		}
		return flaky(name, args, n)
	}
	d.run()
	if d.done == nil || d.done.State != tenon.RunFailed {
		t.Fatalf("%+v", d.done)
	}
	d.done = nil
	d.record(tenon.Event{Kind: tenon.EventRetry})
	d.run()
	if d.done == nil || d.done.State != tenon.RunCompleted || d.tries["one"] != 1 {
		t.Errorf("%+v %v", d.done, d.tries)
	}
	d.replay()
}

// TestUnknownAsks retries a run whose call or agent has an unknown outcome. The step waits for a person, and is begun
// again only if the person allows it. A journal of an earlier release, which did not ask, folds unchanged.
func TestUnknownAsks(t *testing.T) {
	lostOnce := func(e tenon.Event) func(string, json.RawMessage, int) []tenon.Event {
		return func(_ string, _ json.RawMessage, n int) []tenon.Event {
			if n == 1 {
				return []tenon.Event{e}
			}
			return []tenon.Event{result("second time", false)}
		}
	}
	gone := lost("", nil, 1)[0]
	child := tenon.Event{Kind: agent.EventResult, Data: data(agent.Outcome{Result: tenon.ErrorResult("child: gone"),
		Unknown: true})}
	for _, tt := range []struct {
		name, step, id string
		ends           tenon.Event
		old            bool
	}{
		{"RP-12_call", "tool: pay, retry: 3", "a.0", gone, false},
		{"RP-12_item", "foreach: '[1]', tool: pay, retry: 3", "a.0", gone, false},
		{"RP-12_called_workflow", "tool: flow, retry: 3", "a.0", child, false},
		{"RP-12_agent", "agent: helper, message: go, retry: 3", "a", child, false},
		{"RP-12_safe_now", "tool: pay", "a.0", gone, true},
		{"RP-12_old_journal", "tool: pay", "a.0", gone, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			d := newWorld(t, "steps:\n- {id: a, "+tt.step+"}\nmessage: a", "")
			d.call, d.safe = lostOnce(tt.ends), tt.old
			d.spec.Grant = "me"
			d.reset()
			for _, e := range d.journal {
				if err := d.s.Apply(e); err != nil {
					t.Fatal(err)
				}
			}
			d.run()
			if d.done == nil || len(d.begun) != 1 || !strings.HasSuffix(d.done.Error.Message,
				". If the run is resumed, a person is asked before the call is made again.") {
				t.Fatalf("%+v %v", d.done, d.begun)
			}
			var sum workflow.Summary
			if err := json.Unmarshal(d.done.Data, &sum); err != nil || !sum.Unknown {
				t.Errorf("the summary %s does not say that the outcome is unknown: %v", d.done.Data, err)
			}
			d.done = nil
			d.record(tenon.Event{Kind: tenon.EventRetry})
			d.run()
			if !tt.old {
				if d.done != nil || len(d.begun) != 1 {
					t.Fatalf("%+v %v", d.done, d.begun)
				}
				d.record(tenon.Event{Step: tt.id + "~2", Kind: agent.EventDecision,
					Data: data(agent.Ruling{Verdict: tenon.Allow, By: "me"})})
				d.run()
			}
			if d.done == nil || d.done.State != tenon.RunCompleted || len(d.begun) != 2 {
				t.Errorf("%+v %v", d.done, d.begun)
			}
			d.replay()
		})
	}
}

// TestCancel checks that a cancelled run ends once its running attempts have ended.
func TestCancel(t *testing.T) {
	d := newWorld(t, "steps:\n- {id: a, tool: ask}", "")
	d.run()
	d.record(tenon.Event{Kind: tenon.EventCancel, Data: data(tenon.CancelData{Reason: "enough"})})
	d.run()
	if d.done == nil || d.done.State != tenon.RunCancelled || d.done.Error.Message != "enough" {
		t.Errorf("%+v", d.done)
	}
}

// TestInterrupted retries a call whose process died before the call was sent.
func TestInterrupted(t *testing.T) {
	d := newWorld(t, "steps:\n- {id: t, table: {csv: a.csv}}\n- {id: a, tool: one, args: {n: steps.t.count}}", "")
	n := 0
	d.call = func(string, json.RawMessage, int) []tenon.Event {
		if n++; n == 1 {
			return []tenon.Event{{Kind: tenon.EventInterrupted}}
		}
		return nil
	}
	d.run()
	if d.done == nil || d.done.State != tenon.RunCompleted || n != 2 {
		t.Errorf("%+v, %d calls", d.done, n)
	}
	d.replay()
}

// TestDamaged checks that impossible journals are refused.
func TestDamaged(t *testing.T) {
	for name, events := range map[string][]tenon.Event{
		"a step that is not there": {{Step: "x.0", Kind: workflow.EventPlanned, Data: data(workflow.Planned{})}},
		"an item of no list":       {{Step: "a.1", Kind: workflow.EventPlanned, Data: data(workflow.Planned{})}},
		"a result before the plan": {{Step: "a.0", Kind: agent.EventResult}},
		"planned twice": {{Step: "a.0", Kind: workflow.EventPlanned, Data: data(workflow.Planned{})},
			{Step: "a.0", Kind: workflow.EventPlanned, Data: data(workflow.Planned{})}},
		"a plan that is no JSON": {{Step: "a.0", Kind: workflow.EventPlanned, Data: json.RawMessage("{")}},
		"a table without one": {{Step: "t", Kind: workflow.EventPlanned, Data: data(workflow.Planned{})},
			{Step: "t", Kind: agent.EventResult, Data: json.RawMessage("{}")}},
		"an attempt out of nowhere": {{Step: "a.0~2", Kind: workflow.EventPlanned, Data: data(workflow.Planned{})}},
	} {
		t.Run(name, func(t *testing.T) {
			s, err := workflow.New(parse(t, "steps:\n- {id: a, tool: one}\n- {id: t, table: {csv: a.csv}}"),
				workflow.Spec{Params: json.RawMessage("{}")})
			if err != nil {
				t.Fatal(err)
			}
			for _, e := range events {
				if err = s.Apply(e); err != nil {
					break
				}
			}
			if tenon.ErrorCode(err) != tenon.CodeStore {
				t.Errorf("error %v", err)
			}
		})
	}
}

// waitOf returns the command with which a step waits for a person.
func waitOf(t *testing.T, s *workflow.State, step string) tenon.Command {
	t.Helper()
	for _, c := range s.Next() {
		if c.Step == step && c.Kind == tenon.CommandWait {
			return c
		}
	}
	t.Fatalf("step %s is not waiting: %v", step, kinds(s.Next()))
	return tenon.Command{}
}

// TestWaitEndsWithTheRun lets a question wait until the run's time is up, whatever else happens in the meantime. The
// engine counts from the start of the wait.
func TestWaitEndsWithTheRun(t *testing.T) {
	d := newWorld(t,
		"timeout: 10m\nsteps:\n- {id: a, tool: ask}\n- {id: b, tool: one}\n"+
			"- {id: c, tool: two, args: {x: steps.b.text}}\nmessage: a", "")
	d.run()
	if c := waitOf(t, d.s, "a.0"); c.After != 10*time.Minute {
		t.Errorf("two seconds later the wait lasts %s from its start", c.After)
	}
	d.now = d.now.Add(10 * time.Minute)
	d.record(tenon.Event{Step: "a.0", Kind: tenon.EventExpired})
	d.run()
	if d.done == nil || d.done.Error == nil || d.done.Error.Code != tenon.CodeTimeout ||
		!strings.Contains(d.done.Error.Message, "exceeded its time limit") {
		t.Errorf("%+v", d.done)
	}
	d.replay()
}

// TestQuestionGrantsNothing allows a server to sample the model for the session. That must not allow the calls of its
// tool.
func TestQuestionGrantsNothing(t *testing.T) {
	d := newWorld(t, "steps:\n- {id: a, tool: ask}\n- {id: b, tool: ask2, args: {x: steps.a.text}}\nmessage: b", "")
	d.run()
	allow := data(agent.Ruling{Verdict: tenon.Allow, By: "me"})
	remember := data(agent.Ruling{Verdict: tenon.Allow, By: "me", Remember: agent.RememberSession})
	d.record(tenon.Event{Step: "a.0", Kind: agent.EventDecision, Data: allow},
		tenon.Event{Step: "a.0", Kind: tenon.EventStarted, Attempt: 1},
		tenon.Event{Step: "a.0", Kind: agent.EventDecision, Data: remember}, // without a question
		tenon.Event{Step: "a.0/q1", Kind: tenon.EventQuestion,
			Data: data(agent.Question{Method: agent.MethodSample, Verdict: tenon.Ask})},
		tenon.Event{Step: "a.0/q1", Kind: agent.EventDecision, Data: remember},
		tenon.Event{Step: "a.0/q1", Kind: agent.EventAnswer, Data: data(agent.Answer{})})
	e := result("a", false)
	e.Step = "a.0"
	d.record(e)
	for range 3 {
		for _, c := range d.s.Next() {
			if dc, ok := c.Local.(*agent.DecideCommand); !ok {
				d.decide(c) // the plan
			} else if len(dc.Grants) > 0 {
				t.Fatalf("step %s is granted: %v", c.Step, dc.Grants)
			} else {
				return
			}
		}
	}
	t.Fatal("no decision about step b")
}

// TestRefusedChangesNothing checks that refused signals and events leave the state unchanged, because the journal does
// not contain them.
func TestRefusedChangesNothing(t *testing.T) {
	for name, e := range map[string]tenon.Event{
		"cancel":   {Kind: tenon.EventCancel, Data: json.RawMessage(`{"reason":1}`)},
		"decision": {Step: "a.0", Kind: agent.EventDecision, Data: json.RawMessage(`{"verdict":1}`)},
		"question": {Step: "b.0/q1", Kind: tenon.EventQuestion, Data: json.RawMessage(`{"verdict":1}`)},
		"answer":   {Step: "b.0/q2", Kind: agent.EventAnswer, Data: data(agent.Answer{Usage: &tenon.Usage{Input: 7}})},
		"no step":  {Step: "x", Kind: agent.EventDecision},
	} {
		t.Run(name, func(t *testing.T) {
			d := newWorld(t, "timeout: 10m\nsteps:\n- {id: a, tool: ask}\n- {id: b, tool: ask}\nmessage: a", "")
			d.run()
			d.record(tenon.Event{Step: "b.0", Kind: agent.EventDecision,
				Data: data(agent.Ruling{Verdict: tenon.Allow})}, tenon.Event{Step: "b.0", Kind: tenon.EventStarted,
				Attempt: 1})
			want := kinds(d.s.Next())
			e.Run, e.Seq, e.Time = "run_1", uint64(len(d.journal)+1), d.now.Add(time.Hour)
			if err := d.s.Apply(e); err == nil {
				t.Fatal("the event was accepted")
			}
			if diff := cmp.Diff(want, kinds(d.s.Next())); diff != "" {
				t.Error(diff)
			}
			end := result("b", false)
			end.Step = "b.0"
			d.record(end, tenon.Event{Step: "a.0", Kind: agent.EventDecision,
				Data: data(agent.Ruling{Verdict: tenon.Deny})})
			d.run()
			var sum workflow.Summary
			if err := json.Unmarshal(d.done.Data, &sum); err != nil || d.done.Error.Code != tenon.CodeDenied ||
				sum.Usage.Input != 0 {
				t.Errorf("%+v %+v %v", d.done, sum, err)
			}
		})
	}
}
