package cli

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
	"github.com/tenonhq/tenon/view"
)

// follower prints a run while it happens. The model's text goes to stdout: to a terminal block by block, otherwise when
// an answer is complete. Each finished tool call is a line on stderr. A follower is a fold over the run's events.
type follower struct {
	a       *app
	seq     uint64                   // of the last stored event
	calls   map[string][]tenon.Event // events of tool calls, by step
	whole   view.Run                 // all stored events of the run
	told    map[string]bool          // steps of calls that were printed although no event ended them
	tried   []string                 // steps whose last attempt failed and may be repeated
	said    strings.Builder          // text of the current model call
	drawing drawing                  // the part of said that is on the terminal
	agent   bool                     // the run is of an agent, not of a workflow
	json    bool                     // the run has an output schema
	open    bool                     // the last text on stdout had no line break
	thought bool                     // the last text on stderr was thinking without a line break
	status  bool                     // stderr shows a status line
	waiting []tenon.Waiting
	done    *tenon.DoneData
	asks    *questions // asks the person; may be nil
	dialog  host.Dialog
}

func newFollower(a *app) *follower {
	return &follower{a: a, calls: map[string][]tenon.Event{}, told: map[string]bool{}}
}

// catchUp folds events that were shown before.
func (f *follower) catchUp(events []tenon.Event) {
	for _, e := range events {
		f.seq = e.Seq
		f.dialog.Add(e)
		f.whole.Apply(e)
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

// began records the kind of a run.
func (f *follower) began(e tenon.Event) {
	run, spec, err := view.Spec[agent.Spec](e)
	if err == nil {
		f.agent, f.json = run.Core == agent.Version, len(spec.Output) > 0
	}
}

// follow prints events until the run ends or waits.
func (f *follower) follow(ctx context.Context, from host.Runs, run string) error {
	f.waiting, f.done = nil, nil
	defer f.settle()
	for e, err := range from.Events(ctx, run, f.seq) {
		if err != nil {
			return err
		}
		if e.Kind == host.LiveChunk {
			continue // f.dialog makes the same chunks
		}
		if e.Seq > 0 {
			f.seq = e.Seq
			f.whole.Apply(e)
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

// line prints a stored event, and the chunks of a run in mode react, as lines of JSON.
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
		f.settle()
		f.said.Reset()
		f.drawing = drawing{}
		f.a.note("the answer starts over: %s", view.As[engine.Delta](e).Text)
	case agent.LiveProgress:
		f.progress(e)
	case tenon.EventRun:
		f.began(e)
	case agent.EventModel:
		return f.answered(e)
	case engine.EventWaiting:
		waiting, err := view.Try[[]tenon.Waiting](e)
		if err != nil {
			return err
		}
		f.waiting = waiting
	case tenon.EventDone:
		f.gaveUp()
		done, err := view.Try[tenon.DoneData](e)
		if err != nil {
			return err
		}
		f.done = &done
	case tenon.EventRetry:
		f.done = nil
	case agent.EventMessage:
		f.message(e)
	case agent.EventCompacted:
		f.compacted(e)
	case agent.EventTools:
		f.toolsChanged(e)
	case agent.LiveChild:
		f.child(e)
	case agent.EventFailed:
		step := tenon.ParseStep(e.Step)
		if step.IsCall() {
			f.tool(e)
		} else if f.agent && step.IsCompaction() {
			f.notCompacted(e)
		}
	default:
		step := tenon.ParseStep(e.Step)
		switch {
		case step.IsQuestion():
			f.clear()
			if f.asks != nil {
				f.asks.see(e)
			}
		case step.IsCall():
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

// child shows the tool calls of a run that this one called, indented.
func (f *follower) child(e tenon.Event) {
	inner, err := view.Try[tenon.Event](e)
	if err != nil {
		return
	}
	step := tenon.ParseStep(inner.Step)
	switch {
	case inner.Kind == agent.LiveChild:
		f.child(inner)
	case step.Call == "":
	case step.IsQuestion():
		f.clear()
		if f.asks != nil {
			f.asks.see(inner)
		}
	default:
		f.called(inner, strings.Repeat("  ", strings.Count(inner.Run, "/")))
	}
}

// notCompacted reports a compaction that failed.
func (f *follower) notCompacted(e tenon.Event) {
	d := view.As[agent.Failure](e)
	if d.Error == nil || f.a.quiet {
		return
	}
	f.settle()
	f.a.note("the conversation could not be made shorter: %s", safeLine(d.Error.Message))
}

// compacted reports a compaction.
func (f *follower) compacted(e tenon.Event) {
	c, err := view.Try[agent.Compacted](e)
	if err != nil || f.a.quiet {
		return
	}
	f.settle()
	fmt.Fprintln(f.a.err, f.a.errStyle(dim, compactedText(c)))
}

// toolsChanged prints the tools that the model sees from now on, or no longer.
func (f *follower) toolsChanged(e tenon.Event) {
	c, err := view.Try[agent.ToolsChanged](e)
	if err != nil || f.a.quiet {
		return
	}
	text := changedTools(c)
	if text == "" {
		return
	}
	f.settle()
	fmt.Fprintln(f.a.err, f.a.errStyle(dim, text))
}

// maxToldTools bounds the names of changed tools on a line.
const maxToldTools = 10

// compactedText describes a compaction.
func compactedText(c agent.Compacted) string {
	if c.Cut == 0 {
		return "● the model no longer sees the results of older tool calls"
	}
	return "● a summary replaces the first " + plural(c.Cut, "message")
}

// delta prints a piece of the answer.
func (f *follower) delta(e tenon.Event) error {
	d := view.As[engine.Delta](e)
	if d.Text == "" {
		return nil // nothing to show
	}
	switch {
	case d.Kind == tenon.DeltaText && f.json: // answered prints the value if it fits the schema
	case d.Kind == tenon.DeltaText && !f.a.outTTY: // answered prints the complete answer, since output cannot be undone
	case d.Kind == tenon.DeltaText:
		f.said.WriteString(d.Text)
		if f.a.draws() {
			return f.draw(f.said.String(), false)
		}
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
	f.open = !strings.HasSuffix(text, "\n")
	if f.a.outTTY {
		text = safeText(text)
	}
	return f.a.write([]byte(text))
}

// answered prints the rest of a streamed answer. Live events may be missed, but the stored answer is complete.
func (f *follower) answered(e tenon.Event) error {
	r := view.As[agent.Answered](e)
	if r.Message == nil {
		return nil // the end of the run reports why
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
			f.a.note("● the answer does not fit the schema: %s",
				strings.TrimPrefix(r.Misfit, "it does not fit the schema: "))
		}
		return f.json1(r.Output)
	}
	said, text := f.said.String(), r.Message.Text()
	f.said.Reset()
	rest, ok := strings.CutPrefix(text, said)
	if !ok {
		f.settle()
		rest, f.drawing = text, drawing{}
	}
	var err error
	if f.a.draws() {
		err = f.draw(text, true)
		f.drawing = drawing{}
	} else {
		err = f.print(rest)
	}
	f.settle()
	for _, use := range r.Message.Hosted() {
		f.a.note("● provider: %s", safeLine(use))
	}
	if err == nil && f.a.format == formatText {
		if list := sourceLines(r.Message.Citations()); len(list) > 0 {
			err = f.a.write([]byte("\n" + strings.Join(list, "\n") + "\n"))
		}
	}
	for _, m := range view.Generated(e.Run, e.Step, r.Message) {
		f.a.note("● %s", f.a.mediaLine(e.Run, m))
	}
	return err
}

// json1 prints the answer of a run with an output schema.
func (f *follower) json1(output json.RawMessage) error {
	if len(output) == 0 || f.a.format != formatText {
		return nil
	}
	f.settle()
	return f.a.printRaw(output)
}

// settle ends an unfinished line, so that the next output begins a new one.
func (f *follower) settle() {
	f.clear()
	if f.open {
		f.open = false
		_ = f.a.write([]byte("\n")) // the next write reports an error of stdout
	}
	if f.thought {
		f.thought = false
		f.a.note("")
	}
}

// tool folds an event of a tool call and prints the call when it ends.
func (f *follower) tool(e tenon.Event) { f.called(e, "") }

// called is tool for a call of this run or, with an indent, of a run that it called.
func (f *follower) called(e tenon.Event, indent string) {
	step := e.Step
	if indent != "" {
		step = e.Run + "/" + e.Step
	}
	f.calls[step] = append(f.calls[step], e)
	records := view.Of(f.calls[step]).Calls()
	if len(records) != 1 {
		return
	}
	r := records[0]
	switch e.Kind {
	case tenon.EventStarted:
		f.tried = slices.DeleteFunc(f.tried, func(tried string) bool { return tried == step })
		f.transient("○ " + callName(r) + " " + argShort(r.Args, 60))
		return
	case agent.EventAdmitted:
		if r.Outcome == view.CallOpen {
			f.clear()
			f.a.turn(e)
			return
		}
	case agent.EventFailed:
		if view.As[agent.Failure](e).Retry {
			f.tried = append(f.tried, step)
			f.transient("○ " + callName(r) + " " + safeLine(r.Error) + "; it is tried again")
			return
		}
	case tenon.EventInterrupted, agent.EventInput:
		return
	}
	if r.Outcome == view.CallOpen || f.a.quiet {
		return
	}
	f.settle()
	if whole, ok := f.whole.Call(step); ok {
		r.Questions = whole.Questions
	}
	fmt.Fprintln(f.a.err, indent+f.a.callLine(r))
}

// gaveUp prints the calls whose last attempt failed and was not repeated.
func (f *follower) gaveUp() {
	for _, step := range f.tried {
		if records := view.Of(f.calls[step]).Calls(); len(records) == 1 && !f.a.quiet {
			f.settle()
			indent := strings.Repeat("  ", max(strings.Count(step, "/")-1, 0)) // the step of a run that this one called
			fmt.Fprintln(f.a.err, indent+f.a.callLine(records[0]))
		}
	}
	f.tried = nil
}

// passedOver returns the calls that were not made before the next request to the model began. The request gives the
// model the reason, but these calls have no event for it.
func (f *follower) passedOver(e tenon.Event) (list []view.Call) {
	if !f.agent || tenon.ParseStep(e.Step).Call != "" {
		return nil
	}
	for _, step := range f.unended() {
		if r, ok := f.whole.Call(step); ok && r.Outcome == view.CallDenied {
			f.told[step] = true
			list = append(list, r)
		}
	}
	return list
}

// unended returns the steps of calls that no event has ended, in order.
func (f *follower) unended() (steps []string) {
	for _, step := range slices.Sorted(maps.Keys(f.calls)) {
		if records := view.Of(f.calls[step]).Calls(); len(records) == 1 && records[0].Outcome == view.CallOpen &&
			!f.told[step] {
			steps = append(steps, step)
		}
	}
	return steps
}

// stopped prints the calls that had not ended when the run ended.
func (f *follower) stopped() {
	for _, step := range f.unended() {
		r, ok := f.whole.Call(step)
		if !ok { // the step of a run that this one called
			r = view.Of(f.calls[step]).Calls()[0]
		}
		f.told[step] = true
		if !f.a.quiet {
			fmt.Fprintln(f.a.err, f.a.callLine(r))
		}
	}
}
