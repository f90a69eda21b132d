// Package mcp speaks the Model Context Protocol, in both of its eras, on a
// jsonrpc peer: legacy (revisions 2024-11-05 to 2025-11-25, which begin with
// initialize and, over HTTP, have sessions) and modern (2026-07-28, every request
// standing alone).
//
// It stands above transport, which moves messages, and below servers, which
// keeps one [Client] alive for each configured server. A Client is one
// connection: [Connect] finds the era out once, then it asks for lists, makes
// calls and passes notices on. It repeats nothing by itself, with one exception:
// a request that an HTTP server refused because it had forgotten the session.
//
// What a server says is kept as it came: tool definitions and results carry
// their raw bytes, and the typed fields are a view. What a server must not do
// (lists without end, a flood of notices, an answer that cannot be read) ends in
// an error for the one request concerned.
//
// [Server] is the other end: the same tools in both eras, over any stream and HTTP.
// The demo's server and the servers of the tests are made of it.
package mcp
