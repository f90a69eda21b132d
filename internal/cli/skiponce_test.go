package cli

import (
	"bytes"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/tenonhq/tenon/servers"
)

// TestRP23_SkipOnce checks that equal warnings, and equal notices of skipped messages of a server, are logged once. All
// other records are always logged.
func TestRP23_SkipOnce(t *testing.T) {
	var b bytes.Buffer
	log := slog.New(&skipOnce{Handler: slog.NewTextHandler(&b, nil), seen: newSeenRecords()})
	one, two := log.With("server", "one"), log.With("server", "two")
	for i := range 3 {
		one.Warn(servers.SkippedLog + "a message")
		one.WithGroup("g").Warn(servers.SkippedLog + "a message")
		two.Warn(servers.SkippedLog + "a message")
		two.Warn("other")
		two.Warn("lost", "error", "one")
		two.Warn("lost", "error", "two")
		two.With("run", i).Warn("of a run")
		two.Error("broken")
	}
	text := b.String()
	for want, n := range map[string]int{"server=one": 1, "msg=other": 1, "error=one": 1,
		"error=two": 1, "msg=\"of a run\"": 3, "msg=broken": 3} {
		if got := strings.Count(text, want); got != n {
			t.Errorf("%s: %d times, not %d, in\n%s", want, got, n, text)
		}
	}
}

// TestRP23_EqualWarningsLater checks that an equal warning is logged again after some time, and that the number of
// remembered warnings is limited.
func TestRP23_EqualWarningsLater(t *testing.T) {
	seen := newSeenRecords()
	began := time.Unix(1_000_000, 0)
	at := func(d time.Duration, text string) bool {
		return seen.repeats("a", "", slog.NewRecord(began.Add(d), slog.LevelWarn, text, 0))
	}
	for i, c := range []struct {
		after time.Duration
		want  bool
	}{{0, false}, {time.Second, true}, {repeatAfter - 1, true}, {repeatAfter, false}, {repeatAfter + 1, true}} {
		if got := at(c.after, "lost"); got != c.want {
			t.Errorf("record %d after %s: %v", i, c.after, got)
		}
	}
	for i := range 3 * maxSeen {
		at(0, fmt.Sprint(i))
	}
	if n := len(seen.warned); n > maxSeen {
		t.Errorf("%d warnings are remembered", n)
	}
}
