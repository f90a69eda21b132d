package agent_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/agent"
	"github.com/tenonhq/tenon/view"
)

// script answers the model commands with these answers, one after the other. All other commands succeed.
func script(answers ...func(step string) []tenon.Event) func(tenon.Command) []tenon.Event {
	return func(c tenon.Command) []tenon.Event {
		switch c.Kind {
		case agent.CommandModel, agent.CommandFinal:
			a := answers[0]
			if len(answers) > 1 {
				answers = answers[1:]
			}
			return a(c.Step)
		case agent.CommandDecide:
			return decided(c, tenon.Allow, false)
		default:
			return result(c.Step, "ok", false)
		}
	}
}

func says(text string, calls ...string) func(string) []tenon.Event {
	return func(step string) []tenon.Event { return answer(step, text, calls...) }
}

func stops(stop tenon.StopReason, text string, calls ...string) func(string) []tenon.Event {
	return func(step string) []tenon.Event {
		events := answer(step, text, calls...)
		var r tenon.Response
		_ = json.Unmarshal(events[0].Data, &r)
		r.Stop, r.RawStop = stop, "raw"
		events[0].Data = data(r)
		return events
	}
}

// budgeted lets the budgets refuse one step. All other commands go to do.
func budgeted(do func(tenon.Command) []tenon.Event, refused string) func(tenon.Command) []tenon.Event {
	return func(c tenon.Command) []tenon.Event {
		isCall := strings.Contains(c.Step, ".")
		switch {
		case c.Kind != agent.CommandDecide || isCall && c.Step != refused:
			return do(c)
		case c.Step != refused:
			return []tenon.Event{{Step: c.Step, Kind: agent.EventReserved, Data: data(agent.Reserved{})}}
		case !isCall:
			return []tenon.Event{{Step: c.Step, Kind: agent.EventReserved, Data: data(agent.Reserved{Refused: &agent.Refusal{Budget: "day", Limit: tenon.LimitTokens, Reason: "used up"}})}}
		}
		return []tenon.Event{{Step: c.Step, Kind: agent.EventDecided, Data: data(agent.Decision{Verdict: tenon.Deny, By: agent.ByBudget,
			Reason: "used up", Refused: &agent.Refusal{Budget: "day", Limit: tenon.LimitToolCalls, Reason: "used up"}})}}
	}
}

// TestMaxCalls checks the limits of one tool's calls, per run and per session. A refused call does not end the run.
func TestMaxCalls(t *testing.T) {
	limited := func(c tenon.Command) []tenon.Event {
		events := decided(c, tenon.Allow, false)
		var d agent.Decision
		_ = json.Unmarshal(events[0].Data, &d)
		if d.Remote == "a" {
			d.MaxCalls, d.MaxSession = 2, 3
		}
		events[0].Data = data(d)
		return events
	}
	run := func(parent *agent.State) *driver {
		do := script(says("", "a", "b"), says("", "a", "b"), says("", "a", "b"), says("end"))
		d := newDriver(t, agent.Spec{Question: "q"}, func(c tenon.Command) []tenon.Event {
			if c.Kind == agent.CommandDecide {
				return limited(c)
			}
			return do(c)
		})
		if parent != nil {
			d.parent, d.core = parent, agent.New(d.spec, parent)
			_ = d.core.Apply(d.journal[0])
		}
		d.run()
		return d
	}
	ran := func(d *driver) (list []string) {
		for _, e := range d.journal {
			if e.Kind == agent.EventResult {
				list = append(list, e.Step)
			}
		}
		return list
	}
	first := run(nil)
	if diff := cmp.Diff([]string{"1.0", "1.1", "2.0", "2.1", "3.1"}, ran(first)); diff != "" || first.done.State != tenon.RunCompleted {
		t.Errorf("%s: %s", first.done.State, diff)
	}
	if text := lastResult(t, first); !strings.Contains(text, "limit of 2 calls reached for tool 'a' in this run") {
		t.Error(text)
	}
	second := run(first.core)
	if diff := cmp.Diff([]string{"1.0", "1.1", "2.1", "3.1"}, ran(second)); diff != "" {
		t.Error(diff)
	}
	if text := lastResult(t, second); !strings.Contains(text, "limit of 3 calls reached for tool 'a' in this session") {
		t.Error(text)
	}
}

