package main

import (
	"context"
	"errors"
	"iter"
	"time"

	"github.com/spf13/cobra"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/host"
	"github.com/tenonhq/tenon/httpapi"
)

// source is where a follower has its events from: the store, or the process
// that serves it, which knows the text of an answer before it is whole.
type source interface {
	Events(ctx context.Context, run string, after uint64) iter.Seq2[tenon.Event, error]
}

func newRunsFollow(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "follow [RUN]",
		Short: "Show a run as tenon run would have, and stay until it ends or waits",
		Long: "Shows a run, by default the last one, from its beginning: its tool calls, its answer. It stays until the run\n" +
			"ends, or waits for a decision (status 8). Text comes word by word where tenon serve works on the run, else when\n" +
			"an answer is whole. Ctrl-C ends the command; the run goes on. " + refHelp,
		Example: "  tenon runs follow\n  tenon runs follow \"$(tenon run --detach 'Sort the inbox')\"",
		Args:    args(0, 1, ""),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.withRun(cmd.Context(), opening{}, args, func(h desk, run tenon.Run) error {
				return a.watch(cmd.Context(), h, run)
			})
		},
	}
}

// errAbandoned says that nobody works on a run that is followed.
var errAbandoned = errors.New("nobody works on the run")

// watch follows a run without a hand in it.
func (a *app) watch(ctx context.Context, h desk, run tenon.Run) error {
	if here, ok := h.(*host.Host); ok {
		return a.watchHere(ctx, here, run)
	}
	f := newFollower(a)
	err := f.follow(ctx, h, run.ID)
	return a.watched(ctx, h, run, f, err)
}

// watchHere follows a run of the project's store.
func (a *app) watchHere(ctx context.Context, h *host.Host, run tenon.Run) error {
	watching, leave := context.WithCancelCause(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		leave(abandoned(watching, h, run.ID))
	}()
	defer func() {
		leave(nil)
		<-done
	}()
	f := newFollower(a)
	served, err := h.Claimed(serveClaim)
	if err != nil {
		return err
	}
	if served {
		client := httpapi.NewClient(h.Socket())
		defer client.Close()
		err = f.follow(watching, client, run.ID)
	}
	if f.done == nil && len(f.waiting) == 0 && watching.Err() == nil {
		if served && err != nil && !goneAway(err) {
			return err
		}
		err = f.follow(watching, h, run.ID)
	}
	if f.done == nil && ctx.Err() == nil && errors.Is(context.Cause(watching), errAbandoned) {
		return tenon.Errorf(tenon.CodeConflict, "run %s is under way and nobody works on it; go on with: %s, or start tenon serve", run.ID, a.again("runs resume", run.ID))
	}
	return a.watched(ctx, h, run, f, err)
}

// watched tells of the end of what was followed.
func (a *app) watched(ctx context.Context, h desk, run tenon.Run, f *follower, err error) error {
	switch {
	case f.done != nil:
		return a.ended(ctx, h, run, f)
	case ctx.Err() != nil:
		var s signalled
		errors.As(context.Cause(ctx), &s)
		return s.stopped("; the run goes on, see: " + a.again("runs follow", run.ID))
	case len(f.waiting) > 0:
		return a.rests(ctx, h, run)
	}
	return err
}

// goneAway reports whether the process that serves has ended, or ends.
func goneAway(err error) bool {
	code := tenon.ErrorCode(err)
	return code == tenon.CodeUnreachable || code == tenon.CodeCancelled
}

// abandoned returns errAbandoned once nobody works on a run, and nobody will by
// itself, and nil when ctx ends.
func abandoned(ctx context.Context, h *host.Host, run string) error {
	for lonely := 0; lonely < 2; {
		owned, oerr := h.Owned(run)
		served, serr := h.Claimed(serveClaim)
		row, rerr := h.RunRow(ctx, run)
		if oerr == nil && serr == nil && rerr == nil && !owned && !served && row.State == tenon.RunWorking {
			lonely++
		} else {
			lonely = 0
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(500 * time.Millisecond):
		}
	}
	return errAbandoned
}

var (
	_ source = (*host.Host)(nil)
	_ source = (*httpapi.Client)(nil)
)
