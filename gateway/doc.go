// Package gateway serves a host as one managed MCP server, for clients that are not tenon: editors, command-line
// agents, programs with an SDK. It is a surface next to httpapi, on the server end of package mcp.
//
// A client reaches all configured servers through one address, in either era of the protocol. It sees the tools of
// one catalog; tools that the rules deny to its principal are left out. Each call is a run of one tool call, made with
// [host.ToolCall.Ask]: the executor decides about it as about a model's call, with the same rules, rates, pins,
// grants, redaction and cache, and the journal records it. The gateway itself decides nothing.
//
// A call that needs approval is parked: the client gets progress, and after some time the advice to call again. The
// equal call of the same principal joins the parked one, so that an approved call is made once. The store has the
// parked calls, so that this holds after a restart too.
//
// Each principal has a separate MCP server, so that sessions, subscriptions and lists of different principals never
// meet. Results and definitions are spliced as they arrived, with unknown members.
package gateway
