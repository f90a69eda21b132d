package cli

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"github.com/tenonhq/tenon/host"
	"github.com/tenonhq/tenon/httpapi"
)

func newSchedules(a *app) *cobra.Command {
	cmd := group("schedules", "Schedules: times at which tenon serve starts runs", "schedule")
	cmd.AddCommand(newSchedulesList(a))
	return cmd
}

func newSchedulesList(a *app) *cobra.Command {
	return remotely(&cobra.Command{
		Use:   "list",
		Short: "List the schedules with their next time and last run",
		Long: "Lists the entries of schedules: the next time at which tenon serve starts a run, the time of the\n" +
			"last run, its state and its id. Times are in the zone of the schedule; JSON has UTC. Nothing is\n" +
			"started. Runs of the last 1,000 times of a schedule are found.",
		Example: "  tenon schedules list\n  tenon schedules list -o json\n" +
			"  tenon schedules list --remote http://127.0.0.1:8420",
		Args: args(0, 0, ""),
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			ctx := cmd.Context()
			h, err := a.desk(ctx, opening{looks: true})
			if err != nil {
				return err
			}
			defer closing(h, &err)
			list, err := h.Workflows().Schedules().List(ctx)
			if err != nil {
				return err
			}
			if own, ok := h.(*host.Host); ok && len(list) > 0 {
				a.hintServed(ctx, own)
			}
			return printList(a, list, []string{"name", "cron", "timezone", "next", "last", "state", "run"},
				scheduleColumns)
		},
	})
}

// hintServed reports that nothing starts the runs of schedules.
func (a *app) hintServed(ctx context.Context, h *host.Host) {
	if err := httpapi.CheckServed(ctx, h.Service().Info().Socket); err != nil {
		a.hint("no tenon serve works in this folder, so no schedule starts a run here")
	}
}

func scheduleColumns(s host.ScheduleInfo) []string {
	next, last, state, run := "disabled", "", "", ""
	if s.Enabled {
		next = zoned(s.Next, s.Timezone)
	}
	if s.Last != nil {
		last, state, run = zoned(s.Last.Due, s.Timezone), string(s.Last.State), s.Last.Run
	}
	return []string{s.Name, s.Cron, s.Timezone, next, last, state, run}
}

// zoned formats a time in a zone. A zone that this program does not know is shown in UTC.
func zoned(t time.Time, zone string) string {
	z, err := time.LoadLocation(zone)
	if err != nil {
		z = time.UTC
	}
	return t.In(z).Format("2006-01-02 15:04 MST")
}
