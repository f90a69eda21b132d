// Package tenon holds the vocabulary of tenon, an MCP host that joins agents
// to tools: the nouns that every other package speaks in.
//
// A question takes one way through the house:
//
//	config → servers → catalog → agent → engine → surfaces
//
// Everything that offers tools is a [Toolset]: a connected MCP server, the workflow
// files of a project, a Go type. What changes a call's request or answer on its way
// is a func(Toolset) Toolset. Such a wrapper never waits for a person, never
// re-sends and never counts across calls, because those things have to be
// journaled and so belong to the core.
//
// A run is its journal. The agent is a [Core]: a pure fold over the [Event]
// values recorded so far, which names the [Command] values to carry out next.
// An engine carries them out and appends what happened. What the terminal
// prints, what an HTTP client streams, what recovery after a crash reads and
// what an audit shows are all folds over that one log.
//
// The package imports the standard library, and internal/rawjson, which imports no more.
// All other packages of the module may import it. Until version 1 this package and
// package host are the ones whose API is kept stable.
package tenon
