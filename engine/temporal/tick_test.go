package temporal

import (
	"context"
	"os"
	"slices"
	"testing"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/workflow"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/engine/local"
	"github.com/tenonhq/tenon/schedule"
)

// isServer reports whether the tests have Temporal's Go server.
func isServer() bool { return os.Getenv("TENON_TEMPORAL_KIND") == "server" }

// ticker is a driver whose schedule starts one run.
type ticker struct {
	local.Driver
	asked     []time.Time
	run       tenon.Run
	skipped   string
	errs      int // failed attempts
	cancelled int
}

// Tick implements [schedule.Ticker].
func (k *ticker) Tick(_ context.Context, _ string, tick, _ time.Time) (tenon.Run, string, error) {
	k.asked = append(k.asked, tick)
	if k.errs > 0 {
		k.errs--
		return tenon.Run{}, "", tenon.Errorf(tenon.CodeNotFound, "no schedule")
	}
	return k.run, k.skipped, nil
}

// Cancel implements [local.Driver].
func (k *ticker) Cancel(context.Context, string, string) error {
	k.cancelled++
	k.run.State = tenon.RunCancelled
	return nil
}

var (
	tickAt = time.Date(2026, 11, 24, 3, 0, 0, 0, time.UTC)
	tickIn = tickInput{Schedule: "daily", Queue: "q", Late: time.Hour, Heartbeat: time.Second}
)

