// Package telemetry makes numbers and traces of journals: it is told of the events that
// a process has stored and folds them into metrics, in Prometheus' text form, and into
// spans, which it sends to an OpenTelemetry collector.
//
//	engine: stored events ──► Collector.Observe ──► Fold ──► ended steps
//	                                                  ├──► Metrics ──► GET /metrics, OTLP
//	                                                  └──► spans ────► OTLP
//
// Nothing on the way of a run waits for it: Observe does arithmetic and puts spans into
// a bounded queue; one goroutine sends them. What does not fit is dropped and counted.
//
// The ids of traces and spans are made of the ids of runs and steps ([TraceID],
// [SpanID]), so that whoever makes a call can tell a server what it belongs to without
// asking anybody, and a run that goes on in another process stays one trace. The names
// follow OpenTelemetry's conventions for generative AI and MCP; they all stand in
// names.go. Texts, arguments and results are no part of any span.
package telemetry
