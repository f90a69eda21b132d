package main

import (
	"context"
	"errors"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/agent"
	"github.com/tenonhq/tenon/host"
	"github.com/tenonhq/tenon/workflow"
)

// drive follows a run until it has ended: it prints what comes, asks the person
// where the run waits, and cancels the run when ctx ends, except by a signal that
// ends the process. Events up to after were shown before. The error says how the
// run ended.
func (a *app) drive(ctx context.Context, h desk, run tenon.Run, after uint64, yes bool) error {
	work, leave := context.WithCancel(context.WithoutCancel(ctx)) // the run is told to stop, and says when it has
	defer leave()
	told := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(told)
		if _, ends := endedBy(ctx); ends {
			leave()
			return
		}
		if err := h.Cancel(work, run.ID, "interrupted at the terminal"); err != nil {
			a.note("tenon: the run cannot be cancelled: %s", err)
		}
	})
	defer func() {
		if !stop() {
			<-told
		}
	}()
	if here, ok := h.(*host.Host); ok && after > 0 { // another process may have it, and die
		rescued := make(chan struct{})
		go func() {
			defer close(rescued)
			rescue(work, here, run.ID)
		}()
		defer func() {
			leave()
			<-rescued
		}()
	}
	f := newFollower(a)
	if after > 0 {
		events, err := h.Journal(ctx, run.ID, 0)
		if err != nil {
			return err
		}
		f.catchUp(events[:min(after, uint64(len(events)))])
	}
	for {
		f.asks = a.questions(work, h, run.ID)
		err := f.follow(work, h, run.ID)
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
			<-told // the run ends, and the next round sees it
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
		if err := h.Resume(work, run.ID); err != nil {
			return err
		}
	}
}

// unfinished says how a run goes on that could not be shown to its end, if it does:
// what was printed is no matter of the run's.
func (a *app) unfinished(ctx context.Context, h desk, run string) {
	soon, stop := context.WithTimeout(ctx, lastWords)
	defer stop()
	for range h.Events(soon, run, 0) { // it may be at its very end
	}
	row, err := h.RunRow(ctx, run)
	if err == nil && row.State.Ended() {
		a.note("the run has ended (%s); it is shown by: %s", row.State, a.again("runs show", run))
		return
	}
	a.note("go on with: %s", a.resuming(run))
}

// lastWords is how long a run is waited for whose end cannot be shown.
const lastWords = 300 * time.Millisecond

// rescue goes on with a run whose owner, another process, has died.
func rescue(ctx context.Context, h *host.Host, run string) {
	for abandoned(ctx, h, run) != nil {
		if err := h.Resume(ctx, run); err != nil {
			return // the follower sees what became of it
		}
	}
}

// ended prints what is left to print of a run that has come to its end.
func (a *app) ended(ctx context.Context, h desk, run tenon.Run, f *follower) error {
	if local, ok := h.(*host.Host); ok && run.Core == workflow.Version {
		return a.flowEnded(ctx, local, run.ID)
	}
	sums := a.errTTY && a.format == formatText && !a.quiet
	if d := f.done; d != nil && d.State == tenon.RunCompleted && d.Stop == tenon.StopEnd && a.format != formatJSON && !sums && run.Core != workflow.Version {
		f.stopped() // and everything else was shown as it came
		return nil
	}
	report, err := h.Report(ctx, run.ID)
	if err != nil {
		return err
	}
	if err = runError(report); report.State.Ended() {
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
		a.note("tenon: %s", err)
		if a.format == formatJSONL {
			_ = a.printJSON(map[string]any{"error": errorJSON(err)}) // the text stands on stderr
		}
		err = reported{err}
	}
	return err
}

// runError is how a run ended, as an error; nil if it was completed.
func runError(r agent.Report) error {
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
	return tenon.Errorf(tenon.CodeInternal, "run %s is %s and nobody works on it; go on with: tenon runs resume %s", r.Run, r.State, r.Run)
}

// summary is the last line at a terminal.
func (a *app) summary(r agent.Report) {
	parts := []string{plural(r.Turns, "turn"), plural(len(r.ToolCalls), "tool call")}
	if n := r.Usage.Input + r.Usage.Output; n > 0 {
		parts = append(parts, strconv.Itoa(n)+" tokens")
	}
	if r.Cost != nil {
		parts = append(parts, r.Cost.String())
	}
	if !a.talking {
		parts = append(parts, "tenon run -s "+r.Session+" goes on")
	}
	_, _ = io.WriteString(a.err, a.errStyle(dim, strings.Join(parts, " · "))+"\n")
}

// rests tells of a run that waits and cannot be decided here.
func (a *app) rests(ctx context.Context, h desk, run tenon.Run) error {
	n, err := a.tellAll(ctx, h, run.ID)
	if err != nil {
		return err
	}
	a.note("  then go on:  %s", a.resuming(run.ID))
	err = reported{tenon.Errorf(tenon.CodeWaiting, "approval required: run %s waits for %s", run.ID, plural(n, "decision"))}
	switch a.format {
	case formatJSON:
		report, rerr := h.Report(ctx, run.ID)
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

// tellAll says what a run, or one that it called, waits for and how to decide it from
// elsewhere. It returns how many decisions that are.
func (a *app) tellAll(ctx context.Context, h desk, run string) (int, error) {
	list, err := h.Awaited(ctx, run)
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
		a.note("sampling: %s asks for an answer of the model: %s", tool, wanted(asked.Requests))
		a.note("  decide with: %s   (or deny)", a.again("approvals allow", id))
	case agent.AskInput:
		a.note("input required: %s asks for %s", tool, wanted(asked.Requests))
		a.note("  answer with: %s   (or deny)", a.again("approvals allow", id, "--args '{…}'"))
	default:
		a.note("approval required: %s %s", tool, shorten(safeLine(string(asked.Arguments)), argsShown))
		a.note("  decide with: %s   (or deny)", a.again("approvals allow", id))
	}
}

// decisionPause is how often a run at rest is looked at for a decision.
const decisionPause = 200 * time.Millisecond

// awaitDecision waits until somebody elsewhere has decided what a run waits for,
// and lets the run go on.
func (a *app) awaitDecision(ctx context.Context, h desk, run string) error {
	n, err := a.tellAll(ctx, h, run)
	for err == nil {
		list, aerr := h.Awaited(ctx, run)
		if aerr == nil && len(list) < n {
			return h.Resume(ctx, run)
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
