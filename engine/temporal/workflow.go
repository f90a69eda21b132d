package temporal

import (
	"fmt"
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/tenonhq/tenon"
)

const (
	// workflowName, nudgeName, driveName and cancelName are stored in histories, so they never change.
	workflowName = "tenon.run"
	nudgeName    = "nudge"
	driveName    = "tenon.drive"
	cancelName   = "tenon.cancel"
	// maxDrives is how often a workflow starts an activity before it continues as new.
	maxDrives = 1000
	// firstPause is the pause after an error stopped a run for the first time. It doubles up to maxPause.
	firstPause = 5 * time.Second
	maxPause   = 5 * time.Minute
	// driveTime bounds an activity. A run that works for longer is driven by another one.
	driveTime = 30 * 24 * time.Hour
	// stateDeleted is the state of a run that the store no longer has.
	stateDeleted tenon.RunState = "deleted"
)

// input is the input of the workflow of a run, and all that it carries when it continues as new.
type input struct {
	Run        string         `json:"run"`
	Queue      string         `json:"queue"`           // task queue of the workflow
	Label      string         `json:"label,omitempty"` // of the workers that may work on the run
	Seq        uint64         `json:"seq,omitempty"`   // of the last event in a nudge
	Done       uint64         `json:"done,omitempty"`  // of the last event when the run was put to rest
	State      tenon.RunState `json:"state,omitempty"`
	Wake       time.Time      `json:"wake,omitzero"`
	Halts      int            `json:"halts,omitempty"`      // consecutive errors that stopped the run
	Attributes bool           `json:"attributes,omitempty"` // whether the namespace has our search attributes
	Heartbeat  time.Duration  `json:"heartbeat"`
	Follow     []string       `json:"follow,omitempty"` // workflows that wait for the end of the run
}

// nudge is the signal that a run needs a process, or needs none any more.
type nudge struct {
	Seq   uint64 `json:"seq"` // of the run's last event
	Label string `json:"label,omitempty"`
	Ended bool   `json:"ended,omitempty"`
}

// outcome is the result of the activity that drives a run.
type outcome struct {
	State tenon.RunState `json:"state"`
	Seq   uint64         `json:"seq,omitempty"`
	Wake  time.Duration  `json:"wake,omitempty"` // until a wait expires
	// Halted is the code of the error that stopped the run. Its text stays in the log of the worker, because it may
	// have text of servers or models.
	Halted tenon.Code `json:"halted,omitempty"`
}

// runner is the state of a workflow.
type runner struct {
	input
	nudges  workflow.ReceiveChannel
	follows workflow.ReceiveChannel
	drives  int
	force   bool // drive the run even if no event is new
	ended   bool // a nudge said so
	asked   bool // Temporal was asked to cancel the workflow
	sent    bool // the run has the request
}

// runWorkflow is the workflow of a run. It must stay deterministic: workers of a newer version replay its histories.
func runWorkflow(ctx workflow.Context, in input) error {
	r := &runner{input: in, nudges: workflow.GetSignalChannel(ctx, nudgeName),
		follows: workflow.GetSignalChannel(ctx, followName)}
	work, _ := workflow.NewDisconnectedContext(ctx) // cancelling is a signal for the run, not for the activity
	again, err := r.work(ctx, work)
	if again {
		r.hear()
		return workflow.NewContinueAsNewError(work, workflowName, r.input)
	}
	r.tell(work)
	return err
}

// work drives the run until it has ended. It returns again if the workflow is to continue as new.
func (r *runner) work(ctx, work workflow.Context) (again bool, err error) {
	for {
		r.drain()
		switch {
		case r.ended:
			return false, r.attribute(work, tenon.RunCancelled)
		case r.asked && !r.sent:
			r.sent, r.force = true, true
			if err := r.cancel(work); err != nil {
				return false, err
			}
		case r.force || r.Seq > r.Done:
			ended, err := r.drive(ctx, work)
			if ended || err != nil {
				return false, err
			}
		case r.drives >= maxDrives || workflow.GetInfo(ctx).GetContinueAsNewSuggested():
			return true, nil
		default:
			r.wait(ctx, work)
		}
	}
}

func (r *runner) drain() {
	for n := (nudge{}); r.nudges.ReceiveAsync(&n); n = (nudge{}) {
		r.take(n)
	}
}

