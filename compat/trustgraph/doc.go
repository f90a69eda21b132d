// Package trustgraph converts TrustGraph's configuration: the groups mcp, tool and prompt, in each of the forms in
// which they are stored.
//
// Entries of mcp that have the same address and token become one server. Entries of tool become entries of tools: calls
// of MCP tools, prompts and text completions. An export of what was imported gives the same JSON again, with the form
// of the file, the order of its entries, and values stored as JSON text; x-trustgraph keeps what tenon.yaml does not
// imply.
//
// One bad entry never loses the others: an entry that cannot be converted is kept as it is, and an entry that is an
// error in tenon.yaml is left out in a second conversion ([compat.Conversion], Retry).
package trustgraph
