// Package oauth signs tenon in to MCP servers over HTTP: the client side of OAuth
// 2.1 as the MCP authorization specification (2025-11-25 and 2026-07-28) wants it.
//
// It stands between servers and transport. A [Source] is made for one server; its
// [Source.Wrap] goes around the network, puts the access token on each request,
// and deals with what comes back: on 401 it reads where the server's
// authorization server is (RFC 9728, RFC 8414), refreshes the token or asks for
// another; on 403 insufficient_scope it asks for more scopes, the old ones
// included. [Source.Login] has a person sign in (authorization code with PKCE,
// RFC 7636, 8252, 9207); [Source.Logout] revokes and forgets.
//
// What a server says about authorization is hostile input: each URL must be https
// (http only on loopback), the address is checked when it is dialed, and answers
// are bounded. Tokens go to the one resource they were made for and are kept in a
// [Vault], encrypted. Nothing here prints one.
package oauth
