// Package oauth signs tenon in to MCP servers over HTTP: the client side of OAuth
// 2.1 as the MCP authorization specification (2025-11-25 and 2026-07-28) wants it.
//
// Package servers uses it around the network of package transport. A [Source] is
// made for one server. Its [Source.Wrap] adds the access token to each request and
// handles refusals: on 401 it finds the authorization server (RFC 9728, RFC 8414),
// refreshes the token or requests another; on 403 insufficient_scope it requests
// more scopes, including the old ones. [Source.Login] lets a person sign in
// (authorization code with PKCE, RFC 7636, 8252, 9207); [Source.Logout] revokes and
// deletes the tokens.
//
// A server's statements about authorization are hostile input: each URL must be
// https (http only on loopback), the address is checked when it is dialed, and
// answers are bounded. Tokens are only sent to the resource they were made for and
// are kept encrypted in a [Vault]. The package never prints a token.
package oauth
