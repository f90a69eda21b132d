// Package mcp implements the Model Context Protocol on a jsonrpc peer, in both of its eras. The legacy era comprises
// the revisions 2024-11-05 to 2025-11-25, which begin with initialize and, over HTTP, have sessions. In the modern
// era (2026-07-28) every request is independent.
//
// Package transport moves the messages. Package servers keeps one [Client] for each configured server. A Client is
// one connection: [Connect] detects the era; after that, the Client lists, calls and passes notifications on. It
// repeats a request only if an HTTP server refused it because it had forgotten the session, or because the headers
// did not match.
//
// Tool definitions and results keep the server's raw bytes; the typed fields are a view of them. If a server violates
// the protocol (lists without end, too many notifications, an unreadable response), the request concerned ends with
// an error.
//
// [Server] is the other end: it serves the same tools in both eras, over any stream and HTTP. The gateway, the demo
// and the tests use it.
package mcp
