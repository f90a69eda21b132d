package gateway

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/subtle"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/host"
	"github.com/tenonhq/tenon/mcp"
)

const (
	// signInPath is the path of the pages for sign-ins, below the address of tenon.
	signInPath = "/sign-in/"
	// signInCallback is the path to which authorization servers send browsers back.
	signInCallback = signInPath + "callback"
	// signInTime is how long a link is valid, and then how long the sign-in itself may take.
	signInTime = 10 * time.Minute
	// addressTime bounds the time until the address of the authorization server is known.
	addressTime = 30 * time.Second
	// maxSignIns bounds the links and sign-ins of all principals, maxSignInsOf the ones of one principal. The oldest
	// unused link of the principal with the most of them is dropped, or else its oldest sign-in.
	maxSignIns, maxSignInsOf = 1024, 16
	// maxTold bounds the sessions that are notified of the end of a sign-in.
	maxTold = 64
	// signInKey is the key of the request in an answer that needs a sign-in.
	signInKey = "tenonhq.github.io/sign-in"
)

// signIns are the links that were given to clients, and the sign-ins that browsers began with them. The zero value is
// ready.
type signIns struct {
	mu   sync.Mutex
	list []*signIn        // in the order of their creation
	now  func() time.Time // if nil, time.Now
}

// signIn is one link, and the sign-in that began with it.
type signIn struct {
	host.SignInLink
	ticket  string // the secret in the link
	id      string // names the elicitation
	expires time.Time
	told    map[mcp.Session]struct{} // the clients that know id

	cancel  context.CancelFunc // nil until a browser used the link
	state   string             // of the request to the authorization server; empty before and after it is awaited
	browser string             // a secret that only the browser has that used the link
	at      chan string        // the address of the authorization server
	back    chan url.Values
	done    chan struct{} // closed when err is set
	err     error
}

func (s *signIns) time() time.Time {
	if s.now != nil {
		return s.now()
	}
	return time.Now()
}

// link returns the unused link of a principal for a server, or a new one. The client, unless it is the zero one, is
// notified of the end of the sign-in.
func (s *signIns) link(l host.SignInLink, client mcp.Session) *signIn {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.clean()
	one := s.unused(l)
	if client != (mcp.Session{}) && len(one.told) < maxTold {
		one.told[client] = struct{}{}
	}
	return one
}

// unused is link for a caller that holds the lock.
func (s *signIns) unused(l host.SignInLink) *signIn {
	for _, one := range s.list {
		left := one.expires.Sub(s.time())
		if one.SignInLink == l && one.cancel == nil && left > signInTime/2 {
			return one
		}
	}
	count, most := map[tenon.Principal]int{}, l.Principal
	for _, one := range s.list {
		if count[one.Principal]++; count[one.Principal] > count[most] {
			most = one.Principal
		}
	}
	if count[l.Principal] >= maxSignInsOf {
		s.evict(l.Principal)
	} else if len(s.list) >= maxSignIns {
		s.evict(most)
	}
	one := &signIn{SignInLink: l, ticket: rand.Text(), id: rand.Text(),
		expires: s.time().Add(signInTime), at: make(chan string, 1), back: make(chan url.Values, 1),
		done: make(chan struct{}), told: map[mcp.Session]struct{}{}}
	s.list = append(s.list, one)
	return one
}

// evict drops the oldest unused link of a principal, or its oldest sign-in if there is none. The caller holds the lock.
func (s *signIns) evict(who tenon.Principal) {
	var oldest *signIn
	for _, one := range s.list {
		switch {
		case one.Principal != who:
		case one.cancel == nil:
			s.drop(one)
			return
		case oldest == nil:
			oldest = one
		}
	}
	if oldest != nil {
		s.drop(oldest)
	}
}

// clean drops what has expired. The caller holds the lock.
func (s *signIns) clean() {
	now := s.time()
	for _, one := range slices.Clone(s.list) {
		if !now.Before(one.expires) {
			s.drop(one)
		}
	}
}

// drop forgets a link, and ends the sign-in that began with it. The caller holds the lock.
func (s *signIns) drop(one *signIn) {
	s.list = slices.DeleteFunc(s.list, func(o *signIn) bool { return o == one })
	if one.cancel != nil {
		one.cancel()
	}
}

