package main

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/agent"
	"github.com/tenonhq/tenon/engine"
	"github.com/tenonhq/tenon/host"
)

// follower prints a run as it goes: the model's text on stdout, on a terminal as it
// comes and else when an answer is whole; a line on stderr for each tool call that
// ended. It is a fold over the run's events like everything else that shows a run.
type follower struct {
	a       *app
	seq     uint64                   // of the last stored event
	calls   map[string][]tenon.Event // events of tool calls, by step
	tried   []string                 // steps whose last attempt failed, and may be followed by another
	said    strings.Builder          // text of the model call under way
	agent   bool                     // it is the run of an agent, and not of a workflow
	json    bool                     // the run has an output schema
	open    bool                     // stdout stands within a line
	thought bool                     // stderr stands within a line of thinking
	status  bool                     // stderr shows a status line
	waiting []tenon.Waiting
	done    *tenon.DoneData
	asks    *questions // asks the person; nil: nobody is asked
	dialog  host.Dialog
}

func newFollower(a *app) *follower {
	return &follower{a: a, calls: map[string][]tenon.Event{}}
}

// catchUp takes in events that were shown before.
func (f *follower) catchUp(events []tenon.Event) {
	for _, e := range events {
		f.seq = e.Seq
		f.dialog.Add(e)
		switch e.Kind {
		case tenon.EventRun:
			f.began(e)
		case tenon.EventRetry:
			f.done = nil
		case tenon.EventStarted:
			f.passedOver(e)
		}
		if strings.Contains(e.Step, ".") {
			f.calls[e.Step] = append(f.calls[e.Step], e)
		}
	}
}

// began looks at what a run is.
func (f *follower) began(e tenon.Event) {
	var s struct {
		Run  tenon.Run
		Data agent.Spec
	}
	if json.Unmarshal(e.Data, &s) == nil {
		f.agent, f.json = s.Run.Core == agent.Version, len(s.Data.Output) > 0
	}
}

// follow prints events until the run ends or waits.
func (f *follower) follow(ctx context.Context, from source, run string) error {
	f.waiting, f.done = nil, nil
	defer f.settle()
	for e, err := range from.Events(ctx, run, f.seq) {
		if err != nil {
			return err
		}
		if e.Kind == host.LiveChunk {
			continue // we make our own
		}
		if e.Seq > 0 {
			f.seq = e.Seq
		}
		if err := f.line(e); err != nil {
			return err
		}
		if err := f.show(e); err != nil {
			return err
		}
	}
	return ctx.Err()
}

// line prints a stored event, and what a run in mode react says, as lines of JSON.
func (f *follower) line(e tenon.Event) error {
	if f.a.format != formatJSONL {
		return nil
	}
	if e.Seq > 0 {
		if err := f.a.printJSON(e); err != nil {
			return err
		}
	}
	for _, c := range f.dialog.Add(e) {
		if err := f.a.printJSON(c); err != nil {
			return err
		}
	}
	return nil
}

func (f *follower) show(e tenon.Event) error {
	switch e.Kind {
	case engine.LiveDelta:
		return f.delta(e)
	case engine.LiveReset:
		var d engine.Delta
		_ = json.Unmarshal(e.Data, &d) // ours; an unreadable one has no reason to show
		f.settle()
		f.said.Reset()
		f.a.note("the answer starts over: %s", d.Text)
	case agent.LiveProgress:
		f.progress(e)
	case tenon.EventRun:
		f.began(e)
	case agent.EventModel:
		return f.answered(e)
	case engine.EventWaiting:
		if err := json.Unmarshal(e.Data, &f.waiting); err != nil {
			return tenon.Errorf(tenon.CodeInternal, "what run %s waits for cannot be read: %w", e.Run, err)
		}
	case tenon.EventDone:
		f.gaveUp()
		f.done = &tenon.DoneData{}
		if err := json.Unmarshal(e.Data, f.done); err != nil {
			return tenon.Errorf(tenon.CodeStore, "how run %s ended cannot be read: %w", e.Run, err)
		}
	case tenon.EventRetry:
		f.done = nil
	case agent.EventMessage:
		f.message(e)
	case agent.EventCompacted:
		f.compacted(e)
	case agent.LiveChild:
		f.child(e)
	case agent.EventFailed:
		if strings.Contains(e.Step, ".") {
			f.tool(e)
		} else if f.agent && strings.HasPrefix(e.Step, "c") {
			f.notCompacted(e)
		}
	default:
		switch {
		case strings.Contains(e.Step, "/"):
			if f.clear(); f.asks != nil {
				f.asks.see(e)
			}
		case strings.Contains(e.Step, "."):
			f.tool(e)
			if f.asks != nil {
				f.asks.seeCall(e)
			}
		case e.Kind == tenon.EventStarted:
			f.gaveUp() // the turn is over
			for _, r := range f.passedOver(e) {
				if !f.a.quiet {
					f.settle()
					fmt.Fprintln(f.a.err, f.a.callLine(r))
				}
			}
		}
	}
	return nil
}

