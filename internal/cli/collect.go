package cli

import (
	"context"
	"time"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/config"
	"github.com/tenonhq/tenon/telemetry"
)

// telemetryTime bounds the wait for the collector at the end of a verb.
const telemetryTime = 2 * time.Second

// collect starts telemetry if a collector is configured or, in tenon serve, if metrics are. It returns the function
// that observes events, or nil if there is no telemetry.
func (a *app) collect(cfg *config.Config, lasting bool) func(tenon.Run, []tenon.Event) {
	t := cfg.Telemetry
	if t.OTLP == "" && (!lasting || !t.HasMetrics()) {
		return nil
	}
	if a.collector == nil {
		a.collector = telemetry.New(telemetry.Config{Endpoint: t.OTLP, Version: version().Version,
			Logger: a.logger(cfg)})
	}
	return a.collector.Observe
}

// collected sends the remaining telemetry and closes the collector.
func (a *app) collected() {
	if a.collector == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), telemetryTime)
	defer cancel()
	if err := a.collector.Close(ctx); err != nil {
		a.note("%s", err)
	}
}
