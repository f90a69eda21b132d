package temporal

import (
	"context"
	"errors"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/engine/local"
)

const (
	// elsewherePause is the pause before another attempt at a run whose lease another process has.
	elsewherePause = time.Second
	// closingPause is the pause before another worker gets a run of a worker that is closing.
	closingPause = 200 * time.Millisecond
	// stopTime is how long the activities of a closing worker may take to return.
	stopTime = 10 * time.Second
)

// Work takes runs from the task queue, and from the queues of the labels, until ctx ends. Then the driver must be
// closing, so that the activities under way return. It returns the errors of [Cluster.Ready].
func (c *Cluster) Work(ctx context.Context, d local.Driver, labels ...string) error {
	if err := c.Ready(ctx); err != nil {
		return err
	}
	a := &activities{d: d, every: c.cfg.Heartbeat / 3, cluster: c}
	var started []worker.Worker
	defer func() {
		for _, w := range started {
			w.Stop()
		}
	}()
	fatal := make(chan error, len(labels)+1)
	for i, label := range append([]string{""}, labels...) {
		o := worker.Options{WorkerStopTimeout: stopTime, MaxConcurrentActivityExecutionSize: c.cfg.Parallel,
			DisableWorkflowWorker: i > 0, OnFatalError: func(err error) { fatal <- err },
			StickyScheduleToStartTimeout: 2 * time.Second}
		if c.cfg.Deployment != "" {
			version := worker.WorkerDeploymentVersion{DeploymentName: c.cfg.Deployment, BuildID: c.cfg.Build}
			o.DeploymentOptions = worker.DeploymentOptions{UseVersioning: true, Version: version,
				DefaultVersioningBehavior: workflow.VersioningBehaviorAutoUpgrade}
		}
		w := worker.New(c.client, queueOf(c.cfg.TaskQueue, label), o)
		if i == 0 {
			w.RegisterWorkflowWithOptions(runWorkflow, workflow.RegisterOptions{Name: workflowName})
			w.RegisterWorkflowWithOptions(tickWorkflow, workflow.RegisterOptions{Name: tickName})
			w.RegisterActivityWithOptions(a.tick, activity.RegisterOptions{Name: tickName})
		}
		w.RegisterActivityWithOptions(a.drive, activity.RegisterOptions{Name: driveName})
		w.RegisterActivityWithOptions(a.cancel, activity.RegisterOptions{Name: cancelName})
		if err := w.Start(); err != nil {
			return c.explain(err)
		}
		started = append(started, w)
	}
	select {
	case <-ctx.Done():
		return nil
	case err := <-fatal:
		return c.explain(err)
	}
}

// activities are the activities of a worker.
type activities struct {
	d       local.Driver
	every   time.Duration // between heartbeats
	cluster *Cluster
}

// drive works on a run until it is at rest or has ended.
func (a *activities) drive(ctx context.Context, run string) (outcome, error) {
	over := make(chan struct{})
	beating := make(chan struct{})
	go func() {
		defer close(beating)
		for {
			activity.RecordHeartbeat(ctx)
			select {
			case <-time.After(a.every):
			case <-over:
				return
			}
		}
	}()
	rest, err := a.d.Drive(ctx, run)
	close(over)
	<-beating
	switch {
	case err == nil && rest.Elsewhere:
		return outcome{}, again("another process has the lease of the run", elsewherePause)
	case err == nil:
		return outcome{State: rest.Run.State, Seq: rest.Run.Seq, Wake: rest.Wake}, nil
	case errors.Is(err, tenon.ErrClosing):
		return outcome{}, again("the worker is closing", closingPause)
	case ctx.Err() != nil:
		return outcome{}, ctx.Err()
	case tenon.ErrorCode(err) == tenon.CodeNotFound:
		return outcome{State: stateDeleted}, nil
	}
	a.cluster.cfg.Logger.Error("run "+run+" stopped after an error; Temporal tries again", "run", run, "error", err)
	return outcome{State: tenon.RunWorking, Halted: tenon.ErrorCode(err)}, nil
}

func (a *activities) cancel(ctx context.Context, run string) error {
	err := a.d.Cancel(ctx, run, "its workflow was cancelled in Temporal")
	if tenon.ErrorCode(err) == tenon.CodeNotFound {
		return nil
	}
	return err
}

// again is the error of an activity that Temporal starts once more, at any worker.
func again(why string, pause time.Duration) error {
	o := temporal.ApplicationErrorOptions{NextRetryDelay: pause}
	return temporal.NewApplicationErrorWithOptions(why, "again", o)
}
