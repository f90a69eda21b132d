package cli

import (
	"context"
	"errors"
	"io"
	"strings"
	"time"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/agent"
	"github.com/tenonhq/tenon/host"
	"github.com/tenonhq/tenon/view"
	"github.com/tenonhq/tenon/workflow"
)

// cancels asks a run to end, as [host.Runs] does.
type cancels func(ctx context.Context, run, reason string) error

// cancelling returns the context work for following a run. When ctx ends, work stays open, so that the caller sees how
// the run ends: the run is cancelled, and then told is closed. If a signal ends the process, or if the person leaves a
// run that waits, the run is not cancelled, and work ends. leave ends work. end also ends work, but first waits until a
// cancellation under way was sent.
func cancelling(ctx context.Context, cancel cancels, run string, note func(string, ...any)) (
	work context.Context, told <-chan struct{}, leave, end func()) {
	work, leave = context.WithCancel(context.WithoutCancel(ctx))
	done := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(done)
		if _, ends := endedBy(ctx); ends || leftWaiting(ctx) {
			leave()
			return
		}
		if err := cancel(work, run, "interrupted at the terminal"); err != nil {
			note("tenon: the run cannot be cancelled: %s", err)
		}
	})
	return work, done, leave, func() {
		if !stop() {
			<-done
		}
		leave()
	}
}

// drive follows a run until it ends. It prints the run's events and asks the person when the run waits. If ctx ends, it
// cancels the run, unless a signal ends the process. Events up to after were shown before. The error is the error of
// the run.
func (a *app) drive(ctx context.Context, h desk, run tenon.Run, after uint64, yes bool) error {
	work, told, leave, end := cancelling(ctx, h.Runs().Cancel, run.ID, a.note)
	defer end()
	if here, ok := h.(*host.Host); ok && after > 0 { // another process may own the run, and die
		rescued := make(chan struct{})
		go func() {
			defer close(rescued)
			a.rescue(work, here, run.ID)
		}()
		defer func() {
			leave()
			<-rescued
		}()
	}
	f := newFollower(a)
	if after > 0 {
		events, err := h.Runs().Open(run.ID).Journal(ctx, 0, 0)
		if err != nil {
			return err
		}
		f.catchUp(events[:min(after, uint64(len(events)))])
	}
	for {
		f.asks = a.questions(work, h, run.ID)
		err := f.follow(work, h.Runs(), run.ID)
		if len(f.waiting) > 0 {
			f.asks.finish(ctx)
		}
		f.asks.end()
		if s, ends := endedBy(ctx); ends && f.done == nil {
			return s.stopped("; go on with: " + a.resuming(run.ID))
		}
		if err != nil {
			a.unfinished(work, h, run.ID)
			return err
		}
		if f.done != nil || len(f.waiting) == 0 {
			return a.ended(context.WithoutCancel(ctx), h, run, f)
		}
		err = a.decide(ctx, h, run.ID, yes)
		switch {
		case ctx.Err() != nil:
			<-told // the run is cancelled, and the next iteration prints its end
			continue
		case errors.Is(err, errUndecided) && a.wait:
			if err := a.awaitDecision(work, h, run.ID); err != nil {
				return err
			}
			continue
		case errors.Is(err, errUndecided):
			return a.rests(work, h, run)
		case err != nil:
			return err
		}
		if err := h.Runs().Resume(work, run.ID); err != nil {
			return err
		}
	}
}

// unfinished prints how to resume a run whose output failed. The run does not depend on the output, so it may also have
// ended.
func (a *app) unfinished(ctx context.Context, h desk, run string) {
	soon, stop := context.WithTimeout(ctx, lastWords)
	defer stop()
	for range h.Runs().Events(soon, run, 0) { // wait, since the run may be about to end
	}
	row, err := h.Runs().Get(ctx, run)
	if err == nil && row.State.Ended() {
		a.note("the run has ended (%s); it is shown by: %s", row.State, a.again("runs show", run))
		return
	}
	a.note("go on with: %s", a.resuming(run))
}

// lastWords bounds the wait for the end of a run whose output failed.
const lastWords = 300 * time.Millisecond

