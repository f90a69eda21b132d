package oauth

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/tenonhq/tenon"
)

const (
	// maxSigns is how often, within signWindow, a person is asked to sign in because of requests. A server that
	// rejects every token must not be able to ask forever.
	maxSigns   = 3
	signWindow = 5 * time.Minute
)

func join(list []string) string { return strings.Join(list, " ") }

// sign lets a person sign in: the authorization code grant with PKCE (OAuth 2.1, section 4.1). The caller holds the
// lock, which by may release while the person signs in. The sign-in so far stays as it is until the code is exchanged.
func (s *Source) sign(ctx context.Context, t saved, as *authServer, want []string, by Signer) error {
	if !s.mayAsk() {
		return tenon.Errorf(tenon.CodeAuth, "the server still refuses after %d sign-ins (scope %s)", maxSigns,
			quote(join(want)))
	}
	redirect := by.RedirectURI()
	c, err := s.identify(ctx, as, t.registration(redirect), redirect, want)
	if err != nil {
		return err
	}
	t.Client = c
	if err := s.reserve(ctx, t); err != nil {
		return err
	}
	verifier, state := token(), token()
	digest := sha256.Sum256([]byte(verifier))
	address, err := url.Parse(as.Authorization)
	if err != nil {
		return tenon.Errorf(tenon.CodeProtocol, "%s is no authorization endpoint", quote(as.Authorization))
	}
	q := address.Query()
	for k, v := range map[string]string{"response_type": "code", "client_id": c.ID, "redirect_uri": redirect,
		"state": state, "resource": t.Resource,
		"code_challenge": base64.RawURLEncoding.EncodeToString(digest[:]), "code_challenge_method": "S256",
		"scope": join(want)} {
		if v != "" {
			q.Set(k, v)
		}
	}
	if slices.Contains(want, offline) {
		q.Set("prompt", "consent") // OpenID Connect Core, section 11
	}
	address.RawQuery = q.Encode()
	back, err := by.Sign(ctx, address.String())
	if err != nil {
		return err
	}
	if err := checkReturn(back, state, as); err != nil {
		return err
	}
	// Others may have refreshed or ended the sign-in so far during the pause: nothing of t's copy of it is kept.
	t = saved{Issuer: as.Issuer, Resource: t.Resource, Client: c, Token: as.Token, Revocation: as.Revocation,
		Scopes: want} // the scopes are used if the response does not name any
	err = s.ask(ctx, &t, url.Values{"grant_type": {"authorization_code"}, "code": {back.Get("code")},
		"redirect_uri": {redirect}, "code_verifier": {verifier}})
	if err != nil {
		return err
	}
	now, _ := s.load(ctx) // what cannot be read is replaced
	t.Wanted = slices.DeleteFunc(now.Wanted, func(scope string) bool { return slices.Contains(want, scope) })
	return s.save(ctx, t)
}

// reserve saves the registration in t, so that the next sign-in after an aborted one does not register the client
// again. Tokens of the sign-in so far stay with the registration to which they were given: an authorization server
// refuses them to another client (RFC 6749, section 6).
func (s *Source) reserve(ctx context.Context, t saved) error {
	before, _ := s.load(ctx) // what cannot be read is replaced
	switch {
	case before.Access == "" && before.Refresh == "":
		t.Next = nil
		return s.save(ctx, t)
	case !t.Client.Dynamic || before.Issuer == t.Issuer && before.Client.ID == t.Client.ID:
		return nil
	}
	before.Next = &registered{t.Issuer, t.Client}
	return s.save(ctx, before)
}

// checkReturn checks the query of the redirect: that it is the answer to our request (state), and that it comes from
// the authorization server to which the person was sent (iss, RFC 9207). Issuers are compared as strings.
func checkReturn(back url.Values, state string, as *authServer) error {
	iss, named := back.Get("iss"), back.Has("iss")
	switch {
	case subtle.ConstantTimeCompare([]byte(back.Get("state")), []byte(state)) != 1:
		return tenon.Errorf(tenon.CodeAuth,
			"the sign-in came back with another state than it was begun with; it is not used")
	case named && iss != as.Issuer:
		return tenon.Errorf(tenon.CodeAuth, "the sign-in came back from %s in place of %s; it is not used", quote(iss),
			quote(as.Issuer))
	case !named && as.NamesItself:
		return tenon.Errorf(tenon.CodeAuth,
			"the sign-in came back without the name of the authorization server (iss), which %s promises to give; it "+
				"is not used", quote(as.Issuer))
	case back.Has("error"):
		text := quote(back.Get("error"))
		if d := back.Get("error_description"); d != "" {
			text += " " + quote(d)
		}
		return tenon.Errorf(tenon.CodeAuth, "the sign-in was refused: %s", text)
	case back.Get("code") == "":
		return tenon.Errorf(tenon.CodeProtocol, "the sign-in came back without a code")
	}
	return nil
}

// mayAsk counts a sign-in, and reports whether the limit allows it.
func (s *Source) mayAsk() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.now()
	s.signs = slices.DeleteFunc(s.signs, func(at time.Time) bool { return now.Sub(at) > signWindow })
	if len(s.signs) >= maxSigns {
		return false
	}
	s.signs = append(s.signs, now)
	return true
}

// token returns a random text of 43 characters that is valid as state and as code_verifier.
func token() string {
	var b [32]byte
	_, _ = rand.Read(b[:]) // never fails
	return base64.RawURLEncoding.EncodeToString(b[:])
}

