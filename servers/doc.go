// Package servers keeps one supervised connection for each configured MCP server. A [Server] is a [tenon.Toolset].
// Listing its tools or calling one starts the server if it is not running, so a configured server that nobody uses
// costs nothing. A lost connection is made again at the next use. A call that was running when the connection was
// lost ends with an error that says whether the call can have taken effect. This package never sends such a call
// again: the core decides that, because a repeated call must be in the journal.
//
// A failure of one server does not affect the others: every wait has a deadline, and the last error is kept in the
// server's [Status].
//
// Package config builds on the structs that are defined here, and package catalog shapes the tools that the servers
// offer. Only this package makes connections; other packages import mcp for its types.
package servers