// ticks runs the workflow of a tick in the test environment of the SDK. act is called when the run has begun.
func ticks(t *testing.T, k *ticker, act func(*testsuite.TestWorkflowEnvironment)) *testsuite.TestWorkflowEnvironment {
	t.Helper()
	var suite testsuite.WorkflowTestSuite
	env := suite.NewTestWorkflowEnvironment()
	c, err := New(Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	a := &activities{d: k, cluster: c}
	env.RegisterWorkflowWithOptions(tickWorkflow, workflow.RegisterOptions{Name: tickName})
	env.RegisterActivityWithOptions(a.tick, activity.RegisterOptions{Name: tickName})
	env.RegisterActivityWithOptions(a.cancel, activity.RegisterOptions{Name: cancelName})
	at := temporal.NewSearchAttributes(keyScheduled.ValueSet(tickAt))
	if err := env.SetTypedSearchAttributesOnStart(at); err != nil {
		t.Fatal(err)
	}
	env.SetStartTime(tickAt.Add(2 * time.Second))
	act(env)
	env.ExecuteWorkflow(tickName, tickIn)
	if !env.IsWorkflowCompleted() {
		t.Fatal("the workflow has not ended")
	}
	for _, at := range k.asked {
		if !at.Equal(tickAt) {
			t.Errorf("the tick is %v, want %v", at, tickAt)
		}
	}
	return env
}

// TestTick_Ended: the tick follows the workflow of its run, and ends with it.
func TestTick_Ended(t *testing.T) {
	k := &ticker{run: tenon.Run{ID: "run_1", State: tenon.RunWorking}}
	env := ticks(t, k, func(env *testsuite.TestWorkflowEnvironment) {
		env.OnSignalExternalWorkflow("default-test-namespace", "run_1", "", followName, "default-test-workflow-id").
			Return(nil).Once()
		env.RegisterDelayedCallback(func() {
			k.run.State = tenon.RunCompleted
			env.SignalWorkflow(endedName, nil)
		}, time.Minute)
	})
	if err := env.GetWorkflowError(); err != nil {
		t.Error(err)
	}
	if len(k.asked) != 2 { // the start, and a look after the signal
		t.Errorf("the worker was asked %d times", len(k.asked))
	}
	env.AssertExpectations(t)
}

// TestTick_Lost: the run ends before its workflow hears that it is followed, or without a word of it.
func TestTick_Lost(t *testing.T) {
	k := &ticker{run: tenon.Run{ID: "run_1", State: tenon.RunWorking}}
	began, ended := time.Time{}, time.Time{}
	env := ticks(t, k, func(env *testsuite.TestWorkflowEnvironment) {
		began = env.Now()
		env.OnSignalExternalWorkflow("default-test-namespace", "run_1", "", followName, "default-test-workflow-id").
			Return(temporal.NewApplicationError("no such workflow", "x"))
		env.RegisterDelayedCallback(func() { k.run.State = tenon.RunCompleted }, 20*time.Second)
	})
	ended = env.Now()
	if err := env.GetWorkflowError(); err != nil || ended.Sub(began) > 2*time.Minute {
		t.Errorf("after %v: %v", ended.Sub(began), err)
	}
}

// TestTick_Cancelled: overlap cancel asks the workflow of the previous tick to cancel its run.
func TestTick_Cancelled(t *testing.T) {
	k := &ticker{run: tenon.Run{ID: "run_1", State: tenon.RunWorking}}
	env := ticks(t, k, func(env *testsuite.TestWorkflowEnvironment) {
		env.OnSignalExternalWorkflow("default-test-namespace", "run_1", "", followName, "default-test-workflow-id").
			Return(nil)
		env.RegisterDelayedCallback(env.CancelWorkflow, time.Minute)
	})
	if err := env.GetWorkflowError(); err != nil || k.cancelled != 1 {
		t.Errorf("%d cancellations: %v", k.cancelled, err)
	}
}

// TestTick_FollowsOnce: a run that lasts for days hears once that a tick follows it, however often the tick looks, and
// keeps the tick once.
func TestTick_FollowsOnce(t *testing.T) {
	k := &ticker{run: tenon.Run{ID: "run_1", State: tenon.RunWorking}}
	env := ticks(t, k, func(env *testsuite.TestWorkflowEnvironment) {
		env.OnSignalExternalWorkflow("default-test-namespace", "run_1", "", followName, "default-test-workflow-id").
			Return(nil).Once()
		env.RegisterDelayedCallback(func() { k.run.State = tenon.RunCompleted }, 48*time.Hour)
	})
	if err := env.GetWorkflowError(); err != nil || len(k.asked) < 200 {
		t.Errorf("%d looks: %v", len(k.asked), err)
	}
	env.AssertExpectations(t)

	var suite testsuite.WorkflowTestSuite
	env = suite.NewTestWorkflowEnvironment()
	env.RegisterWorkflowWithOptions(func(ctx workflow.Context) ([]string, error) {
		r := runner{follows: workflow.GetSignalChannel(ctx, followName)}
		if err := workflow.Sleep(ctx, time.Minute); err != nil {
			return nil, err
		}
		r.hear()
		return r.Follow, nil
	}, workflow.RegisterOptions{Name: "hears"})
	env.RegisterDelayedCallback(func() {
		for _, id := range []string{"a", "b", "a"} {
			env.SignalWorkflow(followName, id)
		}
	}, time.Second)
	env.ExecuteWorkflow("hears")
	var got []string
	if err := env.GetWorkflowResult(&got); err != nil || !slices.Equal(got, []string{"a", "b"}) {
		t.Errorf("the run keeps %q: %v", got, err)
	}
}

func TestTick_Skipped(t *testing.T) {
	k := &ticker{skipped: "clocks were put back"}
	env := ticks(t, k, func(*testsuite.TestWorkflowEnvironment) {})
	if err := env.GetWorkflowError(); err != nil || len(k.asked) != 1 {
		t.Errorf("%d attempts: %v", len(k.asked), err)
	}
}

// TestTick_Retried: a worker without the schedule leaves it to another one, for as long as the run may be late.
func TestTick_Retried(t *testing.T) {
	k := &ticker{run: tenon.Run{ID: "run_1", State: tenon.RunCompleted}, errs: 5}
	env := ticks(t, k, func(*testsuite.TestWorkflowEnvironment) {})
	if err := env.GetWorkflowError(); err != nil || len(k.asked) != 6 {
		t.Errorf("%d attempts: %v", len(k.asked), err)
	}
	k = &ticker{errs: 1 << 30}
	env = ticks(t, k, func(*testsuite.TestWorkflowEnvironment) {})
	if env.GetWorkflowError() == nil {
		t.Error("a run that no worker can start is not reported")
	}
}

var _ schedule.Ticker = (*ticker)(nil)
