package host

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/schedule"
)

// keeper is a cluster that keeps schedules, or returns an error for them.
type keeper struct {
	Cluster
	errs  []error // of the next calls
	calls int
	all   map[string]schedule.Config
}

// Schedule implements [schedule.Scheduler].
func (k *keeper) Schedule(_ context.Context, all map[string]schedule.Config) error {
	k.calls++
	if len(k.errs) > 0 {
		err := k.errs[0]
		k.errs = k.errs[1:]
		return err
	}
	k.all = all
	return nil
}

// Close implements [Cluster].
func (k *keeper) Close() error { return nil }

// TestClusterKeepsSchedules gives the schedules to a cluster. If it has none, this process starts the runs.
func TestClusterKeepsSchedules(t *testing.T) {
	s := newScheduleTest(t, schedule.Config{})
	away := tenon.Errorf(tenon.CodeUnreachable, "it is away")
	for name, c := range map[string]struct {
		cluster Cluster
		keeps   bool
		calls   int
	}{
		"keeps":      {&keeper{}, true, 1},
		"has none":   {&keeper{errs: []error{schedule.ErrUnsupported}}, false, 1},
		"comes late": {&keeper{errs: []error{away, away}}, true, 3},
		"late none":  {&keeper{errs: []error{away, schedule.ErrUnsupported}}, false, 2},
		"no cluster": {nil, false, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := &Host{config: s.h.config, log: s.h.log, cluster: c.cluster}
				if keeps := h.clusterKeepsSchedules(t.Context()); keeps != c.keeps {
					t.Errorf("the cluster keeps the schedules: %v", keeps)
				}
				if k, ok := c.cluster.(*keeper); ok && (k.calls != c.calls || c.keeps && len(k.all) != 1) {
					t.Errorf("%d calls, and it has %v", k.calls, k.all)
				}
			})
		})
	}
}

// TestClusterTick starts the runs of ticks that a cluster sends, while the process also has schedules of its own.
func TestClusterTick(t *testing.T) {
	s := newScheduleTest(t, schedule.Config{Overlap: schedule.OverlapAllow})
	d := clusterDriver{s.h}
	at := func(clock string) time.Time {
		tick, err := time.Parse(time.DateTime, "2026-11-24 "+clock)
		if err != nil {
			t.Fatal(err)
		}
		return tick
	}
	tick := func(clock, now string) (tenon.Run, string) {
		t.Helper()
		s.clock.set(now)
		run, skipped, err := d.Tick(t.Context(), "hourly", at(clock), at(clock))
		if err != nil {
			t.Fatal(err)
		}
		return run, skipped
	}
	first, _ := tick("10:00:00", "10:00:02")
	if again, _ := tick("10:00:00", "10:00:03"); again.ID != first.ID || first.ID == "" {
		t.Errorf("another attempt started run %q, the first is %q", again.ID, first.ID)
	}
	s.at("10:00:04") // tenon's own schedule
	s.want("by the cluster and by the process", "10:00 working")
	s.at("11:00:00")
	if own, _ := tick("11:00:00", "11:00:01"); own.ID != s.s.last {
		t.Errorf("the cluster started run %q, and the process %q before", own.ID, s.s.last)
	}
	s.want("the process was first", "10:00 working", "11:00 working")
	run, skipped := tick("12:00:00", "13:30:00")
	if run.ID != "" || !strings.Contains(skipped, "catch_up allows 1h0m0s") {
		t.Errorf("a tick that is too late: run %q, %q", run.ID, skipped)
	}
	if run, skipped := tick("13:30:07", "13:30:08"); run.ID == "" {
		t.Errorf("started by hand in the pages of the cluster: %q", skipped)
	}
	s.finish(3)
	schedules := s.h.config.Schedules
	s.h.config.Schedules = nil // the schedule is removed, and the cluster looks at its run
	run, _, err := d.Tick(t.Context(), "hourly", at("10:00:00"), at("10:00:00"))
	if err != nil || run.ID != first.ID || !run.State.Ended() {
		t.Errorf("the run of a removed schedule: %q %s, %v", run.ID, run.State, err)
	}
	s.h.config.Schedules = schedules
	_, _, err = d.Tick(t.Context(), "other", at("14:00:00"), at("14:00:00"))
	if tenon.ErrorCode(err) != tenon.CodeNotFound {
		t.Errorf("a schedule that is not configured: %v", err)
	}
	if n := strings.Count(s.log.String(), "12:00:00Z is not started"); n != 1 {
		t.Errorf("the log:\n%s", s.log)
	}
}

var (
	_ Cluster            = (*keeper)(nil)
	_ schedule.Scheduler = (*keeper)(nil)
)
