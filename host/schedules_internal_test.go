package host

import (
	"bytes"
	"context"
	"fmt"
	"iter"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/agent"
	"github.com/tenonhq/tenon/config"
	"github.com/tenonhq/tenon/engine"
	"github.com/tenonhq/tenon/schedule"
	"github.com/tenonhq/tenon/view"
)

// slowModel answers when the test releases it.
type slowModel chan struct{}

func (slowModel) Name() string { return "test/slow" }

func (m slowModel) Generate(ctx context.Context, _ *tenon.Request) iter.Seq2[tenon.Delta, error] {
	return func(yield func(tenon.Delta, error) bool) {
		select {
		case <-m:
		case <-ctx.Done():
			yield(tenon.Delta{}, tenon.Errorf(tenon.CodeCancelled, "cancelled"))
			return
		}
		yield(tenon.Delta{Response: &tenon.Response{Stop: tenon.StopEnd, Message: &tenon.Message{
			Role: tenon.RoleAssistant, Parts: []tenon.Part{{Type: tenon.PartText, Text: "done"}}}}}, nil)
	}
}

// setClock is a clock that the test sets.
type setClock struct {
	mu  sync.Mutex
	now time.Time
}

func (c *setClock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *setClock) set(clock string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now, _ = time.Parse(time.DateTime, "2026-11-24 "+clock)
}

func (c *setClock) Elapsed() time.Duration                 { return 0 }
func (c *setClock) After(d time.Duration) <-chan time.Time { return time.After(d) }

// safeLog is a log that can be read while it is written.
type safeLog struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *safeLog) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *safeLog) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// scheduleTest is a host with the schedule "hourly". The test sets its time.
type scheduleTest struct {
	*testing.T
	home  string
	entry schedule.Config
	clock *setClock
	model slowModel
	log   *safeLog
	h     *Host
	s     *scheduled
}

// openAt opens the host at a time of the day, as tenon serve does at its start.
func (t *scheduleTest) openAt(clock string) {
	t.Helper()
	t.clock.set(clock)
	var err error
	t.h, err = Open(t.Context(), Config{Config: &config.Config{Schedules: map[string]schedule.Config{"hourly": t.entry}},
		Home: t.home, Clock: t.clock, Model: "m", Models: map[string]tenon.Model{"m": t.model},
		Logger:    slog.New(slog.NewTextHandler(t.log, &slog.HandlerOptions{Level: slog.LevelWarn})),
		LookupEnv: func(string) (string, bool) { return "", false }})
	if err != nil {
		t.Fatal(err)
	}
	times, err := schedule.Parse(t.entry.Cron, t.entry.Timezone)
	if err != nil {
		t.Fatal(err)
	}
	t.s = &scheduled{Config: t.entry.WithDefaults(), name: "hourly", times: times}
	if err := t.h.recall(t.Context(), t.s); err != nil {
		t.Fatal(err)
	}
}

// at lets the host check its schedule at a time of the day.
func (t *scheduleTest) at(clock string) {
	t.Helper()
	t.clock.set(clock)
	t.h.tick(t.Context(), t.s)
}

// runs returns the times of the runs that the schedule has started, oldest first, with their states.
func (t *scheduleTest) runs() []string {
	t.Helper()
	list, err := t.h.Runs().List(t.Context(), engine.Filter{Limit: 100})
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, r := range list {
		events, err := t.h.store.Events(t.Context(), r.ID, 0, 1)
		if err != nil {
			t.Fatal(err)
		}
		_, spec, err := view.FirstSpec[agent.Spec](r.ID, events)
		if err != nil {
			t.Fatal(err)
		}
		at := strings.TrimSuffix(strings.TrimPrefix(spec.Schedule, "hourly 2026-11-24T"), ":00Z")
		out = append([]string{at + " " + string(r.State)}, out...)
	}
	return out
}

func (t *scheduleTest) want(what string, want ...string) {
	t.Helper()
	if d := cmp.Diff(want, t.runs()); d != "" {
		t.Fatalf("%s: runs (-want +got):\n%s%s", what, d, t.log)
	}
}

