package host

import (
	"context"
	"errors"
	"iter"
	"slices"
	"strings"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/agent"
	"github.com/tenonhq/tenon/engine"
	"github.com/tenonhq/tenon/view"
)

// Stream asks a question and yields the events of its run: [Host.Start] and [Runs.Events] in one. [view.Event.Value]
// returns the data of an event as a Go type. [Config.Approve] decides the calls for which the run waits, and the run
// continues. Without Approve the last event is a [view.Waiting]; decide and resume the run with the handles.
//
// A run that has ended has a [view.Done] as its last event. It has the answer, or the error of a failed run, which is
// no error of Stream. Errors: as Start and Events, and cancelled if ctx ends first. Breaking the
// loop or ending ctx does not stop the run: [Runs.Cancel] and Close do. With [Question.BindContext] the end of ctx
// cancels the run, and Stream continues until the run has ended.
//
// The text of an answer arrives completely, in pieces of type [view.Text] before its [view.Answered]: if live events
// were missed, the rest comes as one piece. A [view.Reset] voids the pieces of the step.
func (h *Host) Stream(ctx context.Context, q Question) iter.Seq2[view.Event, error] {
	return func(yield func(view.Event, error) bool) {
		run, bound, err := h.begin(ctx, q)
		if err != nil {
			yield(view.Event{}, err)
			return
		}
		s := &stream{h: h, ctx: ctx, run: run.ID, bound: bound, yield: yield}
		if bound == nil {
			s.follow(ctx)
			return
		}
		// The run ends with ctx; its events are read to the end.
		reading, stop := context.WithCancelCause(context.WithoutCancel(ctx))
		defer stop(nil)
		ended := make(chan struct{})
		defer func() { <-ended }()
		unblock := make(chan struct{})
		defer close(unblock)
		go func() {
			defer close(ended)
			select {
			case <-bound.failed:
				stop(context.Cause(ctx))
			case <-unblock:
			}
		}()
		s.follow(reading)
	}
}

// stream is one [Host.Stream].
type stream struct {
	h     *Host
	ctx   context.Context // of the caller
	run   string
	bound *binding // nil: the run does not end with ctx
	yield func(view.Event, error) bool

	text  answerText
	held  bool   // a call waits for a person
	last  string // the kind of the last event
	seq   uint64
	ended bool // the caller has broken the loop
}

// follow yields events until the run ends or waits, or the reading context ends.
func (s *stream) follow(reading context.Context) {
	var err error
	for again := true; again && err == nil; {
		again, err = s.round(reading)
		if s.ended {
			return
		}
		if err != nil && s.bound != nil && s.ctx.Err() != nil && reading.Err() == nil {
			s.bound.cancel() // Approve was interrupted: the run ends
			again, err = true, nil
		}
	}
	if err == nil && reading.Err() != nil && s.last != tenon.EventDone && s.last != engine.EventWaiting {
		err = tenon.Errorf(tenon.CodeCancelled, "the output of run %s ends here: %w; the run continues", s.run,
			context.Cause(reading))
	}
	if err != nil {
		s.yield(view.Event{}, err)
	}
}

// errBroken ends a stream whose caller has broken the loop.
var errBroken = errors.New("the loop was broken")

// round yields the events up to the next rest of the run, and lets Approve decide what it waits for. It reports
// whether the run continues.
func (s *stream) round(reading context.Context) (again bool, err error) {
	rests := false
	for e, err := range s.h.Runs().Events(reading, s.run, s.seq) {
		if err != nil {
			return false, err
		}
		if !s.pass(e) {
			s.ended = true
			return false, errBroken
		}
		s.seq, s.last, rests = max(s.seq, e.Seq), e.Kind, e.Kind == engine.EventWaiting
		if s.h.cfg.Approve == nil {
			continue
		}
		s.held = s.held || asks(e)
		switch {
		case e.Kind == tenon.EventQuestion:
			err = s.h.approve(s.ctx, s.run, true)
		case s.held && e.Kind == tenon.EventStarted && tenon.ParseStep(e.Step).Call != "":
			s.held = false // other calls are under way: decide without waiting for their end
			if err = s.h.approve(s.ctx, s.run, false); err == nil {
				err = s.h.goOn(s.ctx, s.run)
			}
		}
		if err != nil {
			return false, err
		}
	}
	if !rests || s.h.cfg.Approve == nil {
		return false, nil
	}
	if err := s.h.approve(s.ctx, s.run, false); err != nil {
		return false, err
	}
	return true, s.h.Runs().Resume(s.ctx, s.run)
}

