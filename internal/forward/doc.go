// Package forward passes the requests of an MCP session to the replica of tenon serve that has the session.
//
// A legacy session (Streamable HTTP with the header Mcp-Session-Id, revision 2025-11-25 and older) is in the memory of
// one process. Behind a load balancer, the next request of the session may arrive at another one.
//
//	client ─► replica B: all checks, the id names A ─► sealed request ─► replica A: opens it, all checks again
//
// The id of a session names its process, and ends with a MAC over the id, the principal and the endpoint. An id that
// somebody made up, or that belongs to another principal, is never forwarded: it is unknown here, and gets 404.
//
// A forwarded request is the client's request, with one header in place of all others: they are encrypted, together
// with method, path, host, principal and the digest of the body, under a key that only processes with the key of the
// store can derive. The owner treats the opened request as if the client had sent it directly: the same checks of host,
// origin, token, size, time and load. It proves in its answer that it opened the request. A program that now listens at
// the address of a former replica sees no credentials, and its answers are dropped.
//
// Only requests to /mcp pass, and a forwarded request is never forwarded again. The address of a process comes from the
// store, together with the fact that it is alive. While a request is under way, the store is asked again, so that an
// owner that stopped does not hold the client for longer than a lease.
package forward
