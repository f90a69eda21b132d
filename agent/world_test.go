package agent_test

import (
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/agent"
	"github.com/tenonhq/tenon/view"
)

// run makes moves until the run has ended and is not retried. Sometimes a second run then continues the conversation.
func (w *world) run() {
	for {
		for w.d.done == nil || w.goesOn() {
			w.move()
		}
		w.d.check()
		w.checkEnd()
		if w.second || w.IntN(3) > 0 {
			return
		}
		w.second = true
		w.events += len(w.d.journal)
		w.begin(w.d.core)
	}
}

// goesOn sometimes retries a run that has failed.
func (w *world) goesOn() bool {
	if w.d.done.State != tenon.RunFailed || w.moves > 300 || w.IntN(2) == 0 {
		return false
	}
	w.d.done = nil
	w.apply(tenon.Event{Kind: tenon.EventRetry})
	w.stored = len(w.d.journal)
	return true
}

// apply appends events to the journal. A random time passes before each event.
func (w *world) apply(events ...tenon.Event) {
	for _, e := range events {
		switch w.IntN(40) {
		case 0:
			w.d.now = w.d.now.Add(time.Duration(w.IntN(5)) * time.Hour) // a night, or a machine that slept
		case 1:
			w.d.now = w.d.now.Add(-time.Duration(w.IntN(90)) * time.Minute) // the clock was set
		default:
			w.d.now = w.d.now.Add(time.Duration(w.IntN(3000)) * time.Millisecond)
		}
		w.d.apply(e)
	}
}

// move makes one random thing happen.
func (w *world) move() {
	w.moves++
	switch n := w.IntN(300); {
	case w.moves > 400 && !w.cancelled(): // it has had its time
		w.cancel()
		return
	case n == 0 && !w.cancelled():
		w.cancel()
		return
	case n < 6:
		w.apply(tenon.Event{Kind: agent.EventMessage, Data: data(agent.Steer{Text: "by the way"})})
		return
	case n < 30:
		w.crash()
		return
	case n < 40:
		w.broken()
		return
	case n < 80:
		w.stored = len(w.d.journal)
	}
	w.decideAll()
	var can []func()
	for _, c := range w.d.core.Next() {
		switch {
		case c.Kind == tenon.CommandDone:
			can = append(can, func() { w.finish(c) })
		case c.Kind == tenon.CommandWait:
			can = append(can, func() { w.answer(c) })
		case !slices.ContainsFunc(w.flights, func(f tenon.Command) bool { return f.Step == c.Step }):
			can = append(can, func() { w.launch(c) })
		}
	}
	for _, f := range w.flights {
		can = append(can, func() { w.land(f) })
		if strings.Contains(f.Step, ".") && f.Kind == agent.CommandTool {
			can = append(can, func() { w.ask(f) })
		}
	}
	for _, q := range w.questions() {
		can = append(can, func() { w.answerQuestion(q) })
	}
	if len(can) == 0 {
		w.t.Fatal("nothing to do and nothing to wait for")
	}
	can[w.IntN(len(can))]()
}

// decideAll carries out all decision commands. The engine does this, too, before it begins any other command.
func (w *world) decideAll() {
	for again := true; again; {
		again = false
		for _, c := range w.d.core.Next() {
			if c.Kind == agent.CommandDecide {
				w.apply(w.do(c)...)
				again = true
			}
		}
	}
}

// launch begins an attempt. Its started event is stored before the attempt has any effect.
func (w *world) launch(c tenon.Command) {
	if c.After > 0 {
		w.d.now = w.d.now.Add(c.After)
	}
	if over, by := w.over(c.Step); over {
		w.t.Fatalf("step %s begins again after its %s", c.Step, by)
	}
	if n, rounds := w.d.attempt[c.Step], w.count(c.Step, agent.EventInput); !c.Idempotent && n > rounds {
		w.t.Fatalf("step %s may not be repeated and begins for the %d. time, after %d questions", c.Step, n+1, rounds)
	}
	if inFlight := len(w.flights); strings.Contains(c.Step, ".") && inFlight >= w.spec.Parallel {
		w.t.Fatalf("step %s begins beside %d others, %d are allowed", c.Step, inFlight, w.spec.Parallel)
	}
	if w.d.attempt[c.Step]++; w.d.attempt[c.Step] > 1 {
		w.again++
	}
	w.apply(tenon.Event{Step: c.Step, Kind: tenon.EventStarted, Attempt: w.d.attempt[c.Step],
		Data: data(tenon.StartedData{Kind: c.Kind, Idempotent: c.Idempotent})})
	w.stored = len(w.d.journal)
	w.flights = append(w.flights, c)
}

// over reports whether the journal has an event that ends the tool call, and the kind of this event.
func (w *world) over(step string) (bool, string) {
	if !strings.Contains(step, ".") {
		return false, ""
	}
	for _, e := range w.d.journal {
		if e.Step == step && (e.Kind == agent.EventResult || e.Kind == tenon.EventUnknown || e.Kind == agent.EventHandoff) {
			return true, e.Kind
		}
	}
	return false, ""
}

