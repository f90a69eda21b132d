// Package transport moves raw JSON-RPC messages between two ends.
//
// It is the lowest layer between an MCP server and the catalog. It handles processes, pipes, HTTP requests
// and event streams, but knows no MCP methods. Package mcp runs a jsonrpc.Peer on each dialed connection.
//
// There are two kinds of transports. A stream (stdio, WebSocket, HTTP+SSE) implements jsonrpc.Stream: Send
// and Recv carry messages in any order. An exchanger (Streamable HTTP, plain POST) also implements
// jsonrpc.Exchanger: each request returns its own response, and the call runs in its caller's goroutine. HTTP
// calls therefore need no goroutine switch.
//
// A host uses [DialStdio], [DialHTTP], [DialSSE] and [DialWebSocket]. [NewLines] also serves the listening
// end of stdio, and [AcceptWebSocket] that end of WebSocket. The HTTP handlers are in the server of package
// mcp.
//
// Everything received from the other side is bounded: the size of a message, before its line or event is
// complete and after decompression, and the stored part of stderr. The queue of outgoing messages is bounded
// as well. A message over its limit is skipped; the connection stays open.
package transport
