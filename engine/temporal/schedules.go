package temporal

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"

	enums "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"

	"github.com/tenonhq/tenon/schedule"
)

// schedulePage is the number of schedules in an answer to a list.
const schedulePage = 100

// Schedule implements [schedule.Scheduler]. A schedule starts the workflow tickWorkflow at its times, which starts the
// run. Its id has the task queue, so that several installations may share a namespace. A schedule that somebody paused
// in the pages of Temporal stays paused.
func (c *Cluster) Schedule(ctx context.Context, all map[string]schedule.Config) error {
	if err := c.Ready(ctx); err != nil {
		return err
	}
	err := c.reconcile(ctx, c.client.ScheduleClient(), all)
	if errors.As(err, new(*serviceerror.Unimplemented)) {
		return schedule.ErrUnsupported
	}
	return c.explain(err)
}

// schedulePrefix begins the ids of our schedules. Names of schedules have no slash.
func (c *Cluster) schedulePrefix() string { return "tenon.schedule/" + c.cfg.TaskQueue + "/" }

func (c *Cluster) reconcile(ctx context.Context, sc client.ScheduleClient, all map[string]schedule.Config) error {
	want := map[string]bool{}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if s := all[name].WithDefaults(); s.IsEnabled() {
			id := c.schedulePrefix() + name
			want[id] = true
			if err := c.put(ctx, sc, id, name, s); err != nil {
				return err
			}
		}
	}
	ids, err := c.scheduled(ctx, sc)
	for _, id := range ids {
		if err == nil && !want[id] {
			err = remove(ctx, sc, id)
		}
	}
	return err
}

// put creates a schedule, or changes the existing one.
func (c *Cluster) put(ctx context.Context, sc client.ScheduleClient, id, name string, s schedule.Config) error {
	ctx, stop := context.WithTimeout(ctx, dispatchTime)
	defer stop()
	o := client.ScheduleOptions{ID: id, Spec: specOf(s), Overlap: overlapOf(s.Overlap), CatchupWindow: s.Lateness(),
		Action: &client.ScheduleWorkflowAction{ID: id, Workflow: tickName, TaskQueue: c.cfg.TaskQueue,
			Args: []any{tickInput{Schedule: name, Queue: c.cfg.TaskQueue, Late: s.Lateness(),
				Heartbeat: c.cfg.Heartbeat}}}}
	_, err := sc.Create(ctx, o)
	if !errors.Is(err, temporal.ErrScheduleAlreadyRunning) && !errors.As(err, new(*serviceerror.AlreadyExists)) {
		return err
	}
	return sc.GetHandle(ctx, id).Update(ctx, client.ScheduleUpdateOptions{
		DoUpdate: func(is client.ScheduleUpdateInput) (*client.ScheduleUpdate, error) {
			policy := &client.SchedulePolicies{}
			if is.Description.Schedule.Policy != nil {
				*policy = *is.Description.Schedule.Policy
			}
			policy.Overlap, policy.CatchupWindow = o.Overlap, o.CatchupWindow
			return &client.ScheduleUpdate{Schedule: &client.Schedule{Action: o.Action, Spec: &o.Spec, Policy: policy,
				State: is.Description.Schedule.State}}, nil
		}})
}

// scheduled returns the ids of the schedules of our task queue.
func (c *Cluster) scheduled(ctx context.Context, sc client.ScheduleClient) (ids []string, err error) {
	ctx, stop := context.WithTimeout(ctx, dispatchTime)
	defer stop()
	it, err := sc.List(ctx, client.ScheduleListOptions{PageSize: schedulePage})
	if err != nil {
		return nil, err
	}
	for it.HasNext() {
		e, err := it.Next()
		if err != nil {
			return nil, err
		}
		if name, ok := strings.CutPrefix(e.ID, c.schedulePrefix()); ok && !strings.Contains(name, "/") {
			ids = append(ids, e.ID)
		}
	}
	return ids, nil
}

func remove(ctx context.Context, sc client.ScheduleClient, id string) error {
	ctx, stop := context.WithTimeout(ctx, dispatchTime)
	defer stop()
	err := sc.GetHandle(ctx, id).Delete(ctx)
	if errors.As(err, new(*serviceerror.NotFound)) {
		return nil // another process was first
	}
	return err
}

// overlapOf returns the policy of Temporal for a value of overlap. Of several runs that wait, Temporal keeps the first
// one.
func overlapOf(overlap string) enums.ScheduleOverlapPolicy {
	switch overlap {
	case schedule.OverlapQueue:
		return enums.SCHEDULE_OVERLAP_POLICY_BUFFER_ONE
	case schedule.OverlapCancel:
		return enums.SCHEDULE_OVERLAP_POLICY_CANCEL_OTHER
	case schedule.OverlapAllow:
		return enums.SCHEDULE_OVERLAP_POLICY_ALLOW_ALL
	}
	return enums.SCHEDULE_OVERLAP_POLICY_SKIP
}

// specOf returns the times of a schedule.
func specOf(s schedule.Config) client.ScheduleSpec {
	return client.ScheduleSpec{CronExpressions: expressions(s.Cron), TimeZoneName: s.Timezone}
}

// expressions returns the cron expressions that have the same times in Temporal. If day of month and day of week are
// both restricted, cron(5) means days that match one of them; Temporal means days that match both, so there are two
// expressions.
func expressions(spec string) []string {
	fields := strings.Fields(spec)
	if len(fields) != 5 {
		return []string{strings.TrimSpace(spec)} // @daily
	}
	for i, f := range fields {
		fields[i] = strings.ToUpper(strings.ReplaceAll(f, "?", "*"))
	}
	if isAny(fields[2]) || isAny(fields[4]) {
		return []string{strings.Join(fields, " ")}
	}
	days, week := slices.Clone(fields), slices.Clone(fields)
	days[4], week[2] = "*", "*"
	return []string{strings.Join(days, " "), strings.Join(week, " ")}
}

// isAny reports whether a field matches all values without a step.
func isAny(field string) bool {
	return slices.ContainsFunc(strings.Split(field, ","), func(s string) bool { return s == "*" || s == "*/1" })
}

var _ schedule.Scheduler = (*Cluster)(nil)