// finish lets n runs end.
func (t *scheduleTest) finish(n int) {
	t.Helper()
	for range n {
		t.model <- struct{}{}
	}
	for {
		var working bool
		for _, r := range t.runs() {
			working = working || strings.HasSuffix(r, string(tenon.RunWorking))
		}
		if !working {
			return
		}
		time.Sleep(time.Millisecond)
	}
}

func newScheduleTest(t *testing.T, entry schedule.Config) *scheduleTest {
	entry.Question = "What is new?"
	if entry.Cron == "" {
		entry.Cron = "0 * * * *"
	}
	s := &scheduleTest{T: t, home: t.TempDir(), entry: entry, clock: &setClock{}, model: make(slowModel),
		log: &safeLog{}}
	s.openAt("09:30:00")
	t.Cleanup(func() { _ = s.h.Close() })
	return s
}

// TestScheduleStartsOnce checks that each scheduled time starts one run, however many processes check the schedule and
// how often.
func TestScheduleStartsOnce(t *testing.T) {
	s := newScheduleTest(t, schedule.Config{})
	s.at("09:59:59")
	s.want("before the time")
	s.at("10:00:00")
	s.want("at the time", "10:00 working")
	s.at("10:00:01")
	other := &scheduled{Config: s.s.Config, name: "hourly", times: s.s.times, seen: s.clock.Now().Add(-time.Hour)}
	s.h.tick(t.Context(), other)
	s.want("another process looks too", "10:00 working")
	if !other.pending.IsZero() || other.last != s.s.last {
		t.Errorf("the other process has %s pending and takes %q for the last run", other.pending, other.last)
	}
	s.finish(1)
	s.at("11:00:00")
	s.want("an hour later", "10:00 completed", "11:00 working")
	s.clock.set("10:59:00")
	s.h.tick(t.Context(), s.s)
	s.at("11:00:00")
	s.want("the clock was put back", "10:00 completed", "11:00 working")
}

func TestScheduleOverlap(t *testing.T) {
	for _, tc := range []struct {
		overlap      string
		while, after []string
	}{
		{"", []string{"10:00 working"}, []string{"10:00 completed"}},
		{schedule.OverlapQueue, []string{"10:00 working"}, []string{"10:00 completed", "12:00 working"}},
		{schedule.OverlapAllow, []string{"10:00 working", "11:00 working", "12:00 working"}, nil},
	} {
		t.Run("overlap "+tc.overlap, func(t *testing.T) {
			s := newScheduleTest(t, schedule.Config{Overlap: tc.overlap})
			s.at("10:00:00")
			s.at("11:00:00")
			s.at("12:00:00")
			s.want("while the first run works", tc.while...)
			if tc.after == nil {
				return
			}
			s.finish(1)
			s.at("12:00:05")
			s.want("after its end", tc.after...)
		})
	}
	t.Run("overlap cancel", func(t *testing.T) {
		s := newScheduleTest(t, schedule.Config{Overlap: schedule.OverlapCancel})
		s.at("10:00:00")
		s.at("11:00:00")
		for s.runs()[0] == "10:00 working" {
			time.Sleep(time.Millisecond)
		}
		s.at("11:00:02")
		s.want("the first run is cancelled", "10:00 cancelled", "11:00 working")
	})
}

// TestScheduleCatchUp checks that after a pause the latest missed time is started if it is not too long ago. A new
// schedule has no missed times.
func TestScheduleCatchUp(t *testing.T) {
	for _, tc := range []struct {
		name, again string
		catchUp     time.Duration
		want        []string
		log         string
	}{
		{"the latest of several", "12:10:00", 0, []string{"10:00 completed", "12:00 working"}, ""},
		{"too late", "12:10:00", 5 * time.Minute, []string{"10:00 completed"}, "catch_up allows 5m0s"},
		{"nothing missed", "10:59:59", 0, []string{"10:00 completed"}, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := newScheduleTest(t, schedule.Config{CatchUp: tc.catchUp})
			s.at("09:45:00")
			s.want("a new schedule")
			s.at("10:00:00")
			s.finish(1)
			if err := s.h.Close(); err != nil {
				t.Fatal(err)
			}
			s.openAt(tc.again)
			s.at(tc.again)
			s.want("after the pause", tc.want...)
			if !strings.Contains(s.log.String(), tc.log) {
				t.Errorf("the log does not say %q:\n%s", tc.log, s.log)
			}
		})
	}
}

