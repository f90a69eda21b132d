// Package transport moves raw JSON-RPC messages between two ends.
//
// It is the lowest layer of the way from an MCP server to the catalog: it knows
// processes, pipes, HTTP requests and event streams, and it knows nothing of
// MCP's methods. Package mcp puts a jsonrpc.Peer on what is dialed here.
//
// Two shapes cover all transports. A stream (stdio, WebSocket, the older
// HTTP+SSE) implements jsonrpc.Stream: messages go out with Send and come in with
// Recv, in any order. An exchanger (Streamable HTTP, plain POST) also implements
// jsonrpc.Exchanger: a request carries its own answer, and the call runs in the
// goroutine of its caller, so that HTTP costs no hop of ours.
//
// [DialStdio], [DialHTTP], [DialSSE] and [DialWebSocket] are for a host.
// [NewLines] serves the listen end of stdio as well, and [AcceptWebSocket] is
// that of WebSocket; those that answer HTTP requests are with the server in
// package mcp.
//
// Whatever comes from the other side is bounded: message size before a line or
// event has ended and after decompression, the size of the queue of outgoing
// messages, the kept part of stderr. A message over its bound costs that message;
// the connection goes on.
package transport
