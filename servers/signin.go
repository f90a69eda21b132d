package servers

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/servers/oauth"
	"github.com/tenonhq/tenon/transport"
)

// headers returns the headers of every request. A configured header overrides the header from auth.
func (s *Server) headers(cfg Config) map[string]string {
	h := make(map[string]string, len(cfg.Headers)+1)
	secret := cfg.Auth.Secret.Reveal()
	switch cfg.Auth.Type {
	case AuthBearer:
		h["Authorization"] = "Bearer " + cmp.Or(secondFactor(secret), secret)
	case AuthBasic:
		h["Authorization"] = basic(login(secret))
	case AuthAPIKey, AuthHeader:
		h[http.CanonicalHeaderKey(cfg.Auth.Header)] = secret
	case AuthCredential:
		if v := credential(secret); v != "" {
			h["Authorization"] = v
		} else {
			s.log.Warn("the credential of an MCP server is empty; it is asked without", "key",
				s.key("auth.secret"))
		}
	}
	for k, v := range cfg.Headers {
		h[http.CanonicalHeaderKey(k)] = v
	}
	return h
}

func basic(both string) string {
	return "Basic " + base64.StdEncoding.EncodeToString([]byte(both))
}

// credential returns the Authorization header for a credential: a second factor is a bearer token, login and password
// are Basic, a password alone is a bearer token. It returns "" if the credential contains none of them.
func credential(secret string) string {
	if f := secondFactor(secret); f != "" {
		return "Bearer " + f
	}
	both := login(secret)
	user, password, ok := strings.Cut(both, ":")
	switch {
	case ok && user == "" && password == "", !ok && both == "":
		return ""
	case ok && user != "":
		return basic(both)
	case ok:
		return "Bearer " + password
	}
	return "Bearer " + both
}

// secondFactor reads the second factor from a JSON object.
func secondFactor(secret string) string {
	var c struct {
		Factor string `json:"second_factor"`
	}
	if json.Unmarshal([]byte(secret), &c) != nil {
		return ""
	}
	return c.Factor
}

// login returns "login:password", from a text in this form or from a JSON object with both members.
func login(secret string) string {
	var both struct{ Login, Password string }
	if json.Unmarshal([]byte(secret), &both) == nil &&
		(both.Login != "" || both.Password != "" || strings.HasPrefix(strings.TrimSpace(secret), "{")) {
		return both.Login + ":" + both.Password
	}
	return secret
}

// signsIn reports whether tenon may sign in to a server with OAuth. The entry must configure OAuth or leave the
// authentication out.
func signsIn(cfg Config) bool {
	if cfg.Transport == TransportStdio || cfg.Transport == TransportWebSocket {
		return false
	}
	if cfg.Auth.Type == AuthOAuth {
		return true
	}
	for k := range cfg.Headers {
		if http.CanonicalHeaderKey(k) == "Authorization" {
			return false
		}
	}
	return cfg.Auth.Type == AuthNone
}

// source returns the server's source of tokens.
func (s *Server) source(cfg Config) (*oauth.Source, error) {
	return s.sourceOf(cfg, s.accountName, s.opts.Learned)
}

// sourceOf returns the source of tokens for the sign-in of a principal, or for the one that all share.
func (s *Server) sourceOf(cfg Config, account string, learned func(tenon.Secret)) (*oauth.Source, error) {
	assertion := func(ctx context.Context) (tenon.Secret, error) {
		if s.opts.Resolve == nil {
			return cfg.Auth.Assertion, nil
		}
		now, err := s.opts.Resolve(ctx)
		return now.Auth.Assertion, err
	}
	return oauth.New(oauth.Config{
		Server: s.name, Account: account, URL: cfg.URL, Grant: cfg.Auth.Grant,
		ClientID: cfg.Auth.ClientID, ClientSecret: cfg.Auth.ClientSecret,
		PrivateKey: cfg.Auth.PrivateKey, KeyID: cfg.Auth.KeyID, Assertion: assertion,
		Scopes: cfg.Auth.Scopes, Issuer: cfg.Auth.Issuer, Passive: cfg.Auth.Type != AuthOAuth,
		Public: s.opts.Admit != nil,
		Vault:  s.opts.Vault, Sign: s.opts.Sign, Learned: learned, Logger: s.log,
	})
}

// signIn returns the wrapper that adds the sign-in to HTTP requests, or nil if the server has none.
func (s *Server) signIn(cfg Config) (func(http.RoundTripper) http.RoundTripper, error) {
	if !signsIn(cfg) {
		return nil, nil
	}
	src, err := s.source(cfg)
	if err != nil {
		return nil, err
	}
	return src.Wrap, nil
}

// loginTime is how long a person may take to sign in.
const loginTime = 10 * time.Minute