// TestRetryAsksTheBudgets retries a run that failed because a budget was used up. The core must ask the budgets again.
func TestRetryAsksTheBudgets(t *testing.T) {
	d := newDriver(t, agent.Spec{Question: "q", Budgets: agent.Budgets{Day: agent.Budget{Tokens: 9}}}, budgeted(script(says("no")), "1"))
	d.run()
	d.apply(tenon.Event{Kind: tenon.EventRetry})
	if cmds := d.core.Next(); len(cmds) != 1 || cmds[0].Kind != agent.CommandDecide || said[agent.DecideCommand](cmds[0]).Beyond {
		t.Errorf("wants %v", show(cmds))
	}
}

// TestStepsOfOtherAgents checks that the waterfall of a run has one line for each agent that was called.
func TestStepsOfOtherAgents(t *testing.T) {
	d := newDriver(t, agent.Spec{Question: "q", MaxDepth: 2}, others(script(says("", "ask_a", "to_b"), says("end")), func(_ agent.ChildCommand, step string) []tenon.Event {
		return spent(step, "done", 1)
	}))
	d.run()
	var got []string
	for _, s := range view.Of(d.journal).Steps(d.now) {
		got = append(got, s.Step+" "+s.Kind+" "+s.Outcome)
	}
	if diff := cmp.Diff([]string{"1 model ok", "1.0 child ok", "1.1 handoff ok", "2 model ok"}, got); diff != "" {
		t.Error(diff)
	}
}

// TestExpired lets the time for a decision pass. The model gets a result that says so, and the run continues.
func TestExpired(t *testing.T) {
	do := script(says("", "a"), says("end"))
	d := newDriver(t, agent.Spec{Question: "q"}, func(c tenon.Command) []tenon.Event {
		if c.Kind != agent.CommandDecide {
			return do(c)
		}
		events := decided(c, tenon.Ask, false)
		var v agent.Decision
		_ = json.Unmarshal(events[0].Data, &v)
		v.Expires = time.Hour
		events[0].Data = data(v)
		return events
	})
	d.run()
	if cmds := d.core.Next(); len(cmds) != 1 || cmds[0].Kind != tenon.CommandWait || cmds[0].After != time.Hour {
		t.Fatalf("wants %v", show(cmds))
	}
	d.apply(tenon.Event{Step: "1.0", Kind: tenon.EventExpired})
	d.run()
	if text := lastResult(t, d); d.done.State != tenon.RunCompleted || !strings.Contains(text, "nobody allowed this call within 1h0m0s") {
		t.Errorf("%s: %s", d.done.State, text)
	}
	calls := view.Of(d.journal).Calls()
	if len(calls) != 1 || calls[0].Outcome != view.CallDenied || calls[0].Success {
		t.Errorf("record %+v", calls)
	}
}

