package agent_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/agent"
)

// TestTimeIsUpDuringAModelCall checks two timeouts of a model request. If the run's time is up, the run ends at its
// limit. If the request timed out earlier, it is a failure of the model.
func TestTimeIsUpDuringAModelCall(t *testing.T) {
	for _, c := range []struct {
		name  string
		limit string
		took  time.Duration
		stop  tenon.StopReason
		state tenon.RunState
		depth int
		says  string
	}{
		{"fails", agent.OnLimitFail, 2 * time.Second, tenon.LimitTime, tenon.RunFailed, 0, "the run's time of 1s is up; raise limits.run_timeout"},
		{"of a called run", agent.OnLimitFail, 2 * time.Second, tenon.LimitTime, tenon.RunFailed, 1,
			"the run's time of 1s is up; raise limits.run_timeout, or the time of what called it, such as the timeout of a workflow's step"},
		{"a last answer", agent.OnLimitFinal, 2 * time.Second, tenon.LimitTime, tenon.RunCompleted, 0, ""},
		{"the model's own timeout", agent.OnLimitFail, time.Millisecond, tenon.StopError, tenon.RunFailed, 0, "the deadline passed"},
	} {
		t.Run(c.name, func(t *testing.T) {
			core := agent.New(agent.Spec{Question: "q", Model: "m", Timeout: time.Second + 100, OnLimit: c.limit, Depth: c.depth}, nil)
			now, seq := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), uint64(0)
			apply := func(e tenon.Event) {
				t.Helper()
				seq++
				e.Run, e.Seq, e.Time = "run_1", seq, now
				if err := core.Apply(e); err != nil {
					t.Fatal(err)
				}
			}
			apply(tenon.Event{Kind: tenon.EventRun})
			apply(tenon.Event{Step: "1", Kind: tenon.EventStarted, Attempt: 1, Data: data(tenon.StartedData{Kind: agent.CommandModel})})
			now = now.Add(c.took)
			apply(tenon.Event{Step: "1", Kind: agent.EventFailed, Data: data(agent.Failure{Error: tenon.Errorf(tenon.CodeTimeout, "the deadline passed")})})
			next := core.Next()
			if c.state == tenon.RunCompleted {
				if len(next) != 1 || next[0].Kind != agent.CommandFinal {
					t.Fatalf("%+v", next)
				}
				apply(tenon.Event{Step: next[0].Step, Kind: tenon.EventStarted, Attempt: 1, Data: data(tenon.StartedData{Kind: agent.CommandFinal})})
				apply(tenon.Event{Step: "1", Kind: agent.EventModel, Data: data(agent.Answered{Response: tenon.Response{Stop: tenon.StopEnd,
					Message: &tenon.Message{Role: tenon.RoleAssistant, Parts: []tenon.Part{{Type: tenon.PartText, Text: "so far"}}}}})})
				next = core.Next()
			}
			if len(next) != 1 || next[0].Kind != tenon.CommandDone {
				t.Fatalf("%+v", next)
			}
			var done tenon.DoneData
			if err := json.Unmarshal(next[0].Data, &done); err != nil {
				t.Fatal(err)
			}
			if c.says != "" && (done.Error == nil || done.Error.Message != c.says) {
				t.Errorf("%v, want %s", done.Error, c.says)
			}
			if done.Stop != c.stop || done.State != c.state {
				t.Errorf("%s (%s), want %s (%s)", done.State, done.Stop, c.state, c.stop)
			}
		})
	}
}

// TestTimeIsUpInTheQueue lets the run's time end while its model call waits for the budgets.
func TestTimeIsUpInTheQueue(t *testing.T) {
	core := agent.New(agent.Spec{Question: "q", Model: "m", Timeout: time.Second, Budgets: agent.Budgets{Day: agent.Budget{Turns: 1}}}, nil)
	now, seq := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), uint64(0)
	apply := func(e tenon.Event) {
		t.Helper()
		seq++
		e.Run, e.Seq, e.Time = "run_1", seq, now
		if err := core.Apply(e); err != nil {
			t.Fatal(err)
		}
	}
	apply(tenon.Event{Kind: tenon.EventRun})
	apply(tenon.Event{Step: "1", Kind: agent.EventReserved, Data: data(agent.Reserved{Queued: true})})
	apply(tenon.Event{Step: "1", Kind: tenon.EventStarted, Attempt: 1, Data: data(tenon.StartedData{Kind: agent.CommandReserve})})
	now = now.Add(2 * time.Second)
	apply(tenon.Event{Step: "1", Kind: agent.EventReserved, Data: data(agent.Reserved{Queued: true})})
	var done tenon.DoneData
	if next := core.Next(); len(next) != 1 || next[0].Kind != tenon.CommandDone || json.Unmarshal(next[0].Data, &done) != nil || done.Stop != tenon.LimitTime {
		t.Errorf("%+v", next)
	}
}
