// Package mcp speaks the Model Context Protocol, in both of its eras, on a
// jsonrpc peer: legacy (revisions 2024-11-05 to 2025-11-25, which begin with
// initialize and, over HTTP, have sessions) and modern (2026-07-28, every request
// standing alone).
//
// It uses package transport, which moves messages. Package servers keeps one
// [Client] alive for each configured server. A Client is one connection:
// [Connect] detects the era once; then the Client lists, calls and passes
// notifications on. It only repeats a request that an HTTP server refused because
// it had forgotten the session.
//
// Tool definitions and results keep the server's raw bytes; the typed fields are
// a view of them. Violations by a server (lists without end, a flood of
// notifications, an unreadable answer) become an error of the request concerned.
//
// [Server] is the other end: the same tools in both eras, over any stream and HTTP.
// The demo's server and the servers of the tests use it.
package mcp