// Login lets a person sign in to the server and keeps the tokens. It calls show with the address to visit. It returns
// the authorization server.
func (s *Server) Login(ctx context.Context, show func(address string)) (issuer string, err error) {
	cfg, src, err := s.account(ctx)
	if err != nil {
		return "", err
	}
	ctx, cancel := context.WithTimeout(ctx, loginTime)
	defer cancel()
	network := transport.Network(s.opts.Admit)
	defer network.CloseIdleConnections()
	port := cfg.Auth.CallbackPort
	before := oauth.Port(src.Redirect(ctx))
	l, err := oauth.Listen(cmp.Or(port, before), show)
	if err != nil && port == 0 && before != 0 { // another program uses the port now
		l, err = oauth.Listen(0, show)
	}
	if err != nil {
		return "", s.failedLogin(err)
	}
	issuer, err = src.Login(ctx, network, l)
	if cerr := l.Close(); err == nil && cerr != nil {
		s.log.Debug("the port for the browser was not closed well", "error", cerr)
	}
	if err != nil {
		return "", s.failedLogin(err)
	}
	return issuer, nil
}

// Logout revokes and deletes the tokens of the server. had reports whether there were any. untold is the error if the
// tokens could not be revoked at the authorization server.
func (s *Server) Logout(ctx context.Context) (had bool, untold, err error) {
	_, src, err := s.account(ctx)
	if err != nil {
		return false, nil, err
	}
	return src.Logout(ctx)
}

// account returns the configuration and the token source for signing in.
func (s *Server) account(ctx context.Context) (Config, *oauth.Source, error) {
	cfg := s.cfg
	if !signsIn(cfg) {
		if cfg.Transport == TransportStdio || cfg.Transport == TransportWebSocket {
			key := "headers"
			if cfg.Transport == TransportStdio {
				key = "env"
			}
			return cfg, nil, tenon.Errorf(tenon.CodeInvalid,
				"server '%s' is reached over %s, where there is no sign-in with OAuth; give it its credentials in %s",
				s.name, cfg.Transport, s.key(key))
		}
		return cfg, nil, tenon.Errorf(tenon.CodeInvalid,
			"server '%s' has its credentials in the configuration; remove them and set %s to oauth to sign in", s.name,
			s.key("auth.type"))
	}
	if s.opts.Resolve != nil {
		resolved, err := s.opts.Resolve(ctx)
		if err != nil {
			return cfg, nil, err
		}
		cfg = resolved.WithDefaults()
	}
	if s.opts.Vault == nil {
		return cfg, nil, tenon.Errorf(tenon.CodeStore,
			"there is no folder in which a sign-in could be kept: set HOME or XDG_STATE_HOME")
	}
	src, err := s.source(cfg)
	return cfg, src, err
}

func (s *Server) failedLogin(err error) error {
	var e *tenon.Error
	if !errors.As(err, &e) {
		e = &tenon.Error{Code: tenon.CodeCancelled, Message: err.Error()}
	}
	return &tenon.Error{Code: e.Code, Message: fmt.Sprintf("no sign-in to MCP server '%s' at %s: %s", s.name,
		s.target(), clean(e.Message)), Err: err}
}

// remedy tells a person what to do when a server refuses access.
func (s *Server) remedy(err error) string {
	var status *transport.StatusError
	header := s.headerKey()
	answered := errors.As(err, &status)
	signs := signsIn(s.cfg) && (!answered || strings.Contains(strings.ToLower(status.Challenge), "bearer"))
	switch {
	case s.accountName != "":
		return fmt.Sprintf("'%s' has to sign in again", s.accountName)
	case s.cfg.Auth.Type == AuthOAuth && s.cfg.Auth.Grant == oauth.GrantClientCredentials:
		return "check client_id and client_secret or private_key in " + s.key("auth")
	case s.cfg.Auth.Type == AuthOAuth && s.cfg.Auth.Grant == oauth.GrantJWTBearer:
		return "check assertion in " + s.key("auth")
	case s.cfg.Auth.Type == AuthOAuth:
		return fmt.Sprintf("sign in with 'tenon servers login %s'", s.name)
	case s.cfg.Auth.Type == AuthNone && header != "" && signs:
		return fmt.Sprintf("check %s, or remove it and sign in with 'tenon servers login %s'", header, s.name)
	case s.cfg.Auth.Type == AuthNone && header != "":
		return "check " + header
	case signs && !answered:
		return fmt.Sprintf("sign in with 'tenon servers login %s'", s.name)
	case signs:
		return fmt.Sprintf("sign in with 'tenon servers login %s', or set %s", s.name, s.key("auth"))
	}
	return "check " + s.key("auth")
}

// headerKey returns the key of the header in the configuration that has the credentials, or the key of all headers if
// it may be any of several. It returns "" if no header is configured.
func (s *Server) headerKey() string {
	names := slices.Sorted(maps.Keys(s.cfg.Headers))
	isOther := func(n string) bool { return !NamesSecret(n) }
	if secret := slices.DeleteFunc(slices.Clone(names), isOther); len(secret) > 0 {
		names = secret
	}
	switch len(names) {
	case 0:
		return ""
	case 1:
		return s.key("headers." + names[0])
	}
	return s.key("headers")
}
