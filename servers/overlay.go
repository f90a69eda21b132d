package servers

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/servers/oauth"
)

// Overlay contains the credentials of one caller at a server. Auth replaces the configured credentials; headers and
// variables are added to the configured ones. The zero value changes nothing.
type Overlay struct {
	// Owner is the owner of the credentials, or empty for no particular one. Two owners never share a connection, and
	// one owner cannot use up all connections.
	Owner string
	// Account is the principal whose own sign-in with OAuth is used; see [Server.LoginAs]. Then Auth is not used.
	Account string
	// Subject is an access token of the caller. It is exchanged for the server's own kind of token; see
	// [Server.Exchange]. The server never gets it.
	Subject tenon.Secret
	// SubjectIssuer is the verified issuer of Subject, as in its claim iss.
	SubjectIssuer string

	Auth    Auth              // Type "" keeps the configured one; not oauth
	Headers map[string]string // over HTTP and WebSocket
	Env     map[string]string // for a separate process
}

// IsZero reports whether the overlay changes nothing.
func (o Overlay) IsZero() bool {
	return o.Auth.Type == "" && len(o.Headers) == 0 && len(o.Env) == 0 && o.Account == "" && o.Subject.IsZero()
}

// Key returns a digest that identifies the overlay, or "" for the zero one. It is a digest, because overlays contain
// secrets.
func (o Overlay) Key() string {
	if o.IsZero() {
		return ""
	}
	b, err := json.Marshal([]any{o.Owner, o.Auth.Type, o.Auth.Header, o.Auth.Secret.Reveal(), o.Headers, o.Env,
		o.Account, o.Subject.Reveal(), o.SubjectIssuer})
	if err != nil {
		return "" // cannot happen: all values are strings
	}
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

type overlayKey struct{}

// WithOverlay returns a context that makes requests to servers use a separate connection for the overlay, so that two
// callers with two tokens never share a connection. The list of tools still comes from the configuration's own
// connection.
func WithOverlay(ctx context.Context, o Overlay) context.Context {
	return context.WithValue(ctx, overlayKey{}, o)
}

// over returns a configuration with an overlay applied. A header of the overlay replaces a configured header of the
// same name; upper and lower case do not matter.
func (c Config) over(o Overlay) Config {
	taken := []string{}
	if o.Account != "" {
		if c.Auth.Type != AuthOAuth {
			c.Auth = Auth{Type: AuthOAuth}
		}
		c.Auth.Grant = oauth.GrantAuthorizationCode // whatever tenon does for itself
		taken = append(taken, "Authorization")
	} else if o.Auth.Type != "" {
		c.Auth = o.Auth.withDefaults()
		own := "Authorization"
		if c.Auth.Type == AuthHeader || c.Auth.Type == AuthAPIKey {
			own = c.Auth.Header
		}
		taken = append(taken, own)
	}
	taken = slices.AppendSeq(taken, maps.Keys(o.Headers))
	headers := maps.Clone(o.Headers)
	for k, v := range c.Headers {
		if !slices.ContainsFunc(taken, func(own string) bool { return strings.EqualFold(own, k) }) {
			if headers == nil {
				headers = map[string]string{}
			}
			headers[k] = v
		}
	}
	env := maps.Clone(c.Env)
	if env == nil && len(o.Env) > 0 {
		env = map[string]string{}
	}
	maps.Copy(env, o.Env)
	c.Headers, c.Env = headers, env
	return c
}

const (
	maxOverlays = 128             // maximum number of connections of overlays for one server
	maxOwned    = 32              // maximum number of them for one owner
	overlayIdle = 5 * time.Minute // an unused connection of an overlay is closed after this time
	leastMasked = 8               // minimum length, in characters, of a header or variable to be masked in responses
)

// overlaid contains the connections of a server that belong to overlays, by key.
type overlaid struct {
	mu      sync.Mutex
	m       map[string]*overlay
	leaving map[*overlay]struct{} // no longer in m; the last user closes them
	closed  bool                  // all connections have been closed
}

type overlay struct {
	s     *Server
	owner string
	users int
	last  time.Time   // time of the last use
	timer *time.Timer // closes the connection when it is idle
}

// forCaller returns the server for the context's overlay, and a function that the caller must call after the use.
// Both are nil if the context has no overlay.
func (s *Server) forCaller(ctx context.Context) (*Server, func(), error) {
	o, _ := ctx.Value(overlayKey{}).(Overlay)
	if o.IsZero() || s.ofCaller {
		return nil, nil, nil
	}
	if o.Auth.Type == AuthOAuth {
		return nil, nil, tenon.Errorf(tenon.CodeInvalid, "server '%s': credentials of a caller cannot be of type oauth",
			s.name)
	}
	if !o.Subject.IsZero() {
		return nil, nil, tenon.Errorf(tenon.CodeInternal, "server '%s': the token of a caller was not exchanged",
			s.name)
	}
	s.mu.Lock()
	off, closed := s.isOff(), s.closed
	s.mu.Unlock()
	switch {
	case off != nil:
		return nil, nil, off
	case closed:
		return nil, nil, tenon.Errorf(tenon.CodeUnreachable, "server '%s' is closed", s.name)
	}
	l, key := &s.overlaid, o.Key()
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return nil, nil, tenon.Errorf(tenon.CodeUnreachable, "server '%s' is closed", s.name)
	}
	one := l.m[key]
	if one == nil {
		if err := s.makeRoom(o.Owner); err != nil {
			return nil, nil, err
		}
		one = &overlay{s: s.laidOver(o), owner: o.Owner}
		one.timer = time.AfterFunc(overlayIdle, func() { s.expire(key, one) })
		if l.m == nil {
			l.m = map[string]*overlay{}
		}
		l.m[key] = one
	}
	one.users++
	one.last = time.Now()
	return one.s, func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		one.last = time.Now()
		one.users--
		_, leaves := l.leaving[one]
		switch {
		case one.users > 0 || l.closed:
		case leaves:
			delete(l.leaving, one)
			s.end(one)
		default:
			one.timer.Reset(overlayIdle)
		}
	}, nil
}