func TestRunEnds(t *testing.T) {
	tests := []struct {
		name   string
		spec   agent.Spec
		do     func(tenon.Command) []tenon.Event
		state  tenon.RunState
		stop   tenon.StopReason
		answer string
		err    string
		turns  int
	}{
		{"an answer without tools", agent.Spec{}, script(says("hello")), tenon.RunCompleted, tenon.StopEnd, "hello", "", 1},
		{"RA-16 four calls one after another", agent.Spec{MaxTurns: 5},
			script(says("", "a"), says("", "a"), says("", "a"), says("", "a"), says("end")), tenon.RunCompleted, tenon.StopEnd, "end", "", 5},
		{"the turn limit", agent.Spec{MaxTurns: 3}, script(says("thinking", "a")), tenon.RunFailed, tenon.LimitTurns, "thinking", "Iteration limit of 3 reached.", 3},
		{"the turn limit by default", agent.Spec{}, script(says("", "a")), tenon.RunFailed, tenon.LimitTurns, "", "Tool use loop exceeded maximum iterations", 10},
		{"one final answer without tools", agent.Spec{MaxTurns: 2, OnLimit: agent.OnLimitFinal}, script(says("", "a"), says("", "a"), says("what I have")), tenon.RunCompleted, tenon.LimitTurns, "what I have", "", 3},
		{"a final answer that still calls", agent.Spec{MaxTurns: 1, OnLimit: agent.OnLimitFinal}, script(says("", "a"), says("so far", "a")), tenon.RunCompleted, tenon.LimitTurns, "so far", "", 2},
		{"tool calls", agent.Spec{MaxToolCalls: 2}, script(says("", "a"), says("", "a", "b"), says("more", "c")), tenon.RunFailed, tenon.LimitToolCalls, "", "2 tool calls", 2},
		{"tool calls within the limit", agent.Spec{MaxToolCalls: 2}, script(says("", "a", "b"), says("end")), tenon.RunCompleted, tenon.StopEnd, "end", "", 2},
		{"tokens", agent.Spec{MaxTokens: 20}, script(says("", "a"), says("so far", "a"), says("end")), tenon.RunFailed, tenon.LimitTokens, "so far", "20 tokens", 2},
		{"money", agent.Spec{MaxCost: 14}, script(says("", "a"), says("so far", "a"), says("end")), tenon.RunFailed, tenon.LimitCost, "so far", "$0.000014 is reached ($0.000014 spent)", 2},
		{"a final answer that only calls", agent.Spec{MaxTurns: 1, OnLimit: agent.OnLimitFinal}, script(says("", "a"), says("", "a"), says("what I have")), tenon.RunCompleted, tenon.LimitTurns, "what I have", "", 3},
		{"a final answer that only ever calls", agent.Spec{MaxTurns: 1, OnLimit: agent.OnLimitFinal}, script(says("", "a"), says("", "a"), says("", "a")), tenon.RunFailed, tenon.LimitTurns, "", "no last answer", 3},
		{"a final answer that only ever calls, after words", agent.Spec{MaxTurns: 1, OnLimit: agent.OnLimitFinal}, script(says("I look", "a"), says("", "a"), says("", "a")), tenon.RunCompleted, tenon.LimitTurns, "I look", "", 3},
		{"money, with a last word", agent.Spec{MaxCost: 14, OnLimit: agent.OnLimitFinal}, script(says("", "a"), says("", "a"), says("what I have")), tenon.RunCompleted, tenon.LimitCost, "what I have", "", 3},
		{"a budget with room", agent.Spec{Budgets: agent.Budgets{Day: agent.Budget{Tokens: 9}}}, budgeted(script(says("", "a"), says("end")), ""), tenon.RunCompleted, tenon.StopEnd, "end", "", 2},
		{"a budget without room for the model", agent.Spec{Budgets: agent.Budgets{Day: agent.Budget{Tokens: 9}}}, budgeted(script(says("so far", "a"), says("end")), "2"), tenon.RunFailed, tenon.LimitTokens, "so far", "used up", 1},
		{"a budget without room from the beginning, where a last word is wanted", agent.Spec{OnLimit: agent.OnLimitFinal, Budgets: agent.Budgets{Day: agent.Budget{Tokens: 9}}}, budgeted(script(says("no")), "1"), tenon.RunFailed, tenon.LimitTokens, "", "used up", 0},
		{"a budget without room for a call", agent.Spec{Budgets: agent.Budgets{Day: agent.Budget{ToolCalls: 9}}}, budgeted(script(says("so far", "a", "b"), says("end")), "1.1"), tenon.RunFailed, tenon.LimitToolCalls, "so far", "used up", 1},
		{"cut off", agent.Spec{}, script(stops(tenon.StopMaxTokens, "half", "a")), tenon.RunFailed, tenon.StopMaxTokens, "half", "cut off", 1},
		{"refused", agent.Spec{}, script(stops(tenon.StopContentFilter, "no")), tenon.RunFailed, tenon.StopContentFilter, "no", "refused", 1},
		{"pause goes back as it is", agent.Spec{}, script(stops(tenon.StopPause, "wait"), says("end")), tenon.RunCompleted, tenon.StopEnd, "end", "", 2},
		{"a bad call is told and asked again", agent.Spec{}, script(stops(tenon.StopBadCall, ""), says("end")), tenon.RunCompleted, tenon.StopEnd, "end", "", 2},
		{"RP-1 four bad calls in a row", agent.Spec{}, script(stops(tenon.StopBadCall, "")), tenon.RunFailed, tenon.StopBadCall, "", "4 answers in a row", 4},
		{"RP-1 bad calls with an answer between them", agent.Spec{MaxTurns: 9}, script(stops(tenon.StopBadCall, ""), stops(tenon.StopBadCall, ""),
			stops(tenon.StopBadCall, ""), says("", "a"), stops(tenon.StopBadCall, ""), says("end")), tenon.RunCompleted, tenon.StopEnd, "end", "", 6},
		{"RP-1 bad calls in a text loop", agent.Spec{MaxTurns: 6, React: &agent.React{}}, script(stops(tenon.StopBadCall, "")), tenon.RunFailed, tenon.LimitTurns, "", "Iteration limit of 6", 6},
		{"RP-1 a bad call as the last answer", agent.Spec{MaxTurns: 1, OnLimit: agent.OnLimitFinal}, script(says("", "a"), stops(tenon.StopBadCall, ""), says("what I have")), tenon.RunCompleted, tenon.LimitTurns, "what I have", "", 3},
		{"the model fails", agent.Spec{}, func(c tenon.Command) []tenon.Event {
			return []tenon.Event{{Step: c.Step, Kind: agent.EventFailed, Data: data(agent.Failure{Error: tenon.Errorf(tenon.CodeUnreachable, "no route")})}}
		}, tenon.RunFailed, tenon.StopError, "", "no route", 1},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			tt.spec.Question = "q"
			d := newDriver(t, tt.spec, tt.do)
			d.run()
			if d.done == nil {
				t.Fatal("the run did not end")
			}
			if d.done.State != tt.state || d.done.Stop != tt.stop || d.done.Answer != tt.answer {
				t.Errorf("ended %s %s %q, want %s %s %q", d.done.State, d.done.Stop, d.done.Answer, tt.state, tt.stop, tt.answer)
			}
			switch {
			case tt.err == "" && d.done.Error != nil:
				t.Errorf("error %v", d.done.Error)
			case tt.err != "" && (d.done.Error == nil || !strings.Contains(d.done.Error.Message, tt.err)):
				t.Errorf("error %v, want %q", d.done.Error, tt.err)
			}
			var s agent.Summary
			_ = json.Unmarshal(d.done.Data, &s)
			if s.Turns != tt.turns {
				t.Errorf("%d turns, want %d", s.Turns, tt.turns)
			}
		})
	}
}

