// Package eval runs evaluations. An evaluation file contains cases, each with a question, the
// expected tool calls, and the expected answer. `tenon eval FILE` is the command for it; Go
// programs and tests use [Load] and [Run].
//
// An attempt at a case is one run on a separate host (package host) with a separate store. So
// attempts do not share conversations, and stateful servers start fresh. Models may be scripts,
// cassettes or live models. Tools are called, or answered by mocks, which wrap each server's
// toolset ([host.Config.Wrap]). Expectations are checked against the report of the run, which is
// computed from its journal. Printed or streamed output is not used.
//
// Errors in a file are reported with line and column before anything starts. A failure in an
// attempt (a missing server, a model that refuses) fails only that attempt.
package eval
