package cli

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/agent"
	"github.com/tenonhq/tenon/engine"
	"github.com/tenonhq/tenon/internal/tui"
	"github.com/tenonhq/tenon/view"
)

// feed turns the events of a run into messages of the screen. Like follower it is a fold over the events.
type feed struct {
	t     *talk
	run   string
	seq   uint64                   // of the last stored event
	calls map[string][]tenon.Event // events of tool calls, by run and step
	whole view.Run
	done  bool
	waits bool

	resting bool     // the run waits already: the next follow returns at once
	said    []string // messages of the person that no model call has sent yet

	withdraws bool // the run is cancelled, and withdraws these messages

	mu      sync.Mutex
	pending tui.Delta // pieces of the answer that were not sent yet
	timer   *time.Timer
}

// deltaEvery is the interval at which pieces of an answer reach the screen. Most of the CPU time of an answer is spent
// on drawing the screen (TUI.cpu).
const deltaEvery = 40 * time.Millisecond

func newFeed(t *talk, run string) *feed {
	return &feed{t: t, run: run, calls: map[string][]tenon.Event{}}
}

// follow sends events until the run ends or waits.
func (f *feed) follow(ctx context.Context) error {
	f.done, f.waits = false, false
	if f.resting {
		f.resting, f.waits = false, true
		return ctx.Err()
	}
	for e, err := range f.t.h.Runs().Events(ctx, f.run, f.seq) {
		if err != nil {
			return err
		}
		if e.Seq > 0 {
			f.seq = e.Seq
			f.whole.Apply(e)
		}
		if e.Kind == engine.LiveDelta {
			f.delta(view.As[engine.Delta](e))
			continue
		}
		f.flush()
		f.show(ctx, e)
	}
	return ctx.Err()
}

// delta collects a piece of the answer, and sends the pieces after a moment.
func (f *feed) delta(d engine.Delta) {
	if d.Kind != tenon.DeltaText && d.Kind != tenon.DeltaThinking {
		return
	}
	if thinking := d.Kind == tenon.DeltaThinking; thinking != f.kind() {
		f.flush()
		f.mu.Lock()
		f.pending.Thinking = thinking
		f.mu.Unlock()
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.pending.Text += d.Text
	if f.timer == nil {
		f.timer = time.AfterFunc(deltaEvery, f.flush)
	}
}

func (f *feed) kind() (thinking bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.pending.Thinking
}

// flush sends the pieces that wait. The lock is held while they are sent, so that they stay in order.
func (f *feed) flush() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.timer != nil {
		f.timer.Stop()
		f.timer = nil
	}
	if f.pending.Text != "" {
		f.t.p.Send(f.pending)
		f.pending.Text = ""
	}
}

func (f *feed) show(ctx context.Context, e tenon.Event) {
	switch e.Kind {
	case engine.LiveReset:
		f.t.p.Send(tui.Restart{Reason: safeLine(view.As[engine.Delta](e).Text)})
	case agent.LiveProgress:
		f.progress(e)
	case agent.EventModel:
		f.answered(ctx, e)
	case engine.EventWaiting:
		f.waits = len(view.As[[]tenon.Waiting](e)) > 0
		f.list(ctx)
	case tenon.EventDone:
		f.done = true
		f.untaken(view.As[tenon.DoneData](e).State)
	case tenon.EventRetry:
		f.done = false
	case tenon.EventCancel:
		f.withdraws = f.withdraws || view.As[tenon.CancelData](e).Withdraw
	case agent.EventMessage:
		f.said = append(f.said, view.As[agent.Steer](e).Text)
	case agent.EventCompacted:
		f.t.note("%s", compactedText(view.As[agent.Compacted](e)))
	case agent.EventTools:
		if text := changedTools(view.As[agent.ToolsChanged](e)); text != "" {
			f.t.note("%s", text)
		}
	case agent.LiveChild:
		f.child(ctx, e)
	default:
		f.step(ctx, e, 0)
	}
}

// child shows the calls of a run that this one called.
func (f *feed) child(ctx context.Context, e tenon.Event) {
	inner, err := view.Try[tenon.Event](e)
	if err != nil {
		return
	}
	if inner.Kind == agent.LiveChild {
		f.child(ctx, inner)
		return
	}
	if tenon.ParseStep(inner.Step).Call != "" {
		f.step(ctx, inner, strings.Count(inner.Run, "/"))
	}
}

// step shows an event of a call or of a question.
func (f *feed) step(ctx context.Context, e tenon.Event, depth int) {
	step := tenon.ParseStep(e.Step)
	switch {
	case step.IsQuestion():
		f.list(ctx)
	case step.IsCall():
		f.call(e, depth)
		switch e.Kind {
		case agent.EventDecided, agent.EventDecision, tenon.EventExpired, tenon.EventStarted:
			f.list(ctx)
		}
	case e.Kind == tenon.EventStarted: // a turn begins; the calls of the last turn that were not made have no event
		if requests(e) {
			f.taken()
		}
		for key, events := range f.calls {
			if r, ok := f.whole.Call(events[0].Step); ok && !strings.Contains(key, "/") &&
				r.Outcome == view.CallDenied {
				f.send(key, r, 0)
			}
		}
	case e.Kind == agent.EventFailed && step.IsCompaction():
		if d := view.As[agent.Failure](e); d.Error != nil {
			f.t.note("the conversation could not be made shorter: %s", safeLine(d.Error.Message))
		}
	}
}

