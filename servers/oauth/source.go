package oauth

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptrace"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tenonhq/tenon"
)

// The grants with which tokens are obtained.
const (
	GrantAuthorizationCode = "authorization_code" // a person signs in
	GrantClientCredentials = "client_credentials" // the client authenticates itself
	GrantJWTBearer         = "jwt_bearer"         // the client presents a token of another issuer
	GrantTokenExchange     = "token_exchange"     // see [Source.Exchange]
)

// Config configures the sign-in to one server.
type Config struct {
	Server string // name of the server, part of the key under which tokens are kept
	// Account is the principal whose own sign-in this is, part of the same key. If empty, it is the sign-in that all
	// callers share.
	Account string
	URL     string // URL of the MCP endpoint, http or https
	Grant   string // "" means GrantAuthorizationCode
	// ClientID is the id of a manually registered client, or the https URL of a client id metadata document. If empty,
	// the client registers itself.
	ClientID     string
	ClientSecret tenon.Secret
	// PrivateKey, in PEM, authenticates the client instead of a secret; KeyID is its id.
	PrivateKey tenon.Secret
	KeyID      string
	// Assertion returns the token of another issuer for GrantJWTBearer. It is called for each token request, because
	// such tokens expire soon.
	Assertion func(context.Context) (tenon.Secret, error)
	Scopes    []string // scopes of the first request; if empty, the ones that the server names
	Issuer    string   // the only authorization server to use; if empty, the one that the MCP server names
	// Public says that not even Issuer may be at a private address.
	Public bool
	// Passive says that tenon does not sign in to a server for which it never had a token.
	Passive bool
	Vault   *Vault // where tokens are kept; if nil, in memory only
	// Sign lets a person sign in when a request needs it. If nil, such a request ends with code auth_required, until
	// somebody calls [Source.Login].
	Sign Signer
	// Learned is called with each secret before it is used, so that it can be masked elsewhere. It may be nil.
	Learned func(tenon.Secret)
	Logger  *slog.Logger     // if nil, nothing is logged
	Now     func() time.Time // if nil, time.Now
}

// isMachine reports whether the grant works without a person.
func (c *Config) isMachine() bool {
	return c.Grant == GrantClientCredentials || c.Grant == GrantJWTBearer || c.Grant == GrantTokenExchange
}

// Signer lets a person sign in.
type Signer interface {
	// RedirectURI is the URI to which the authorization server redirects the person.
	RedirectURI() string
	// Sign sends a person to the address, and returns the query of the redirect. It does not check the query.
	Sign(ctx context.Context, address string) (url.Values, error)
}

// Source provides the tokens for one server. It is safe for concurrent use: one request at a time obtains a token,
// and the others wait for it.
type Source struct {
	cfg   Config
	url   *url.URL
	guard *guard
	log   *slog.Logger
	peer  atomic.Pointer[netip.Addr]

	slot  chan struct{} // held while the state is changed
	state atomic.Pointer[saved]
	mu    sync.Mutex
	signs []time.Time // times of the last sign-ins that were requested
}

// New returns the source of one server. It reads and sends nothing. Its error has code config.
func New(cfg Config) (*Source, error) {
	u, err := url.Parse(cfg.URL)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, tenon.Errorf(tenon.CodeConfig, "%s is not an http or https URL with a host", quote(cfg.URL))
	}
	u.Fragment, u.User = "", nil
	cfg.Scopes = slices.Clone(cfg.Scopes)
	s := &Source{cfg: cfg, url: u, log: cfg.Logger, slot: make(chan struct{}, 1)}
	if s.log == nil {
		s.log = slog.New(slog.DiscardHandler)
	}
	named := []string{}
	if cfg.Issuer != "" && !cfg.Public {
		named = append(named, cfg.Issuer)
	}
	s.guard = newGuard(u, named, func() netip.Addr {
		if p := s.peer.Load(); p != nil {
			return *p
		}
		return netip.Addr{}
	})
	return s, nil
}