// lastResult returns the text of the newest tool result that the model saw.
func lastResult(t *testing.T, d *driver) string {
	t.Helper()
	msgs := d.prompts[len(d.prompts)-1].Messages
	for i := len(msgs) - 1; i >= 0; i-- {
		if msgs[i].Role == tenon.RoleTool {
			return msgs[i].Parts[0].Result.Content[0].Text
		}
	}
	t.Fatal("the model saw no result")
	return ""
}

func TestCallEnds(t *testing.T) {
	t.Run("asked and allowed", testAskedAndAllowed)
	t.Run("asked and denied", testAskedAndDenied)
	end := func(kind string, v any, idempotent bool) func(tenon.Command) []tenon.Event {
		return func(c tenon.Command) []tenon.Event {
			switch c.Kind {
			case agent.CommandDecide:
				return decided(c, tenon.Allow, idempotent)
			case agent.CommandModel:
				if c.Step == "1" {
					return answer(c.Step, "", "pay")
				}
				return answer(c.Step, "end")
			}
			return []tenon.Event{{Step: c.Step, Kind: kind, Data: data(v)}}
		}
	}
	tests := []struct {
		name     string
		do       func(tenon.Command) []tenon.Event
		want     string
		attempts int
	}{
		{"KN-25 a tool's own error", end(agent.EventResult, agent.Outcome{Result: tenon.ErrorResult("boom")}, false), "Error: boom", 1},
		{"not made", end(agent.EventFailed, agent.Failure{Error: tenon.Errorf(tenon.CodeUnreachable, "gone")}, false), "Error: gone", 1},
		{"tried again where that is safe", end(agent.EventFailed, agent.Failure{Error: tenon.Errorf(tenon.CodeUnreachable, "gone"), Retry: true}, true), "Error: gone", 3},
		{"unknown", end(tenon.EventUnknown, agent.Failure{Error: tenon.Errorf(tenon.CodeUnknown, "the connection was lost")}, false),
			"Error: the outcome of this call is unknown: the connection was lost. It may or may not have taken effect; check before you repeat it.", 1},
		{"an empty result", end(agent.EventResult, agent.Outcome{Result: &tenon.Result{Structured: json.RawMessage(`{"id":9007199254740993}`)}}, false), `{"id":9007199254740993}`, 1},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			d := newDriver(t, agent.Spec{Question: "q"}, tt.do)
			d.run()
			if got := lastResult(t, d); got != tt.want {
				t.Errorf("the model was told %q, want %q", got, tt.want)
			}
			if d.attempt["1.0"] != tt.attempts {
				t.Errorf("%d attempts, want %d", d.attempt["1.0"], tt.attempts)
			}
			if d.done.State != tenon.RunCompleted {
				t.Errorf("ended %s", d.done.State)
			}
		})
	}
}

