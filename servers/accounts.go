package servers

import (
	"context"
	"crypto/sha256"
	"fmt"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/servers/oauth"
	"github.com/tenonhq/tenon/transport"
)

// Visit sends a person to an address, and returns the query with which the browser came back to the redirect URI.
type Visit func(ctx context.Context, address string) (url.Values, error)

// visitor is the [oauth.Signer] for a browser that comes back to a page of a surface.
type visitor struct {
	redirect string
	visit    Visit
}

// RedirectURI implements [oauth.Signer].
func (v visitor) RedirectURI() string { return v.redirect }

// Sign implements [oauth.Signer].
func (v visitor) Sign(ctx context.Context, address string) (url.Values, error) {
	return v.visit(ctx, address)
}

// HasAccount reports whether a principal itself has signed in to the server. It contacts nobody. Errors: store,
// auth_required (the sign-in cannot be decrypted).
func (s *Server) HasAccount(ctx context.Context, who tenon.Principal) (bool, error) {
	src, err := s.accountOf(ctx, who)
	if err != nil {
		return false, err
	}
	_, has, err := src.Scopes(ctx)
	return has, err
}

// LoginAs lets a principal sign in to the server, and keeps the tokens for this principal only. The browser comes back
// to redirect. LoginAs returns the authorization server. Later calls of the principal use the new tokens.
func (s *Server) LoginAs(ctx context.Context, who tenon.Principal, redirect string, visit Visit) (issuer string,
	err error) {
	src, err := s.accountOf(ctx, who)
	if err != nil {
		return "", err
	}
	ctx, cancel := context.WithTimeout(ctx, loginTime)
	defer cancel()
	network := transport.Network(s.opts.Admit)
	defer network.CloseIdleConnections()
	if issuer, err = src.Login(ctx, network, visitor{redirect, visit}); err != nil {
		return "", s.failedLogin(err)
	}
	s.dropOwned(string(who))
	return issuer, nil
}

// LogoutAs revokes and deletes the sign-in of a principal. had reports whether there was one. untold is the error if
// the tokens could not be revoked at the authorization server. Later calls of the principal need a new sign-in.
func (s *Server) LogoutAs(ctx context.Context, who tenon.Principal) (had bool, untold, err error) {
	src, err := s.accountOf(ctx, who)
	if err != nil {
		return false, nil, err
	}
	had, untold, err = src.Logout(ctx)
	s.dropOwned(string(who))
	return had, untold, err
}

// accountOf returns the token source for a principal's own sign-in.
func (s *Server) accountOf(ctx context.Context, who tenon.Principal) (*oauth.Source, error) {
	cfg := s.cfg
	if s.opts.Resolve != nil {
		resolved, err := s.opts.Resolve(ctx)
		if err != nil {
			return nil, err
		}
		cfg = resolved.WithDefaults()
	}
	cfg = cfg.over(Overlay{Account: string(who)})
	if !signsIn(cfg) {
		return nil, tenon.Errorf(tenon.CodeInvalid, "server '%s' is reached over %s, where there is no sign-in with "+
			"OAuth", s.name, cfg.Transport)
	}
	if s.opts.Vault == nil {
		return nil, tenon.Errorf(tenon.CodeStore,
			"there is no folder in which a sign-in could be kept: set HOME or XDG_STATE_HOME")
	}
	return s.sourceOf(cfg, string(who), nil) // nothing of it is sent or shown here
}

const (
	// maxExchanged bounds the exchanged tokens of a server. The one that expires first is forgotten.
	maxExchanged = 1024
	// unknownLife is how long an exchanged token is used whose answer names no time.
	unknownLife = time.Minute
)

// exchanged are the tokens that callers have got in exchange for their own, by a digest of the caller and its token.
// The zero value is ready.
type exchanged struct {
	mu sync.Mutex
	m  map[[sha256.Size]byte]*exchangedToken
}

type exchangedToken struct {
	done    chan struct{} // closed when the fields below are set
	token   tenon.Secret
	expires time.Time
	err     error
}

