// Package aidk converts AIDK's MCPConfig: a map mcpServers, one server as an object, or a list of servers.
//
// A server has a connection and a transport, filters and a prefix for its tools, and auth with a token. A token that is
// a variable becomes a secret; a literal token becomes a header until --extract-secrets puts a variable in its place.
// A transport websocket with an https URL is Streamable HTTP in AIDK.
//
// The export writes a list. The first entry of a list or a map tells AIDK's files from TrustGraph's ([compat.OfEntry]).
// The file is read by an import only: it cannot be loaded as it is.
//
// Package config calls the [Format]: Recognise for files whose program is not named, Convert for an import, and Export.
package aidk