func testAskedAndAllowed(t *testing.T) {
	d := newDriver(t, agent.Spec{Question: "q"}, payIfAllowed)
	d.run()
	if d.done != nil {
		t.Fatal("ran without being asked")
	}
	d.now = d.now.Add(72 * time.Hour) // 72 hours of waiting for a person do not count as time of the run
	d.apply(tenon.Event{Step: "1.0", Kind: agent.EventDecision, Data: data(agent.Ruling{Verdict: tenon.Allow, By: "ann", Arguments: json.RawMessage(`{"n":2}`)})})
	cmds := d.core.Next()
	c := said[agent.ToolCommand](cmds[0])
	if string(c.Arguments) != `{"n":2}` {
		t.Errorf("edited arguments are not the ones that are sent: %s", c.Arguments)
	}
	d.run()
	if got := lastResult(t, d); got != "paid" || d.done.State != tenon.RunCompleted {
		t.Errorf("result %q, state %s", got, d.done.State)
	}
	rec := view.Of(d.journal).Calls()[0]
	if rec.By != "ann" || rec.Verdict != tenon.Allow || string(rec.Args) != `{"n":2}` || !rec.Success {
		t.Errorf("record %+v", rec)
	}
}

func testAskedAndDenied(t *testing.T) {
	d := newDriver(t, agent.Spec{Question: "q"}, payIfAllowed)
	d.run()
	d.apply(tenon.Event{Step: "1.0", Kind: agent.EventDecision, Data: data(agent.Ruling{Verdict: tenon.Deny, By: "ann", Reason: "too much"})})
	d.run()
	if got := lastResult(t, d); got != "Error: the call was denied by ann: too much" {
		t.Errorf("the model was told %q", got)
	}
}

// payIfAllowed answers the commands of a run whose model calls the tool pay. The call needs a person's approval.
func payIfAllowed(c tenon.Command) []tenon.Event {
	switch c.Kind {
	case agent.CommandDecide:
		return decided(c, tenon.Ask, false)
	case agent.CommandModel:
		if c.Step == "1" {
			return answer(c.Step, "", "pay")
		}
		return answer(c.Step, "end")
	}
	return result(c.Step, "paid", false)
}

