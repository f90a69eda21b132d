// Package oauth signs tenon in to MCP servers over HTTP. It implements the client side of OAuth 2.1 according to the
// MCP authorization specification (2025-11-25 and 2026-07-28).
//
// Package servers wraps the HTTP client of package transport with it. A [Source] is made for one server.
// [Source.Wrap] adds the access token to each request and handles refusals: on 401 it finds the authorization server
// (RFC 9728, RFC 8414), refreshes the token or requests another; on 403 insufficient_scope it requests more scopes,
// including the old ones. [Source.Login] lets a person sign in (authorization code with PKCE, RFC 7636, 8252, 9207);
// [Source.Logout] revokes and deletes the tokens.
//
// A server's statements about authorization are hostile input: each URL must be https (http only on loopback), the
// address is checked when it is dialed, and answers are bounded. A token is only sent to the resource for which it
// was issued, and is stored encrypted in a [Vault]. The package never prints a token.
package oauth