// errLink is the error about a link that is of no use.
var errLink = tenon.Errorf(tenon.CodeNotFound, "the link is not valid: it works once, and for ten minutes; "+
	"call the tool again to get a new one")

// find returns an unused link.
func (s *signIns) find(ticket string) (*signIn, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.clean()
	for _, one := range s.list {
		if subtle.ConstantTimeCompare([]byte(one.ticket), []byte(ticket)) == 1 && one.cancel == nil {
			return one, nil
		}
	}
	return nil, errLink
}

// take uses a link. Other sign-ins of the principal to the same server end. Errors: not_found, denied.
func (s *signIns) take(ticket string, who tenon.Principal, cancel context.CancelFunc) (*signIn, error) {
	one, err := s.find(ticket)
	switch {
	case err != nil:
		return nil, err
	case one.Principal != who:
		return nil, tenon.Errorf(tenon.CodeDenied, "the link is for another user: '%s' cannot sign in with it", who)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if one.cancel != nil {
		return nil, errLink
	}
	for _, o := range slices.Clone(s.list) {
		if o.cancel != nil && o.Principal == who && o.Server == one.Server {
			s.drop(o)
		}
	}
	one.cancel, one.browser, one.expires = cancel, rand.Text(), s.time().Add(signInTime)
	return one, nil
}

// returned returns the sign-in for which an authorization server sent a browser back, and the query is used up. Errors:
// not_found, denied (it is another browser).
func (s *signIns) returned(state string, browser func(host.SignInLink) string) (*signIn, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.clean()
	for _, one := range s.list {
		switch {
		case one.state == "" || subtle.ConstantTimeCompare([]byte(one.state), []byte(state)) != 1:
			continue
		case subtle.ConstantTimeCompare([]byte(one.browser), []byte(browser(one.SignInLink))) != 1:
			return nil, tenon.Errorf(tenon.CodeDenied, "the sign-in was begun in another browser; it is not used")
		}
		one.state = ""
		return one, nil
	}
	return nil, errLink
}

// SignIn returns what an unused link is for. Errors: not_found.
func (g *Gateway) SignIn(ticket string) (host.SignInLink, error) {
	one, err := g.signIns.find(ticket)
	if err != nil {
		return host.SignInLink{}, err
	}
	return one.SignInLink, nil
}

// BeginSignIn uses a link, and returns the address of the authorization server and a secret for the cookie of the
// browser. The caller has verified that it is the browser of who. Errors: not_found, denied (the link is for another
// principal), and errors of [host.SignIn].
func (g *Gateway) BeginSignIn(ctx context.Context, ticket string, who tenon.Principal) (address, browser string,
	err error) {
	if !g.enter() {
		return "", "", errClosing
	}
	run, cancel := context.WithTimeout(g.draining, signInTime)
	one, err := g.signIns.take(ticket, who, cancel)
	if err != nil {
		cancel()
		g.calls.Done()
		return "", "", err
	}
	go func() {
		defer g.calls.Done()
		defer cancel()
		g.signInAs(run, one)
	}()
	late := time.NewTimer(addressTime)
	defer late.Stop()
	select {
	case address = <-one.at:
		return address, one.browser, nil
	case <-one.done:
		if one.err == nil {
			return "", "", tenon.Errorf(tenon.CodeInvalid, "server '%s' asks for no sign-in", one.Server)
		}
		return "", "", one.err
	case <-late.C:
		cancel()
		return "", "", tenon.Errorf(tenon.CodeTimeout, "server '%s' did not say within %s where to sign in", one.Server,
			addressTime)
	case <-ctx.Done():
		cancel()
		return "", "", tenon.Errorf(tenon.CodeCancelled, "%w", context.Cause(ctx))
	}
}

// signInAs lets the principal of a link sign in, until ctx ends.
func (g *Gateway) signInAs(ctx context.Context, one *signIn) {
	h := g.current()
	issuer, err := host.SignIn(ctx, h, one.Principal, one.Server, one.Origin+signInCallback,
		func(ctx context.Context, address string) (url.Values, error) {
			u, err := url.Parse(address)
			if err != nil {
				return nil, tenon.Errorf(tenon.CodeProtocol, "the authorization server has no valid address")
			}
			g.signIns.mu.Lock()
			one.state = u.Query().Get("state")
			g.signIns.mu.Unlock()
			one.at <- address
			select {
			case q := <-one.back:
				return q, nil
			case <-ctx.Done():
				return nil, tenon.Errorf(tenon.CodeAuth, "nobody signed in in time")
			}
		})
	log := h.Service().Info().Logger.With("server", one.Server, "principal", one.Principal)
	if err != nil {
		log.Warn("a sign-in of a principal to an MCP server failed", "error", err)
	} else {
		log.Info("a principal signed in to an MCP server", "issuer", issuer)
	}
	ended := g.signIns.end(one, err)
	close(one.done)
	for _, o := range ended {
		for session := range o.told { // sessions of Streamable HTTP queue notifications, so none delays the others
			session.Notify("notifications/elicitation/complete", append(text([]byte{'{'}, "elicitationId", o.id), '}'))
		}
	}
}

// end ends a sign-in with its result. If it succeeded, end returns it and all other links of the principal for the
// server, which are of no use any more. Nobody changes them afterwards.
func (s *signIns) end(one *signIn, err error) (ended []*signIn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	one.err = err
	s.drop(one)
	if err != nil {
		return nil
	}
	ended = []*signIn{one}
	for _, o := range slices.Clone(s.list) {
		if o.Principal == one.Principal && o.Server == one.Server {
			s.drop(o)
			ended = append(ended, o)
		}
	}
	return ended
}

// EndSignIn ends the sign-in to which a browser came back. browser returns the content of its cookie for a link. The
// returned link is the zero one if no sign-in ended. Errors: not_found, denied (it is another browser), and errors of
// [host.SignIn].
func (g *Gateway) EndSignIn(ctx context.Context, back url.Values,
	browser func(host.SignInLink) string) (host.SignInLink, error) {
	one, err := g.signIns.returned(back.Get("state"), browser)
	if err != nil {
		return host.SignInLink{}, err
	}
	one.back <- back
	select {
	case <-one.done:
		return one.SignInLink, one.err
	case <-ctx.Done():
		return one.SignInLink, tenon.Errorf(tenon.CodeCancelled, "%w", context.Cause(ctx))
	}
}

// originKey is the context key of the address at which a client reached tenon.
type originKey struct{}

// origin returns the address of tenon for browsers, without a slash at its end. The authorization server sends its code
// there, so a client must not choose it: it is the configured public URL, the entry of serve.origins with the request's
// Host, or the address of this end of the connection if the Host names it. Otherwise origin returns "".
func (g *Gateway) origin(r *http.Request) string {
	c := g.current().Service().Info().Config.Serve
	if c.Auth.OAuth.IsOn() {
		return strings.TrimSuffix(c.Auth.OAuth.URL, "/")
	}
	for _, o := range c.Origins {
		if u, err := url.Parse(o); err == nil && strings.EqualFold(u.Host, r.Host) {
			return o
		}
	}
	return ownOrigin(r)
}

// ownOrigin returns the origin of a request whose Host is the address of this end of its connection. If that is a
// loopback address, each name of the loopback is. Otherwise ownOrigin returns "".
func ownOrigin(r *http.Request) string {
	local, ok := r.Context().Value(http.LocalAddrContextKey).(*net.TCPAddr)
	if !ok {
		return "" // a unix socket, or no connection at all
	}
	scheme, port := "http", "80"
	if r.TLS != nil {
		scheme, port = "https", "443"
	}
	u, err := url.Parse(scheme + "://" + r.Host)
	if err != nil || u.Host != r.Host || cmp.Or(u.Port(), port) != strconv.Itoa(local.Port) {
		return ""
	}
	ip, own := net.ParseIP(u.Hostname()), strings.EqualFold(u.Hostname(), "localhost") && local.IP.IsLoopback()
	switch {
	case ip == nil:
	case local.IP.IsLoopback():
		own = ip.Equal(net.IPv6loopback) || ip.Equal(net.IPv4(127, 0, 0, 1))
	default:
		own = ip.Equal(local.IP)
	}
	if !own {
		return ""
	}
	return u.Scheme + "://" + strings.ToLower(u.Host)
}
