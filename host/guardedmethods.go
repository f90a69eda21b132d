package host

import (
	"context"
	"log/slog"
	"time"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/engine"
)

// The clock and the log handler of [Config] are code of the program that runs in the goroutines of the engine. A panic
// there would end the process, in which other runs are at work. A store of the program has its own guard: see
// [guardedStore].

// guardMethods replaces the clock and the log handler by guarded ones.
func (c *Config) guardMethods() {
	log := slog.New(slog.DiscardHandler)
	if c.Logger != nil {
		if _, ok := c.Logger.Handler().(guardedHandler); !ok {
			c.Logger = slog.New(guardedHandler{c.Logger.Handler()})
		}
		log = c.Logger
	}
	if _, ok := c.Clock.(guardedClock); c.Clock != nil && !ok {
		c.Clock = guardedClock{Clock: c.Clock, log: log, begun: time.Now()}
	}
}

// guardedHandler is a log handler of the program. If it panics, the record is lost, because no second log exists.
type guardedHandler struct{ slog.Handler }

// Enabled implements [slog.Handler]. A handler that panics wants no records.
func (g guardedHandler) Enabled(ctx context.Context, l slog.Level) (enabled bool) {
	defer func() { _ = recover() }()
	return g.Handler.Enabled(ctx, l)
}

// Handle implements [slog.Handler].
func (g guardedHandler) Handle(ctx context.Context, r slog.Record) (err error) {
	defer func() {
		if recover() != nil {
			err = tenon.Errorf(tenon.CodeInternal, "the program's log handler panicked: fix it in the program")
		}
	}()
	return g.Handler.Handle(ctx, r)
}

// WithAttrs implements [slog.Handler]. If the handler panics, its records lack the attributes.
func (g guardedHandler) WithAttrs(attrs []slog.Attr) (h slog.Handler) {
	h = g
	defer func() { _ = recover() }()
	return guardedHandler{g.Handler.WithAttrs(attrs)}
}

// WithGroup implements [slog.Handler]. If the handler panics, its records lack the group.
func (g guardedHandler) WithGroup(name string) (h slog.Handler) {
	h = g
	defer func() { _ = recover() }()
	return guardedHandler{g.Handler.WithGroup(name)}
}

// guardedClock is a clock of the program. Where it panics, the system's clock answers.
type guardedClock struct {
	engine.Clock
	log   *slog.Logger
	begun time.Time
}

// Now implements [engine.Clock].
func (g guardedClock) Now() (t time.Time) {
	t = time.Now()
	defer guard(g.log, "Clock.Now", nil)
	return g.Clock.Now()
}

// Elapsed implements [engine.Clock]. The time since the host was opened replaces the time of a clock that panics.
func (g guardedClock) Elapsed() (d time.Duration) {
	d = time.Since(g.begun)
	defer guard(g.log, "Clock.Elapsed", nil)
	return g.Clock.Elapsed()
}

// After implements [engine.Clock].
func (g guardedClock) After(d time.Duration) (c <-chan time.Time) {
	defer func() {
		if c == nil {
			c = time.After(d)
		}
	}()
	defer guard(g.log, "Clock.After", nil)
	return g.Clock.After(d)
}

var (
	_ slog.Handler = guardedHandler{}
	_ engine.Clock = guardedClock{}
)