// credentials requests a token for the client itself (OAuth 2.1, section 4.2; RFC 7523, section 2.1). The caller
// holds the lock.
func (s *Source) credentials(ctx context.Context, t saved, as *authServer, want []string) error {
	// An expired token was not refused by the server, and no person is asked, so it does not count.
	if t.isFresh(s.now()) && !s.mayAsk() {
		return tenon.Errorf(tenon.CodeAuth, "the server still refuses after %d tokens (scope %s)", maxSigns,
			quote(join(want)))
	}
	grant, err := s.machine(ctx, as)
	if err != nil {
		return err
	}
	if len(as.Grants) > 0 && !slices.Contains(as.Grants, grant.Get("grant_type")) {
		return tenon.Errorf(tenon.CodeAuth,
			"the authorization server %s gives no tokens for the grant %s; change auth.grant", as.Issuer, s.cfg.Grant)
	}
	c, err := s.identify(ctx, as, client{}, "", want)
	if err != nil {
		return err
	}
	t.Client, t.Scopes, t.Refresh = c, want, ""
	if len(want) > 0 {
		grant.Set("scope", join(want))
	}
	if err := s.ask(ctx, &t, grant); err != nil {
		return err
	}
	return s.save(ctx, t)
}

// probe is a request that every MCP server with OAuth refuses if it has no token.
const probe = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25",` +
	`"capabilities":{},"clientInfo":{"name":"tenon","version":"0"}}}`

// Login lets a person sign in, even if a sign-in is kept, and returns the authorization server. It sends the first
// request to the MCP server over network, and lets the person sign in with by.
func (s *Source) Login(ctx context.Context, network http.RoundTripper, by Signer) (issuer string, err error) {
	c, err := s.question(ctx, network)
	if err != nil {
		return "", err
	}
	t, unlock, unreadable, err := s.reset(ctx)
	if err != nil {
		return "", err
	}
	defer func() { unlock() }()
	if unreadable != nil {
		s.log.Info("what was kept of a sign-in cannot be read, and is replaced", "server", s.cfg.Server, "error",
			unreadable.Error())
	}
	if s.cfg.ClientID != "" {
		t.Issuer = "" // a person who signs in again sees the address
	}
	res, as, err := s.discover(ctx, c, t.Issuer)
	if err != nil {
		return "", err
	}
	if t, err = s.moved(t, res, as); err != nil {
		return "", err
	}
	want := s.choose(c, res, as, t, false)
	if s.cfg.isMachine() {
		return as.Issuer, assumed(as, s.credentials(ctx, t, as, want))
	}
	// A person may take minutes, in which requests with the sign-in so far must go on.
	err = s.sign(ctx, t, as, want, pausing{by, &unlock, func(ctx context.Context) (func(), error) {
		_, unlock, _, err := s.reset(ctx)
		return unlock, err
	}})
	return as.Issuer, assumed(as, err)
}

// pausing is a Signer that releases a lock until the person has finished.
type pausing struct {
	Signer
	unlock *func() // replaced by the lock that is held afterwards
	lock   func(context.Context) (unlock func(), err error)
}

// Sign implements [Signer].
func (p pausing) Sign(ctx context.Context, address string) (url.Values, error) {
	(*p.unlock)()
	*p.unlock = func() {}
	back, err := p.Signer.Sign(ctx, address)
	if err != nil {
		return nil, err
	}
	unlock, err := p.lock(ctx)
	if err != nil {
		return nil, err
	}
	*p.unlock = unlock
	return back, nil
}

// question sends a request without a token, and returns the server's challenge.
func (s *Source) question(ctx context.Context, network http.RoundTripper) (challenge, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.url.String(), bytes.NewReader([]byte(probe)))
	if err != nil {
		return challenge{}, tenon.Errorf(tenon.CodeConfig, "%s is no URL", quote(s.url.Redacted()))
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	resp, err := s.send(network, req, "")
	if err != nil {
		return challenge{}, wrapf(tenon.CodeUnreachable, err, "%s cannot be reached: %s", s.url.Host, err)
	}
	_ = resp.Body.Close()
	c, _ := bearer(resp.Header)
	return c, nil // a server that demands no token yet may still have metadata
}

// Scopes returns the scopes of the kept sign-in, and reports whether there is one.
func (s *Source) Scopes(ctx context.Context) ([]string, bool, error) {
	t, err := s.load(ctx)
	return slices.Clone(t.Scopes), t.Access != "" || t.Refresh != "", err
}

// Redirect returns the redirect URI of tenon's registration, or "" if tenon has not registered itself.
func (s *Source) Redirect(ctx context.Context) string {
	t, err := s.load(ctx)
	switch {
	case err != nil:
	case t.Client.Dynamic:
		return t.Client.Redirect
	case t.Next != nil:
		return t.Next.Client.Redirect
	}
	return ""
}

// Logout deletes the sign-in, even an unreadable one. had reports whether there was one. Logout revokes the tokens at
// the authorization server if possible; untold is the reason if it could not.
func (s *Source) Logout(ctx context.Context) (had bool, untold, err error) {
	t, unlock, untold, err := s.reset(ctx)
	if err != nil {
		return false, nil, err
	}
	defer unlock()
	had = t.Access != "" || t.Refresh != "" || untold != nil
	switch {
	case t.Access == "" && t.Refresh == "":
	case t.Revocation == "":
		untold = tenon.Errorf(tenon.CodeInvalid, "the authorization server %s has no endpoint for it (RFC 7009); they "+
			"may be valid there until they expire", t.Issuer)
	default:
		for kind, value := range map[string]string{"refresh_token": t.Refresh, "access_token": t.Access} {
			if value == "" {
				continue
			}
			if err := s.revoke(ctx, &t, value, kind); err != nil {
				untold = err
			}
		}
	}
	s.state.Store(&saved{})
	if s.cfg.Vault != nil {
		err = s.cfg.Vault.remove(s.key())
	}
	return had, untold, err
}