// child shows what happens in a run that this one called: its tool calls, indented.
func (f *follower) child(e tenon.Event) {
	var inner tenon.Event
	if json.Unmarshal(e.Data, &inner) != nil {
		return
	}
	switch {
	case inner.Kind == agent.LiveChild:
		f.child(inner)
	case !strings.Contains(inner.Step, "."):
	case strings.Contains(inner.Step, "/"):
		if f.clear(); f.asks != nil {
			f.asks.see(inner)
		}
	default:
		f.called(inner, strings.Repeat("  ", strings.Count(inner.Run, "/")))
	}
}

// notCompacted tells that a conversation stays as long as it is.
func (f *follower) notCompacted(e tenon.Event) {
	var d agent.Failure
	if json.Unmarshal(e.Data, &d) != nil || d.Error == nil || f.a.quiet {
		return
	}
	f.settle()
	f.a.note("the conversation could not be made shorter: %s", safeLine(d.Error.Message))
}

// compacted tells that the model sees less from here on.
func (f *follower) compacted(e tenon.Event) {
	var c agent.Compacted
	if json.Unmarshal(e.Data, &c) != nil || f.a.quiet {
		return
	}
	f.settle()
	fmt.Fprintln(f.a.err, f.a.errStyle(dim, compactedText(c)))
}

// compactedText says what a compaction did.
func compactedText(c agent.Compacted) string {
	if c.Cut == 0 {
		return "● the results of older tool calls are left out from here on"
	}
	return "● a summary stands for the first " + plural(c.Cut, "message") + " from here on"
}

// delta prints a piece of the answer.
func (f *follower) delta(e tenon.Event) error {
	var d engine.Delta
	if err := json.Unmarshal(e.Data, &d); err != nil || d.Text == "" {
		return nil // nothing to show
	}
	switch {
	case d.Kind == tenon.DeltaText && f.json: // only what fits the schema is printed
	case d.Kind == tenon.DeltaText && !f.a.outTTY: // what is printed stays: answered has it when it is whole
	case d.Kind == tenon.DeltaText:
		f.said.WriteString(d.Text)
		return f.print(d.Text)
	case d.Kind == tenon.DeltaThinking && f.a.errTTY && f.a.outTTY && f.a.format == formatText && !f.a.quiet:
		f.clear()
		f.thought = true
		fmt.Fprint(f.a.err, f.a.errStyle(dim, safeText(d.Text)))
	}
	return nil
}

func (f *follower) print(text string) error {
	if f.a.format != formatText || text == "" {
		return nil
	}
	f.clear()
	if f.thought {
		f.thought = false
		f.a.note("")
	}
	if f.open = !strings.HasSuffix(text, "\n"); f.a.outTTY {
		text = safeText(text)
	}
	return f.a.write([]byte(text))
}

// answered completes what was streamed: live events may be missed, the stored
// answer is whole.
func (f *follower) answered(e tenon.Event) error {
	var r agent.Answered
	if err := json.Unmarshal(e.Data, &r); err != nil || r.Message == nil {
		return nil // the run's end will say so
	}
	for _, t := range r.Tried {
		f.settle()
		f.a.note("● model %s gave no answer: %s", t.Model, t.Error.Message)
	}
	if r.By != "" {
		f.a.note("● model %s answers", r.By)
	}
	if f.json {
		if r.Misfit != "" {
			f.settle()
			f.a.note("● the answer does not fit the schema: %s", strings.TrimPrefix(r.Misfit, "it does not fit the schema: "))
		}
		return f.json1(r.Output)
	}
	said, text := f.said.String(), r.Message.Text()
	f.said.Reset()
	rest, ok := strings.CutPrefix(text, said)
	if !ok {
		f.settle()
		rest = text
	}
	err := f.print(rest)
	f.settle()
	return err
}

