package schedule

import (
	"context"
	"errors"
	"time"

	"github.com/tenonhq/tenon"
)

// Scheduler is a cluster that keeps schedules and starts their runs by itself, such as Temporal.
type Scheduler interface {
	// Schedule gives the cluster the schedules of a configuration, by name: it adds, changes and removes. Errors:
	// [ErrUnsupported], unreachable, config, auth_required.
	Schedule(ctx context.Context, all map[string]Config) error
}

// ErrUnsupported means that a cluster cannot keep schedules.
var ErrUnsupported = errors.New("the cluster has no schedules")

// Ticker starts the runs of schedules for a [Scheduler].
type Ticker interface {
	// Tick starts the run of a schedule at one of its times, unless it was started before, and returns the run. due is
	// when the cluster wanted it to start. If it is not to be started, Tick returns the reason. Errors: not_found (this
	// process does not have the schedule), and the errors of a start.
	Tick(ctx context.Context, name string, tick, due time.Time) (run tenon.Run, skipped string, err error)
}

// Due decides about a tick of a cluster by the rules of this package. Its rules may differ: a time that occurs twice
// when clocks go back is one tick. due is when the run was to start, which is later than the tick if the previous run
// had to end first. Due returns the reason why the run is not started, or "".
//
// A time between two minutes is no time of cron: a person has started the schedule by hand.
func (c Config) Due(tick, due, now time.Time) (skipped string, err error) {
	times, err := Parse(c.Cron, c.Timezone)
	if err != nil {
		return "", err
	}
	byHand := !tick.Equal(tick.Truncate(time.Minute))
	late := now.Sub(due)
	switch {
	case !c.IsEnabled():
		return "the schedule is not enabled", nil
	case !byHand && !times.Next(tick.Add(-time.Second)).Equal(tick):
		return "it is no time of the schedule: clocks were put back", nil
	case late > c.Lateness():
		return "that was " + late.Round(time.Second).String() + " ago; catch_up allows " + c.Lateness().String(), nil
	case !byHand && c.Overlap == OverlapAllow && late > onTime && !times.Latest(tick, now).IsZero():
		return "a later run is due, too", nil
	}
	return "", nil
}
