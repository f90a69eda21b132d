package cli

import (
	"context"
	"time"

	"github.com/spf13/cobra"
)

// newWorker makes the verb of programs that have a driver of a cluster.
func newWorker(a *app) *cobra.Command {
	grace := defaultGrace
	cmd := &cobra.Command{
		Use:   "worker",
		Short: "Work on the runs that the Temporal cluster gives to this process",
		Long: "Takes runs from the task queue of engine.temporal and works on them, until it is stopped. Any number\n" +
			"of workers, on any machines, may do so; all have the same configuration and the same key of the\n" +
			"store. Processes of tenon serve, and commands such as run, begin runs and leave the work to them.\n\n" +
			"SIGTERM or Ctrl-C stops it. Calls in progress may finish within the grace period; another worker\n" +
			"continues the runs. A worker that dies is noticed after 10 s. The log goes to stderr.",
		Example: "  tenon-temporal worker -c tenon.yaml",
		Args:    args(0, 0, ""),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if grace < 0 {
				return usage(cmd, "--grace must not be negative")
			}
			return a.worker(cmd.Context(), grace)
		},
	}
	cmd.Flags().DurationVar(&grace, "grace", grace, "`TIME` that calls in progress have to finish when the worker is "+
		"stopped")
	return cmd
}

// worker works until ctx ends.
func (a *app) worker(ctx context.Context, grace time.Duration) (err error) {
	a.serving = true
	a.grace.Store(int64(grace))
	h, err := a.open(ctx, opening{connect: true, lasting: true, begins: true, works: true})
	if err != nil {
		return err
	}
	defer func() { closing(h, &err) }()
	s := h.Service()
	t := s.Info().Config.Engine.Temporal
	s.Info().Logger.Info("worker: taking runs", "address", t.Address, "namespace", t.Namespace, "queue", t.TaskQueue)
	over := make(chan struct{})
	go func() {
		defer close(over)
		s.Supervise(ctx)
	}()
	<-ctx.Done()
	s.Info().Logger.Info("worker: stopping", "cause", context.Cause(ctx))
	last, stop := context.WithTimeout(context.WithoutCancel(ctx), grace)
	defer stop()
	s.Drain(last)
	<-over
	return nil
}