func TestParallel(t *testing.T) {
	d := newDriver(t, agent.Spec{Question: "q", Parallel: 2}, script(says("", "a", "b", "c"), says("end")))
	pick := func(int) int { return 0 }
	for range 4 { // the model, three decisions
		d.step(pick)
	}
	cmds := d.core.Next()
	if len(cmds) != 2 || cmds[0].Step != "1.0" || cmds[1].Step != "1.1" {
		t.Fatalf("wants %v, want the first two calls", show(cmds))
	}
	// The last call ends first. The model still gets the results in the order of the calls.
	d.apply(tenon.Event{Step: "1.0", Kind: tenon.EventStarted, Attempt: 1})
	d.apply(tenon.Event{Step: "1.1", Kind: tenon.EventStarted, Attempt: 1})
	if cmds := d.core.Next(); len(cmds) != 0 {
		t.Fatalf("a third call at a limit of two: %v", show(cmds))
	}
	d.apply(result("1.1", "second", false)[0])
	d.apply(tenon.Event{Step: "1.2", Kind: tenon.EventStarted, Attempt: 1})
	d.apply(result("1.2", "third", true)[0])
	d.apply(result("1.0", "first", false)[0])
	d.run()
	m := d.prompts[len(d.prompts)-1].Messages[2]
	var got []string
	for _, p := range m.Parts {
		got = append(got, p.Result.Content[0].Text)
	}
	if strings.Join(got, ",") != "first,second,Error: third" {
		t.Errorf("results %v", got)
	}
}

func TestCancel(t *testing.T) {
	d := newDriver(t, agent.Spec{Question: "q"}, script(says("", "a", "b"), says("end")))
	pick := func(int) int { return 0 }
	for range 3 { // the model, two decisions
		d.step(pick)
	}
	d.apply(tenon.Event{Step: "1.0", Kind: tenon.EventStarted, Attempt: 1})
	d.apply(tenon.Event{Kind: tenon.EventCancel, Data: data(tenon.CancelData{Reason: "enough"})})
	if cmds := d.core.Next(); len(cmds) != 0 {
		t.Fatalf("wants %v while a call is under way", show(cmds))
	}
	d.apply(result("1.0", "ok", false)[0])
	d.run()
	if d.done.State != tenon.RunCancelled || d.done.Stop != tenon.StopCancelled || d.done.Error.Message != "enough" {
		t.Errorf("ended %+v", d.done)
	}
	// KN-84: the history with which the next run starts has no call without a result.
	checkHistory(t, d.core.Messages())
}

func TestTimeLimit(t *testing.T) {
	d := newDriver(t, agent.Spec{Question: "q", Timeout: time.Minute}, nil)
	d.do = func(c tenon.Command) []tenon.Event {
		d.now = d.now.Add(50 * time.Second)
		return script(says("so far", "a"))(c)
	}
	d.run()
	if d.done.Stop != tenon.LimitTime || d.done.Answer != "so far" {
		t.Errorf("ended %+v", d.done)
	}
}

func TestGrantForTheSession(t *testing.T) {
	var last *agent.DecideCommand
	do := func(c tenon.Command) []tenon.Event {
		if c.Kind == agent.CommandDecide {
			last = said[agent.DecideCommand](c)
			if last.GrantFor("s", last.Call.Name, nil) == "" {
				return decided(c, tenon.Ask, false)
			}
		}
		return script(says("", "pay"), says("end"))(c)
	}
	d := newDriver(t, agent.Spec{Question: "q", MaxTurns: 2}, do)
	d.run()
	d.apply(tenon.Event{Step: "1.0", Kind: agent.EventDecision, Data: data(agent.Ruling{Verdict: tenon.Allow, By: "ann", Remember: agent.RememberSession})})
	d.run()
	if got := last.GrantFor("s", "pay", nil); got != "ann (for the session)" {
		t.Errorf("the second call is granted by %q", got)
	}
	if got := last.GrantFor("other", "pay", nil); got != "" {
		t.Errorf("another server's tool is granted by %q", got)
	}
	// The next run of the session inherits the grant.
	next := agent.New(agent.Spec{Question: "again"}, d.core)
	_ = next.Apply(tenon.Event{Kind: tenon.EventRun})
	_ = next.Apply(answer("1", "", "pay")[0])
	c := said[agent.DecideCommand](next.Next()[0])
	if c.GrantFor("s", "pay", nil) == "" {
		t.Error("the next run of the session asks again")
	}
}

