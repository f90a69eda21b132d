package schedule

import (
	"cmp"
	"crypto/sha256"
	"encoding/json"
	"strings"
	"time"

	"github.com/robfig/cron/v3"

	"github.com/tenonhq/tenon"
)

// Config is an entry of `schedules` in tenon.yaml. Exactly one of Question and Workflow is set.
type Config struct {
	// When: five cron fields (minute, hour, day of month, month, day of week), or `@hourly`, `@daily`, `@weekly`,
	// `@monthly`, `@yearly`.
	Cron string `yaml:"cron"`
	// Time zone of `cron`, such as `Europe/Berlin`. A time that is missing on the day when clocks go forward is
	// skipped; a time that occurs twice when they go back starts once, unless `cron` has `*` as its hour.
	Timezone string `yaml:"timezone" default:"UTC"`
	// Question to an agent, in a new session each time.
	Question string `yaml:"question"`
	// Agent that is asked.
	Agent string `yaml:"agent" default:"the default agent"`
	// Workflow to run instead of asking a question: an entry of `tools` with `kind: workflow`. Its steps ask for
	// approval as always.
	Workflow string `yaml:"workflow"`
	// Parameters of the workflow.
	Arguments map[string]json.RawMessage `yaml:"arguments" default:"{}"`
	// Behaviour while the previous run has not ended. skip: nothing is started. queue: the run starts when the previous
	// one has ended; only the latest one is kept. cancel: the previous run is cancelled first. allow: both run.
	Overlap string `yaml:"overlap" enum:"skip,queue,cancel,allow" default:"skip"`
	// How late a run may start if `tenon serve` was not running at its time, such as `1h`. Of several missed runs only
	// the latest one starts. It needs an earlier run of the schedule in the store: a new schedule begins with its next
	// time.
	CatchUp time.Duration `yaml:"catch_up" default:"1h"`
	// false: nothing is started.
	Enabled *bool `yaml:"enabled" default:"true"`
}

// The values of [Config.Overlap].
const (
	OverlapSkip   = "skip"
	OverlapQueue  = "queue"
	OverlapCancel = "cancel"
	OverlapAllow  = "allow"
)

// defaultCatchUp is the default of [Config.CatchUp].
const defaultCatchUp = time.Hour

// onTime is the delay up to which a start still counts as punctual, because timers and busy machines cause some delay.
const onTime = time.Minute

// WithDefaults returns a copy with defaults for absent values.
func (c Config) WithDefaults() Config {
	c.Timezone = cmp.Or(c.Timezone, "UTC")
	c.Overlap = cmp.Or(c.Overlap, OverlapSkip)
	c.CatchUp = cmp.Or(c.CatchUp, defaultCatchUp)
	return c
}

// IsEnabled reports whether the schedule starts anything.
func (c Config) IsEnabled() bool { return c.Enabled == nil || *c.Enabled }

// Lateness returns the maximum delay with which a run may start. It is at least a minute.
func (c Config) Lateness() time.Duration { return max(c.CatchUp, onTime) }

// Times computes the times at which a schedule is due.
type Times struct {
	spec     cron.Schedule
	zone     *time.Location
	everyday bool // the hour is not *, so a time of day occurs once a day, even when clocks go back
}

// parser accepts the five fields and the names for common times. Descriptors such as @every depend on the start of the
// process, so a tick would differ between processes.
var parser = cron.NewParser(cron.Minute | cron.Hour | cron.Dom | cron.Month | cron.Dow | cron.Descriptor)

