package host

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/tenonhq/tenon/schedule"
)

const (
	// scheduleLook is the longest pause between two looks at the clock, which may be put forward or back.
	scheduleLook = 30 * time.Second
	// scheduleRetry is the pause before another attempt to start a run, and between looks at a run that blocks another.
	scheduleRetry = time.Second
	// maxScheduleRetry bounds that pause after repeated failures.
	maxScheduleRetry = time.Minute
	// maxTicksBack bounds how many times of a schedule are searched for its last run.
	maxTicksBack = 1000
)

// scheduled is a schedule while this process starts its runs.
type scheduled struct {
	schedule.Config
	name  string
	times *schedule.Times

	seen    time.Time // every tick up to this time has been considered
	pending time.Time // the tick that still has to start; zero for none
	retry   time.Time // the next attempt to start it
	tries   int       // failed attempts
	last    string    // the run that was started last, "" if it is not known
}

// keepSchedules starts the runs of the configured schedules until ctx ends, unless the cluster does that.
func (h *Host) keepSchedules(ctx context.Context) {
	if h.clusterKeepsSchedules(ctx) {
		return
	}
	var list []*scheduled
	for _, name := range slices.Sorted(maps.Keys(h.config.Schedules)) {
		c := h.config.Schedules[name].WithDefaults()
		if !c.IsEnabled() {
			continue
		}
		times, err := schedule.Parse(c.Cron, c.Timezone)
		if err != nil { // an entry of a Go program; files were checked when they were loaded
			h.log.Error("schedule '" + name + "' starts nothing: " + err.Error())
			continue
		}
		s := &scheduled{Config: c, name: name, times: times}
		if err := h.recall(ctx, s); err != nil {
			if ctx.Err() == nil {
				h.log.Error("schedule '" + name + "' starts nothing: its last run was not found: " + err.Error())
			}
			continue
		}
		h.log.Info("schedule '"+name+"' is active", "next", s.times.Next(s.seen))
		list = append(list, s)
	}
	for len(list) > 0 && ctx.Err() == nil {
		pause := scheduleLook
		for _, s := range list {
			pause = min(pause, h.tick(ctx, s))
		}
		select {
		case <-time.After(max(pause, 0)):
		case <-ctx.Done():
		}
	}
}

// recall finds the last run of a schedule. Times after it were missed. Without a run the schedule is new and begins
// with its next time.
func (h *Host) recall(ctx context.Context, s *scheduled) error {
	s.seen = h.now()
	run, tick, err := h.lastRun(ctx, s.name, s.times, s.seen)
	if run != nil {
		s.last, s.seen = run.ID, tick
	}
	return err
}

// tick considers the times that have come, and starts a run if one is due. It returns the time until the next look.
func (h *Host) tick(ctx context.Context, s *scheduled) time.Duration {
	now := h.now()
	if now.Before(s.seen) && s.seen.Sub(now) > maxScheduleRetry {
		s.seen = now // the clock was put back: ids keep ticks from starting twice
	}
	if latest := s.times.Latest(s.seen, now); !latest.IsZero() {
		s.consider(ctx, h, latest, now)
		s.seen = latest
	}
	if !s.pending.IsZero() && !now.Before(s.retry) {
		h.startTick(ctx, s, now)
	}
	next := s.times.Next(s.seen).Sub(now)
	if !s.pending.IsZero() {
		next = min(next, s.retry.Sub(now))
	}
	return next
}

// consider makes a tick the pending one, unless it comes too late or the previous run is still there.
func (s *scheduled) consider(ctx context.Context, h *Host, tick, now time.Time) {
	if late := now.Sub(tick); late > s.Lateness() {
		h.log.Warn("schedule '"+s.name+"': the run of "+tick.Format(time.RFC3339)+" is not started, because that was "+
			late.Round(time.Second).String()+" ago; catch_up allows "+s.Lateness().String(), "schedule", s.name)
		return
	}
	if s.Overlap == schedule.OverlapSkip {
		if run, ok := h.overlaps(ctx, s, tick); ok {
			h.log.Warn("schedule '"+s.name+"': the run of "+tick.Format(time.RFC3339)+" is skipped: run "+run+
				" had not ended", "schedule", s.name, "run", run)
			return
		}
	}
	s.pending, s.retry, s.tries = tick, now, 0
}

// overlaps reports whether the last run had not ended at a time. A run that cannot be read blocks nothing: the start
// then fails with the same error.
func (h *Host) overlaps(ctx context.Context, s *scheduled, at time.Time) (run string, ok bool) {
	if s.last == "" {
		return "", false
	}
	r, err := h.store.Run(ctx, s.last)
	return s.last, err == nil && (!r.State.Ended() || r.Updated.After(at))
}

// startTick starts the run of the pending tick.
func (h *Host) startTick(ctx context.Context, s *scheduled, now time.Time) {
	if s.Overlap == schedule.OverlapQueue || s.Overlap == schedule.OverlapCancel {
		if run, ok := h.overlaps(ctx, s, now); ok {
			if s.Overlap == schedule.OverlapCancel && s.tries == 0 {
				s.tries++
				h.cancelLast(ctx, s, run)
			}
			s.retry = now.Add(scheduleRetry)
			return
		}
	}
	id, tick := schedule.RunID(s.name, s.pending), s.pending.Format(time.RFC3339)
	err := h.startScheduled(ctx, s, id)
	if err != nil {
		if _, there := h.store.Run(ctx, id); there == nil { // another process started it, or an earlier attempt
			err = nil
		}
	} else {
		h.log.Info("schedule '"+s.name+"' started run "+id, "schedule", s.name, "run", id, "due", tick)
	}
	switch {
	case err == nil:
		s.last, s.pending = id, time.Time{}
	case ctx.Err() != nil:
	case now.Sub(s.pending) > s.Lateness():
		h.log.Error("schedule '"+s.name+"': the run of "+tick+" is not started: "+err.Error(), "schedule", s.name)
		s.pending = time.Time{}
	default:
		pause := min(scheduleRetry<<min(s.tries, 16), maxScheduleRetry)
		s.tries++
		s.retry = now.Add(pause)
		h.log.Warn("schedule '"+s.name+"': the run of "+tick+" cannot be started: "+err.Error(), "schedule", s.name,
			"again_in", pause)
	}
}

// cancelLast cancels the previous run of a schedule.
func (h *Host) cancelLast(ctx context.Context, s *scheduled, run string) {
	if err := h.Runs().Cancel(ctx, run, "schedule '"+s.name+"' starts its next run"); err != nil {
		h.log.Warn("schedule '"+s.name+"': run "+run+" cannot be cancelled: "+err.Error(), "schedule", s.name)
	}
}

// startScheduled begins a run with a given id.
func (h *Host) startScheduled(ctx context.Context, s *scheduled, id string) error {
	from := s.name + " " + s.pending.Format(time.RFC3339)
	if s.Workflow != "" {
		var params []byte
		if s.Arguments != nil {
			params = encode(s.Arguments)
		}
		_, err := h.Workflows().Start(ctx, WorkflowCall{Name: s.Workflow, Params: params, id: id, schedule: from})
		return err
	}
	_, err := h.Start(ctx, Question{Text: s.Question, Agent: s.Agent, id: id, schedule: from})
	return err
}