func TestConfirm(t *testing.T) {
	for _, verdict := range []tenon.Verdict{tenon.Allow, tenon.Deny} {
		t.Run(string(verdict), func(t *testing.T) {
			d := newDriver(t, agent.Spec{Question: "q", MaxTurns: 2, OnLimit: agent.OnLimitConfirm},
				script(says("", "a"), says("", "a"), says("", "a"), says("end")))
			d.run()
			waits := d.core.Next()
			var a agent.Asking
			if len(waits) != 1 || json.Unmarshal(waits[0].Data, &a) != nil || a.Kind != "limit" || !strings.HasPrefix(a.Reason, "Do you want me to continue?") {
				t.Fatalf("waits for %v", show(waits))
			}
			d.apply(tenon.Event{Step: waits[0].Step, Kind: agent.EventDecision, Data: data(agent.Ruling{Verdict: verdict, By: "ann"})})
			d.run()
			if verdict == tenon.Allow && (d.done.State != tenon.RunCompleted || d.done.Answer != "end") ||
				verdict == tenon.Deny && (d.done.State != tenon.RunFailed || d.done.Stop != tenon.LimitTurns) {
				t.Errorf("ended %+v", d.done)
			}
		})
	}
}

func TestRetryGetsItsLimitsAnew(t *testing.T) {
	d := newDriver(t, agent.Spec{Question: "q", MaxTurns: 2}, script(says("", "a"), says("", "a"), says("", "a"), says("end")))
	d.run()
	if d.done.Stop != tenon.LimitTurns {
		t.Fatalf("ended %+v", d.done)
	}
	d.apply(tenon.Event{Kind: tenon.EventRetry})
	d.run()
	if d.done.State != tenon.RunCompleted || d.done.Answer != "end" {
		t.Errorf("ended %+v", d.done)
	}
	misfit := func(step string) []tenon.Event {
		return []tenon.Event{{Step: step, Kind: agent.EventModel, Data: data(agent.Answered{Misfit: "no",
			Response: tenon.Response{Stop: tenon.StopEnd, Message: &tenon.Message{Role: tenon.RoleAssistant, Parts: []tenon.Part{{Type: tenon.PartText, Text: "x"}}}}})}}
	}
	d = newDriver(t, agent.Spec{Question: "q"}, script(misfit, misfit, misfit, misfit, says("end")))
	d.run()
	if d.done.State != tenon.RunFailed {
		t.Fatalf("ended %+v", d.done)
	}
	d.apply(tenon.Event{Kind: tenon.EventRetry})
	d.run()
	if d.done.State != tenon.RunCompleted || d.done.Answer != "end" {
		t.Errorf("an answer that did not fit was not asked for again: %+v", d.done)
	}
}

// TestRememberNeedsAQuestion checks that a decision about which nobody was asked grants nothing.
func TestRememberNeedsAQuestion(t *testing.T) {
	d := newDriver(t, agent.Spec{Question: "q"}, nil)
	started := tenon.Event{Step: "1", Kind: tenon.EventStarted, Attempt: 1}
	d.apply(started)
	for _, e := range answer("1", "", "a") {
		d.apply(e)
	}
	d.apply(decided(d.core.Next()[0], tenon.Allow, false)[0])
	d.apply(tenon.Event{Step: "1.0", Kind: tenon.EventStarted, Attempt: 1})
	d.apply(tenon.Event{Step: "1.0", Kind: agent.EventDecision, Data: data(agent.Ruling{Verdict: tenon.Allow, By: "me", Remember: agent.RememberSession})})
	d.apply(result("1.0", "r", false)[0])
	d.apply(tenon.Event{Step: "2", Kind: tenon.EventStarted, Attempt: 1})
	for _, e := range answer("2", "", "a") {
		d.apply(e)
	}
	if c := said[agent.DecideCommand](d.core.Next()[0]); len(c.Grants) > 0 {
		t.Errorf("granted: %v", c.Grants)
	}
}

