package oauth

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/tenonhq/tenon"
)

// client is tenon's registration at one authorization server.
type client struct {
	ID       string    `json:"id"`
	Secret   string    `json:"secret,omitempty"`
	Method   string    `json:"method"`             // method of authentication at the token endpoint
	Redirect string    `json:"redirect,omitempty"` // the redirect URI in the registration
	Expires  time.Time `json:"expires,omitzero"`   // of the secret
	Dynamic  bool      `json:"dynamic,omitempty"`  // registered by tenon
	Algs     []string  `json:"algs,omitempty"`     // signatures that the server takes of its key
}

// The methods of authentication at the token endpoint (RFC 7591, section 2).
const (
	methodNone  = "none"
	methodBasic = "client_secret_basic"
	methodPost  = "client_secret_post"
)

// isDocument reports whether a client id is the URL of a client id metadata
// document (draft-ietf-oauth-client-id-metadata-document).
func isDocument(id string) bool {
	u, err := url.Parse(id)
	return err == nil && u.Scheme == "https" && u.Host != "" && strings.Trim(u.Path, "/") != ""
}

// identify returns tenon's registration at an authorization server: the configured one; else a client id metadata
// document if the server supports those; else the registration in before; else a new one (RFC 7591).
func (s *Source) identify(ctx context.Context, as *authServer, before client, redirect string, want []string) (client,
	error) {
	secret := s.cfg.ClientSecret.Reveal()
	switch id := s.cfg.ClientID; {
	case id != "" && !isDocument(id):
		c := client{ID: id, Secret: secret, Method: methodNone, Redirect: redirect}
		if !s.cfg.PrivateKey.IsZero() {
			c.Method, c.Algs = methodKey, as.Algs
			if len(as.Methods) > 0 && !slices.Contains(as.Methods, methodKey) {
				return client{}, tenon.Errorf(tenon.CodeAuth,
					"the authorization server %s takes no clients that prove themselves with a key (%s); it takes %s",
					as.Issuer, methodKey, quote(join(as.Methods)))
			}
		} else if secret != "" {
			c.Method = methodBasic // the default if the server's metadata name no method (RFC 8414, section 2)
			if len(as.Methods) > 0 && !slices.Contains(as.Methods, methodBasic) &&
				slices.Contains(as.Methods, methodPost) {
				c.Method = methodPost
			}
		}
		return c, nil
	case id != "" && as.Documents:
		return client{ID: id, Method: methodNone, Redirect: redirect}, nil
	case before.Dynamic && before.Redirect == redirect &&
		(before.Expires.IsZero() || time.Now().Before(before.Expires)):
		return before, nil
	case as.Registration == "":
		return client{}, tenon.Errorf(tenon.CodeAuth,
			"the authorization server %s does not register clients by itself; register tenon there with the redirect "+
				"URI %s, "+
				"and write the client's id under auth.client_id", as.Issuer, redirect)
	}
	return s.register(ctx, as, redirect, want)
}

func (s *Source) register(ctx context.Context, as *authServer, redirect string, want []string) (client, error) {
	method := methodNone
	if len(as.Methods) > 0 && !slices.Contains(as.Methods, methodNone) {
		method = methodBasic
		if !slices.Contains(as.Methods, methodBasic) && slices.Contains(as.Methods, methodPost) {
			method = methodPost
		}
	}
	kind := "native" // OpenID Connect Dynamic Client Registration, section 2: native clients come back to loopback
	if strings.HasPrefix(redirect, "https:") {
		kind = "web"
	}
	body, err := json.Marshal(map[string]any{
		"client_name": "tenon", "redirect_uris": []string{redirect}, "application_type": kind,
		"grant_types": []string{"authorization_code", "refresh_token"}, "response_types": []string{"code"},
		"token_endpoint_auth_method": method, "scope": strings.Join(want, " "),
	})
	if err != nil {
		return client{}, tenon.Errorf(tenon.CodeInternal, "a registration cannot be written: %w", err)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, as.Registration, bytes.NewReader(body))
	if err != nil {
		return client{}, tenon.Errorf(tenon.CodeProtocol, "%s is no registration endpoint", quote(as.Registration))
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json")
	status, _, answer, err := s.guard.do(req)
	if err != nil {
		return client{}, err
	}
	var got struct {
		ID      string `json:"client_id"`
		Secret  string `json:"client_secret"`
		Method  string `json:"token_endpoint_auth_method"`
		Expires int64  `json:"client_secret_expires_at"`
	}
	if status != http.StatusOK && status != http.StatusCreated {
		return client{}, tenon.Errorf(tenon.CodeAuth,
			"the authorization server %s refuses to register tenon (HTTP %d%s); register it there with the redirect "+
				"URI %s, "+
				"and write the client's id under auth.client_id", as.Issuer, status, said(answer), redirect)
	}
	if json.Unmarshal(answer, &got) != nil || got.ID == "" {
		return client{}, tenon.Errorf(tenon.CodeProtocol,
			"the authorization server %s registered tenon without a client_id", as.Issuer)
	}
	c := client{ID: got.ID, Secret: got.Secret, Method: got.Method, Redirect: redirect, Dynamic: true}
	if c.Method == "" {
		c.Method = method
		if c.Secret != "" && method == methodNone {
			c.Method = methodBasic
		}
	}
	if c.Method != methodNone && c.Method != methodBasic && c.Method != methodPost {
		return client{}, tenon.Errorf(tenon.CodeAuth,
			"the authorization server %s wants clients to prove themselves by %s, which tenon cannot", as.Issuer,
			quote(c.Method))
	}
	if got.Expires > 0 {
		c.Expires = time.Unix(got.Expires, 0)
	}
	s.learned(c.Secret)
	return c, nil
}

// said returns the text of an OAuth error response (RFC 6749, section 5.2) for an error message.
func said(answer []byte, secrets ...string) string {
	var e struct {
		Error       string `json:"error"`
		Description string `json:"error_description"`
	}
	if json.Unmarshal(answer, &e) != nil || e.Error == "" {
		return ""
	}
	text := ": " + quote(masked(e.Error, secrets))
	if e.Description != "" {
		text += " " + quote(masked(e.Description, secrets))
	}
	return text
}

// leastMasked is the length of the shortest secret that is masked, in bytes. A shorter one would mask parts of words.
const leastMasked = 4

// masked replaces secrets in a text of an authorization server, which may repeat what was sent to it.
func masked(text string, secrets []string) string {
	for _, s := range secrets {
		if len(s) >= leastMasked {
			text = strings.NewReplacer(s, "***", url.QueryEscape(s), "***").Replace(text)
		}
	}
	return text
}
