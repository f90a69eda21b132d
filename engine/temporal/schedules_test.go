package temporal

import (
	"context"
	"errors"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	enums "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"

	"github.com/tenonhq/tenon/schedule"
)

// schedules is a double of the SDK's client for schedules. Temporal's test server has none.
type schedules struct {
	client.ScheduleClient // panics where a test needs more
	all                   map[string]*client.ScheduleOptions
	changes               []string
	err                   error
}

// Create implements [client.ScheduleClient].
func (s *schedules) Create(_ context.Context, o client.ScheduleOptions) (client.ScheduleHandle, error) {
	if s.err != nil {
		return nil, s.err
	}
	if s.all[o.ID] != nil {
		return nil, temporal.ErrScheduleAlreadyRunning
	}
	s.all[o.ID] = &o
	s.changes = append(s.changes, "create "+o.ID)
	return s.GetHandle(nil, o.ID), nil //nolint:staticcheck // the double needs no context
}

// List implements [client.ScheduleClient].
func (s *schedules) List(context.Context, client.ScheduleListOptions) (client.ScheduleListIterator, error) {
	return &listed{slices.Sorted(maps.Keys(s.all))}, s.err
}

// GetHandle implements [client.ScheduleClient].
func (s *schedules) GetHandle(_ context.Context, id string) client.ScheduleHandle {
	return handle{of: s, id: id}
}

type listed struct{ ids []string }

// HasNext implements [client.ScheduleListIterator].
func (l *listed) HasNext() bool { return len(l.ids) > 0 }

// Next implements [client.ScheduleListIterator].
func (l *listed) Next() (*client.ScheduleListEntry, error) {
	id := l.ids[0]
	l.ids = l.ids[1:]
	return &client.ScheduleListEntry{ID: id}, nil
}

type handle struct {
	client.ScheduleHandle
	of *schedules
	id string
}

// Delete implements [client.ScheduleHandle].
func (h handle) Delete(context.Context) error {
	if h.of.all[h.id] == nil {
		return serviceerror.NewNotFound("no schedule")
	}
	delete(h.of.all, h.id)
	h.of.changes = append(h.of.changes, "delete "+h.id)
	return nil
}

// Update implements [client.ScheduleHandle].
func (h handle) Update(_ context.Context, o client.ScheduleUpdateOptions) error {
	old := h.of.all[h.id]
	u, err := o.DoUpdate(client.ScheduleUpdateInput{Description: client.ScheduleDescription{Schedule: client.Schedule{
		Action: old.Action, Spec: &old.Spec, Policy: &client.SchedulePolicies{Overlap: old.Overlap,
			CatchupWindow: old.CatchupWindow, PauseOnFailure: old.PauseOnFailure},
		State: &client.ScheduleState{Paused: old.Paused, Note: old.Note}}}})
	if err != nil {
		return err
	}
	h.of.all[h.id] = &client.ScheduleOptions{ID: h.id, Action: u.Schedule.Action, Spec: *u.Schedule.Spec,
		Overlap: u.Schedule.Policy.Overlap, CatchupWindow: u.Schedule.Policy.CatchupWindow,
		PauseOnFailure: u.Schedule.Policy.PauseOnFailure, Paused: u.Schedule.State.Paused, Note: u.Schedule.State.Note}
	h.of.changes = append(h.of.changes, "update "+h.id)
	return nil
}

// TestSchedules_Reconcile gives the schedules of some configurations to a double, one after the other.
func TestSchedules_Reconcile(t *testing.T) {
	c, err := New(Config{TaskQueue: "q"})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	off := false
	s := &schedules{all: map[string]*client.ScheduleOptions{"of somebody else": {}, "tenon.schedule/q2/daily": {},
		"tenon.schedule/q/b/daily": {}}}
	for _, step := range []struct {
		config map[string]schedule.Config
		want   []string
	}{
		{map[string]schedule.Config{"daily": {Cron: "0 3 * * *", Question: "?"},
			"off": {Cron: "@daily", Enabled: &off}},
			[]string{"create tenon.schedule/q/daily"}},
		{map[string]schedule.Config{"daily": {Cron: "0 4 * * *", Overlap: "cancel", CatchUp: 2 * time.Hour},
			"new": {Cron: "@hourly"}},
			[]string{"update tenon.schedule/q/daily", "create tenon.schedule/q/new"}},
		{map[string]schedule.Config{"daily": {Cron: "0 4 * * *", Enabled: &off}, "new": {Cron: "@hourly"}},
			[]string{"update tenon.schedule/q/new", "delete tenon.schedule/q/daily"}},
		{map[string]schedule.Config{}, []string{"delete tenon.schedule/q/new"}},
	} {
		s.changes = nil
		if err := c.reconcile(t.Context(), s, step.config); err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(step.want, s.changes) {
			t.Errorf("changes %q, want %q", s.changes, step.want)
		}
		if o := s.all["tenon.schedule/q/daily"]; o != nil && step.config["daily"].Overlap == "cancel" {
			if o.Overlap != enums.SCHEDULE_OVERLAP_POLICY_CANCEL_OTHER || o.CatchupWindow != 2*time.Hour ||
				!o.Paused || o.Note != "paused by hand" {
				t.Errorf("after the change: %+v", o)
			}
		} else if o != nil {
			o.Paused, o.Note = true, "paused by hand" // in the pages of Temporal
		}
	}
	if len(s.all) != 3 {
		t.Errorf("schedules of others were removed: %v", s.all)
	}
}

