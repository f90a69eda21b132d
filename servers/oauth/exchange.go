package oauth

import (
	"context"
	"net/url"
	"slices"
	"time"

	"github.com/tenonhq/tenon"
)

// Identifiers of token exchange (RFC 8693, sections 2.1 and 3).
const (
	grantExchange = "urn:ietf:params:oauth:grant-type:token-exchange"
	typeAccess    = "urn:ietf:params:oauth:token-type:access_token"
	typeJWT       = "urn:ietf:params:oauth:token-type:jwt"
)

// Exchange obtains an access token for the MCP server in exchange for the access token of a user (RFC 8693). It asks
// only the authorization server [Config.Issuer], because a server that named another one would get the user's token.
// audience is sent in addition to the URL of the MCP server, unless it is empty. Nothing is kept. expires is zero if
// the answer does not say how long the token is valid. Errors: config (no issuer), auth_required (the authorization
// server refuses), protocol, unreachable, too_large.
func (s *Source) Exchange(ctx context.Context, subject tenon.Secret, audience string) (token tenon.Secret,
	expires time.Time, err error) {
	var none tenon.Secret
	if s.cfg.Issuer == "" {
		return none, expires, tenon.Errorf(tenon.CodeConfig, "auth.issuer is missing: the token of a user is sent "+
			"only to an authorization server that the configuration names")
	}
	as, err := s.authServer(ctx, s.cfg.Issuer)
	if err != nil {
		return none, expires, err
	}
	if len(as.Grants) > 0 && !slices.Contains(as.Grants, grantExchange) {
		return none, expires, tenon.Errorf(tenon.CodeAuth, "the authorization server %s exchanges no tokens (%s)",
			as.Issuer, grantExchange)
	}
	c, err := s.identify(ctx, as, client{}, "", nil)
	if err != nil {
		return none, expires, err
	}
	form := url.Values{"grant_type": {grantExchange}, "subject_token": {subject.Reveal()},
		"subject_token_type": {typeAccess}, "requested_token_type": {typeAccess}}
	if audience != "" {
		form.Set("audience", audience)
	}
	if len(s.cfg.Scopes) > 0 {
		form.Set("scope", join(s.cfg.Scopes))
	}
	t := saved{Issuer: as.Issuer, Client: c, Token: as.Token, Resource: s.canonical()}
	if err := s.ask(ctx, &t, form); err != nil {
		return none, expires, err
	}
	if t.Access == subject.Reveal() {
		return none, expires, tenon.Errorf(tenon.CodeProtocol,
			"the authorization server %s gave back the token of the user, which must not reach the server", as.Issuer)
	}
	if !t.Expires.IsZero() {
		expires = t.Expires.Add(-time.Duration(t.Early) * time.Second)
	}
	return tenon.NewSecret(t.Access), expires, nil
}