// laidOver creates the server for an overlay.
func (s *Server) laidOver(o Overlay) *Server {
	opts := s.opts
	opts.Cache, opts.Logs, opts.Pool, opts.Changed = "", "", nil, nil
	veil := veilOf(o)
	if o.Account != "" {
		opts.Learned = veil.Add // only this connection uses the tokens
	}
	if opts.Logger != nil {
		opts.Logger = slog.New(veil.Handler(opts.Logger.Handler()))
	}
	if s.opts.Resolve != nil {
		opts.Resolve = func(ctx context.Context) (Config, error) {
			cfg, err := s.opts.Resolve(ctx)
			return cfg.over(o), err
		}
	}
	own := New(s.name, s.cfg.over(o), opts)
	own.journal, own.frames, own.flood, own.single, own.ofCaller, own.veil = s.journal, s.frames, s.flood, true, true,
		veil
	own.roots, own.accountName = s.roots, o.Account
	s.mu.Lock()
	own.protocol, own.found = s.protocol, s.found
	s.mu.Unlock()
	return own
}

// makeRoom checks that an owner can have one more connection, and closes an idle one if a limit is reached. The
// caller holds the lock.
func (s *Server) makeRoom(owner string) error {
	of := 0
	for _, one := range s.overlaid.m {
		if one.owner == owner {
			of++
		}
	}
	switch {
	case owner != "" && of >= maxOwned && !s.evict(func(o *overlay) bool { return o.owner == owner }):
		return tenon.Errorf(tenon.CodeRateLimited,
			"'%s' uses server '%s' with %d different credentials at once; ask again in a moment", owner, s.name,
			maxOwned)
	case len(s.overlaid.m) >= maxOverlays && !s.evict(func(*overlay) bool { return true }):
		return tenon.Errorf(tenon.CodeRateLimited,
			"server '%s' is used with %d different credentials at once; ask again in a moment", s.name, maxOverlays)
	}
	return nil
}

// evict closes the overlay that has been idle longest, among those for which may returns true. It returns false if
// none is idle. The caller holds the lock.
func (s *Server) evict(may func(*overlay) bool) bool {
	oldest := ""
	for key, one := range s.overlaid.m {
		if one.users == 0 && may(one) && (oldest == "" || one.last.Before(s.overlaid.m[oldest].last)) {
			oldest = key
		}
	}
	if oldest == "" {
		return false
	}
	s.end(s.overlaid.m[oldest])
	delete(s.overlaid.m, oldest)
	return true
}

// expire closes a connection that has not been used for overlayIdle.
func (s *Server) expire(key string, one *overlay) {
	l := &s.overlaid
	l.mu.Lock()
	defer l.mu.Unlock()
	if one.users > 0 || l.m[key] != one {
		return
	}
	delete(l.m, key)
	s.end(one)
}

// end closes a connection in the background. The caller holds the lock of overlaid, and calls end only before Close
// waits for s.wg.
func (s *Server) end(one *overlay) {
	one.timer.Stop()
	s.wg.Go(func() { _ = one.s.Close() }) // no caller is left to receive the error
}

// dropOwned closes the connections of an owner, so that its next call makes a new one. A connection in use is closed by
// its last user.
func (s *Server) dropOwned(owner string) {
	l := &s.overlaid
	l.mu.Lock()
	defer l.mu.Unlock()
	for key, one := range l.m {
		if one.owner != owner {
			continue
		}
		delete(l.m, key)
		if one.users == 0 {
			s.end(one)
			continue
		}
		if l.leaving == nil {
			l.leaving = map[*overlay]struct{}{}
		}
		l.leaving[one] = struct{}{}
	}
}

// dropOverlays closes the connections of all overlays. A connection in use is closed by its last user, or at once if
// final is true.
func (s *Server) dropOverlays(final bool) {
	l := &s.overlaid
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, one := range l.m {
		if one.users == 0 || final {
			s.end(one)
			continue
		}
		if l.leaving == nil {
			l.leaving = map[*overlay]struct{}{}
		}
		l.leaving[one] = struct{}{}
	}
	l.m = nil
	l.closed = l.closed || final
	if final {
		for one := range l.leaving {
			s.end(one)
		}
		l.leaving = nil
	}
}