// pass yields an event, after the text that was missed.
func (s *stream) pass(e tenon.Event) bool {
	for _, piece := range s.text.missed(e) {
		if !s.yield(view.Event{Event: piece}, nil) {
			return false
		}
	}
	return s.yield(view.Event{Event: e}, nil)
}

// answerText completes the pieces of an answer.
type answerText struct {
	step string
	said strings.Builder
}

// missed takes the next event. Before the answer of a model it returns the text that did not arrive in pieces.
func (a *answerText) missed(e tenon.Event) []tenon.Event {
	switch e.Kind {
	case engine.LiveDelta, engine.LiveReset, agent.EventModel:
	default:
		return nil
	}
	if a.step != e.Step || e.Kind == engine.LiveReset {
		a.step = e.Step
		a.said.Reset()
	}
	if e.Kind != agent.EventModel {
		if d := view.As[engine.Delta](e); e.Kind == engine.LiveDelta && d.Kind == tenon.DeltaText {
			a.said.WriteString(d.Text)
		}
		return nil
	}
	text, said := "", a.said.String()
	if m := view.As[agent.Answered](e).Message; m != nil {
		text = m.Text()
	}
	a.said.Reset()
	live := func(kind string, d engine.Delta) tenon.Event {
		return tenon.Event{Run: e.Run, Time: e.Time, Step: e.Step, Kind: kind, Data: encode(d)}
	}
	rest, ok := strings.CutPrefix(text, said)
	switch {
	case ok && rest == "", strings.TrimSpace(text) == strings.TrimSpace(said):
		return nil
	case ok:
		return []tenon.Event{live(engine.LiveDelta, engine.Delta{Kind: tenon.DeltaText, Text: rest})}
	}
	return []tenon.Event{
		live(engine.LiveReset, engine.Delta{Kind: tenon.DeltaReset, Text: "pieces of the text were missed"}),
		live(engine.LiveDelta, engine.Delta{Kind: tenon.DeltaText, Text: text}),
	}
}

// goOn resumes a run that came to rest during a decision. The decision is recorded, but no process works on the run.
func (h *Host) goOn(ctx context.Context, run string) error {
	row, err := h.store.Run(ctx, run)
	if err != nil || row.State.Ended() {
		return err
	}
	return h.Runs().Resume(ctx, run)
}

// asks reports whether an event says that a person has to decide about a call.
func asks(e tenon.Event) bool {
	return e.Kind == agent.EventDecided && view.As[agent.Decision](e).Verdict == tenon.Ask
}

// approve asks for decisions about everything a run waits for. If live is set, these are the questions of servers
// during a call, otherwise all others.
func (h *Host) approve(ctx context.Context, run string, live bool) error {
	for seen := map[string]bool{}; ; {
		// List again each time: a call allowed for the session also allows others.
		list, err := h.Approvals().List(ctx, run)
		if err != nil {
			return err
		}
		i := slices.IndexFunc(list, func(p Approval) bool { return p.Live == live && !seen[p.ID] })
		if i < 0 {
			return nil
		}
		seen[list[i].ID] = true
		r, err := h.decide(ctx, list[i])
		if err != nil {
			return err
		}
		if _, _, err := h.Approvals().Decide(ctx, list[i].Run, list[i].Step, r); err != nil {
			return err
		}
	}
}