// Exchange returns an overlay with a token of the server for a principal, which it gets at auth.issuer in exchange for
// the Subject of an overlay, an access token of the principal (RFC 8693). audience is asked for in addition to the
// server's URL, unless it is empty. A token of another issuer than auth.issuer is sent nowhere. The new token is kept
// in memory until it expires, for the same principal with the same token and audience only. Errors name the server and
// the key: config, denied (another issuer), auth_required, protocol, unreachable.
func (s *Server) Exchange(ctx context.Context, who tenon.Principal, o Overlay, audience string) (Overlay, error) {
	key := sha256.Sum256([]byte(string(who) + "\n" + o.Subject.Reveal() + "\n" + o.SubjectIssuer + "\n" + audience))
	for {
		one, mine := s.exchanged.find(key, time.Now())
		if mine {
			one.token, one.expires, one.err = s.exchange(ctx, who, o, audience)
			if one.err != nil {
				s.exchanged.forget(key, one)
			}
			close(one.done)
		}
		select {
		case <-one.done:
		case <-ctx.Done():
			return Overlay{}, gaveUp(ctx, "a token for server '"+s.name+"'", "it waited for the authorization server")
		}
		switch {
		case one.err == nil:
			return Overlay{Owner: string(who), Auth: Auth{Type: AuthBearer, Secret: one.token}}, nil
		case !mine && ctx.Err() == nil && tenon.ErrorCode(one.err) == tenon.CodeCancelled:
			continue // the other caller gave up, this one did not
		}
		return Overlay{}, one.err
	}
}

func (s *Server) exchange(ctx context.Context, who tenon.Principal, o Overlay, audience string) (token tenon.Secret,
	expires time.Time, err error) {
	subject := o.Subject
	fail := func(err error) (tenon.Secret, time.Time, error) {
		text := strings.ReplaceAll(clean(err.Error()), subject.Reveal(), "***")
		code := tenon.ErrorCode(err)
		if ctx.Err() != nil {
			code = tenon.CodeCancelled
		}
		return tenon.Secret{}, time.Time{}, &tenon.Error{Code: code, Err: err, Message: fmt.Sprintf("server '%s': the "+
			"access token of '%s' was not exchanged (%s): %s", s.name, who, s.key("caller_credentials.exchange"), text)}
	}
	cfg := s.cfg
	if s.opts.Resolve != nil {
		resolved, err := s.opts.Resolve(ctx)
		if err != nil {
			return fail(err)
		}
		cfg = resolved.WithDefaults()
	}
	if o.SubjectIssuer != cfg.Auth.Issuer {
		return fail(tenon.Errorf(tenon.CodeDenied, "an issuer of serve.auth.oauth.issuers, %s, gave it, and it is not "+
			"sent to another one: %s is '%s'", tenon.Visible(o.SubjectIssuer), s.key("auth.issuer"), cfg.Auth.Issuer))
	}
	src, err := oauth.New(oauth.Config{Server: s.name, URL: cfg.URL, Grant: oauth.GrantTokenExchange,
		ClientID: cfg.Auth.ClientID, ClientSecret: cfg.Auth.ClientSecret, PrivateKey: cfg.Auth.PrivateKey,
		KeyID: cfg.Auth.KeyID, Scopes: cfg.Auth.Scopes, Issuer: cfg.Auth.Issuer, Public: s.opts.Admit != nil,
		Logger: s.log})
	if err != nil {
		return fail(err)
	}
	token, expires, err = src.Exchange(ctx, subject, audience)
	if err != nil {
		return fail(err)
	}
	if expires.IsZero() {
		expires = time.Now().Add(unknownLife)
	}
	return token, expires, nil
}

// find returns the token of a key. If mine is set, the caller has to get it.
func (e *exchanged) find(key [sha256.Size]byte, now time.Time) (one *exchangedToken, mine bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if one = e.m[key]; one != nil {
		select {
		case <-one.done:
			if now.Before(one.expires) {
				return one, false
			}
		default:
			return one, false
		}
	}
	if e.m == nil {
		e.m = map[[sha256.Size]byte]*exchangedToken{}
	}
	for len(e.m) >= maxExchanged {
		e.evict(now)
	}
	one = &exchangedToken{done: make(chan struct{})}
	e.m[key] = one
	return one, true
}

// evict forgets the expired tokens, or else the token that expires first. A token that is being fetched counts as the
// one that expires last. The caller holds the lock.
func (e *exchanged) evict(now time.Time) {
	var first [sha256.Size]byte
	var soonest time.Time
	for key, one := range e.m {
		expires := now.Add(100 * 365 * 24 * time.Hour)
		select {
		case <-one.done:
			expires = one.expires
		default:
		}
		if !now.Before(expires) {
			delete(e.m, key)
		} else if soonest.IsZero() || expires.Before(soonest) {
			first, soonest = key, expires
		}
	}
	if len(e.m) >= maxExchanged {
		delete(e.m, first)
	}
}

func (e *exchanged) forget(key [sha256.Size]byte, one *exchangedToken) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.m[key] == one {
		delete(e.m, key)
	}
}

// refused forgets a token that the server refused, so that the next call gets a new one.
func (e *exchanged) refused(token tenon.Secret) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for key, one := range e.m {
		select {
		case <-one.done:
			if one.token.Reveal() == token.Reveal() {
				delete(e.m, key)
			}
		default:
		}
	}
}

var _ oauth.Signer = visitor{}