// Parse reads the times of a schedule. The error has code config and describes the mistake in cron or timezone.
func Parse(spec, timezone string) (*Times, error) {
	spec = strings.TrimSpace(spec)
	switch {
	case spec == "":
		return nil, tenon.Errorf(tenon.CodeConfig, "cron is empty: write five fields, such as \"0 3 * * *\" for every "+
			"day at three")
	case strings.HasPrefix(spec, "@every"):
		return nil, tenon.Errorf(tenon.CodeConfig, "@every counts from the start of the process: write fields, such "+
			"as \"*/15 * * * *\" for every quarter of an hour")
	case strings.Contains(spec, "TZ="):
		return nil, tenon.Errorf(tenon.CodeConfig, "the time zone is a separate key: timezone")
	}
	zone, err := zoneOf(timezone)
	if err != nil {
		return nil, err
	}
	s, err := parser.Parse(spec)
	if err != nil {
		return nil, tenon.Errorf(tenon.CodeConfig, "cron '%s' cannot be read: %s", tenon.Visible(spec), reason(err))
	}
	t := &Times{spec: s, zone: zone, everyday: !strings.HasPrefix(spec, "@hourly")}
	if fields := strings.Fields(spec); len(fields) == 5 {
		t.everyday = !strings.HasPrefix(fields[1], "*")
	}
	if t.Next(time.Now()).IsZero() {
		return nil, tenon.Errorf(tenon.CodeConfig, "cron '%s' matches no day in the next five years", spec)
	}
	return t, nil
}

// zoneOf finds a time zone. It refuses the zone of the machine, because another machine would start runs at other
// times.
func zoneOf(name string) (*time.Location, error) {
	if name == "" {
		return time.UTC, nil
	}
	if strings.EqualFold(name, "local") {
		return nil, tenon.Errorf(tenon.CodeConfig, "timezone 'local' depends on the machine: write its name, such as "+
			"Europe/Berlin")
	}
	zone, err := time.LoadLocation(name)
	if err != nil {
		return nil, tenon.Errorf(tenon.CodeConfig, "timezone '%s' is not known: write a name of the IANA database, "+
			"such as Europe/Berlin, or UTC", tenon.Visible(name))
	}
	return zone, nil
}

// reason returns the parser's error without the expression, because the caller adds the expression.
func reason(err error) string {
	text := err.Error()
	if before, _, ok := strings.Cut(text, ": ["); ok {
		text = before
	}
	return strings.TrimSuffix(text, ".")
}

// Next returns the first time after another time, in UTC. It returns the zero time if there is none within five years.
func (t *Times) Next(after time.Time) time.Time {
	previous := after.In(t.zone)
	for {
		next := t.spec.Next(previous)
		if next.IsZero() {
			return next
		}
		if !t.everyday || !t.repeated(next) {
			return next.UTC()
		}
		previous = next
	}
}

// repeated reports whether clocks show the same time as they did at an earlier moment, because they were put back in
// between.
func (t *Times) repeated(at time.Time) bool {
	for _, back := range []time.Duration{30 * time.Minute, time.Hour} { // Lord Howe Island changes by half an hour
		before := at.Add(-back)
		if before.Hour() == at.Hour() && before.Minute() == at.Minute() {
			return true
		}
	}
	return false
}

// Latest returns the last time that is after after and not after until. It returns the zero time if there is none.
func (t *Times) Latest(after, until time.Time) time.Time {
	// A long period contains many ticks, so search the end of the period first, and then longer and longer parts of it.
	for part := time.Hour; ; part *= 2 {
		from := after
		if whole := until.Sub(after); part < whole {
			from = until.Add(-part)
		}
		var last time.Time
		for next := t.Next(from); !next.IsZero() && !next.After(until); next = t.Next(next) {
			last = next
		}
		if !last.IsZero() || from.Equal(after) {
			return last
		}
	}
}

// RunID returns the id of the run that a schedule starts at a time. It is the same in every process, so that a tick
// starts once. Like all ids, they sort by time.
func RunID(name string, tick time.Time) string {
	sum := sha256.Sum256([]byte("schedule\x00" + name + "\x00" + tick.UTC().Format(time.RFC3339)))
	return tenon.FixedID("run", tick, sum[:])
}