// rescue resumes a run whose owner, another process, has died.
func (a *app) rescue(ctx context.Context, h *host.Host, run string) {
	for a.abandoned(ctx, h, run) != nil {
		if err := h.Runs().Resume(ctx, run); err != nil {
			return // the follower prints the state of the run
		}
	}
}

// ended prints the final output of a run that has ended.
func (a *app) ended(ctx context.Context, h desk, run tenon.Run, f *follower) error {
	if local, ok := h.(*host.Host); ok && run.Core == workflow.Version {
		return a.flowEnded(ctx, local, run.ID)
	}
	sums := a.errTTY && a.format == formatText && !a.quiet
	if d := f.done; d != nil && d.State == tenon.RunCompleted && d.Stop == tenon.StopEnd && a.format != formatJSON &&
		!sums && run.Core != workflow.Version {
		f.stopped() // everything else was shown during the run
		if run.Core == agent.DirectVersion && a.format == formatText {
			return a.callEnded(ctx, h, run.ID)
		}
		return nil
	}
	report, err := h.Runs().Open(run.ID).Report(ctx)
	if err != nil {
		return err
	}
	err = runError(report)
	if report.State.Ended() {
		f.stopped()
	}
	if err != nil && run.Core == workflow.Version {
		err = begun{err}
	}
	switch {
	case a.format == formatJSON:
		if perr := a.printJSON(report); perr != nil {
			return perr
		}
		if err != nil {
			a.note("tenon: %s", err)
			err = reported{err}
		}
	case err == nil && run.Core == workflow.Version && a.format == formatText && a.streaming:
		a.hint("%s", report.Answer) // a table is written to stdout
		return nil
	case err == nil && run.Core == workflow.Version && a.format == formatText:
		return a.printText(report.Answer)
	case err == nil && report.Stop != tenon.StopEnd:
		a.note("the answer ended early: %s", report.Stop)
	}
	switch {
	case report.State == tenon.RunFailed:
		defer a.hint("resume with: %s", a.resuming(run.ID))
	case report.State == tenon.RunCompleted && sums:
		a.summary(report)
	}
	if err != nil && a.format != formatJSON {
		if report.State == tenon.RunCancelled { // a person stopped it: nothing went wrong
			a.note("%s; it is shown by: %s", err, a.again("runs show", run.ID))
		} else {
			a.note("tenon: %s", err)
		}
		if a.format == formatJSONL {
			_ = a.printJSON(map[string]any{"error": errorJSON(err)}) // stderr has the error in any case
		}
		err = reported{err}
	}
	return err
}

// callEnded prints the result of a single call that was resumed.
func (a *app) callEnded(ctx context.Context, h desk, run string) error {
	name := ""
	result, err := host.FollowCall(ctx, h.Runs(), run, 0, func(e tenon.Event) {
		if e.Kind == agent.EventProposed {
			name = view.As[tenon.ToolCall](e).Name
		}
	})
	if err != nil || result == nil {
		return err
	}
	return a.printResult(name, result)
}

// runError returns the error of a run, or nil if the run was completed.
func runError(r view.Report) error {
	switch {
	case r.State == tenon.RunCompleted:
		return nil
	case r.State == tenon.RunCancelled:
		return tenon.Errorf(tenon.CodeCancelled, "run %s was cancelled", r.Run)
	case r.Stop.IsLimit() && r.Error != nil:
		return &tenon.Error{Code: tenon.CodeLimit, Message: r.Error.Message, Err: r.Error}
	case r.Error != nil:
		return r.Error
	case r.State == tenon.RunFailed:
		return tenon.Errorf(tenon.CodeInternal, "run %s failed and did not say why", r.Run)
	}
	return tenon.Errorf(tenon.CodeInternal, "run %s is %s and nobody works on it; go on with: tenon runs resume %s",
		r.Run, r.State, r.Run)
}

