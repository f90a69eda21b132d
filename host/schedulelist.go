package host

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/schedule"
)

// ScheduleInfo is a schedule of the configuration and what the store knows of it.
type ScheduleInfo struct {
	Name     string `json:"name"`
	Cron     string `json:"cron"`
	Timezone string `json:"timezone"`
	Question string `json:"question,omitempty"`
	Agent    string `json:"agent,omitempty"`
	Workflow string `json:"workflow,omitempty"`
	Overlap  string `json:"overlap"`
	CatchUp  int64  `json:"catch_up_seconds"`
	Enabled  bool   `json:"enabled"`
	// Next is the next time at which tenon serve starts a run; zero if the schedule is not enabled.
	Next time.Time     `json:"next,omitzero"`
	Last *ScheduledRun `json:"last,omitempty"` // of the last 1,000 times; nil if none is in the store
}

// ScheduledRun is a run that a schedule started.
type ScheduledRun struct {
	Run     string         `json:"run"`
	Session string         `json:"session,omitempty"`
	Due     time.Time      `json:"due"` // its time by the schedule
	State   tenon.RunState `json:"state"`
	Updated time.Time      `json:"updated"`
}

// List implements [Schedules].
func (h schedulesHandle) List(ctx context.Context) ([]ScheduleInfo, error) {
	list := []ScheduleInfo{}
	now := h.host.now()
	for _, name := range slices.Sorted(maps.Keys(h.host.config.Schedules)) {
		c := h.host.config.Schedules[name].WithDefaults()
		times, err := schedule.Parse(c.Cron, c.Timezone)
		if err != nil { // an entry of a Go program; files are checked when they are loaded
			return nil, tenon.Errorf(tenon.CodeConfig, "schedule '%s': %w", name, err)
		}
		s := ScheduleInfo{Name: name, Cron: c.Cron, Timezone: c.Timezone, Question: c.Question, Agent: c.Agent,
			Workflow: c.Workflow, Overlap: c.Overlap, CatchUp: int64(c.Lateness() / time.Second),
			Enabled: c.IsEnabled()}
		if s.Enabled {
			s.Next = times.Next(now)
		}
		run, due, err := h.host.lastRun(ctx, name, times, now)
		if err != nil {
			return nil, err
		}
		if run != nil {
			s.Last = &ScheduledRun{Run: run.ID, Session: run.Session, Due: due, State: run.State, Updated: run.Updated}
		}
		list = append(list, s)
	}
	return list, nil
}

// lastRun returns the last run of a schedule and its time. It returns nil if the store has no run for any of the last
// times; a run may have been deleted.
func (h *Host) lastRun(ctx context.Context, name string, times *schedule.Times, now time.Time) (*tenon.Run, time.Time,
	error) {
	before := now
	for range maxTicksBack {
		tick := times.Latest(now.AddDate(-1, 0, -1), before)
		if tick.IsZero() {
			break
		}
		run, err := h.store.Run(ctx, schedule.RunID(name, tick))
		if err == nil {
			return &run, tick, nil
		}
		if tenon.ErrorCode(err) != tenon.CodeNotFound {
			return nil, time.Time{}, err
		}
		before = tick.Add(-time.Second)
	}
	return nil, time.Time{}, nil
}