// json1 prints the one value that a run with an output schema answers with.
func (f *follower) json1(output json.RawMessage) error {
	if len(output) == 0 || f.a.format != formatText {
		return nil
	}
	f.settle()
	return f.a.printRaw(output)
}

// settle ends the line that stdout stands in, so that what follows begins on a
// line of its own.
func (f *follower) settle() {
	f.clear()
	if f.open {
		f.open = false
		_ = f.a.write([]byte("\n")) // a stdout that is gone is seen at the next text
	}
	if f.thought {
		f.thought = false
		f.a.note("")
	}
}

// tool folds an event of a tool call and prints the call when it ends.
func (f *follower) tool(e tenon.Event) { f.called(e, "") }

// called does so for a call of this run, or, indented, of one that it called.
func (f *follower) called(e tenon.Event, indent string) {
	step := e.Step
	if indent != "" {
		step = e.Run + "/" + e.Step
	}
	f.calls[step] = append(f.calls[step], e)
	records := agent.Calls(f.calls[step])
	if len(records) != 1 {
		return
	}
	r := records[0]
	switch e.Kind {
	case tenon.EventStarted:
		f.tried = slices.DeleteFunc(f.tried, func(tried string) bool { return tried == step })
		f.transient("○ " + callName(r) + " " + shorten(safeLine(string(r.Args)), 60))
		return
	case agent.EventAdmitted:
		if r.Outcome == agent.CallOpen {
			f.clear()
			f.a.turn(e)
			return
		}
	case agent.EventFailed:
		var d agent.Failure
		if json.Unmarshal(e.Data, &d) == nil && d.Retry {
			f.tried = append(f.tried, step)
			f.transient("○ " + callName(r) + " " + safeLine(r.Error) + "; it is tried again")
			return
		}
	case tenon.EventInterrupted, agent.EventInput:
		return
	}
	if r.Outcome == agent.CallOpen || f.a.quiet {
		return
	}
	f.settle()
	fmt.Fprintln(f.a.err, indent+f.a.callLine(r))
}

// gaveUp prints the calls whose last attempt failed and was not followed by
// another one.
func (f *follower) gaveUp() {
	for _, step := range f.tried {
		if records := agent.Calls(f.calls[step]); len(records) == 1 && !f.a.quiet {
			f.settle()
			indent := strings.Repeat("  ", max(strings.Count(step, "/")-1, 0)) // of a run that this one called
			fmt.Fprintln(f.a.err, indent+f.a.callLine(records[0]))
		}
	}
	f.tried = nil
}

// passedOver returns the calls that nobody made although a step begins that is no call,
// the next request to the model: it is told why, which is no event of theirs.
func (f *follower) passedOver(e tenon.Event) (list []agent.CallRecord) {
	if !f.agent || strings.Contains(e.Step, ".") {
		return nil
	}
	e.Kind = agent.EventModel // by which a record knows it
	for _, step := range slices.Sorted(maps.Keys(f.calls)) {
		if records := agent.Calls(f.calls[step]); strings.Contains(step, "/") || len(records) != 1 || records[0].Outcome != agent.CallOpen {
			continue
		}
		f.calls[step] = append(f.calls[step], e)
		if r := agent.Calls(f.calls[step])[0]; r.Outcome != agent.CallOpen {
			list = append(list, r)
		}
	}
	return list
}

// stopped prints the calls that were under way when the run came to its end.
func (f *follower) stopped() {
	for _, step := range slices.Sorted(maps.Keys(f.calls)) {
		if records := agent.Calls(f.calls[step]); len(records) == 1 && records[0].Outcome == agent.CallOpen && !f.a.quiet {
			fmt.Fprintln(f.a.err, f.a.callLine(records[0]))
		}
	}
}
