package oauth

import (
	"context"
	"encoding/json"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"time"

	"github.com/tenonhq/tenon"
)

// saved is what is stored for one server: tenon's registration, and the tokens. A [Vault] stores it encrypted.
type saved struct {
	Server     string    `json:"server"`
	URL        string    `json:"url"`
	Issuer     string    `json:"issuer"`
	Resource   string    `json:"resource"`
	Client     client    `json:"client"`
	Token      string    `json:"token_endpoint"`
	Revocation string    `json:"revocation_endpoint,omitempty"`
	Access     string    `json:"access_token,omitempty"`
	Refresh    string    `json:"refresh_token,omitempty"`
	Expires    time.Time `json:"expires,omitzero"`
	Early      int       `json:"early,omitempty"` // seconds before Expires at which it is renewed
	Scopes     []string  `json:"scopes,omitempty"`
	// Peer is the address of the MCP server when the state was saved. A refresh may need it before the next request
	// to the server.
	Peer netip.Addr `json:"peer,omitzero"`
	// Wanted are scopes that the server demanded while no person could sign in.
	Wanted []string `json:"wanted,omitempty"`
	// Next is tenon's registration for a sign-in that has not ended yet. The tokens do not belong to it.
	Next *registered `json:"next,omitempty"`
}

// registered is tenon's registration at the authorization server of an issuer.
type registered struct {
	Issuer string `json:"issuer"`
	Client client `json:"client"`
}

// registration returns tenon's registration at t's authorization server that may serve for a redirect URI.
func (t *saved) registration(redirect string) client {
	if n := t.Next; n != nil && n.Issuer == t.Issuer && n.Client.Redirect == redirect {
		return n.Client
	}
	return t.Client
}

// isFresh reports whether the access token can be used now.
func (t *saved) isFresh(now time.Time) bool {
	return t.Access != "" && (t.Expires.IsZero() || now.Before(t.Expires.Add(-time.Duration(t.Early)*time.Second)))
}

// usable returns the state, without its access token if that has expired.
func (t saved) usable(now time.Time) *saved {
	if !t.isFresh(now) {
		t.Access = ""
	}
	return &t
}

// tokenError is a refusal of a token endpoint (RFC 6749, section 5.2).
type tokenError struct{ code, text string }

func (e *tokenError) Error() string { return e.text }

const (
	maxToken = 64 << 10
	maxEarly = 30 // seconds
)

// secretFields are the fields of a token request that are secrets.
var secretFields = []string{"subject_token", "code", "code_verifier", "refresh_token", "client_secret",
	"client_assertion"}

