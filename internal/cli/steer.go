package cli

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/agent"
	"github.com/tenonhq/tenon/view"
	"github.com/tenonhq/tenon/workflow"
)

func newRunsSteer(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "steer RUN TEXT|-",
		Short: "Send a message to a run in progress",
		Long: "Sends a message to a run, whichever process works on it; - reads it from stdin. The model gets it\n" +
			"with its next request. If no process works on the run, the message is kept until the run resumes. " +
			refHelp,
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

// argument returns a text that is given as words or on stdin.
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
		return "", notGiven(cmd, what)
	}
	return text, nil
}

func (a *app) steer(ctx context.Context, h desk, run tenon.Run, text string) error {
	var e tenon.Event
	err := withServe(ctx, h, func(ctx context.Context) (err error) {
		e, err = h.Runs().Steer(ctx, run.ID, text, string(tenon.PrincipalLocal))
		return err
	})
	if tenon.ErrorCode(err) == tenon.CodeConflict {
		now, rerr := h.Runs().Get(ctx, run.ID)
		if rerr != nil {
			return rerr
		}
		return tenon.Errorf(tenon.CodeConflict, "run %s has ended (%s); %s", run.ID, now.State, afterEnd(now))
	}
	if err != nil {
		return err
	}
	owner, err := h.Runs().Open(run.ID).Owner(ctx)
	if err != nil {
		return err
	}
	if run, err = h.Runs().Get(ctx, run.ID); err != nil {
		return err
	}
	next := "the model gets it with its next request"
	switch {
	case run.State.Ended() || owner.Working:
	case run.State == tenon.RunInputRequired:
		next = "the run waits for a decision: " + a.again("approvals list")
	default:
		next = "nobody works on the run; go on with: " + a.again("runs resume", run.ID)
	}
	return a.did(map[string]any{"run": run.ID, "seq": e.Seq, "owned": owner.Working, "state": run.State},
		"run %s has the message; %s", run.ID, next)
}

// afterEnd returns a hint for a run that has ended.
func afterEnd(run tenon.Run) string {
	switch {
	case run.State == tenon.RunFailed:
		return "tenon runs resume " + run.ID + " resumes it"
	case run.Core == workflow.Version:
		return "it was a workflow; tenon workflows run runs it again"
	case run.Session == "":
		return "it was a single tool call; tenon tools call makes another"
	}
	return "tenon run -s " + run.Session + " asks a further question"
}

// listen sends the lines that the person types during an answer to its run, until the returned function is called. That
// function waits for a message that is being sent. A line that is typed too late becomes the next question.
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

// pass reads lines and sends them to a run.
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
		_, err = h.Runs().Steer(context.WithoutCancel(ctx), run, text, string(tenon.PrincipalLocal))
		if tenon.ErrorCode(err) == tenon.CodeConflict {
			a.lines.unread(text, nil)
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// message prints a message that was sent to the run.
func (f *follower) message(e tenon.Event) {
	m, err := view.Try[agent.Steer](e)
	if err != nil || f.a.quiet {
		return
	}
	f.settle()
	_, _ = f.a.err.Write([]byte(f.a.errStyle(cyan, "»") + " " + shorten(safeLine(m.Text), 400) +
		f.a.errStyle(dim, " ("+safeLine(m.By)+")") + "\n"))
}
