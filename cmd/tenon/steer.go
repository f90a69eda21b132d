package main

import (
	"context"
	"encoding/json"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/agent"
	"github.com/tenonhq/tenon/workflow"
)

func newRunsSteer(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "steer RUN TEXT|-",
		Short: "Send a message into a run that is under way",
		Long: "Sends a message into a run, whatever process works on it; - reads it from stdin. The model is told before\n" +
			"its next request. A run that nobody works on keeps the message for when it goes on. " + refHelp,
		Example: "  tenon runs steer -1 \"only the first ten, please\"\n" +
			"  git diff | tenon runs steer run_06d8k2w5 -",
		Args: args(1, -1, "the run"),
		RunE: func(cmd *cobra.Command, args []string) error {
			text, err := a.argument(cmd, args[1:], "the message")
			if err != nil {
				return err
			}
			return a.withRun(cmd.Context(), opening{}, args, func(h desk, run tenon.Run) error {
				return a.steer(cmd.Context(), h, run, text)
			})
		},
	}
}

// argument is a text that is given as words, or on stdin.
func (a *app) argument(cmd *cobra.Command, words []string, what string) (string, error) {
	for i := range words {
		words[i] = strings.TrimPrefix(words[i], refMark)
	}
	text := strings.Join(words, " ")
	if text == "-" || len(words) == 0 && !a.inTTY {
		var err error
		if text, err = a.stdin(); err != nil {
			return "", err
		}
	}
	if strings.TrimSpace(text) == "" {
		return "", usage(cmd, "%s is missing", what)
	}
	return text, nil
}

func (a *app) steer(ctx context.Context, h desk, run tenon.Run, text string) error {
	e, err := h.Steer(ctx, run.ID, text, string(tenon.PrincipalLocal))
	if tenon.ErrorCode(err) == tenon.CodeConflict {
		now, rerr := h.RunRow(ctx, run.ID)
		if rerr != nil {
			return rerr
		}
		return tenon.Errorf(tenon.CodeConflict, "run %s has ended (%s); %s", run.ID, now.State, afterEnd(now))
	}
	if err != nil {
		return err
	}
	owned, err := h.Owned(run.ID)
	if err != nil {
		return err
	}
	if run, err = h.RunRow(ctx, run.ID); err != nil {
		return err
	}
	next := "the model is told before its next request"
	switch {
	case run.State.Ended() || owned:
	case run.State == tenon.RunInputRequired:
		next = "the run waits for a decision: " + a.again("approvals list")
	default:
		next = "nobody works on the run; go on with: " + a.again("runs resume", run.ID)
	}
	return a.did(map[string]any{"run": run.ID, "seq": e.Seq, "owned": owned, "state": run.State}, "run %s has the message; %s", run.ID, next)
}

// afterEnd says how to go on with a run that has ended.
func afterEnd(run tenon.Run) string {
	switch {
	case run.State == tenon.RunFailed:
		return "tenon runs resume " + run.ID + " takes it up again"
	case run.Core == workflow.Version:
		return "it was a workflow; tenon workflows run runs it anew"
	case run.Session == "":
		return "it was a single tool call; tenon tools call makes another"
	}
	return "tenon run -s " + run.Session + " asks a further question"
}

// listen sends what the person types while an answer is under way into its run,
// until the returned function is called. That waits for a message on its way.
// What is typed too late is the next question.
func (a *app) listen(ctx context.Context, h desk, run string) (stop func()) {
	if !a.talking || !a.canAsk() {
		return func() {}
	}
	reading, leave := context.WithCancel(ctx)
	done := make(chan error, 1)
	go func() { done <- a.pass(reading, h, run) }()
	return func() {
		leave()
		if err := <-done; err != nil {
			a.note("tenon: the message was not sent: %s", err)
		}
	}
}

// pass reads lines and sends them into a run.
func (a *app) pass(ctx context.Context, h desk, run string) error {
	for {
		text, err := a.lines.next(ctx)
		switch {
		case ctx.Err() != nil && err != nil:
			return nil // no line was taken
		case err != nil, strings.HasPrefix(strings.TrimSpace(text), "/"):
			a.lines.unread(text, err) // for the prompt
			return nil
		case strings.TrimSpace(text) == "":
			continue
		}
		_, err = h.Steer(context.WithoutCancel(ctx), run, text, string(tenon.PrincipalLocal))
		if tenon.ErrorCode(err) == tenon.CodeConflict {
			a.lines.unread(text, nil)
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// message shows a message into the run.
func (f *follower) message(e tenon.Event) {
	var m agent.Steer
	if json.Unmarshal(e.Data, &m) != nil || f.a.quiet {
		return
	}
	f.settle()
	_, _ = f.a.err.Write([]byte(f.a.errStyle(cyan, "»") + " " + shorten(safeLine(m.Text), 400) + f.a.errStyle(dim, " ("+safeLine(m.By)+")") + "\n"))
}
