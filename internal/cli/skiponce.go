package cli

import (
	"context"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/tenonhq/tenon/servers"
)

// skipOnce is the log handler of commands other than serve. It leaves out two kinds of repeated records; with
// --log-level debug all of them are logged. It is safe for concurrent use.
//
// A server that prints text to stdout, such as a banner, causes a record for each line, because no line is a valid
// message. Such a server is also started twice. Only the first of these records is logged for each server. If the
// server cannot be started, the error repeats the text.
//
// A server that crashes at each attempt of a read-only call causes equal warnings. At most one of them is logged in
// each period of repeatAfter. The line of the call has the number of attempts.
type skipOnce struct {
	slog.Handler
	server string
	values string // the attributes of the logger, in text form
	seen   *seenRecords
}

// repeatAfter is the time after which an equal warning is logged again.
const repeatAfter = time.Minute

// maxSeen bounds the warnings that are remembered.
const maxSeen = 500

// seenRecords are the records that were logged.
type seenRecords struct {
	mu      sync.Mutex
	skipped map[string]bool      // servers
	warned  map[string]time.Time // warnings
}

func newSeenRecords() *seenRecords {
	return &seenRecords{skipped: map[string]bool{}, warned: map[string]time.Time{}}
}

// repeats remembers a record, and reports whether an earlier one says the same.
func (s *seenRecords) repeats(server, values string, r slog.Record) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if strings.HasPrefix(r.Message, servers.SkippedLog) {
		again := s.skipped[server]
		s.skipped[server] = true
		return again
	}
	if r.Level != slog.LevelWarn {
		return false
	}
	key := values + "\x00" + r.Message
	r.Attrs(func(a slog.Attr) bool {
		key += "\x00" + a.String()
		return true
	})
	last, ok := s.warned[key]
	if ok && r.Time.Sub(last) < repeatAfter {
		return true
	}
	if len(s.warned) >= maxSeen {
		clear(s.warned)
	}
	s.warned[key] = r.Time
	return false
}

// Handle implements [slog.Handler].
func (h *skipOnce) Handle(ctx context.Context, r slog.Record) error {
	if h.seen.repeats(h.server, h.values, r) {
		return nil
	}
	return h.Handler.Handle(ctx, r)
}

// WithAttrs implements [slog.Handler].
func (h *skipOnce) WithAttrs(attrs []slog.Attr) slog.Handler {
	server, values := h.server, h.values
	for _, a := range attrs {
		values += "\x00" + a.String()
		if a.Key == "server" {
			server = a.Value.String()
		}
	}
	return &skipOnce{Handler: h.Handler.WithAttrs(attrs), server: server, values: values, seen: h.seen}
}

// WithGroup implements [slog.Handler].
func (h *skipOnce) WithGroup(name string) slog.Handler {
	return &skipOnce{Handler: h.Handler.WithGroup(name), server: h.server, values: h.values + "\x00" + name + ".",
		seen: h.seen}
}

var _ slog.Handler = (*skipOnce)(nil)