// ask sends a token request to the token endpoint and stores the tokens of its response in t. The client's secret is
// sent by the registered method, never in a URL.
func (s *Source) ask(ctx context.Context, t *saved, grant url.Values) error {
	form := url.Values{}
	for k, v := range grant {
		form[k] = v
	}
	if t.Resource != "" {
		form.Set("resource", t.Resource)
	}
	if t.Client.Method != methodBasic {
		form.Set("client_id", t.Client.ID)
	}
	if err := s.prove(t, form); err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, t.Token, strings.NewReader(form.Encode()))
	if err != nil {
		return tenon.Errorf(tenon.CodeProtocol, "%s is no token endpoint", quote(t.Token))
	}
	if t.Client.Method == methodBasic { // both are form-encoded first (RFC 6749, section 2.3.1)
		req.SetBasicAuth(url.QueryEscape(t.Client.ID), url.QueryEscape(t.Client.Secret))
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	req.Header.Set("Accept", "application/json")
	status, _, body, err := s.guard.do(req)
	if err != nil {
		return err
	}
	var got struct {
		Access  string      `json:"access_token"`
		Type    string      `json:"token_type"`
		Refresh string      `json:"refresh_token"`
		Expires json.Number `json:"expires_in"`
		Scope   string      `json:"scope"`
		Issued  string      `json:"issued_token_type"`
		Error   string      `json:"error"`
	}
	bad := json.Unmarshal(body, &got) != nil
	secrets := secretsOf(t, form)
	refuses := got.Error != "" || status == http.StatusBadRequest || status == http.StatusUnauthorized
	switch {
	// A response that is not in OAuth's form is not a refusal. It comes from a device in between, such as a gateway
	// or the login page of a network. The refresh token stays valid.
	case status >= 500 || status == http.StatusTooManyRequests, status != http.StatusOK &&
		status != http.StatusCreated && !refuses:
		return tenon.Errorf(tenon.CodeUnreachable, "the authorization server %s answers HTTP %d%s", t.Issuer, status,
			said(body, secrets...))
	case refuses:
		e := &tokenError{got.Error, "refused" + said(body, secrets...)}
		return wrapf(tenon.CodeAuth, e, "the authorization server %s refuses a token (HTTP %d%s)", t.Issuer, status,
			said(body, secrets...))
	case bad || got.Access == "" || len(got.Access) > maxToken || len(got.Refresh) > maxToken ||
		strings.ContainsFunc(got.Access, notInHeader):
		return tenon.Errorf(tenon.CodeProtocol,
			"the authorization server %s gave an answer without a usable access token", t.Issuer)
	case got.Type != "" && !strings.EqualFold(got.Type, "Bearer"):
		return tenon.Errorf(tenon.CodeProtocol,
			"the authorization server %s gave a token of type %s, which tenon cannot use", t.Issuer,
			quote(masked(got.Type, secrets)))
	case got.Issued != "" && got.Issued != typeAccess && got.Issued != typeJWT:
		return tenon.Errorf(tenon.CodeProtocol,
			"the authorization server %s gave a token of type %s in place of an access token", t.Issuer,
			quote(masked(got.Issued, secrets)))
	}
	t.Access, t.Expires, t.Early = got.Access, time.Time{}, 0
	if n, err := got.Expires.Float64(); err == nil && n > 0 {
		life := time.Duration(min(n, 10*365*24*3600) * float64(time.Second))
		t.Expires, t.Early = s.now().Add(life).Round(0), min(maxEarly, int(life.Seconds()/10))
	}
	if got.Refresh != "" { // replaced by the response; otherwise the old one stays
		t.Refresh = got.Refresh
	}
	if got.Scope != "" {
		t.Scopes = scopes(got.Scope)
	}
	t.Wanted = nil
	s.learned(t.Access, t.Refresh)
	return nil
}

// secretsOf returns the secrets of a request, which an authorization server may repeat in its answer.
func secretsOf(t *saved, form url.Values) []string {
	secrets := []string{t.Client.Secret}
	for _, key := range secretFields {
		secrets = append(secrets, form.Get(key))
	}
	return secrets
}

// prove adds the client's authentication to a form, if the method puts it there.
func (s *Source) prove(t *saved, form url.Values) error {
	switch t.Client.Method {
	case methodPost:
		form.Set("client_secret", t.Client.Secret)
	case methodKey:
		return s.assert(t, form)
	}
	return nil
}

func notInHeader(r rune) bool { return r <= ' ' || r >= 0x7f }

// refresh exchanges the refresh token for new tokens.
func (s *Source) refresh(ctx context.Context, t *saved) error {
	return s.ask(ctx, t, url.Values{"grant_type": {"refresh_token"}, "refresh_token": {t.Refresh}})
}

// revoke revokes a token at the authorization server (RFC 7009).
func (s *Source) revoke(ctx context.Context, t *saved, token, kind string) error {
	form := url.Values{"token": {token}, "token_type_hint": {kind}}
	if t.Client.Method != methodBasic {
		form.Set("client_id", t.Client.ID)
	}
	if err := s.prove(t, form); err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, t.Revocation, strings.NewReader(form.Encode()))
	if err != nil {
		return tenon.Errorf(tenon.CodeProtocol, "%s is no revocation endpoint", quote(t.Revocation))
	}
	if t.Client.Method == methodBasic {
		req.SetBasicAuth(url.QueryEscape(t.Client.ID), url.QueryEscape(t.Client.Secret))
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	status, _, answer, err := s.guard.do(req)
	if err == nil && status >= 300 {
		err = tenon.Errorf(tenon.CodeAuth, "the authorization server %s does not revoke the token (HTTP %d%s)",
			t.Issuer, status, said(answer, token, t.Client.Secret, form.Get("client_assertion")))
	}
	return err
}
