package host

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/schedule"
)

// scheduleAgain bounds the pause before another attempt to give the schedules to the cluster.
const scheduleAgain = 5 * time.Minute

// clusterKeepsSchedules gives the schedules to the cluster, if it can keep schedules. If it cannot, this process starts
// the runs. A configuration without the key schedules removes none: another process of the cluster may have them.
func (h *Host) clusterKeepsSchedules(ctx context.Context) bool {
	s, ok := h.cluster.(schedule.Scheduler)
	if !ok || h.config.Schedules == nil {
		return false
	}
	for pause := clusterPause; ; pause = min(2*pause, scheduleAgain) {
		err := s.Schedule(ctx, h.config.Schedules)
		switch {
		case err == nil:
			h.log.Info("the cluster keeps the schedules", "schedules", len(h.config.Schedules))
			return true
		case ctx.Err() != nil:
			return true
		case errors.Is(err, schedule.ErrUnsupported):
			h.log.Info("the cluster has no schedules: this process starts their runs")
			return false
		}
		h.log.Warn("the cluster does not have the schedules yet", "error", err, "again_in", pause)
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return true
		}
	}
}

// Tick implements [schedule.Ticker].
func (d clusterDriver) Tick(ctx context.Context, name string, tick, due time.Time) (run tenon.Run, skipped string,
	err error) {
	// The run comes first: the cluster looks at it until it has ended, even if the schedule is removed meanwhile.
	id := schedule.RunID(name, tick)
	if run, err = d.host.store.Run(ctx, id); tenon.ErrorCode(err) != tenon.CodeNotFound {
		return run, "", err // it was started before, or the store does not answer
	}
	c, ok := d.host.config.Schedules[name]
	if !ok {
		return run, "", tenon.Errorf(tenon.CodeNotFound, "the configuration of this process has no schedule '%s'", name)
	}
	c = c.WithDefaults()
	if skipped, err = c.Due(tick, due, d.host.now()); skipped != "" || err != nil {
		if err == nil {
			d.host.log.Warn("schedule '"+name+"': the run of "+tick.Format(time.RFC3339)+" is not started: "+skipped,
				"schedule", name)
		}
		return run, skipped, err
	}
	start := d.host.startScheduled(ctx, &scheduled{Config: c, name: name, pending: tick}, id)
	if run, err = d.host.store.Run(ctx, id); err != nil {
		return run, "", cmp.Or(start, err)
	}
	if start == nil { // otherwise another process was first
		d.host.log.Info("schedule '"+name+"' started run "+id, "schedule", name, "run", id, "due",
			tick.Format(time.RFC3339))
	}
	return run, "", nil
}

var _ schedule.Ticker = clusterDriver{}
