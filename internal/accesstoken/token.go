package accesstoken

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"

	"github.com/tenonhq/tenon"
)

const (
	// maxToken bounds a token in bytes.
	maxToken = 16 << 10
	// leeway is the accepted difference between the clocks of the issuer and this machine.
	leeway = 30 * time.Second
	// maxText bounds the subject in bytes (OpenID Connect Core, section 2) and a single scope.
	maxText = 255
	// maxScopes bounds the scopes of a token.
	maxScopes = 256
)

// Algorithms lists the accepted signature algorithms (RFC 7518, RFC 8037). All are asymmetric: with HMAC, everybody who
// can check a token could also make one.
func Algorithms() []string {
	return []string{"RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA"}
}

// Issuer is an authorization server whose tokens are accepted.
type Issuer struct {
	// URL is the issuer identifier, byte-equal to the claim iss.
	URL string
	// JWKS is the address of its keys. If empty, the issuer's metadata name it.
	JWKS string
	// Algorithms are the accepted algorithms, some of [Algorithms]. If empty, all are accepted.
	Algorithms []string
}

// Token is the content of an accepted token.
type Token struct {
	Issuer, Subject string
	Scopes          []string
	Expires         time.Time
}

// claims are the relevant claims of a token. Scope is the string of OAuth (RFC 8693, section 4.2), Scp the claim that
// some providers use instead.
type claims struct {
	jwt.Claims
	Scope        string          `json:"scope"`
	Scp          json.RawMessage `json:"scp"`
	Confirmation json.RawMessage `json:"cnf"`
}

// Check checks a token for an audience. issuers are the accepted issuers. Errors: auth_required for a token that is not
// accepted, unreachable if the keys of its issuer are not available.
func (k *Keys) Check(ctx context.Context, issuers []Issuer, token, audience string) (Token, error) {
	if len(token) > maxToken {
		return Token{}, refused("it has more than %d bytes", maxToken)
	}
	parsed, err := jwt.ParseSigned(token, algorithms(nil))
	if err != nil || len(parsed.Headers) != 1 {
		return Token{}, refused("it is no JSON Web Token with a signature of an accepted algorithm")
	}
	var unchecked struct {
		Issuer string `json:"iss"`
	}
	if err := parsed.UnsafeClaimsWithoutVerification(&unchecked); err != nil {
		return Token{}, refused("its claims are no JSON object")
	}
	i := slices.IndexFunc(issuers, func(i Issuer) bool { return i.URL == unchecked.Issuer })
	if i < 0 || audience == "" {
		return Token{}, refused("its issuer is not one of serve.auth.oauth.issuers")
	}
	head := parsed.Headers[0]
	if !slices.Contains(algorithms(issuers[i].Algorithms), jose.SignatureAlgorithm(head.Algorithm)) {
		return Token{}, refused("its algorithm is not accepted of its issuer")
	}
	if !isAccessType(head) {
		return Token{}, refused("its type (typ) is not of an access token")
	}
	keys, err := k.find(ctx, issuers[i], head.KeyID, head.Algorithm)
	if err != nil {
		return Token{}, err
	}
	var c claims
	for _, key := range keys {
		if err = parsed.Claims(key.Key, &c); err == nil {
			break
		}
	}
	if err != nil {
		return Token{}, refused("its signature is wrong, or its claims cannot be read")
	}
	return k.accept(c, issuers[i], audience)
}

// accept checks the claims of a token with a valid signature.
func (k *Keys) accept(c claims, i Issuer, audience string) (Token, error) {
	now := k.now()
	switch {
	case c.Issuer != i.URL:
		return Token{}, refused("its issuer is another one")
	case !slices.Contains(c.Audience, audience):
		return Token{}, refused("it is not for this endpoint: its audience lacks %s", tenon.Visible(audience))
	case c.Expiry == nil:
		return Token{}, refused("it has no time of expiry (exp)")
	case !now.Before(c.Expiry.Time().Add(leeway)):
		return Token{}, refused("it has expired")
	case c.NotBefore != nil && now.Add(leeway).Before(c.NotBefore.Time()):
		return Token{}, refused("it is not valid yet (nbf)")
	case c.IssuedAt != nil && now.Add(leeway).Before(c.IssuedAt.Time()):
		return Token{}, refused("it was issued in the future (iat)")
	case c.Subject == "" || len(c.Subject) > maxText:
		return Token{}, refused("it has no subject (sub) of 1 to %d bytes", maxText)
	case len(c.Confirmation) > 0:
		return Token{}, refused("it is bound to a key of its client (cnf), which tenon cannot check")
	}
	scopes := strings.Fields(c.Scope)
	var list []string
	var text string
	switch {
	case len(c.Scp) == 0:
	case json.Unmarshal(c.Scp, &list) == nil:
		scopes = append(scopes, list...)
	case json.Unmarshal(c.Scp, &text) == nil:
		scopes = append(scopes, strings.Fields(text)...)
	}
	if len(scopes) > maxScopes {
		return Token{}, refused("it has more than %d scopes", maxScopes)
	}
	return Token{Issuer: i.URL, Subject: c.Subject, Scopes: scopes, Expires: c.Expiry.Time().Add(leeway)}, nil
}

// isAccessType reports whether a token may be an access token according to its type. The type is at+jwt (RFC 9068),
// JWT, or missing; many providers use one of the last two. Other JWTs of the same issuer and audience, such as logout
// tokens, have other types.
func isAccessType(head jose.Header) bool {
	typ, ok := head.ExtraHeaders[jose.HeaderType]
	if !ok {
		return true
	}
	text, _ := typ.(string)
	text = strings.TrimPrefix(strings.ToLower(text), "application/")
	return text == "jwt" || text == "at+jwt"
}

// algorithms converts names of algorithms. If the list is nil, it returns all accepted algorithms.
func algorithms(names []string) []jose.SignatureAlgorithm {
	if len(names) == 0 {
		names = Algorithms()
	}
	var out []jose.SignatureAlgorithm
	for _, name := range names {
		if slices.Contains(Algorithms(), name) {
			out = append(out, jose.SignatureAlgorithm(name))
		}
	}
	return out
}

// refused returns the error about a token that is not accepted. It never contains the token.
func refused(format string, args ...any) error {
	return tenon.Errorf(tenon.CodeAuth, "the access token is refused: "+format, args...)
}
