package cli

import (
	"context"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/agent"
	"github.com/tenonhq/tenon/host"
	"github.com/tenonhq/tenon/internal/tui"
	"github.com/tenonhq/tenon/view"
)

// stoppable is the last question as it was asked, so that it can be asked again after it was stopped.
type stoppable struct {
	run   string
	text  string
	files []tenon.Part
	own   bool // the person typed it: the files and resources that it names are attached
}

// cancel stops a run. Its messages that the model has not received are withdrawn, and return to the input.
func (t *talk) cancel(ctx context.Context, run, reason string) error {
	switch h := t.h.(type) {
	case *host.Host:
		return host.Withdraw(ctx, h, run, reason)
	case *far:
		return h.Withdraw(ctx, run, reason)
	}
	return t.h.Runs().Cancel(ctx, run, reason)
}

// requests reports whether an event begins a request to the model, which sends the messages of the person.
func requests(e tenon.Event) bool {
	step := tenon.ParseStep(e.Step)
	return e.Kind == tenon.EventStarted && !step.IsCall() && !step.IsQuestion() && !step.IsCompaction() &&
		view.As[tenon.StartedData](e).Kind != agent.CommandReserve
}

// keep takes a stored event of a run that is followed from its middle, for the messages that it has not sent yet.
func (f *feed) keep(e tenon.Event) {
	switch {
	case requests(e):
		f.said = nil
	case e.Kind == agent.EventMessage:
		f.said = append(f.said, view.As[agent.Steer](e).Text)
	case e.Kind == tenon.EventCancel:
		f.withdraws = f.withdraws || view.As[tenon.CancelData](e).Withdraw
	}
}

// untaken handles the messages that a run has not sent when it ends. The next run of the conversation sends them,
// unless they were withdrawn.
func (f *feed) untaken(state tenon.RunState) {
	if !f.withdraws || state != tenon.RunCancelled {
		left := len(f.said)
		f.taken()
		if left > 0 {
			f.t.note("the model has not received %s; it gets them with your next question",
				plural(left, "message"))
		}
		return
	}
	for _, text := range f.said {
		if !f.t.p.Left() {
			f.t.p.Send(tui.Withdrawn{Text: text})
			continue
		}
		f.t.mu.Lock()
		f.t.unsent = append(f.t.unsent, text)
		f.t.mu.Unlock()
	}
	f.said = nil
}

// tellUnsent names the messages that did not reach the model, after the person has left.
func (t *talk) tellUnsent() {
	t.mu.Lock()
	list := append(t.unsent, t.p.Unsent()...)
	t.mu.Unlock()
	for _, text := range list {
		t.a.note("not sent: %s", shorten(safeLine(text), 4*t.a.width()))
	}
}

// askAgain asks the question of a stopped run again.
func (t *talk) askAgain(ctx context.Context, run string) error {
	t.mu.Lock()
	asked := t.asked
	t.mu.Unlock()
	if asked.run != run { // of an earlier conversation: its files are not known
		events, err := t.h.Runs().Open(run).Journal(ctx, 0, 1)
		if err != nil {
			return err
		}
		asked = stoppable{}
		for _, e := range events {
			if _, spec, err := view.Spec[agent.Spec](e); err == nil {
				asked.text = spec.Question
			}
		}
	}
	if asked.text == "" {
		return tenon.Errorf(tenon.CodeConflict, "the text of the stopped question is not known; type it again")
	}
	t.p.Send(tui.Said{Person: true, Text: asked.text})
	q := t.question(asked.text)
	if asked.files != nil {
		q.Files = asked.files
	}
	return t.turn(ctx, q, asked.own)
}