func TestSchedules_Options(t *testing.T) {
	c, err := New(Config{TaskQueue: "q", Heartbeat: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	s := &schedules{all: map[string]*client.ScheduleOptions{}}
	config := schedule.Config{Cron: "30 2 * * *", Timezone: "Europe/Berlin", Overlap: "queue", Question: "?"}
	if err := c.reconcile(t.Context(), s, map[string]schedule.Config{"night": config}); err != nil {
		t.Fatal(err)
	}
	const id = "tenon.schedule/q/night"
	want := &client.ScheduleOptions{ID: id, Overlap: enums.SCHEDULE_OVERLAP_POLICY_BUFFER_ONE, CatchupWindow: time.Hour,
		Spec: client.ScheduleSpec{CronExpressions: []string{"30 2 * * *"}, TimeZoneName: "Europe/Berlin"},
		Action: &client.ScheduleWorkflowAction{ID: id, Workflow: "tenon.tick", TaskQueue: "q",
			Args: []any{tickInput{Schedule: "night", Queue: "q", Late: time.Hour, Heartbeat: time.Second}}}}
	if !reflect.DeepEqual(want, s.all[id]) {
		t.Errorf("got %+v, want %+v", s.all[id], want)
	}
	for overlap, want := range map[string]enums.ScheduleOverlapPolicy{"skip": enums.SCHEDULE_OVERLAP_POLICY_SKIP,
		"": enums.SCHEDULE_OVERLAP_POLICY_SKIP, "allow": enums.SCHEDULE_OVERLAP_POLICY_ALLOW_ALL} {
		if got := overlapOf(overlap); got != want {
			t.Errorf("overlap %q: %v, want %v", overlap, got, want)
		}
	}
}

func TestSchedules_Cron(t *testing.T) {
	for cron, want := range map[string]string{
		"0 3 * * *":          "0 3 * * *",
		" */15  8-18 * * ? ": "*/15 8-18 * * *",
		"0 0 1 * mon":        "0 0 1 * *|0 0 * * MON",
		"0 0 */2 jan 1-5":    "0 0 */2 JAN *|0 0 * JAN 1-5",
		"0 0 * * 1":          "0 0 * * 1",
		"@weekly":            "@weekly",
	} {
		if got := strings.Join(expressions(cron), "|"); got != want {
			t.Errorf("%q: %q, want %q", cron, got, want)
		}
	}
}

// TestSchedules_Errors: a server without schedules is not an error of a schedule, and other errors say what to do.
func TestSchedules_Errors(t *testing.T) {
	c, err := New(Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	all := map[string]schedule.Config{"a": {Cron: "@daily"}}
	err = c.reconcile(t.Context(), &schedules{err: serviceerror.NewUnimplemented("unknown method CreateSchedule")}, all)
	if !errors.As(err, new(*serviceerror.Unimplemented)) {
		t.Errorf("without the method: %v", err)
	}
	// A schedule that another process has deleted meanwhile is deleted.
	if err := remove(t.Context(), &schedules{}, "gone"); err != nil {
		t.Error(err)
	}
}

// TestSchedules_Unsupported asks the test server, which has no schedules, or a real one, which keeps them.
func TestSchedules_Unsupported(t *testing.T) {
	c, err := New(Config{Address: server(t), TaskQueue: "unsupported"})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	err = c.Schedule(t.Context(), map[string]schedule.Config{"a": {Cron: "0 0 1 1 *"}})
	if isServer() {
		if err == nil {
			err = c.Schedule(t.Context(), map[string]schedule.Config{})
		}
		if err != nil {
			t.Error(err)
		}
		return
	}
	if !errors.Is(err, schedule.ErrUnsupported) {
		t.Errorf("the error is %v", err)
	}
}