func (s *Source) now() time.Time {
	if s.cfg.Now != nil {
		return s.cfg.Now()
	}
	return time.Now()
}

func (s *Source) learned(values ...string) {
	for _, v := range values {
		if v != "" && s.cfg.Learned != nil {
			s.cfg.Learned(tenon.NewSecret(v))
		}
	}
}

// maxTries bounds how often one request is sent.
const maxTries = 4

// Wrap returns a round tripper that adds tokens to the requests to the server, and sends them over network. A request
// can be repeated with a new token only if its body can be read again (GetBody). Errors have code auth_required if a
// person has to sign in.
func (s *Source) Wrap(network http.RoundTripper) http.RoundTripper {
	return roundTrip(func(r *http.Request) (*http.Response, error) {
		ctx := r.Context()
		for try, renewed := 1, false; ; try++ {
			t, err := s.current(ctx)
			if err != nil {
				return nil, err
			}
			if s.cfg.Passive && t.Issuer == "" || r.Header.Get("Authorization") != "" || !sameOrigin(r.URL, s.url) {
				return network.RoundTrip(r) // never send a token to another server
			}
			resp, err := s.send(network, r, t.Access)
			if err != nil || try == maxTries || resp.StatusCode != http.StatusUnauthorized && !isStepUp(resp) {
				return resp, err
			}
			if r.Body != nil && r.GetBody == nil {
				return resp, nil // the body cannot be sent again
			}
			c, _ := bearer(resp.Header)
			text, _ := io.ReadAll(io.LimitReader(resp.Body, 4<<10)) // needed to reuse the connection
			_ = resp.Body.Close()
			stepUp := resp.StatusCode == http.StatusForbidden
			if err := s.renew(ctx, t, c, stepUp, renewed); err != nil {
				return nil, withText(err, resp, text)
			}
			renewed = !stepUp
		}
	})
}

// withText adds the text of the refused request to an error. A response that names an error of RFC 6750 has no
// further text for a person, so it is left out.
func withText(err error, resp *http.Response, text []byte) error {
	kind, _, _ := strings.Cut(resp.Header.Get("Content-Type"), ";")
	c, _ := bearer(resp.Header)
	short := strings.Join(strings.Fields(string(text)), " ")
	if short == "" || c.Metadata != "" || c.Error != "" || strings.TrimSpace(kind) == "text/html" ||
		errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return wrapf(tenon.ErrorCode(err), err, "%s (it answered HTTP %d: %s)", err, resp.StatusCode, quote(short))
}

// send sends a request with a token, and remembers the address of the server.
func (s *Source) send(network http.RoundTripper, r *http.Request, token string) (*http.Response, error) {
	ctx := httptrace.WithClientTrace(r.Context(), &httptrace.ClientTrace{GotConn: func(c httptrace.GotConnInfo) {
		if at, err := netip.ParseAddrPort(c.Conn.RemoteAddr().String()); err == nil {
			ip := at.Addr()
			if p, err := s.guard.proxy(r); err == nil && p == nil { // a proxy has another address
				s.peer.Store(&ip)
			}
		}
	}})
	again := r.WithContext(ctx)
	if token != "" {
		again.Header = r.Header.Clone()
		again.Header["Authorization"] = []string{"Bearer " + token}
	}
	if r.GetBody != nil {
		body, err := r.GetBody()
		if err != nil {
			return nil, err
		}
		again.Body = body
	}
	return network.RoundTrip(again)
}

// isStepUp reports whether a response demands more scopes (RFC 6750, section 3.1).
func isStepUp(resp *http.Response) bool {
	c, _ := bearer(resp.Header)
	return resp.StatusCode == http.StatusForbidden && c.Error == "insufficient_scope"
}

