// Package accesstoken checks access tokens of OAuth 2.1 that are signed JSON Web Tokens (RFC 9068), for a resource
// server: the MCP endpoints of `tenon serve`.
//
// A token is accepted if a configured issuer signed it with an accepted asymmetric algorithm and a key that the issuer
// publishes, if it names the endpoint's audience, and if the current time is between its nbf and its exp. Signatures
// and keys are parsed and checked by go-jose. Keys that a token brings or names (jwk, jku, x5c, x5u) have no effect.
//
// The keys of an issuer come from its jwks_uri, which is configured or named by the issuer's metadata (RFC 8414, or
// OpenID Connect Discovery). They are fetched at the first token, again when they are ten minutes old or a token names
// an unknown key, and never more than once a minute, so that tokens with invented keys cause no load. Keys that cannot
// be refreshed are valid for an hour. Answers are bounded, must come over https unless the issuer is on loopback, and
// are not followed to other origins.
//
// [Keys] outlives a configuration, so that a reload fetches nothing again. Package httpapi has the HTTP part: the
// metadata of the protected resources (RFC 9728) and the challenges.
package accesstoken
