package cli

import (
	"context"
	"errors"
	"strings"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/agent"
	"github.com/tenonhq/tenon/internal/tui"
	"github.com/tenonhq/tenon/view"
)

// unfinishedRun returns the last run of a session if it has not ended, and whether its process died.
func unfinishedRun(ctx context.Context, h desk, session string) (run tenon.Run, interrupted bool, err error) {
	s, err := h.Sessions().Get(ctx, session)
	if err != nil || s.Head == "" {
		return tenon.Run{}, false, err
	}
	run, err = h.Runs().Get(ctx, s.Head)
	if err != nil || run.State.Ended() || run.Foreign {
		return tenon.Run{}, false, err
	}
	dead, err := interruptedRuns(ctx, h, []tenon.Run{run})
	return run, dead[run.ID], err
}

// waitingFor names the approvals that a run waits for, and returns the command that decides the first one.
func (a *app) waitingFor(ctx context.Context, h desk, run string) (names, command string) {
	list, err := h.Approvals().List(ctx, run)
	if err != nil || len(list) == 0 {
		return "a decision", a.again("approvals list")
	}
	var parts []string
	for _, p := range list {
		name := safeLine(p.Server + "." + p.Remote)
		if p.Kind == agent.AskLimit {
			name = "a limit"
		}
		parts = append(parts, name)
	}
	return "approval of " + shorten(strings.Join(parts, ", "), 200), a.again("approvals allow", list[0].ID)
}

// busySession explains a conflict of a question with the unfinished run of its session.
func (a *app) busySession(ctx context.Context, h desk, session string, err error) error {
	if tenon.ErrorCode(err) != tenon.CodeConflict || session == "" {
		return err
	}
	run, interrupted, gerr := unfinishedRun(ctx, h, session)
	switch {
	case gerr != nil || run.ID == "":
	case run.State == tenon.RunInputRequired:
		names, command := a.waitingFor(ctx, h, run.ID)
		return tenon.Errorf(tenon.CodeConflict, "session %s: its last question waits for %s; decide with: %s (or "+
			"deny), and go on with: %s, or ask in a fork: %s", run.Session, names, command, a.resuming(run.ID),
			a.again("run", "-s", run.Session, "--fork"))
	case interrupted:
		return tenon.Errorf(tenon.CodeConflict, "session %s: its last question was interrupted; go on with: %s, or "+
			"ask in a fork: %s", run.Session, a.resuming(run.ID), a.again("run", "-s", run.Session, "--fork"))
	}
	return err
}

// Continue implements [tui.Backend].
func (t *talk) Continue(ctx context.Context) {
	err := t.goOn(ctx)
	if r := (reported{}); err != nil && !errors.As(err, &r) {
		t.note("tenon: %s", safeText(err.Error()))
	}
	t.status(context.WithoutCancel(ctx))
}

// goOn follows the unfinished run of the conversation, if there is one. An interrupted run is resumed.
func (t *talk) goOn(ctx context.Context) error {
	run, interrupted, err := unfinishedRun(ctx, t.h, t.session())
	if err != nil || run.ID == "" {
		return err
	}
	f, err := t.caughtUp(ctx, run)
	if err != nil {
		return err
	}
	switch {
	case interrupted:
		t.note("the last question was interrupted; its run is resumed")
		if err := t.h.Runs().Resume(ctx, run.ID); err != nil {
			return err
		}
	case f.resting:
		names, _ := t.a.waitingFor(ctx, t.h, run.ID)
		t.note("the last question waits for %s", names)
		f.list(ctx)
	default:
		t.note("the last question is at work in another process")
	}
	return t.working(ctx, run, f)
}

// retry resumes the last run of the conversation if it failed, and asks its question again if it was stopped.
func (t *talk) retry(ctx context.Context) error {
	s, err := t.h.Sessions().Get(ctx, t.session())
	if t.session() == "" || err == nil && s.Head == "" {
		return tenon.Errorf(tenon.CodeNotFound, "there is no question yet")
	}
	if err != nil {
		return err
	}
	run, err := t.h.Runs().Get(ctx, s.Head)
	if err != nil {
		return err
	}
	switch {
	case run.State == tenon.RunCancelled && !run.Foreign:
		return t.askAgain(ctx, run.ID)
	case run.State != tenon.RunFailed || run.Foreign:
		return tenon.Errorf(tenon.CodeConflict, "the last question did not fail and was not stopped; ask again, or "+
			"go back with /undo")
	}
	f, err := t.caughtUp(ctx, run)
	if err != nil {
		return err
	}
	if err := t.h.Runs().Resume(ctx, run.ID); err != nil {
		return err
	}
	return t.working(ctx, run, f)
}

// working follows a run to its end.
func (t *talk) working(ctx context.Context, run tenon.Run, f *feed) error {
	t.mu.Lock()
	t.run = run.ID
	t.mu.Unlock()
	defer func() {
		t.mu.Lock()
		t.run = ""
		t.mu.Unlock()
	}()
	return t.drive(ctx, run, f)
}

// caughtUp returns a feed that has shown the last turn of a run.
func (t *talk) caughtUp(ctx context.Context, run tenon.Run) (*feed, error) {
	events, err := t.h.Runs().Open(run.ID).Journal(ctx, 0, 0)
	if err != nil {
		return nil, err
	}
	f := newFeed(t, run.ID)
	f.catchUp(run, events)
	return f, nil
}

// catchUp takes the stored events of a run, and shows the calls of its last turn.
func (f *feed) catchUp(run tenon.Run, events []tenon.Event) {
	var last string
	var order []string
	for _, e := range events {
		f.seq = e.Seq
		f.whole.Apply(e)
		f.keep(e)
		if step := tenon.ParseStep(e.Step); step.IsCall() {
			if len(f.calls[e.Step]) == 0 {
				order = append(order, e.Step)
			}
			f.calls[e.Step], last = append(f.calls[e.Step], e), step.Unit
		}
	}
	f.resting = run.State == tenon.RunInputRequired
	for _, key := range order {
		if records := view.Of(f.calls[key]).Calls(); len(records) == 1 && tenon.ParseStep(key).Unit == last {
			f.send(key, records[0], 0)
		}
	}
}

// leftWaiting reports whether the person left the conversation while its run waits. The run then keeps waiting.
func leftWaiting(ctx context.Context) bool { return errors.Is(context.Cause(ctx), tui.ErrLeft) }

// leaves records the run that waits, to report it after the conversation.
func (t *talk) leaves(run string) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.waits = run
	return nil
}

// tellWaits says how to go on with a run that waits when the person leaves.
func (a *app) tellWaits(ctx context.Context, h desk, run string) {
	names, command := a.waitingFor(ctx, h, run)
	a.note("the last question waits for %s", names)
	a.note("  decide with: %s   (or deny)", command)
}
