package main

import (
	"context"
	"log/slog"
	"strings"
	"sync"

	"github.com/tenonhq/tenon/servers"
)

// skipOnce is the log handler of commands other than serve. A server that prints text to stdout, such as a banner,
// sends one message that cannot be read for each line, and is started twice. skipOnce logs the first of them for each
// server: the error of a server that could not be started repeats the text. With --log-level debug all of them are
// logged. It is safe for concurrent use.
type skipOnce struct {
	slog.Handler
	server string
	seen   *sync.Map // servers
}

// Handle implements [slog.Handler].
func (h *skipOnce) Handle(ctx context.Context, r slog.Record) error {
	if strings.HasPrefix(r.Message, servers.SkippedLog) {
		if _, again := h.seen.LoadOrStore(h.server, true); again {
			return nil
		}
	}
	return h.Handler.Handle(ctx, r)
}

// WithAttrs implements [slog.Handler].
func (h *skipOnce) WithAttrs(attrs []slog.Attr) slog.Handler {
	server := h.server
	for _, a := range attrs {
		if a.Key == "server" {
			server = a.Value.String()
		}
	}
	return &skipOnce{Handler: h.Handler.WithAttrs(attrs), server: server, seen: h.seen}
}

// WithGroup implements [slog.Handler].
func (h *skipOnce) WithGroup(name string) slog.Handler {
	return &skipOnce{Handler: h.Handler.WithGroup(name), server: h.server, seen: h.seen}
}

var _ slog.Handler = (*skipOnce)(nil)
