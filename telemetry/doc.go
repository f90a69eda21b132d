// Package telemetry derives metrics and traces from journals. It receives the stored events of a process and
// folds them into metrics in the Prometheus text format, and into spans for an OpenTelemetry collector.
//
//	engine: stored events ──► Collector.Observe ──► Fold ──► ended steps
//	                                                  ├──► Metrics ──► GET /metrics, OTLP
//	                                                  └──► spans ────► OTLP
//
// Telemetry never delays a run. Observe only does arithmetic and puts spans into a bounded queue, which one
// goroutine sends. Spans that do not fit are dropped and counted.
//
// The ids of traces and spans are derived from the ids of runs and steps ([TraceID], [SpanID]). A caller can
// therefore pass them to a server without coordination, and a run that is resumed in another process remains
// one trace. The names follow OpenTelemetry's conventions for generative AI and MCP; names.go lists all of
// them. Spans never contain texts, arguments or results.
package telemetry