func TestSteer(t *testing.T) {
	d := newDriver(t, agent.Spec{Question: "q"}, script(says("", "a"), says("end")))
	d.step(func(int) int { return 0 })
	d.apply(tenon.Event{Kind: agent.EventMessage, Data: data(agent.Steer{Text: "in Celsius"})})
	d.run()
	msgs := d.prompts[1].Messages
	if got := msgs[len(msgs)-1].Text(); got != "in Celsius" {
		t.Errorf("the model saw %q last", got)
	}
}

func TestApplyRefusesWhatDoesNotFollow(t *testing.T) {
	s := agent.New(agent.Spec{Question: "q"}, nil)
	for _, e := range []tenon.Event{
		{Kind: "no such kind"},
		{Kind: agent.EventResult, Step: "1.0"},
		{Kind: agent.EventModel, Step: "7", Data: data(tenon.Response{})},
		{Kind: agent.EventModel, Step: "1", Data: json.RawMessage(`{"message":7}`)},
	} {
		if err := s.Apply(e); tenon.ErrorCode(err) != tenon.CodeStore {
			t.Errorf("event %s %s: error %v", e.Kind, e.Step, err)
		}
	}
}

func TestDirect(t *testing.T) {
	tests := []struct {
		name  string
		event tenon.Event
		state tenon.RunState
		code  tenon.Code
	}{
		{"a result", result("1.0", "5", false)[0], tenon.RunCompleted, ""},
		{"a tool's own error", result("1.0", "boom", true)[0], tenon.RunCompleted, ""},
		{"not made", tenon.Event{Step: "1.0", Kind: agent.EventFailed, Data: data(agent.Failure{Error: tenon.Errorf(tenon.CodeUnreachable, "gone")})}, tenon.RunFailed, tenon.CodeUnreachable},
		{"unknown", tenon.Event{Step: "1.0", Kind: tenon.EventUnknown}, tenon.RunFailed, tenon.CodeUnknown},
		{"failed without a word", tenon.Event{Step: "1.0", Kind: agent.EventFailed}, tenon.RunFailed, tenon.CodeInternal},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			core := agent.NewDirect(agent.DirectSpec{Name: "add", By: "local"})
			apply := func(e tenon.Event) {
				if err := core.Apply(e); err != nil {
					t.Fatal(err)
				}
			}
			apply(tenon.Event{Kind: tenon.EventRun})
			apply(decided(core.Next()[0], tenon.Allow, false)[0])
			if c := core.Next()[0]; c.Kind != agent.CommandTool {
				t.Fatalf("wants %v", show(core.Next()))
			}
			apply(tenon.Event{Step: "1.0", Kind: tenon.EventStarted, Attempt: 1})
			apply(tt.event)
			var d tenon.DoneData
			if err := json.Unmarshal(core.Next()[0].Data, &d); err != nil {
				t.Fatal(err)
			}
			if d.State != tt.state || d.Error != nil && d.Error.Code != tt.code || d.Error == nil && tt.code != "" {
				t.Errorf("ended %s %v, want %s %s", d.State, d.Error, tt.state, tt.code)
			}
			done := show(core.Next())
			apply(tenon.Event{Kind: tenon.EventDone})
			apply(tenon.Event{Kind: tenon.EventRetry})
			if diff := cmp.Diff(done, show(core.Next())); diff != "" { // no open work to retry
				t.Error(diff)
			}
		})
	}
}
