// Package eval asks an agent questions whose right answers are known, and says which
// it got right: a file of cases, each with a question, the tool calls that are
// expected, and what the answer must be. `tenon eval FILE` is its surface; Go programs
// and tests use [Load] and [Run].
//
// An attempt at a case is one run on a host of its own (package host), with a store of
// its own, so that no attempt sees another one's conversation and servers that keep
// state begin anew. Models may be scripts, cassettes or live ones; tools are called, or
// answered by mocks, which stand around each server's toolset ([host.Config.Wrap]).
// A run's report, a fold of its journal, is what expectations are held to; nothing
// is taken from what was printed or streamed.
//
// A file that is wrong is told with line and column before anything is started. What
// fails in an attempt (a server that is missing, a model that refuses) fails that
// attempt; the others go on.
package eval