// lock locks the state against changes, by this process and by others that share the vault, and then reads it.
func (s *Source) lock(ctx context.Context) (t saved, unlock func(), err error) {
	t, unlock, unreadable, err := s.reset(ctx)
	if err == nil && unreadable != nil {
		unlock()
		return saved{}, nil, unreadable
	}
	return t, unlock, err
}

// reset is lock for an action of a person. An unreadable sign-in, for example after a change of the key, does not
// prevent signing in or out: reset returns the reason as unreadable, and an empty state.
func (s *Source) reset(ctx context.Context) (t saved, unlock func(), unreadable, err error) {
	select {
	case s.slot <- struct{}{}:
	case <-ctx.Done():
		return saved{}, nil, nil, ctx.Err()
	}
	free := func() {}
	if s.cfg.Vault != nil {
		if free, err = s.cfg.Vault.lock(ctx, s.key()); err != nil {
			<-s.slot
			return saved{}, nil, nil, err
		}
	}
	unlock = func() { free(); <-s.slot }
	if t, unreadable = s.load(ctx); unreadable != nil {
		t = saved{}
	}
	return t, unlock, unreadable, nil
}

// load returns the saved sign-in: from the vault, or from memory if there is no vault. It is empty if there is none.
func (s *Source) load(ctx context.Context) (saved, error) {
	var t saved
	if s.cfg.Vault == nil {
		if p := s.state.Load(); p != nil {
			t = *p
		}
		s.state.Store(&t)
		return t, nil
	}
	if err := s.cfg.Vault.load(ctx, s.key(), &t); err != nil {
		return t, err
	}
	s.learned(t.Access, t.Refresh, t.Client.Secret)
	if t.Peer.IsValid() {
		s.peer.CompareAndSwap(nil, &t.Peer)
	}
	s.state.Store(&t)
	return t, nil
}

// save stores the state. The caller holds the lock.
func (s *Source) save(ctx context.Context, t saved) error {
	t.Server, t.URL = s.cfg.Server, s.canonical()
	if p := s.peer.Load(); p != nil {
		t.Peer = *p
	}
	s.state.Store(&t)
	if s.cfg.Vault == nil {
		return nil
	}
	return s.cfg.Vault.save(ctx, s.key(), &t)
}

// key returns the server's key in the vault. It contains the URL, so that a server of the same name in another file
// gets no token, and the account, so that no principal gets the token of another one.
func (s *Source) key() string {
	key := s.cfg.Server + "\n" + s.canonical()
	if s.cfg.Account != "" {
		key += "\n" + s.cfg.Account
	}
	return key
}

// current returns the state with a usable access token, and refreshes a token that is about to expire. The token is
// empty if there is none.
func (s *Source) current(ctx context.Context) (*saved, error) {
	if t := s.state.Load(); t != nil && (t.isFresh(s.now()) || t.Refresh == "") {
		return t.usable(s.now()), nil
	}
	if t, err := s.load(ctx); err != nil || t.isFresh(s.now()) || t.Refresh == "" {
		return t.usable(s.now()), err
	}
	t, unlock, err := s.lock(ctx)
	if err != nil {
		return nil, err
	}
	defer unlock()
	if t.isFresh(s.now()) || t.Refresh == "" { // another goroutine or process has refreshed it
		return t.usable(s.now()), nil
	}
	if err := s.refreshed(ctx, &t); err != nil {
		if s.now().Before(t.Expires) {
			return &t, nil // the old token is still valid for a moment
		}
		return nil, err
	}
	return &t, nil
}

// refreshed refreshes the tokens and saves them. If the authorization server refuses, the tokens are deleted and no
// error is returned: the MCP server's next response then says what it requires.
func (s *Source) refreshed(ctx context.Context, t *saved) error {
	err := s.refresh(ctx, t)
	var refused *tokenError
	if errors.As(err, &refused) {
		s.log.Info("the sign-in to an MCP server has ended", "server", s.cfg.Server, "error", refused.text)
		t.Access, t.Refresh, t.Expires = "", "", time.Time{}
		if refused.code == "invalid_client" {
			t.Client = client{}
		}
		err = nil
	}
	if err != nil {
		return err
	}
	return s.save(ctx, *t)
}