// TestScheduleRetries checks that a run that cannot be started is tried again while it may be late, then it is given
// up.
func TestScheduleRetries(t *testing.T) {
	s := newScheduleTest(t, schedule.Config{Agent: "nobody", CatchUp: 2 * time.Minute})
	s.at("10:00:00")
	s.at("10:00:02")
	s.at("10:02:30")
	s.want("no such agent")
	for _, text := range []string{"again_in=1s", "again_in=2s", "the run of 2026-11-24T10:00:00Z is not started: "} {
		if !strings.Contains(s.log.String(), text) {
			t.Errorf("the log does not say %q:\n%s", text, s.log)
		}
	}
	if !s.s.pending.IsZero() {
		t.Error("the run is still pending")
	}
}

// TestScheduleSupervised: Supervise starts the runs of schedules.
func TestScheduleSupervised(t *testing.T) {
	t.Parallel() // it mostly waits
	s := newScheduleTest(t, schedule.Config{Cron: "* * * * *"})
	s.clock.set("10:00:59")
	ctx, stop := context.WithCancel(t.Context())
	var served sync.WaitGroup
	served.Go(func() { s.h.Service().Supervise(ctx) })
	for minute := 1; len(s.runs()) == 0 && minute < 60; minute++ {
		time.Sleep(200 * time.Millisecond)
		s.clock.set(fmt.Sprintf("10:%02d:59", minute))
	}
	stop()
	served.Wait()
	if runs := s.runs(); len(runs) != 1 || !strings.HasSuffix(runs[0], " working") {
		t.Errorf("runs %v, want one that works", runs)
	}
}

// TestSchedules_List lists schedules with their next time, and the last run with its state.
func TestSchedules_List(t *testing.T) {
	off := false
	s := newScheduleTest(t, schedule.Config{Timezone: "Europe/Berlin", CatchUp: 2 * time.Hour})
	s.h.config.Schedules["off"] = schedule.Config{Cron: "0 3 * * *", Workflow: "w", Enabled: &off}
	at := func(clock string) time.Time {
		v, _ := time.Parse(time.DateTime, "2026-11-24 "+clock)
		return v
	}
	list := func() []ScheduleInfo {
		t.Helper()
		got, err := s.h.Workflows().Schedules().List(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	hourly := ScheduleInfo{Name: "hourly", Cron: "0 * * * *", Timezone: "Europe/Berlin", Question: "What is new?",
		Overlap: "skip", CatchUp: 7200, Enabled: true, Next: at("10:00:00")}
	disabled := ScheduleInfo{Name: "off", Cron: "0 3 * * *", Timezone: "UTC", Workflow: "w", Overlap: "skip",
		CatchUp: 3600}
	if d := cmp.Diff([]ScheduleInfo{hourly, disabled}, list()); d != "" {
		t.Errorf("before the first run (-want +got):\n%s", d)
	}
	s.at("10:00:00")
	s.clock.set("11:30:00")
	got := list()[0]
	if got.Last == nil || got.Last.Run != s.s.last || got.Last.Session == "" || got.Last.State != tenon.RunWorking ||
		!got.Last.Due.Equal(at("10:00:00")) || !got.Next.Equal(at("12:00:00")) {
		t.Errorf("while the run works: %+v, last %+v", got, got.Last)
	}
	s.finish(1)
	if got := list()[0]; got.Last == nil || got.Last.State != tenon.RunCompleted {
		t.Errorf("after its end: %+v, last %+v", got, got.Last)
	}
	s.h.config.Schedules["wrong"] = schedule.Config{Cron: "x"}
	if _, err := s.h.Workflows().Schedules().List(t.Context()); tenon.ErrorCode(err) != tenon.CodeConfig {
		t.Errorf("a cron that cannot be read: %v", err)
	}
}