// summary prints the last line at a terminal.
func (a *app) summary(r view.Report) {
	parts := []string{plural(r.Turns, "turn"), plural(len(r.ToolCalls), "tool call")}
	if n := r.Tokens().Input + r.Tokens().Output; n > 0 {
		parts = append(parts, plural(n, "token"))
	}
	if r.Cost != nil {
		parts = append(parts, r.Cost.String())
	}
	if !a.talking {
		parts = append(parts, "continue with tenon run -s "+r.Session)
	}
	_, _ = io.WriteString(a.err, a.errStyle(dim, strings.Join(parts, " · "))+"\n")
}

// rests prints the pending decisions of a run that nobody can decide at this terminal.
func (a *app) rests(ctx context.Context, h desk, run tenon.Run) error {
	n, err := a.tellAll(ctx, h, run.ID)
	if err != nil {
		return err
	}
	a.note("  then go on:  %s", a.resuming(run.ID))
	err = reported{tenon.Errorf(tenon.CodeWaiting, "approval required: run %s waits for %s", run.ID,
		plural(n, "decision"))}
	switch a.format {
	case formatJSON:
		report, rerr := h.Runs().Open(run.ID).Report(ctx)
		if rerr != nil {
			return rerr
		}
		if perr := a.printJSON(report); perr != nil {
			return perr
		}
	case formatJSONL:
		if perr := a.printJSON(map[string]any{"error": errorJSON(err)}); perr != nil {
			return perr
		}
	}
	return err
}

// tellAll prints the pending decisions of a run and of the runs that it called, with the commands that decide them. It
// returns their number.
func (a *app) tellAll(ctx context.Context, h desk, run string) (int, error) {
	list, err := h.Approvals().List(ctx, run)
	for _, p := range list {
		a.tellWaiting(p.Run, p.Step, p.Asking)
	}
	return len(list), err
}

func (a *app) tellWaiting(run, step string, asked agent.Asking) {
	id := run + "/" + step
	tool := safeLine(asked.Server) + "." + safeLine(asked.Remote)
	switch asked.Kind {
	case agent.AskLimit:
		a.note("%s", safeLine(asked.Reason))
		a.note("  decide with: %s   (or deny)", a.again("approvals allow", id))
	case agent.AskSampling:
		a.noteLine("sampling: " + tool + " asks for an answer of the model: " + wanted(asked.Requests))
		a.note("  decide with: %s   (or deny)", a.again("approvals allow", id))
	case agent.AskClient:
		a.noteLine("client tool: the run waits for the client's result of " + safeLine(asked.Remote))
		a.note("  send it with: %s   (or deny)", a.again("approvals allow", id, "--args '{…}'"))
	case agent.AskInput:
		a.noteLine("input required: " + tool + " asks for " + wanted(asked.Requests))
		if asksForSecret(asked.Requests) {
			a.saySecret(asked.Server)
		}
		a.note("  answer with: %s   (or deny)", a.again("approvals allow", id, "--args '{…}'"))
	default:
		args, whole := argLine(asked.Arguments, argsShown)
		a.noteLine("approval required: " + tool + " " + args)
		if asked.Again {
			a.note("  reason:      %s", safeLine(asked.Reason))
		}
		if !whole {
			a.note("  all of it:   %s", a.again("approvals show", id, "--full"))
		}
		a.note("  decide with: %s   (or deny)", a.again("approvals allow", id))
	}
}

// noteLine writes a line that contains text from servers. On a terminal it breaks the line itself, so that this text
// cannot begin a line.
func (a *app) noteLine(line string) {
	lines := []string{line}
	if a.errTTY {
		lines = folded(line, a.width(), "")
	}
	a.note("%s", strings.Join(lines, "\n"))
}

// decisionPause is the interval at which a waiting run is checked for a decision.
const decisionPause = 200 * time.Millisecond

// awaitDecision waits until a pending decision of a run is made elsewhere, and resumes the run.
func (a *app) awaitDecision(ctx context.Context, h desk, run string) error {
	n, err := a.tellAll(ctx, h, run)
	for err == nil {
		list, aerr := h.Approvals().List(ctx, run)
		if aerr == nil && len(list) < n {
			return h.Runs().Resume(ctx, run)
		}
		err = aerr
		select {
		case <-time.After(decisionPause):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return err
}