// renew obtains a token for the first request, or a new one after the server refused used.
func (s *Source) renew(ctx context.Context, used *saved, c challenge, stepUp, renewed bool) error {
	t, unlock, err := s.lock(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	if t.Access != used.Access && t.isFresh(s.now()) {
		s.state.Store(&t)
		return nil // another request or process has renewed it
	}
	res, as, err := s.discover(ctx, c, t.Issuer)
	if err != nil {
		return err
	}
	if t, err = s.moved(t, res, as); err != nil {
		return err
	}
	if !stepUp && t.Refresh != "" && !renewed {
		if err := s.refreshed(ctx, &t); err != nil || t.Access != "" {
			return err
		}
	}
	want := s.choose(c, res, as, t, stepUp)
	if s.cfg.isMachine() {
		return assumed(as, s.credentials(ctx, t, as, want))
	}
	if s.cfg.Sign == nil {
		t.Wanted, t.Access = want, ""
		if stepUp {
			t.Access = used.Access // still valid for requests that need no further scope
		}
		if err := s.save(ctx, t); err != nil {
			return err
		}
		return needed(t, stepUp, c)
	}
	return assumed(as, s.sign(ctx, t, as, want, s.cfg.Sign))
}

// needed returns the error that a person has to sign in, with the reason.
func needed(t saved, stepUp bool, c challenge) error {
	switch {
	case stepUp:
		return tenon.Errorf(tenon.CodeAuth, "the server wants more rights than the sign-in gave (scope %s)",
			quote(join(c.Scope)))
	case t.Client.ID != "":
		return tenon.Errorf(tenon.CodeAuth, "the sign-in has ended, and the server wants a new one")
	}
	return tenon.Errorf(tenon.CodeAuth, "the server wants a sign-in at %s", t.Issuer)
}

// moved copies the endpoints in the server's metadata to the saved sign-in. If the metadata name another
// authorization server, it first drops the tokens and the client of the old one.
func (s *Source) moved(t saved, res *resource, as *authServer) (saved, error) {
	if t.Issuer != "" && t.Issuer != as.Issuer {
		if s.cfg.ClientID != "" && !isDocument(s.cfg.ClientID) && s.cfg.Issuer == "" {
			return t, tenon.Errorf(tenon.CodeAuth,
				"it now names the authorization server %s in place of %s, to which auth.client_id belongs; if that "+
					"is right, "+
					"write the new one under auth.issuer", as.Issuer, t.Issuer)
		}
		s.log.Info("an MCP server has moved to another authorization server", "server", s.cfg.Server, "issuer",
			as.Issuer)
		t = saved{Next: t.Next}
	}
	t.Issuer, t.Resource, t.Token, t.Revocation = as.Issuer, res.Resource, as.Token, as.Revocation
	return t, nil
}

// choose returns the scopes to request: the configured ones, or else the scopes of the challenge, or else of the
// server's metadata, or else none. It adds the scopes that were granted before. It requests offline_access, for a
// refresh token, only if the authorization server supports it.
func (s *Source) choose(c challenge, res *resource, as *authServer, t saved, stepUp bool) []string {
	want := s.cfg.Scopes
	if stepUp || len(want) == 0 {
		want = union(want, c.Scope)
		if c.Scope == nil && !stepUp {
			want = res.Scopes
		}
	}
	want = union(append(slices.Clone(t.Scopes), t.Wanted...), want)
	if s.cfg.isMachine() || !slices.Contains(as.Scopes, offline) && !slices.Contains(s.cfg.Scopes, offline) {
		return slices.DeleteFunc(want, func(s string) bool { return s == offline })
	}
	return union(want, []string{offline})
}

const offline = "offline_access"
