// Package floor contains the code that the figures are compared with: the least code that does the same work
// in the plain way. A floor sends the same bytes as an MCP tools/call, gives every request an id, finds the
// caller by it, and encodes and decodes envelope, parameters and result with encoding/json. It has no limits,
// no timeouts, no eras, no schema and no recovery. A ratio shows the cost of these.
//
//   - [RawPipe]: only the bytes, over stdin and stdout of a child
//   - [MinPipe]: JSON-RPC over stdin and stdout of a child, whose server handles requests sequentially or,
//     for comparison, each in a goroutine
//   - [MinHTTP]: JSON-RPC as POST with keep-alive
//   - [Commits]: rows into SQLite, with one durable commit each
//
// A floor must be fast, or the ratios mean nothing. Making a floor faster without omitting work improves the
// figures.
package floor