func (w *world) count(step, kind string) (n int) {
	for _, e := range w.d.journal {
		if e.Step == step && e.Kind == kind {
			n++
		}
	}
	return n
}

// land ends an attempt with a random outcome.
func (w *world) land(c tenon.Command) {
	w.flights = slices.DeleteFunc(w.flights, func(f tenon.Command) bool { return f.Step == c.Step })
	w.expireQuestions(c.Step + "/")
	for _, e := range w.do(c) {
		if e.Step == c.Step {
			e.Attempt = w.d.attempt[c.Step]
		}
		w.apply(e)
	}
}

// doubt ends an attempt whose outcome is not known. An attempt that may be repeated counts as interrupted.
func (w *world) doubt(c tenon.Command) {
	e := tenon.Event{Step: c.Step, Kind: tenon.EventUnknown, Attempt: w.d.attempt[c.Step]}
	if c.Idempotent {
		e.Kind = tenon.EventInterrupted
		if !strings.Contains(c.Step, ".") && w.IntN(2) == 0 {
			e.Data = data(agent.Partial{Text: pick(w, "", "half an ans"), Thinking: "hm"})
		}
	}
	w.apply(e)
}

// finish ends the run. If attempts are still under way, it stops them first, and the core then gives its command again.
func (w *world) finish(c tenon.Command) {
	if len(w.flights) > 0 {
		w.abandon()
		return
	}
	w.d.done = new(tenon.DoneData)
	if err := json.Unmarshal(c.Data, w.d.done); err != nil {
		w.t.Fatal(err)
	}
	w.apply(tenon.Event{Kind: tenon.EventDone, Data: c.Data})
	w.stored = len(w.d.journal)
}

func (w *world) cancel() {
	w.cancels++
	w.apply(tenon.Event{Kind: tenon.EventCancel, Data: data(tenon.CancelData{Reason: "enough"})})
	w.stored = len(w.d.journal)
	w.abandon()
}

func (w *world) cancelled() bool { return w.count("", tenon.EventCancel) > 0 }

// abandon stops all attempts that are under way. Some of them still have an outcome.
func (w *world) abandon() {
	for len(w.flights) > 0 {
		f := w.flights[w.IntN(len(w.flights))]
		if w.IntN(2) == 0 {
			w.land(f)
			continue
		}
		w.flights = slices.DeleteFunc(w.flights, func(o tenon.Command) bool { return o.Step == f.Step })
		w.expireQuestions(f.Step + "/")
		w.doubt(f)
	}
}

// crash ends the process. Events that were not stored are lost. The next process rebuilds the core from the journal and
// ends the attempts of the dead process as unknown or interrupted.
func (w *world) crash() {
	w.crashes++
	w.lost += len(w.d.journal) - w.stored
	w.d.journal = slices.Clip(w.d.journal[:w.stored])
	w.d.core = agent.New(w.spec, w.d.parent)
	w.flights, w.d.attempt = nil, map[string]int{}
	for _, e := range w.d.journal {
		if err := w.d.core.Apply(e); err != nil {
			w.t.Fatalf("replay: %v", err)
		}
		if e.Kind == tenon.EventStarted {
			var s tenon.StartedData
			_ = json.Unmarshal(e.Data, &s)
			w.d.attempt[e.Step] = e.Attempt
			w.flights = append(w.flights, tenon.Command{Step: e.Step, Kind: s.Kind, Idempotent: s.Idempotent})
		} else {
			w.flights = slices.DeleteFunc(w.flights, func(f tenon.Command) bool { return f.Step == e.Step && e.Attempt == w.d.attempt[e.Step] })
		}
	}
	w.expireQuestions("")
	open := w.flights
	w.flights = nil
	for _, f := range open {
		w.doubt(f)
	}
}

// broken applies an event with invalid data. The core must refuse it without changing its state.
func (w *world) broken() {
	e := tenon.Event{Run: "run_1", Seq: uint64(len(w.d.journal) + 1), Time: w.d.now.Add(time.Hour), Data: json.RawMessage(`{"verdict":17,"text":[],"reason":{},"responses":`),
		Kind: pick(w, agent.EventMessage, tenon.EventCancel, agent.EventDecision, agent.EventAnswer, agent.EventResult)}
	if e.Kind == agent.EventDecision || e.Kind == agent.EventAnswer || e.Kind == agent.EventResult {
		e.Step = pick(w, "9.9", "1.0", "1.0/q7")
	}
	before := show(w.d.core.Next())
	if w.d.core.Apply(e) == nil {
		if e.Step == "" || e.Step == "9.9" {
			w.t.Fatalf("a broken %s of step %q is taken", e.Kind, e.Step)
		}
		w.d.now = e.Time
		w.d.journal = append(w.d.journal, e) // without effect on a step that does not wait; its time counts
		return
	}
	if after := show(w.d.core.Next()); !slices.Equal(before, after) {
		w.t.Fatalf("a broken %s of step %q changes %s to %s", e.Kind, e.Step, before, after)
	}
}

