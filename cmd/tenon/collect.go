package main

import (
	"context"
	"time"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/config"
	"github.com/tenonhq/tenon/telemetry"
)

// telemetryTime is how long the end of a verb may wait for the collector.
const telemetryTime = 2 * time.Second

// collect begins to count where that is of use: in tenon serve, and where there is a
// collector to be told. It returns what is to be told of events, nil for nothing.
func (a *app) collect(cfg *config.Config, lasting bool) func(tenon.Run, []tenon.Event) {
	t := cfg.Telemetry
	if t.OTLP == "" && (!lasting || !t.HasMetrics()) {
		return nil
	}
	if a.collector == nil {
		a.collector = telemetry.New(telemetry.Config{Endpoint: t.OTLP, Version: version().Version, Logger: a.logger(cfg)})
	}
	return a.collector.Observe
}

// collected sends what is left to be told.
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
