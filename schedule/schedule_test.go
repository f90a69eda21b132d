package schedule_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/schedule"
)

func at(t *testing.T, text string) time.Time {
	t.Helper()
	v, err := time.Parse(time.RFC3339, text)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func TestNext(t *testing.T) {
	for _, tc := range []struct {
		name, cron, zone, after string
		want                    []string
	}{
		{"every quarter", "*/15 * * * *", "", "2026-11-24T10:01:00Z",
			[]string{"2026-11-24T10:15:00Z", "2026-11-24T10:30:00Z"}},
		{"days of the week", "0 3 * * MON-FRI", "", "2026-11-27T03:00:00Z",
			[]string{"2026-11-30T03:00:00Z", "2026-12-01T03:00:00Z"}},
		{"another zone", "0 9 * * *", "Asia/Tokyo", "2026-11-24T00:30:00Z", []string{"2026-11-25T00:00:00Z"}},
		{"descriptor", "@daily", "Europe/Berlin", "2026-07-01T12:00:00Z", []string{"2026-07-01T22:00:00Z"}},
		{"missing hour is skipped", "30 2 * * *", "Europe/Berlin", "2026-03-28T12:00:00Z",
			[]string{"2026-03-30T00:30:00Z"}},
		{"repeated hour starts once", "30 2 * * *", "Europe/Berlin", "2026-10-24T12:00:00Z",
			[]string{"2026-10-25T00:30:00Z", "2026-10-26T01:30:00Z"}},
		{"repeated hour of every hour", "30 * * * *", "Europe/Berlin", "2026-10-25T00:00:00Z",
			[]string{"2026-10-25T00:30:00Z", "2026-10-25T01:30:00Z", "2026-10-25T02:30:00Z"}},
		{"leap day", "0 0 29 2 *", "", "2026-11-24T00:00:00Z", []string{"2028-02-29T00:00:00Z"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			times, err := schedule.Parse(tc.cron, tc.zone)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			next := at(t, tc.after)
			for range tc.want {
				next = times.Next(next)
				got = append(got, next.Format(time.RFC3339))
			}
			if d := cmp.Diff(tc.want, got); d != "" {
				t.Errorf("ticks (-want +got):\n%s", d)
			}
		})
	}
}

func TestLatest(t *testing.T) {
	for _, tc := range []struct{ name, cron, after, until, want string }{
		{"of many", "* * * * *", "2020-01-01T00:00:00Z", "2026-11-24T10:01:30Z", "2026-11-24T10:01:00Z"},
		{"at the end", "0 * * * *", "2026-11-24T09:30:00Z", "2026-11-24T10:00:00Z", "2026-11-24T10:00:00Z"},
		{"not the beginning", "0 * * * *", "2026-11-24T10:00:00Z", "2026-11-24T10:59:59Z", ""},
		{"long ago", "0 0 1 1 *", "2025-12-01T00:00:00Z", "2026-11-24T10:00:00Z", "2026-01-01T00:00:00Z"},
		{"none", "0 0 1 1 *", "2026-02-01T00:00:00Z", "2026-11-24T10:00:00Z", ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			times, err := schedule.Parse(tc.cron, "")
			if err != nil {
				t.Fatal(err)
			}
			got := ""
			if last := times.Latest(at(t, tc.after), at(t, tc.until)); !last.IsZero() {
				got = last.Format(time.RFC3339)
			}
			if got != tc.want {
				t.Errorf("latest tick %q, want %q", got, tc.want)
			}
		})
	}
}

func TestParseErrors(t *testing.T) {
	for _, tc := range []struct{ name, cron, zone, want string }{
		{"empty", " ", "", `cron is empty: write five fields, such as "0 3 * * *" for every day at three`},
		{"seconds", "0 0 3 * * *", "", "cron '0 0 3 * * *' cannot be read: expected exactly 5 fields, found 6"},
		{"interval", "@every 5m", "", `@every counts from the start of the process: write fields, such as ` +
			`"*/15 * * * *" for every quarter of an hour`},
		{"zone in cron", "TZ=UTC 0 3 * * *", "", "the time zone is a separate key: timezone"},
		{"minute", "61 * * * *", "", "cron '61 * * * *' cannot be read: end of range (61) above maximum (59): 61"},
		{"no such day", "0 0 31 2 *", "", "cron '0 0 31 2 *' matches no day in the next five years"},
		{"zone", "0 3 * * *", "Berlin", "timezone 'Berlin' is not known: write a name of the IANA database, such as " +
			"Europe/Berlin, or UTC"},
		{"local", "0 3 * * *", "Local", "timezone 'local' depends on the machine: write its name, such as Europe/Berlin"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, err := schedule.Parse(tc.cron, tc.zone)
			if err == nil || err.Error() != tc.want || tenon.ErrorCode(err) != tenon.CodeConfig {
				t.Errorf("error %q (%s), want %q", err, tenon.ErrorCode(err), tc.want)
			}
		})
	}
}

func TestRunID(t *testing.T) {
	tick := at(t, "2026-11-24T03:00:00Z")
	id := schedule.RunID("nightly", tick)
	if again := schedule.RunID("nightly", tick.In(time.FixedZone("", 3600))); again != id {
		t.Errorf("another zone gives %s, not %s", again, id)
	}
	later, other := schedule.RunID("nightly", tick.Add(time.Minute)), schedule.RunID("weekly", tick)
	if later <= id || other == id || len(id) != len(tenon.NewID("run", tick)) {
		t.Errorf("ids %s, a minute later %s, of another schedule %s", id, later, other)
	}
}

func FuzzParse(f *testing.F) {
	for _, s := range []string{"* * * * *", "@daily", "*/5 1-3 L * MON", "0 0 30 2 *", "? ? ? ? ?"} {
		f.Add(s, "Europe/Berlin")
	}
	f.Fuzz(func(t *testing.T, spec, zone string) {
		times, err := schedule.Parse(spec, zone)
		if err != nil {
			return
		}
		now := time.Date(2026, 11, 24, 0, 0, 0, 0, time.UTC)
		if next := times.Next(now); !next.IsZero() && !next.After(now) {
			t.Errorf("the time after %s is %s", now, next)
		}
	})
}
