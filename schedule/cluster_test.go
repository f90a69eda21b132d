package schedule

import (
	"strings"
	"testing"
	"time"
)

func TestDue(t *testing.T) {
	at := func(s string) time.Time {
		tick, err := time.Parse(time.RFC3339, s)
		if err != nil {
			t.Fatal(err)
		}
		return tick
	}
	off := false
	berlin := Config{Cron: "30 2 * * *", Timezone: "Europe/Berlin"}
	tick := at("2026-11-24T03:00:00Z")
	for name, c := range map[string]struct {
		config    Config
		tick      time.Time
		due, late time.Duration // after the tick
		want      string        // part of the reason
	}{
		"on time":          {Config{Cron: "0 3 * * *"}, tick, 0, time.Second, ""},
		"late":             {Config{Cron: "0 3 * * *"}, tick, 0, 59 * time.Minute, ""},
		"too late":         {Config{Cron: "0 3 * * *"}, tick, 0, 2 * time.Hour, "2h0m0s ago; catch_up allows 1h0m0s"},
		"in the queue":     {Config{Cron: "0 3 * * *", Overlap: OverlapQueue}, tick, 5 * time.Hour, 5 * time.Hour, ""},
		"another time":     {Config{Cron: "0 4 * * *"}, tick, 0, 0, "no time of the schedule"},
		"by hand":          {Config{Cron: "0 4 * * *"}, tick.Add(7 * time.Second), 0, 0, ""},
		"not enabled":      {Config{Cron: "0 3 * * *", Enabled: &off}, tick, 0, 0, "not enabled"},
		"the latest":       {Config{Cron: "* * * * *", Overlap: OverlapAllow}, tick, 0, 5 * time.Minute, "a later run"},
		"the only one":     {Config{Cron: "* * * * *"}, tick, 0, 5 * time.Minute, ""},
		"clocks go back 1": {berlin, at("2026-10-25T00:30:00Z"), 0, 0, ""},
		"clocks go back 2": {berlin, at("2026-10-25T01:30:00Z"), 0, 0, "put back"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := c.config.WithDefaults().Due(c.tick, c.tick.Add(c.due), c.tick.Add(c.late))
			if err != nil || (got == "") != (c.want == "") || !strings.Contains(got, c.want) {
				t.Errorf("got %q, %v, want %q", got, err, c.want)
			}
		})
	}
	if _, err := (Config{Cron: "x"}).Due(tick, tick, tick); err == nil {
		t.Error("a cron that cannot be read is no error")
	}
}
