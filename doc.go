// Package tenon defines the vocabulary of tenon, an MCP host that connects agents to tools: the types that
// all other packages use.
//
// A question passes through these layers:
//
//	config → servers → catalog → agent → engine → surfaces
//
// Everything that offers tools is a [Toolset]: a connected MCP server, the workflow files of a project, a Go
// type. A func(Toolset) Toolset changes the request or result of calls. Such a wrapper never waits for a
// person, never repeats a call and never counts across calls. These actions must be journaled, so they belong
// to the core.
//
// A run is its journal. The agent is a [Core]: a pure fold over the recorded [Event] values, which returns
// the [Command] values to execute next. An engine executes them and appends the resulting events. The
// terminal output, the HTTP stream, crash recovery and the audit view are all folds over that journal.
//
// The package imports only the standard library and internal/rawjson, which has no further imports. All other
// packages of the module may import it. Until version 1, the APIs of this package and of package host are
// kept stable.
package tenon
