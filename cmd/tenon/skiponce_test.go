package main

import (
	"bytes"
	"log/slog"
	"strings"
	"sync"
	"testing"

	"github.com/tenonhq/tenon/servers"
)

// TestSkipOnce checks that skipped messages of a server are logged once, and everything else always.
func TestSkipOnce(t *testing.T) {
	var b bytes.Buffer
	log := slog.New(&skipOnce{Handler: slog.NewTextHandler(&b, nil), seen: &sync.Map{}})
	one, two := log.With("server", "one"), log.With("server", "two")
	for range 3 {
		one.Warn(servers.SkippedLog + "a message")
		one.WithGroup("g").Warn(servers.SkippedLog + "a message")
		two.Warn(servers.SkippedLog + "a message")
		two.Warn("other")
	}
	text := b.String()
	for want, n := range map[string]int{"server=one": 1, "server=two": 4, "msg=other": 3} {
		if got := strings.Count(text, want); got != n {
			t.Errorf("%s: %d times, not %d, in\n%s", want, got, n, text)
		}
	}
}
