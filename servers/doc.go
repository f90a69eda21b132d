// Package servers keeps one supervised connection for each configured MCP
// server. A [Server] is a [tenon.Toolset]: asking for its tools or calling one
// starts it where it is not running yet, so a configured server that nobody
// uses costs nothing. A connection that is lost is made again at the next use;
// what was under way then ends with an error that says whether the call can
// have taken effect, and is never sent again here: that is the core's to decide,
// because it must be journaled.
//
// One server's trouble stays its own: every wait has a deadline, and what went
// wrong is kept with the server as its [Status], to be shown.
//
// The package stands between config, whose structs it defines, and catalog,
// which shapes what the servers offer. It alone makes connections: whoever else
// imports mcp takes its types.
package servers