// taken shows the messages that the person wrote during an answer, below that answer. It is called when the next model
// call sends them, or when the run has ended and the next one sends them.
func (f *feed) taken() {
	for _, text := range f.said {
		f.t.p.Send(tui.Steered{Text: text})
	}
	f.said = nil
}

// list shows the pending questions of the run. There may be none.
func (f *feed) list(ctx context.Context) {
	if _, err := f.t.listAsks(ctx, f.run); err != nil && ctx.Err() == nil {
		f.t.note("tenon: %s", safeLine(err.Error()))
	}
}

// call folds an event of a call.
func (f *feed) call(e tenon.Event, depth int) {
	key := e.Step
	if depth > 0 {
		key = e.Run + "/" + e.Step
	}
	f.calls[key] = append(f.calls[key], e)
	if records := view.Of(f.calls[key]).Calls(); len(records) == 1 {
		f.send(key, records[0], depth)
	}
}

// send shows the state of a call.
func (f *feed) send(key string, r view.Call, depth int) {
	if whole, ok := f.whole.Call(key); ok && depth == 0 {
		r.Questions = whole.Questions
	}
	c := tui.Call{Key: f.run + "/" + key, Name: callName(r), Args: argShort(r.Args, argsShown), Depth: depth,
		State: callState(r), Details: details(r.Args, r.Result)}
	switch {
	case r.Outcome == view.CallOpen && r.Verdict == tenon.Ask && r.Started.IsZero():
		c.Note = "waits for approval"
	case r.Outcome == view.CallOpen:
	case r.Outcome == view.CallDone && r.Success && r.Misfit != "":
		c.Note = "the result does not fit the output schema: " + r.Misfit
	case r.Outcome == view.CallDone && r.Success:
		c.Note = safeLine(declinedQuestion(r))
	case r.Outcome == view.CallDone:
		c.Note = "error: " + r.Error
	case r.Outcome == view.CallInterrupted:
		c.Note = r.Error
	default:
		c.Note = r.Outcome + ": " + r.Error
	}
	if r.Outcome != view.CallOpen && r.Outcome != view.CallDenied && r.Outcome != view.CallInvalid {
		c.Took = took(r.Millis)
	}
	if r.Cached {
		c.Took += " (cached)"
	}
	if r.Attempts > 1 {
		c.Took += " (" + plural(r.Attempts, "attempt") + ")"
	}
	f.t.p.Send(c)
}

// progress shows the progress of a call.
func (f *feed) progress(e tenon.Event) {
	p, err := view.Try[tenon.Progress](e)
	records := view.Of(f.calls[e.Step]).Calls()
	if err != nil || len(records) != 1 {
		return
	}
	r := records[0]
	f.t.p.Send(tui.Call{Key: f.run + "/" + e.Step, Name: callName(r), Args: argShort(r.Args, argsShown),
		State: tui.CallRunning, Note: progressText(p), Details: details(r.Args, nil)})
}

// answered shows the stored answer of a model.
func (f *feed) answered(ctx context.Context, e tenon.Event) {
	r := view.As[agent.Answered](e)
	if r.Message == nil {
		return // the end of the run reports why
	}
	for _, tried := range r.Tried {
		f.t.note("model %s gave no answer: %s", tried.Model, tried.Error.Message)
	}
	if r.By != "" {
		f.t.note("model %s answers", r.By)
	}
	var thinking []string
	for _, p := range r.Message.Parts {
		if p.Type == tenon.PartThinking {
			thinking = append(thinking, p.Text)
		}
	}
	f.t.p.Send(tui.Answered{Thinking: strings.Join(thinking, "\n"), Text: r.Message.Text()})
	for _, use := range r.Message.Hosted() {
		f.t.note("provider: %s", safeLine(use))
	}
	for _, line := range sourceLines(r.Message.Citations()) {
		f.t.note("%s", line)
	}
	for _, m := range view.Generated(e.Run, e.Step, r.Message) {
		f.t.note("%s", f.t.a.mediaLine(e.Run, m))
	}
	if r.Usage != nil {
		f.t.mu.Lock()
		f.t.totals.context, f.t.totals.by = r.Usage.Input, r.By
		f.t.mu.Unlock()
	}
	f.t.status(ctx)
}

// changedTools lists the tools that the model sees from now on, or no longer.
func changedTools(c agent.ToolsChanged) string {
	var parts []string
	for _, p := range []struct {
		word  string
		names []string
	}{{"added", c.Added}, {"changed", c.Changed}, {"removed", c.Removed}} {
		if n := len(p.names); n > maxToldTools {
			parts = append(parts, fmt.Sprintf("%s %s and %d more", p.word, strings.Join(p.names[:maxToldTools], ", "),
				n-maxToldTools))
		} else if n > 0 {
			parts = append(parts, p.word+" "+strings.Join(p.names, ", "))
		}
	}
	for _, w := range c.Withheld {
		parts = append(parts, "others of "+w.Server+" wait until you accept them")
	}
	if len(parts) == 0 {
		return ""
	}
	return "● tools: " + safeLine(strings.Join(parts, "; "))
}