func (r *runner) take(n nudge) {
	r.ended = r.ended || n.Ended
	r.Seq, r.Label = max(r.Seq, n.Seq), n.Label
	r.force = r.force || r.Halts > 0
}

// listen adds what can happen during any wait to a selector.
func (r *runner) listen(ctx workflow.Context, s workflow.Selector) {
	s.AddReceive(r.nudges, func(c workflow.ReceiveChannel, _ bool) {
		n := nudge{}
		if c.ReceiveAsync(&n) {
			r.take(n)
		}
	})
	if !r.asked {
		s.AddReceive(ctx.Done(), func(workflow.ReceiveChannel, bool) { r.asked = true })
	}
}

// drive lets a worker drive the run. A nudge with another label moves the run to another activity. The first one is not
// cancelled: no worker may have it, and if one has, it finds the lease taken or the run at rest.
func (r *runner) drive(ctx, work workflow.Context) (ended bool, err error) {
	if err := r.attribute(work, tenon.RunWorking); err != nil {
		return false, err
	}
	r.force, r.Wake = false, time.Time{}
	r.drives++
	label := r.Label
	f := workflow.ExecuteActivity(r.activity(work, fmt.Sprint("drive-", r.drives), driveTime), driveName, r.Run)
	for !f.IsReady() {
		s := workflow.NewSelector(ctx)
		s.AddFuture(f, func(workflow.Future) {})
		r.listen(ctx, s)
		s.Select(work)
		if r.ended || r.Label != label {
			r.force = true
			return false, nil
		}
		if r.asked && !r.sent {
			r.sent = true
			if err := r.cancel(work); err != nil {
				return false, err
			}
		}
	}
	out := outcome{}
	if err := f.Get(work, &out); err != nil {
		out.Halted = tenon.CodeInternal
	}
	return r.settle(work, out)
}

// settle records the outcome of an activity.
func (r *runner) settle(work workflow.Context, out outcome) (ended bool, err error) {
	if out.Halted != "" {
		r.Done = r.Seq
		r.Wake = workflow.Now(work).Add(min(firstPause<<min(r.Halts, 16), maxPause))
		r.Halts++
		return false, nil
	}
	r.Halts, r.Done = 0, out.Seq
	if out.Wake > 0 {
		r.Wake = workflow.Now(work).Add(max(out.Wake, time.Second))
	}
	return out.State.Ended() || out.State == stateDeleted, r.attribute(work, out.State)
}

// wait waits until a nudge comes or the time to wake has come.
func (r *runner) wait(ctx, work workflow.Context) {
	timer, stop := workflow.WithCancel(work)
	defer stop()
	s := workflow.NewSelector(ctx)
	r.listen(ctx, s)
	if !r.Wake.IsZero() {
		s.AddFuture(workflow.NewTimer(timer, max(r.Wake.Sub(workflow.Now(work)), time.Millisecond)),
			func(workflow.Future) { r.force = true })
	}
	s.Select(work)
}

// cancel asks a worker to cancel the run, because Temporal was asked to cancel its workflow.
func (r *runner) cancel(work workflow.Context) error {
	return workflow.ExecuteActivity(r.activity(work, "cancel", time.Hour), cancelName, r.Run).Get(work, nil)
}

// activity sets the options of an activity. Its id says in the pages of Temporal how often the run was driven.
func (r *runner) activity(work workflow.Context, id string, most time.Duration) workflow.Context {
	return workflow.WithActivityOptions(work, workflow.ActivityOptions{ActivityID: id,
		TaskQueue: queueOf(r.Queue, r.Label), StartToCloseTimeout: most, HeartbeatTimeout: r.Heartbeat,
		RetryPolicy: &temporal.RetryPolicy{InitialInterval: time.Second, MaximumInterval: 30 * time.Second}})
}

// attribute shows the state of the run in its search attributes.
func (r *runner) attribute(work workflow.Context, state tenon.RunState) error {
	if !r.Attributes || r.State == state || state == stateDeleted {
		return nil
	}
	r.State = state
	return workflow.UpsertTypedSearchAttributes(work, keyState.ValueSet(string(state)))
}

// queueOf returns the task queue of the workers with a label.
func queueOf(queue, label string) string {
	if label == "" {
		return queue
	}
	return queue + "-" + label
}