// answer ends a wait of the run: a person decides or answers, a child run ends, or the time is up. Sometimes it answers
// twice.
func (w *world) answer(c tenon.Command) {
	var a agent.Asking
	if err := json.Unmarshal(c.Data, &a); err != nil {
		w.t.Fatal(err)
	}
	if strings.Contains(c.Step, "/") {
		w.answerQuestion(c.Step)
		return
	}
	e := tenon.Event{Step: c.Step}
	switch {
	case c.After > 0 && w.IntN(3) == 0:
		e.Kind = tenon.EventExpired
		w.d.now = w.d.now.Add(c.After)
	case a.Kind == agent.AskChild:
		e.Kind = agent.EventWake
	case a.Kind == agent.AskInput:
		e.Kind, e.Data = agent.EventAnswer, data(agent.Answer{By: "local", InputAnswer: tenon.InputAnswer{State: "s"}})
	default:
		e.Kind, e.Data = agent.EventDecision, data(agent.Ruling{Verdict: pick(w, tenon.Allow, tenon.Deny), By: "local",
			Remember: pick(w, "", agent.RememberSession, agent.RememberAlways)})
	}
	w.apply(e)
	w.stored = len(w.d.journal) // the sender was informed, so no crash may lose the event
}

// ask has the server ask a question during a running call, up to four times for each call.
func (w *world) ask(c tenon.Command) {
	n := 0
	for _, e := range w.d.journal {
		if e.Kind == tenon.EventQuestion && strings.HasPrefix(e.Step, c.Step+"/") {
			n++
		}
	}
	if n > 3 {
		return
	}
	q := agent.Question{Method: pick(w, "elicitation/create", agent.MethodSample), Params: json.RawMessage(`{"message":"who?"}`), Verdict: pick(w, tenon.Ask, tenon.Allow, tenon.Deny)}
	w.apply(tenon.Event{Step: c.Step + "/q" + string(rune('1'+n)), Kind: tenon.EventQuestion, Data: data(q)})
	w.stored = len(w.d.journal)
}

// questions returns the steps of the questions that are still open.
func (w *world) questions() (open []string) {
	for _, e := range w.d.journal {
		if !strings.Contains(e.Step, "/") {
			continue
		}
		switch e.Kind {
		case tenon.EventQuestion:
			open = append(open, e.Step)
		case agent.EventAnswer, tenon.EventExpired:
			open = slices.DeleteFunc(open, func(s string) bool { return s == e.Step })
		}
	}
	return open
}

func (w *world) answerQuestion(step string) {
	e := tenon.Event{Step: step, Kind: agent.EventAnswer, Data: data(agent.Answer{By: "local", Usage: &tenon.Usage{Input: 3}, Cost: new(tenon.USD(1))})}
	switch w.IntN(4) {
	case 0:
		e.Kind, e.Data = agent.EventDecision, data(agent.Ruling{Verdict: pick(w, tenon.Allow, tenon.Deny)})
	case 1:
		e.Kind, e.Data = tenon.EventExpired, nil
	}
	w.apply(e)
}

// expireQuestions lets the open questions expire whose steps begin with the prefix.
func (w *world) expireQuestions(prefix string) {
	for _, q := range w.questions() {
		if strings.HasPrefix(q, prefix) {
			w.apply(tenon.Event{Step: q, Kind: tenon.EventExpired, Data: data(tenon.ExpiredData{Reason: "nobody listens any more"})})
		}
	}
}

// checkEnd checks an ended run: its report has the same usage and state as the core, and each call has ended exactly
// once.
func (w *world) checkEnd() {
	var sum agent.Summary
	if err := json.Unmarshal(w.d.done.Data, &sum); err != nil {
		w.t.Fatal(err)
	}
	report := view.Of(w.d.journal).Report(tenon.Run{ID: "run_1"})
	if report.Tokens() != sum.Usage {
		w.t.Fatalf("the report counts %+v, the core %+v", report.Usage, sum.Usage)
	}
	if report.State != w.d.done.State || report.Stop != w.d.done.Stop {
		w.t.Fatalf("the report ends with %s %s, the core with %s %s", report.State, report.Stop, w.d.done.State, w.d.done.Stop)
	}
	seen := map[string]bool{}
	for _, c := range report.ToolCalls {
		if seen[c.Step] {
			w.t.Fatalf("step %s has two records", c.Step)
		}
		seen[c.Step] = true
		ends := 0
		for _, kind := range []string{agent.EventResult, tenon.EventUnknown, agent.EventHandoff} {
			ends += w.count(c.Step, kind)
		}
		switch {
		case ends > 1:
			w.t.Fatalf("step %s ended %d times", c.Step, ends)
		case c.Outcome == view.CallUnknown:
			w.unknown++
		case c.Outcome == view.CallDone:
			w.calls++
		}
	}
}
