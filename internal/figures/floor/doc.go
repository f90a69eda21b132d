// Package floor holds what the figures are compared with: the least code that
// does the same work in the plain way. A floor sends the same bytes as an MCP
// tools/call, gives every request an id and finds the caller by it, and encodes
// and decodes envelope, parameters and result with encoding/json. It has no
// limits, no timeouts, no eras, no schema and no recovery: what those cost is
// what a ratio shows.
//
//   - [RawPipe]: the bytes alone, over the stdin and stdout of a child
//   - [MinPipe]: JSON-RPC over the stdin and stdout of a child, whose server
//     handles one request after another or, for comparison, each in a goroutine
//   - [MinHTTP]: JSON-RPC as POST with keep-alive
//   - [Commits]: rows into SQLite, with a durable commit each
//
// A floor has to be fast, or the ratios mean nothing: whoever makes one of them
// faster without leaving out work makes the figures better.
package floor
