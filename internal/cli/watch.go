package cli

import (
	"context"
	"errors"
	"time"

	"github.com/spf13/cobra"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/host"
	"github.com/tenonhq/tenon/httpapi"
)

func newRunsFollow(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "follow [RUN]",
		Short: "Follow a run until it ends or waits",
		Long: "Shows a run, by default the last one, from its beginning: its tool calls and its answer. It ends\n" +
			"when the run ends, or waits for a decision (status 8). If tenon serve works on the run, text\n" +
			"appears word by word, otherwise when an answer is complete. Ctrl-C ends the command; the run\n" +
			"continues. " +
			refHelp,
		Example: "  tenon runs follow\n  tenon runs follow \"$(tenon run --detach 'Sort the inbox')\"",
		Args:    args(0, 1, ""),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.withRun(cmd.Context(), opening{}, args, func(h desk, run tenon.Run) error {
				return a.watch(cmd.Context(), h, run)
			})
		},
	}
}

// errAbandoned reports that no process works on a followed run.
var errAbandoned = errors.New("nobody works on the run")

// watch follows a run without changing it.
func (a *app) watch(ctx context.Context, h desk, run tenon.Run) error {
	if here, ok := h.(*host.Host); ok {
		return a.watchHere(ctx, here, run)
	}
	f := newFollower(a)
	err := f.follow(ctx, h.Runs(), run.ID)
	return a.watched(ctx, h, run, f, err)
}

// watchHere follows a run of the project's store.
func (a *app) watchHere(ctx context.Context, h *host.Host, run tenon.Run) error {
	watching, leave := context.WithCancelCause(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		leave(a.abandoned(watching, h, run.ID))
	}()
	defer func() {
		leave(nil)
		<-done
	}()
	f := newFollower(a)
	owner, err := h.Runs().Open(run.ID).Owner(ctx)
	if err != nil {
		return err
	}
	if owner.Served {
		client := httpapi.NewClient(h.Service().Info().Socket)
		defer client.Close()
		err = f.follow(watching, client.Runs(), run.ID)
	}
	if f.done == nil && len(f.waiting) == 0 && watching.Err() == nil {
		if owner.Served && err != nil && !goneAway(err) {
			return err
		}
		err = f.follow(watching, h.Runs(), run.ID)
	}
	if f.done == nil && ctx.Err() == nil && errors.Is(context.Cause(watching), errAbandoned) {
		return tenon.Errorf(tenon.CodeConflict, "run %s is under way and nobody works on it; go on with: %s, or "+
			"start tenon serve", run.ID, a.again("runs resume", run.ID))
	}
	return a.watched(ctx, h, run, f, err)
}

// watched prints the end of a followed run.
func (a *app) watched(ctx context.Context, h desk, run tenon.Run, f *follower, err error) error {
	switch {
	case f.done != nil:
		return a.ended(ctx, h, run, f)
	case ctx.Err() != nil:
		var s signalled
		errors.As(context.Cause(ctx), &s)
		return s.stopped("; the run continues, see: " + a.again("runs follow", run.ID))
	case len(f.waiting) > 0:
		return a.rests(ctx, h, run)
	}
	return err
}

// goneAway reports whether the serving process has ended or is ending.
func goneAway(err error) bool {
	code := tenon.ErrorCode(err)
	return code == tenon.CodeUnreachable || code == tenon.CodeCancelled
}

// abandoned returns errAbandoned when no process works on a working run at two checks in a row, or nil when ctx ends.
func (a *app) abandoned(ctx context.Context, h *host.Host, run string) error {
	for lonely := 0; lonely < 2; {
		owner, oerr := h.Runs().Open(run).Owner(ctx)
		row, rerr := h.Runs().Get(ctx, run)
		if oerr == nil && rerr == nil && owner == (host.Owner{}) && row.State == tenon.RunWorking {
			lonely++
		} else {
			lonely = 0
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(a.checkEvery):
		}
	}
	return errAbandoned
}
