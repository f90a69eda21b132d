package temporal

import (
	"context"
	"errors"
	"slices"
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/schedule"
)

const (
	// These names are stored in histories, so they never change. tickName is a workflow and its activity, followName a
	// signal to the workflow of a run, and endedName its answer.
	tickName   = "tenon.tick"
	followName = "follow"
	endedName  = "ended"
	// tickTime bounds an attempt to start a run.
	tickTime = time.Minute
	// tickLook is the pause before a look at a run whose workflow has said nothing: somebody may have terminated it.
	tickLook = 10 * time.Minute
	// maxLooks is how often a tick looks before it continues as new.
	maxLooks = 500
)

// keyScheduled is set by Temporal: the time by the schedule at which a workflow was started.
var keyScheduled = temporal.NewSearchAttributeKeyTime("TemporalScheduledStartTime")

// tickInput is the input of the workflow of a schedule's time.
type tickInput struct {
	Schedule  string        `json:"schedule"`
	Queue     string        `json:"queue"` // task queue of the workflow
	Late      time.Duration `json:"late"`  // how late the run may start
	Heartbeat time.Duration `json:"heartbeat"`
	// At and Due are set when the workflow continues as new.
	At  time.Time `json:"at,omitzero"`
	Due time.Time `json:"due,omitzero"`
	Run string    `json:"run,omitempty"` // the run, once it was started
}

// tickArgs are the arguments of the activity that starts the run of a tick.
type tickArgs struct {
	Schedule string    `json:"schedule"`
	At       time.Time `json:"at"`  // the time by the schedule
	Due      time.Time `json:"due"` // when Temporal wanted it to start
}

// ticked is the result of the activity.
type ticked struct {
	Run     string         `json:"run,omitempty"`
	State   tenon.RunState `json:"state,omitempty"`
	Skipped string         `json:"skipped,omitempty"` // reason why the run is not started
}

// tickWorkflow starts the run of a schedule's time, and ends when the run has ended, so that Temporal's overlap policy
// is about runs. The id of the run is made from the schedule and the time: tenon's own schedules, another tick and
// another attempt start no second one.
//
//	Temporal's schedule ─► tickWorkflow ─► activity tenon.tick ─► run ─► runWorkflow
//	                            └──────────── signal follow ───────────────► │
//	                            ◄──────────── signal ended ──────────────────┘
func tickWorkflow(ctx workflow.Context, in tickInput) error {
	work, _ := workflow.NewDisconnectedContext(ctx) // cancelling is a signal for the run
	if in.At.IsZero() {
		in.Due = workflow.GetInfo(ctx).WorkflowStartTime
		in.At = in.Due
		if at, ok := workflow.GetTypedSearchAttributes(ctx).GetTime(keyScheduled); ok {
			in.At = at
		}
	}
	ended, cancelled, followed := workflow.GetSignalChannel(ctx, endedName), false, false
	for looks := 0; looks < maxLooks; looks++ {
		out := ticked{}
		start := in.Run == ""
		err := workflow.ExecuteActivity(tickOptions(work, in, start), tickName, tickArgs{in.Schedule, in.At, in.Due}).
			Get(work, &out)
		if err != nil || out.Run == "" || out.State.Ended() {
			return err
		}
		in.Run = out.Run
		pause := tickLook
		if !followed { // a signal is an event of the run's history, too
			own := workflow.GetInfo(ctx).WorkflowExecution.ID
			err = workflow.SignalExternalWorkflow(work, in.Run, "", followName, own).Get(work, nil)
			followed = err == nil
		}
		if !followed {
			// The workflow of the run has ended, and so has the run, unless somebody terminated the workflow.
			pause = min(time.Second<<min(looks, 16), tickLook)
		}
		timer, stop := workflow.WithCancel(work)
		s := workflow.NewSelector(ctx)
		s.AddReceive(ended, func(c workflow.ReceiveChannel, _ bool) { c.ReceiveAsync(nil) })
		s.AddFuture(workflow.NewTimer(timer, pause), func(workflow.Future) {})
		asked := false
		if !cancelled {
			s.AddReceive(ctx.Done(), func(workflow.ReceiveChannel, bool) { asked = true })
		}
		s.Select(work)
		stop()
		if asked {
			cancelled = true
			r := runner{input: input{Run: in.Run, Queue: in.Queue, Heartbeat: in.Heartbeat}}
			if err := r.cancel(work); err != nil {
				return err
			}
		}
	}
	return workflow.NewContinueAsNewError(work, tickName, in)
}

// tickOptions sets the options of the activity. A start is tried for as long as the run may be late, a look for ever.
func tickOptions(work workflow.Context, in tickInput, start bool) workflow.Context {
	o := workflow.ActivityOptions{TaskQueue: in.Queue, StartToCloseTimeout: tickTime,
		RetryPolicy: &temporal.RetryPolicy{InitialInterval: time.Second, MaximumInterval: time.Minute}}
	if start {
		o.ScheduleToCloseTimeout = in.Late + tickTime
	}
	return workflow.WithActivityOptions(work, o)
}

// tick starts the run of a tick, or looks at it. After an error, another worker may be able to: not all configurations
// need to have the schedule.
func (a *activities) tick(ctx context.Context, in tickArgs) (ticked, error) {
	t, ok := a.d.(schedule.Ticker)
	if !ok {
		return ticked{}, again("this worker starts no runs of schedules", elsewherePause)
	}
	run, skipped, err := t.Tick(ctx, in.Schedule, in.At.UTC(), in.Due.UTC())
	switch {
	case err == nil:
		return ticked{Run: run.ID, State: run.State, Skipped: skipped}, nil
	case errors.Is(err, tenon.ErrClosing):
		return ticked{}, again("the worker is closing", closingPause)
	case ctx.Err() != nil:
		return ticked{}, ctx.Err()
	}
	a.cluster.cfg.Logger.Warn("schedule '"+in.Schedule+"': the run of "+in.At.UTC().Format(time.RFC3339)+
		" cannot be started here; Temporal tries again", "schedule", in.Schedule, "error", err)
	return ticked{}, again("the run cannot be started ("+string(tenon.ErrorCode(err))+
		"); the log of the worker says why", 0)
}

// tell tells the ticks that follow the run that it has ended.
func (r *runner) tell(work workflow.Context) {
	r.hear()
	for _, id := range r.Follow {
		// A tick that has ended does not wait for it.
		_ = workflow.SignalExternalWorkflow(work, id, "", endedName, nil).Get(work, nil)
	}
}

// hear takes the ids of ticks that follow the run. A tick that continued as new says it again.
func (r *runner) hear() {
	for id := ""; r.follows.ReceiveAsync(&id); id = "" {
		if !slices.Contains(r.Follow, id) {
			r.Follow = append(r.Follow, id)
		}
	}
}
